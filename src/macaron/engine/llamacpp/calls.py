"""Finds tool calls in what the model writes, as it writes them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator

from macaron.conversation import CallDelta
from macaron.engine.llamacpp.grammar import CALL_CLOSE, CALL_OPEN

HEAD_LIMIT = 256
_WHITE = " \t\r\n"
_HEAD = re.compile(
    r'\s{0,8}\{\s{0,8}"name"\s{0,8}:\s{0,8}"([^"\\]{1,128})"\s{0,8}'
    r'(?:(?P<given>,\s{0,8}"arguments"\s{0,8}:\s{0,8})(?=\{)|(?=\}))'
)
_SCANNED = re.compile(r'["\\{}\[\]]')


def new_call_id() -> str:
    """An id no other call has."""
    return f"call_{secrets.token_hex(12)}"


class CallParser:
    """Splits one choice's text into text and tool calls.

    `feed` it what came and take what it gives: text that certainly belongs to no call, and pieces of calls, whose
    arguments are passed on as the model writes them. A call that does not begin as one does, or names a function that
    is not among `names`, is text. Held back is at most the beginning of a call.
    """

    def __init__(self, names: frozenset[str], make_id: Callable[[], str] = new_call_id) -> None:
        self._names = names
        self._make_id = make_id
        self._state = self._text
        self._held = ""
        self._depth = 0
        self._quoted = False
        self._escaped = False
        self.calls = 0

    def feed(self, text: str) -> Iterator[str | CallDelta]:
        """Pieces in the order the model wrote them."""
        self._held += text
        before = None
        while self._held and before != (self._state, len(self._held)):
            before = (self._state, len(self._held))
            yield from self._state()

    def end(self) -> Iterator[str | CallDelta]:
        """What was held back when the model stopped."""
        held, self._held = self._held, ""
        if self._state == self._head:
            yield CALL_OPEN + held
        elif held.strip() and self._state in (self._text, self._between):
            yield held

    def _text(self) -> Iterator[str | CallDelta]:
        before, found, after = self._held.partition(CALL_OPEN)
        keep = "" if found else _beginning_of(CALL_OPEN, before)
        said = before[: len(before) - len(keep)]
        if said:
            yield said
        self._held = after if found else keep
        if found:
            self._state = self._head

    def _between(self) -> Iterator[str | CallDelta]:
        # White space between two calls, or after the last, is not something the model said.
        rest = self._held.lstrip(_WHITE)
        if rest.startswith(CALL_OPEN):
            self._held, self._state = rest[len(CALL_OPEN) :], self._head
        elif rest and not CALL_OPEN.startswith(rest):
            self._state = self._text
        yield from ()

    def _head(self) -> Iterator[str | CallDelta]:
        match = _HEAD.match(self._held)
        if match and match[1] in self._names:
            yield CallDelta(index=self.calls, call_id=self._make_id(), name=match[1])
            self.calls += 1
            if not match["given"]:
                yield CallDelta(index=self.calls - 1, arguments="{}")
            self._held = self._held[match.end() :]
            self._state = self._arguments if match["given"] else self._tail
        elif match or len(self._held) > HEAD_LIMIT or CALL_CLOSE in self._held:
            self._state = self._text
            yield CALL_OPEN

    def _arguments(self) -> Iterator[str | CallDelta]:
        end = self._scan(self._held)
        arguments = self._held if end is None else self._held[:end]
        self._held = self._held[len(arguments) :]
        if end is not None:
            self._state = self._tail
        yield CallDelta(index=self.calls - 1, arguments=arguments)

    def _scan(self, text: str) -> int | None:
        """Where the arguments' object ends in `text`, None where it goes on."""
        position = 0
        if self._escaped:
            position, self._escaped = 1, False
        while found := _SCANNED.search(text, position):
            position = found.end()
            character = found[0]
            if character == '"':
                self._quoted = not self._quoted
            elif character == "\\":
                self._escaped = position == len(text)
                position += 1
            elif not self._quoted:
                self._depth += 1 if character in "{[" else -1
                if self._depth == 0:
                    return position
        return None

    def _tail(self) -> Iterator[str | CallDelta]:
        rest = self._held.lstrip(_WHITE).removeprefix("}").lstrip(_WHITE)
        if rest.startswith(CALL_CLOSE):
            self._held, self._state = rest[len(CALL_CLOSE) :], self._between
        elif rest and not CALL_CLOSE.startswith(rest):
            self._held, self._state = rest, self._between
        yield from ()


def _beginning_of(mark: str, text: str) -> str:
    """The longest end of `text` with which `mark` begins."""
    for size in range(min(len(mark) - 1, len(text)), 0, -1):
        if mark.startswith(text[-size:]):
            return text[-size:]
    return ""
