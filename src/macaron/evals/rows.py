"""Reading the rows that an evaluation of routing or dialogue is given, also rows that others have written."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from macaron.errors import ConfigError
from macaron.mol.dialogue import labels_in
from macaron.train.data.rows import RouteRow, SftRow
from macaron.train.demi.route.surface import surface_rows

MAX_LINE_BYTES = 4_194_304
_CHINESE = re.compile("[\u3400-\u9fff]")


class Line(NamedTuple):
    """An object of a JSON Lines file, and where it stands."""

    path: Path
    number: int
    table: dict[str, Any]

    @property
    def place(self) -> str:
        """Such as `data.jsonl, line 3`."""
        return f"{self.path}, line {self.number}"


def read_lines(path: Path) -> Iterator[Line]:
    """The objects of a JSON Lines file; empty lines are passed over.

    Raises:
        ConfigError: the file cannot be read, a line is too long or is not an object.
    """
    try:
        with path.open("rb") as file:
            for number in range(1, 1 << 62):
                line = file.readline(MAX_LINE_BYTES + 1)
                if not line:
                    return
                if len(line) > MAX_LINE_BYTES:
                    raise ConfigError(f"{path}, line {number} is longer than {MAX_LINE_BYTES} bytes; shorten it")
                if line.strip():
                    yield Line(path, number, _object(line, path, number))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None


def read_route_rows(
    paths: Iterable[Path], labels: Collection[str], entry: str, *, mixed: bool = False
) -> list[RouteRow]:
    """Rows with `messages`, `label` and `source`, in order.

    Fields that others have added are passed over. Without an `id` a row is named by its file and line, without a
    `language` it is `zh` where the messages hold Chinese characters and `en` where they do not.

    Args:
        labels: those that a row may have.
        entry: the label that answered where a message says none.
        mixed: rows of other kinds stand between them and are passed over, as in the data of an entry specialist.

    Raises:
        ConfigError: a row is broken or has another label, or an id is there twice.
    """
    rows: dict[str, RouteRow] = {}
    for path in paths:
        for line in read_lines(path):
            if mixed and line.table.get("kind", "route") != "route":
                continue
            row = _route_row(line, labels, entry)
            if row.id in rows:
                raise ConfigError(f"{line.place}: the id {row.id!r} is there twice; ids must be unique", param="id")
            rows[row.id] = row
    return list(rows.values())


def read_surface_rows(paths: Iterable[Path]) -> list[RouteRow]:
    """Route rows of plain briefs, one object with `text` a line: each in a surface wrapper that no training row has.

    Raises:
        ConfigError: a file cannot be read, or a line has no text.
    """
    rows: list[RouteRow] = []
    for path in paths:
        texts = [_text(line) for line in read_lines(path)]
        for language in ("en", "zh"):
            chosen = [text for text in texts if _language(text) == language]
            rows += [_of_file(row, path, language) for row in surface_rows(chosen, language)]
    return rows


def _of_file(row: RouteRow, path: Path, language: str) -> RouteRow:
    return replace(row, id=f"{path.name}:{language}:{row.id}")


def _text(line: Line) -> str:
    match line.table.get("text"):
        case str() as text if text.strip():
            return text
        case other:
            raise ConfigError(f"{line.place}: `text` is {str(other)[:80]!r}; a brief is needed", param="text")


def read_sft_rows(paths: Iterable[Path]) -> list[SftRow]:
    """Dialogues with `messages` and `source`, in order; ids and languages as in `read_route_rows`.

    Raises:
        ConfigError: a row is broken, or there are no rows at all.
    """
    rows = [_converted(line, "sft", SftRow) for path in paths for line in read_lines(path)]
    if not rows:
        raise ConfigError("the data hold no rows; name a file with `messages` and `source` in every line")
    return rows


def _route_row(line: Line, labels: Collection[str], entry: str) -> RouteRow:
    row: RouteRow = _converted(line, "route", RouteRow)
    for label in (row.label, *labels_in(row.messages, entry)):
        if label not in labels:
            known = ", ".join(labels)
            raise ConfigError(f"{line.place}: label {label!r} is not one of the profile's: {known}", param="label")
    if row.messages[-1].get("role") != "user":
        raise ConfigError(f"{line.place}: the last message must be the user's request", param="messages")
    return row


def _converted(line: Line, kind: str, shape: Any) -> Any:
    fields = msgspec.structs.fields(shape)
    table = {field.name: line.table[field.name] for field in fields if field.name in line.table}
    for name in ("messages", "source"):
        if not table.get(name):
            raise ConfigError(f"{line.place}: `{name}` is missing", param=name)
    if line.table.get("kind", kind) != kind:
        raise ConfigError(f"{line.place}: kind is {line.table['kind']!r}, {kind!r} is needed", param="kind")
    table.setdefault("id", f"{line.path.name}:{line.number}")
    table.setdefault("language", _language(table["messages"]))
    try:
        return msgspec.convert({"kind": kind, **table}, shape)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{line.place}: {error}") from None


def _object(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}, line {number} is not a JSON object: {error}") from None


def _language(content: Any) -> str:
    return "zh" if _CHINESE.search(str(content)) else "en"
