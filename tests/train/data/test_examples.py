"""Requests as people write them down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from macaron.errors import ConfigError
from macaron.train.data.examples import MAX_EXAMPLES, read_examples


def write(folder: Path, *lines: Any) -> Path:
    path = folder / "poems.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def test_a_line_needs_no_more_than_its_text(tmp_path: Path) -> None:
    path = write(tmp_path, {"text": "an ode"}, "", {"text": "写一首诗", "colour": "red"})
    rows = read_examples(path, "L4")
    assert [row.messages for row in rows] == [
        ({"role": "user", "content": "an ode"},),
        ({"role": "user", "content": "写一首诗"},),
    ]
    assert [(row.id, row.label, row.language) for row in rows] == [
        ("poems.jsonl:1", "L4", "en"),
        ("poems.jsonl:3", "L4", "zh"),
    ]


def test_rows_of_a_data_set_are_read_with_their_labels(tmp_path: Path) -> None:
    said = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "go"},
    ]
    row = {"kind": "route", "id": "1", "source": "own", "group": "g", "messages": said, "label": "L2"}
    (found,) = read_examples(write(tmp_path, row))
    assert (found.label, found.source, found.messages) == ("L2", "own", tuple(said))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "it is no row"),
        ("[]", "it is no row"),
        ({"text": 3}, "it is no row"),
        ({}, "either `text`"),
        ({"text": " "}, "either `text`"),
        ({"text": "a", "messages": [{"role": "user", "content": "b"}]}, "either `text`"),
        ({"messages": [{"role": "assistant", "content": "b"}]}, "its last message must be the user's"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "its last message must be the user's"),
        ({"text": "a", "label": "L1"}, "its label is 'L1', examples of L4 are wanted"),
    ],
)
def test_a_broken_line_is_told_with_its_number(tmp_path: Path, line: Any, reason: str) -> None:
    path = write(tmp_path, {"text": "an ode"}, line)
    with pytest.raises(ConfigError) as caught:
        read_examples(path, "L4")
    assert caught.value.message.startswith(f"{path}, line 2: ")
    assert reason in caught.value.message


def test_without_a_label_of_all_each_line_says_its_own(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line 1: `label` is missing"):
        read_examples(write(tmp_path, {"text": "an ode"}))


def test_a_file_has_rows_and_not_too_many(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no rows"):
        read_examples(write(tmp_path, ""), "L4")
    with pytest.raises(ConfigError, match=f"line {MAX_EXAMPLES + 1}: there are more than"):
        read_examples(write(tmp_path, *([{"text": "an ode"}] * (MAX_EXAMPLES + 1))), "L4")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_examples(tmp_path / "none.jsonl", "L4")


def test_a_line_too_long_is_not_read_to_its_end(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line 1: it is longer than"):
        read_examples(write(tmp_path, {"text": "x" * 5_000_000}), "L4")
