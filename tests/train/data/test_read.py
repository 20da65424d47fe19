"""Reading rows from files that anybody may have written."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from macaron.errors import ConfigError
from macaron.train.data.check import MAX_ROW
from macaron.train.data.read import MAX_NAMED, BadRowError, ReadReport, read_rows
from macaron.train.data.rows import AnyRow
from tests.train.data.making import preference, route, sft, write_rows

GOOD = msgspec.json.encode(sft("good"))


def lines(path: Path, *raw: bytes) -> Path:
    path.write_bytes(b"\n".join(raw))
    return path


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    rows: list[AnyRow] = [sft("1"), preference("2"), route("3", language="zh-Hans", group="g")]
    assert list(read_rows(write_rows(tmp_path / "r.jsonl", rows))) == rows


def test_blank_lines_hold_nothing_and_the_last_line_needs_no_end(tmp_path: Path) -> None:
    path = lines(tmp_path / "r.jsonl", b"", GOOD, b"  \r", msgspec.json.encode(sft("2")))
    assert [row.id for row in read_rows(path)] == ["good", "2"]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"{not json", "is not valid"),
        (b'{"kind":"sft","id":"1"}', "missing required field `source`"),
        (b'{"kind":"poem","id":"1","source":"s"}', "Invalid value 'poem'"),
        (b'{"kind":"sft","id":"1","source":"s","mesages":[]}', "unknown field `mesages`"),
        (b'{"kind":"sft","id":"\xff","source":"s"}', "Invalid UTF-8"),
        (b'{"kind":"sft","id":"1","source":"s","messages":[{"role":' + b"[" * 100_000, "nested too deeply"),
        (GOOD.replace(b"assistant", b"wizard"), "role 'wizard' is not one of"),
        (GOOD[: len(GOOD) // 2], "is not valid"),
        (GOOD.replace(b"yes", b"y" * MAX_ROW), f"longer than {MAX_ROW} bytes"),
        (msgspec.json.encode(sft("first")), "the id 'first' was already on line 1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_broken_line_is_named_by_file_and_number(tmp_path: Path, raw: bytes, reason: str) -> None:
    path = lines(tmp_path / "r.jsonl", msgspec.json.encode(sft("first")), raw, GOOD)
    with pytest.raises(BadRowError) as caught:
        list(read_rows(path))
    assert caught.value.message.startswith(f"{path}:2: ")
    assert reason in caught.value.message
    assert "--skip-broken" in caught.value.message


def test_the_rest_goes_on_when_asked_and_is_counted(tmp_path: Path) -> None:
    long = GOOD.replace(b"yes", b"y" * (3 * MAX_ROW))
    path = lines(tmp_path / "r.jsonl", b"?", GOOD, long, GOOD, msgspec.json.encode(sft("2")), b"]")
    report = ReadReport()
    assert [row.id for row in read_rows(path, skip_broken=True, report=report)] == ["good", "2"]
    assert (report.rows, report.broken) == (2, 4)
    assert [named.place for named in report.named] == [f"{path}:{number}" for number in (1, 3, 4, 6)]


def test_only_the_first_broken_lines_are_remembered(tmp_path: Path) -> None:
    report = ReadReport()
    assert list(read_rows(lines(tmp_path / "r.jsonl", *[b"?"] * 500), skip_broken=True, report=report)) == []
    assert (report.broken, len(report.named)) == (500, MAX_NAMED)


def test_a_row_of_the_greatest_length_is_read(tmp_path: Path) -> None:
    rest = MAX_ROW - len(msgspec.json.encode(sft("1", answer="")))
    path = lines(tmp_path / "r.jsonl", msgspec.json.encode(sft("1", answer="y" * rest)), GOOD)
    assert [row.id for row in read_rows(path)] == ["1", "good"]


def test_a_file_that_is_not_there_or_no_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        list(read_rows(tmp_path / "none.jsonl"))
    with pytest.raises(ConfigError, match="is not a regular file"):
        list(read_rows(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="is not a regular file"):
        list(read_rows(tmp_path / "pipe"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_an_error(tmp_path: Path) -> None:
    path = lines(tmp_path / "r.jsonl", GOOD)
    path.chmod(0)
    with pytest.raises(ConfigError, match="cannot be read"):
        list(read_rows(path))
