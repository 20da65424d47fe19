"""A safetensors file says the truth about itself, or is refused."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from macaron.errors import ConfigError
from macaron.models.merge.tensor_file import as_bytes, as_floats, open_tensors


def packed(header: object, body: bytes = b"") -> bytes:
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + body


def entry(kind: Any, shape: Any, *offsets: Any) -> dict[str, Any]:
    return {"x": {"dtype": kind, "shape": shape, "data_offsets": list(offsets)}}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x80\x04\x95pickle" * 9,
        b"\xff" * 64,
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 100_000) + b"[" * 100_000,
        struct.pack("<Q", 3) + b"{\xff}",
        packed({"x": {"dtype": "F32"}}),
        packed(entry("F32", [4, 2], 0, 32)),
        packed(entry("F32", [4, 2], 0, 32), bytes(16)),
        packed(entry("F32", [2**40, 2**30], 0, 32), bytes(32)),
        packed(entry("F32", [-4, -2], 0, 32), bytes(32)),
        packed(entry("F32", [1] * 9, 0, 4), bytes(4)),
        packed(entry("F32", [4, 2], 32, 0), bytes(32)),
        packed(entry("F32", [4, 2], 0, 32), bytes(4096)),
        packed(entry("F32", [4, 2], 8, 40), bytes(40)),
        packed(entry("F32", [4, 2], 0, 32, 64), bytes(32)),
        packed(entry("F32", [4.5], 0, 18), bytes(18)),
        packed(entry("F99", [4, 2], 0, 32), bytes(32)),
        packed({**entry("F32", [2], 0, 8), "y": entry("F32", [2], 0, 8)["x"]}, bytes(8)),
    ],
)
def test_a_file_that_lies_about_itself_is_refused(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(raw)
    with pytest.raises(ConfigError, match="is not a usable safetensors file") as caught:
        open_tensors(path)
    assert len(caught.value.message) < 1000


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ConfigError, match="is not a file"):
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


def test_a_file_that_shrinks_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(packed(entry("F32", [4, 3], 0, 48), bytes(48)))
    found = open_tensors(path)
    os.truncate(path, path.stat().st_size - 4)
    with path.open("rb") as file, pytest.raises(ConfigError, match="changed while it was read"):
        found.read(file, "x")


@pytest.mark.parametrize("dtype", ["BF16", "F16"])
def test_every_number_of_16_bits_survives_the_way_through_32(dtype: str) -> None:
    every = np.arange(65_536, dtype="<u2").tobytes()
    values = as_floats(every, dtype)
    finite = np.isfinite(values)
    back = np.frombuffer(as_bytes(values, dtype), "<u2")
    np.testing.assert_array_equal(back[finite], np.frombuffer(every, "<u2")[finite])
    assert not np.isfinite(as_floats(back[~finite].tobytes(), dtype)).any()
