"""Reading rows: what is tolerated, and how broken ones are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from macaron.errors import ConfigError
from macaron.evals.rows import MAX_LINE_BYTES, read_route_rows, read_sft_rows, read_surface_rows
from tests.evals.rows import plain_rows, write_lines

LABELS = ("L0", "L1", "L2", "L3")


def read(path: Path) -> list[Any]:
    return read_route_rows([path], LABELS, "L0")


def test_plain_rows_are_named_by_their_line_and_get_a_language(tmp_path: Path) -> None:
    rows = read(write_lines(tmp_path / "a.jsonl", plain_rows("L0", "L3")))
    assert [(row.id, row.label, row.language) for row in rows] == [("a.jsonl:1", "L0", "en"), ("a.jsonl:2", "L3", "zh")]


def test_whole_rows_keep_what_they_say(tmp_path: Path) -> None:
    whole = {**plain_rows("L2")[0], "kind": "route", "id": "x", "group": "g", "language": "de", "note": "of others"}
    row = read(write_lines(tmp_path / "a.jsonl", [whole]))[0]
    assert (row.id, row.group, row.language) == ("x", "g", "de")


def test_rows_of_other_kinds_are_passed_over_where_they_are_expected(tmp_path: Path) -> None:
    route, other = plain_rows("L0", "L2")
    path = write_lines(tmp_path / "a.jsonl", [{**other, "kind": "sft"}, {**route, "kind": "route"}])
    assert [row.label for row in read_route_rows([path], LABELS, "L0", mixed=True)] == ["L0"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"label": "L9"}, "'L9' is not one of the profile's"),
        ({"messages": []}, "`messages` is missing"),
        ({"source": ""}, "`source` is missing"),
        ({"messages": "hello"}, "Expected `array`"),
        ({"kind": "sft"}, "kind is 'sft'"),
        ({"messages": [{"role": "assistant", "content": "hello"}]}, "the last message must be the user's"),
        (
            {"messages": [{"role": "assistant", "content": "a", "label": "L7"}, {"role": "user", "content": "b"}]},
            "'L7' is not one",
        ),
    ],
)
def test_a_broken_row_is_named_by_file_and_line(change: dict[str, Any], reason: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", [*plain_rows("L0"), {**plain_rows("L0")[0], **change}])
    with pytest.raises(ConfigError, match=r"a\.jsonl, line 2") as caught:
        read(path)
    assert reason in caught.value.message


@pytest.mark.parametrize("line", ["[1]", "{", "[" * 2000, '"text"', '{"a": "\ud800"}'], ids=range(5))
def test_a_line_that_is_no_object_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(line.encode("utf-8", "surrogatepass"))
    with pytest.raises(ConfigError, match="line 1"):
        read(path)


def test_a_line_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"source": "x" * MAX_LINE_BYTES}))
    with pytest.raises(ConfigError, match="longer than"):
        read(path)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path / "none.jsonl")


def test_an_id_may_be_there_only_once(tmp_path: Path) -> None:
    row = {**plain_rows("L0")[0], "id": "x"}
    with pytest.raises(ConfigError, match="'x' is there twice"):
        read(write_lines(tmp_path / "a.jsonl", [row, row]))


def test_dialogues_are_read_and_none_is_an_error(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    rows = read_sft_rows([write_lines(tmp_path / "a.jsonl", [{"messages": messages, "source": "s"}])])
    assert rows[0].messages[1]["content"] == "hello"
    with pytest.raises(ConfigError, match="no rows"):
        read_sft_rows([write_lines(tmp_path / "b.jsonl", [])])


def test_briefs_are_wrapped_and_named_by_their_file(tmp_path: Path) -> None:
    rows = read_surface_rows([write_lines(tmp_path / "b.jsonl", [{"text": "a timer"}, {"text": "番茄钟"}])])
    assert {(row.language, row.label) for row in rows} == {("en", "L3"), ("zh", "L3")}
    assert len({row.id for row in rows}) == 2
    assert all(row.messages[0]["content"] not in ("a timer", "番茄钟") for row in rows)


def test_a_brief_without_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"b\.jsonl, line 1: `text`"):
        read_surface_rows([write_lines(tmp_path / "b.jsonl", [{"text": " "}])])
