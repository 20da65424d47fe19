"""Server-sent events, from bytes: the framing under a streamed chat completion (HTML standard, section 9.2)."""

from __future__ import annotations

from macaron.errors import EngineError


class EventFrames:
    """Cuts a stream of bytes into the data of its events.

    Lines end with LF or CRLF. Comments and the `event`, `id` and `retry` fields say nothing in this dialect.

    Args:
        limit: bytes of one event, or of one line, that are accepted.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest: list[bytes] = []
        self._data: list[bytes] = []
        self._held = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of every event that `piece` completes, in order.

        Raises:
            EngineError: an event is larger than the limit.
        """
        first = piece.find(b"\n")
        if first < 0:
            self._hold(self._rest, piece)
            return []
        if first == len(piece) - 2 and self._is_whole(piece):
            # A token that comes alone. Cut into lines it would take 1.15 µs instead of 0.4, and its JSON takes 0.4.
            return [piece[5:-2]]
        lines = piece.split(b"\n")
        if self._rest:
            lines[0] = b"".join([*self._rest, lines[0]])
            self._held -= sum(map(len, self._rest))
            self._rest.clear()
        last = lines.pop()
        complete: list[bytes] = []
        for line in lines:
            self._line(line, complete)
        if last:
            self._hold(self._rest, last)
        return complete

    def finish(self) -> list[bytes]:
        """The data of an event that the end of the stream cut off from its blank line."""
        complete: list[bytes] = []
        self._line(b"".join(self._rest), complete)
        self._line(b"", complete)
        return complete

    def _is_whole(self, piece: bytes) -> bool:
        """Whether a piece of one line and its end is an event, with nothing before it."""
        if self._rest or self._data or len(piece) > self._limit:
            return False
        return piece.startswith(b"data:") and piece.endswith(b"\n\n")

    def _line(self, line: bytes, complete: list[bytes]) -> None:
        if line.startswith(b"data:"):
            self._hold(self._data, line[5:])
        elif self._data and line in (b"", b"\r"):
            complete.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
            self._held -= sum(map(len, self._data))
            self._data.clear()

    def _hold(self, held: list[bytes], piece: bytes) -> None:
        self._held += len(piece)
        if self._held > self._limit:
            raise EngineError(f"The engine sent an event of more than {self._limit} bytes, which is refused.")
        held.append(piece)
