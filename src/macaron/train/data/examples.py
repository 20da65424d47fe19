"""Requests as people write them down: one JSON object a line, with as little in it as may be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from macaron.errors import ConfigError
from macaron.train.data.check import MAX_ROW
from macaron.train.data.rows import RouteRow

MAX_EXAMPLES = 5000
_CHINESE = re.compile("[\u3400-\u9fff]")


class _Line(Struct, frozen=True):
    """What is read of a line; other fields, which data sets have, are passed over."""

    text: str = ""
    messages: tuple[dict[str, Any], ...] = ()
    label: str = ""
    source: str = ""
    language: str = ""


def read_examples(path: Path, label: str = "") -> list[RouteRow]:
    """The rows of a JSON Lines file: `text`, or `messages` that end with the request, and `label`.

    Rows are named by file and line. Empty lines are passed over, and so are fields of other names.

    Args:
        label: that of every row, which need not say it then; empty where each has its own.

    Raises:
        ConfigError: the file cannot be read, has no rows or too many, or a line is none; it is named by its number.
    """
    rows: list[RouteRow] = []
    for number, line in _numbered(path):
        place = f"{path}, line {number}"
        if len(rows) == MAX_EXAMPLES:
            raise ConfigError(f"{place}: there are more than {MAX_EXAMPLES} rows; give fewer", param="examples")
        try:
            found = msgspec.json.decode(line, type=_Line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise _broken(place, f"it is no row: {error}") from None
        rows.append(_row(found, label, path, number))
    if not rows:
        raise ConfigError(f"{path} holds no rows; write one object with `text` a line", param="examples")
    return rows


def _row(found: _Line, label: str, path: Path, number: int) -> RouteRow:
    place = f"{path}, line {number}"
    if bool(found.text.strip()) == bool(found.messages):
        raise _broken(place, "it must have either `text`, a request, or `messages`, a conversation that ends with one")
    if not (found.label or label):
        raise _broken(place, "`label` is missing: the label that is right for the request")
    if label and found.label not in ("", label):
        raise _broken(place, f"its label is {found.label[:40]!r}, examples of {label} are wanted")
    messages = found.messages or ({"role": "user", "content": found.text},)
    last = messages[-1]
    if last.get("role") != "user" or not isinstance(last.get("content"), str) or not last["content"].strip():
        raise _broken(place, "its last message must be the user's request, with text as its content")
    return RouteRow(
        id=f"{path.name}:{number}",
        source=found.source or path.name,
        group=f"{path.name}:{number}",
        language=found.language or ("zh" if _CHINESE.search(last["content"]) else "en"),
        messages=messages,
        label=found.label or label,
    )


def _numbered(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(MAX_ROW + 1):
                number += 1
                if len(line) > MAX_ROW:
                    raise _broken(f"{path}, line {number}", f"it is longer than {MAX_ROW} bytes")
                if line.strip():
                    yield number, line
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", param="examples") from None


def _broken(place: str, reason: str) -> ConfigError:
    return ConfigError(f"{place}: {reason}", param="examples", code="bad_row")
