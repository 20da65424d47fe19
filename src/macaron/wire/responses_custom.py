"""The input of a custom tool, read out of the arguments of the function that stands for it, while they come. Pure."""

from __future__ import annotations

import json
import re

_START = re.compile(r'\s*\{\s*"input"\s*:\s*"')
_LONGEST_START = 64
_WHOLE = re.compile(r'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*')
"""As much of a JSON string as has no cut escape at its end. The alternatives begin differently, so it is linear."""

_HIGH = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")


class InputReader:
    """Decodes the string under `input` piece by piece. Arguments of another shape are read at the end."""

    def __init__(self) -> None:
        self._pending = ""
        self._inside = False
        self._over = False
        self._given: list[str] = []

    def feed(self, piece: str) -> str:
        """The text that a piece of the arguments adds."""
        if self._over:
            return ""
        self._pending += piece
        if not self._inside:
            start = _START.match(self._pending[:_LONGEST_START])
            if start is None:
                self._over = len(self._pending) >= _LONGEST_START
                return ""
            self._inside, self._pending = True, self._pending[start.end() :]
        return self._take()

    def end(self, arguments: str) -> tuple[str, str]:
        """What is still to be given out, and the whole input.

        Args:
            arguments: all of them.
        """
        given = "".join(self._given)
        if given or self._inside:
            return "", given
        try:
            value = json.loads(arguments)
        except (ValueError, RecursionError):
            value = None
        written = value.get("input") if isinstance(value, dict) else None
        whole = _clean(written) if isinstance(written, str) else arguments
        return whole, whole

    def _take(self) -> str:
        match = _WHOLE.match(self._pending)
        end = match.end() if match else 0
        if self._pending[end : end + 1] == '"':
            self._over = True
        elif high := _HIGH.search(self._pending[max(0, end - 6) : end]):
            # The other half of the character is still to come.
            end -= high.end() - high.start()
        raw, self._pending = self._pending[:end], self._pending[end:]
        try:
            text = _clean(json.loads(f'"{raw}"', strict=False))
        except ValueError:
            text = raw
        if text:
            self._given.append(text)
        return text


def _clean(text: str) -> str:
    """Text without half characters, which no JSON document can hold."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
