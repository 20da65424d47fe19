"""A GGUF file's table says the truth about its tensors, or is refused; files are written by the reference library."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path

import gguf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.errors import ConfigError
from macaron.models import gguf as reader
from macaron.models.gguf_table import read_table, read_whole_table
from tests.models.census_files import write_gguf


def raw_gguf(path: Path, *rows: tuple[int, tuple[int, ...], int, int], alignment: int = 32, name: bytes = b"") -> Path:
    """A GGUF file of tensors given as number of dimensions, shape, type and offset, with a hole of 4 KiB for them."""
    key = b"general.alignment"
    raw = b"GGUF" + struct.pack("<IQQ", 3, len(rows), 1)
    raw += struct.pack("<Q", len(key)) + key + struct.pack("<II", 4, alignment)
    for number, (dimensions, shape, kind, offset) in enumerate(rows):
        called = name or b"t%d" % number
        raw += struct.pack("<Q", len(called)) + called + struct.pack(f"<I{len(shape)}Q", dimensions, *shape)
        raw += struct.pack("<IQ", kind, offset)
    path.write_bytes(raw + bytes(4096))
    return path


def test_the_table_is_what_the_reference_library_reads(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", a=(4, 6), b=(33,), c=(2, 3, 4))
    table, wanted = read_whole_table(path), gguf.GGUFReader(path).tensors
    assert table.text("general.name") == "Tiny"
    assert [(item.name, item.start, item.bytes, item.values, item.dtype) for item in table.tensors.values()] == [
        (item.name, item.data_offset, item.n_bytes, item.n_elements, item.tensor_type.name) for item in wanted
    ]
    assert table.tensors["a"].dimensions == (6, 4)
    assert (table.begin % 32, table.end, table.size) == (0, table.tensors["c"].start + 48, path.stat().st_size)


@pytest.mark.parametrize(
    ("rows", "alignment", "reason"),
    [
        ([(1, (8,), 0, 0), (1, (8,), 0, 16)], 32, "two of its tensors overlap"),
        ([(1, (8,), 0, 0), (1, (8,), 0, 33)], 32, "lies between two places"),
        ([(0, (), 0, 0)], 32, "has 0 dimensions"),
        ([(5, (1, 1, 1, 1, 1), 0, 0)], 32, "has 5 dimensions"),
        ([(2**31, (1,), 0, 0)], 32, "has 2147483648 dimensions"),
        ([(1, (0,), 0, 0)], 32, r"has the dimensions \(0,\)"),
        ([(1, (8,), 9999, 0)], 32, "has type 9999"),
        ([(1, (8,), 2, 0)], 32, "rows of 8 values, Q4_0 has blocks of 32"),
        ([(4, (2**63, 2**63, 2**63, 2**63), 0, 0)], 32, "cut off: its tensors need"),
        ([(1, (8,), 0, 2**63)], 32, "cut off: its tensors need"),
        ([(1, (8,), 0, 0)], 0, "alignment is no number of bytes"),
        ([(1, (8,), 0, 0)], 12, "alignment is no number of bytes"),
    ],
)
def test_a_table_that_does_not_describe_its_file_is_refused(
    tmp_path: Path, rows: list[tuple[int, tuple[int, ...], int, int]], alignment: int, reason: str
) -> None:
    with pytest.raises(ConfigError, match=f"is not a usable GGUF file: .*{reason}") as caught:
        read_whole_table(raw_gguf(tmp_path / "m.gguf", *rows, alignment=alignment))
    assert len(caught.value.message) < 1000


@pytest.mark.parametrize(
    ("name", "reason"),
    [(b"t", "two tensors have one name"), (b"\x1b" * 257, r"the name '\?+…', longer than 256 bytes")],
)
def test_names_that_cannot_be_are_refused(name: bytes, reason: str, tmp_path: Path) -> None:
    path = raw_gguf(tmp_path / "m.gguf", (1, (8,), 0, 0), (1, (8,), 0, 32), name=name)
    with pytest.raises(ConfigError, match=reason):
        read_table(path)


def test_more_tensors_than_can_be_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0) + bytes(64))
    with pytest.raises(ConfigError, match="tensors are more than can be"):
        read_table(path)


def test_metadata_without_end_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_gguf(tmp_path / "m.gguf", a=(8, 8))
    monkeypatch.setattr(reader, "_MAX_HEAD", 64)
    with pytest.raises(ConfigError, match="take more than 64 bytes"):
        read_table(path)


def test_a_key_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    pair = struct.pack("<Q", 1) + b"k" + struct.pack("<II", 4, 7)
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + pair * 2)
    with pytest.raises(ConfigError, match="a key of its metadata is there twice"):
        read_table(tmp_path / "m.gguf")


def test_a_file_that_is_cut_off_has_a_table_and_is_not_whole(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", a=(64, 64))
    os.truncate(path, path.stat().st_size - 100)
    table = read_table(path)
    assert table.end == table.size + 100
    with pytest.raises(ConfigError, match=r"cut off: its tensors need 8192 bytes, 8092 are there"):
        read_whole_table(path)


@given(cut=st.integers(0, 200), position=st.integers(0, 400), byte=st.integers(0, 255))
def test_a_damaged_file_is_read_or_refused_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, cut: int, position: int, byte: int
) -> None:
    path = write_gguf(tmp_path_factory.mktemp("damaged") / "m.gguf", a=(4, 4), b=(6,))
    raw = bytearray(path.read_bytes())
    raw[position % len(raw)] = byte
    path.write_bytes(raw[: len(raw) - cut])
    with suppress(ConfigError):
        read_whole_table(path)


def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.gguf")
    with pytest.raises(ConfigError, match="is not a regular file"):
        read_table(tmp_path / "m.gguf")
