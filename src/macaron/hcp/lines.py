"""Where the keys of a TOML text stand, for error messages; the parser of the standard library does not tell."""

from __future__ import annotations

import re
from collections.abc import Mapping

KeyPath = tuple[str | int, ...]
"""A place in a document: table and key names, and indexes into arrays."""

_STRING = re.compile(r'"(?:\\.|[^"\\])*"' + r"|'[^']*'")
_KEY_PART = re.compile(r'\s*(?:"((?:\\.|[^"\\])*)"|\'([^\']*)\'|([A-Za-z0-9_-]+))\s*')
_QUOTES = ('"""', "'''")


def key_lines(text: str) -> dict[KeyPath, int]:
    """Line numbers, from 1, of the tables and keys of a valid TOML text; keys of inline tables are not among them."""
    return _Scanner().scan(text)


def line_of(path: KeyPath, lines: Mapping[KeyPath, int]) -> int | None:
    """The line of a key, or of the nearest table around it that is written down."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def dotted(path: KeyPath) -> str:
    """`mol.adapters.0.label`."""
    return ".".join(str(part) for part in path)


class _Scanner:
    def __init__(self) -> None:
        self.lines: dict[KeyPath, int] = {}
        self.table: KeyPath = ()
        self.last: dict[KeyPath, int] = {}
        self.depth = 0
        self.quote = ""

    def scan(self, text: str) -> dict[KeyPath, int]:
        for number, line in enumerate(text.split("\n"), start=1):
            self._line(line, number)
        return self.lines

    def _line(self, line: str, number: int) -> None:
        if self.quote:
            self.quote = "" if self.quote in line else self.quote
            return
        if self.depth == 0:
            if line.lstrip().startswith("["):
                self._header(line.strip(), number)
                return
            key = _split(line)
            if key:
                self.lines.setdefault(self.table + key, number)
        self._value(line)

    def _header(self, line: str, number: int) -> None:
        repeated = line.startswith("[[")
        path: KeyPath = ()
        for part in _split(line.lstrip("[")):
            path = (*path, part)
            if path in self.last:
                path = (*path, self.last[path])
        if repeated:
            name = path[:-1] if path and isinstance(path[-1], int) else path
            self.last[name] = self.last.get(name, -1) + 1
            self.lines.setdefault(name, number)
            path = (*name, self.last[name])
        self.table = path
        self.lines.setdefault(path, number)

    def _value(self, line: str) -> None:
        for quote in _QUOTES:
            if line.count(quote) % 2:
                self.quote = quote
                return
        bare = _STRING.sub("", line).partition("#")[0]
        self.depth += sum(bare.count(mark) for mark in "[{") - sum(bare.count(mark) for mark in "]}")


def _split(line: str) -> tuple[str, ...]:
    """The dotted key at the beginning of a line; empty where there is none."""
    parts: list[str] = []
    position = 0
    while match := _KEY_PART.match(line, position):
        parts.append(next(group for group in match.groups() if group is not None))
        position = match.end()
        if line[position : position + 1] != ".":
            return tuple(parts) if line[position : position + 1] in ("=", "]") else ()
        position += 1
    return ()
