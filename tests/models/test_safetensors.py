"""A safetensors file says the truth about itself, or is refused."""

from __future__ import annotations

import json
import os
import pickle
import struct
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.errors import ConfigError
from macaron.models.safetensors import (
    CHUNK,
    UnusableTensors,
    as_bytes,
    as_floats,
    looks_pickled,
    open_tensors,
)
from tests.models.census_files import header_of, write_sparse


def packed(header: object, body: bytes = b"") -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + body


def entry(kind: Any, shape: Any, *offsets: Any) -> dict[str, Any]:
    return {"x": {"dtype": kind, "shape": shape, "data_offsets": list(offsets)}}


def pair(first: tuple[int, int], second: tuple[int, int]) -> dict[str, Any]:
    """Two tensors of four bytes."""
    return {name: entry("U8", [4], *at)["x"] for name, at in (("a", first), ("b", second))}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "ends within its header"),
        (b"\xff" * 64, "its header would have 18446744073709551615 bytes"),
        (struct.pack("<Q", 2**25 + 1) + b"{}", "its header would have 33554433 bytes"),
        (struct.pack("<Q", 33_000_000) + b"{}", "ends within its header"),
        (struct.pack("<Q", 0) + b"{}", "no usable JSON object"),
        (packed([]), "no usable JSON object"),
        (packed(b" {}"), "no usable JSON object"),
        (packed(b"[" * 100_000), "no usable JSON object"),
        (packed(b'{"a":' + b"[" * 199_999), "nested too deeply"),
        (packed(b"{\xff}"), "no usable JSON object"),
        (packed(b'{"a": NaN}'), "no usable JSON object"),
        (packed(b'{"a":[' + b"[]," * 1_310_721 + b"[]]}"), "more entries than any model's"),
        (packed({"x": {"dtype": "F32"}}), "no type, shape and place"),
        (packed({"__metadata__": {"a": 1}}), "something other than text"),
        (packed({"__metadata__": []}), "something other than text"),
        (packed(entry("F32", [4, 2], 0, 32)), "describes 32 bytes of tensors, the file has 0"),
        (packed(entry("F32", [4, 2], 0, 32), bytes(16)), "describes 32 bytes of tensors, the file has 16"),
        (packed(entry("F32", [4, 2], 0, 32), bytes(4096)), "describes 32 bytes of tensors, the file has 4096"),
        (packed(entry("F32", [2**40, 2**30], 0, 32), bytes(32)), "values of 32 bits in 32 bytes"),
        (packed(entry("F4", [3], 0, 1), bytes(1)), "3 values of 4 bits in 1 bytes"),
        (packed(entry("F32", [-4, -2], 0, 32), bytes(32)), "no type, shape and place"),
        (packed(entry("F32", [2**63], 0, 32), bytes(32)), "no type, shape and place"),
        (packed(entry("F32", [True], 0, 4), bytes(4)), "no type, shape and place"),
        (packed(entry("F32", [1] * 9, 0, 4), bytes(4)), "no type, shape and place"),
        (packed(entry("F32", [4, 2], 0, 32, 64), bytes(32)), "no type, shape and place"),
        (packed(entry("F32", [4.5], 0, 18), bytes(18)), "no type, shape and place"),
        (packed(entry("F32", [0], 0, -1)), "no type, shape and place"),
        (packed({"x": {**entry("U8", [4], 0, 4)["x"], "more": 1}}, bytes(4)), "no type, shape and place"),
        (packed(entry("F32", [4, 2], 32, 0), bytes(32)), "hole or ends before it begins"),
        (packed(entry("F32", [4, 2], 8, 40), bytes(40)), "hole"),
        (packed(pair((0, 4), (5, 9)), bytes(9)), "hole"),
        (packed(pair((0, 4), (2, 6)), bytes(6)), "overlaps"),
        (packed(pair((0, 4), (0, 4)), bytes(4)), "overlaps"),
        (packed(entry("F7\x1b[2J", [4], 0, 4), bytes(4)), r"type 'F7\?\[2J', which is not known"),
    ],
)
def test_a_file_that_lies_about_itself_is_refused(raw: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(raw)
    with pytest.raises(UnusableTensors, match=f"is not a usable safetensors file: .*{reason}") as caught:
        open_tensors(path)
    assert len(caught.value.message) < 1000
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    ("raw", "code", "tensor"),
    [
        (packed(entry("F32", [4, 2], 0, 32), bytes(16)), "truncated", None),
        (packed(entry("F99", [4], 0, 4), bytes(4)), "dtype", "x"),
        (packed(b'{"x": {}, "\\u0078": {}}'), "name_collision", "x"),
        (packed(entry("F32", [3], 0, 32), bytes(32)), "bad_safetensors", "x"),
        (pickle.dumps(list(range(99))), "pickle", None),
    ],
)
def test_a_refusal_says_what_it_is_about(raw: bytes, code: str, tensor: str | None, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(raw)
    with pytest.raises(UnusableTensors) as caught:
        open_tensors(tmp_path / "x")
    assert (caught.value.code, caught.value.param) == (code, tensor)
    assert caught.value.message.endswith(f"{caught.value.reason}; {caught.value.remedy}")


@given(cut=st.integers(0, 60), position=st.integers(0, 300), byte=st.integers(0, 255))
def test_a_damaged_file_is_read_or_refused_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, cut: int, position: int, byte: int
) -> None:
    path = write_sparse(tmp_path_factory.mktemp("damaged") / "x", {"a": (3, 4), "b": (5,)})
    raw = bytearray(path.read_bytes())
    raw[position % len(raw)] = byte
    path.write_bytes(raw[: len(raw) - cut])
    with suppress(UnusableTensors):
        open_tensors(path)


@given(
    shapes=st.dictionaries(st.text(min_size=1, max_size=8), st.lists(st.integers(0, 40), max_size=4).map(tuple)),
    dtype=st.sampled_from(["F64", "F32", "BF16", "F16", "U8"]),
)
def test_the_values_are_the_sum_of_the_products_of_the_shapes(
    tmp_path_factory: pytest.TempPathFactory, shapes: dict[str, tuple[int, ...]], dtype: str
) -> None:
    shapes.pop("__metadata__", None)
    found = open_tensors(write_sparse(tmp_path_factory.mktemp("law") / "x", shapes, dtype))
    assert sum(tensor.values for tensor in found.tensors.values()) == sum(map(prod, shapes.values()))
    assert found.size - len(found.head) == header_of(shapes, dtype)[1]
    assert found.tensors.keys() == shapes.keys()


def test_a_header_whose_length_looks_like_a_pickle_is_not_taken_for_one() -> None:
    assert not looks_pickled((0x0280).to_bytes(8, "little") + b"{")
    assert looks_pickled(pickle.dumps([1])[:9])


def test_what_is_no_file_is_not_opened_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, reason in ((tmp_path, "Is a directory"), (tmp_path / "pipe", "is not a regular file")):
        with pytest.raises(ConfigError, match=reason):
            open_tensors(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"x\.safetensors cannot be read"):
        open_tensors(tmp_path / "x.safetensors")


def test_some_rows_of_a_tensor_are_read(tmp_path: Path) -> None:
    values = np.arange(12, dtype="<f4")
    path = tmp_path / "x.safetensors"
    path.write_bytes(
        packed({**entry("F32", [4, 3], 8, 56), "a": entry("F32", [2], 0, 8)["x"]}, bytes(8) + values.tobytes())
    )
    found = open_tensors(path)
    with path.open("rb") as file:
        assert found.read(file, "x", 1, 3) == values[3:9].tobytes()
        assert found.read(file, "x") == values.tobytes()
        assert found.read(file, "a") == bytes(8)


def test_a_tensor_is_streamed_in_pieces_of_bounded_size(tmp_path: Path) -> None:
    path = write_sparse(tmp_path / "x", {"a": (3,), "b": (2 * CHUNK + 6,)}, "U8")
    with path.open("rb", buffering=0) as file:
        assert [len(chunk) for chunk in open_tensors(path).chunks(file, "b")] == [CHUNK, CHUNK, 6]


def test_a_file_that_shrinks_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(packed(entry("F32", [4, 3], 0, 48), bytes(48)))
    found = open_tensors(path)
    os.truncate(path, path.stat().st_size - 4)
    with path.open("rb") as file, pytest.raises(ConfigError, match="changed while it was read"):
        found.read(file, "x")
    with path.open("rb") as file, pytest.raises(ConfigError, match="changed while it was read"):
        list(found.chunks(file, "x"))


@pytest.mark.parametrize("dtype", ["BF16", "F16"])
def test_every_number_of_16_bits_survives_the_way_through_32(dtype: str) -> None:
    every = np.arange(65_536, dtype="<u2").tobytes()
    values = as_floats(every, dtype)
    finite = np.isfinite(values)
    back = np.frombuffer(as_bytes(values, dtype), "<u2")
    np.testing.assert_array_equal(back[finite], np.frombuffer(every, "<u2")[finite])
    assert not np.isfinite(as_floats(back[~finite].tobytes(), dtype)).any()
