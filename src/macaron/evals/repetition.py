"""When an answer repeats itself without end: greedy decoding of a small model does not leave such a loop."""

from __future__ import annotations

LONGEST = 300
TIMES = 6
LEAST = 400
STEP = 100


class RepetitionWatch:
    """Fed an answer's text as it comes, tells when its end is one passage over and over.

    It looks every 100 characters at the last ones: a passage of 4 to 300 characters, six times in a row and 400
    characters at least. A list or a table of an answer that goes on does not reach that.
    """

    def __init__(self) -> None:
        self._tail = ""
        self._unseen = 0

    def repeats(self, text: str) -> bool:
        """Add `text`; True once the answer loops."""
        self._tail = (self._tail + text)[-LONGEST * TIMES :]
        self._unseen += len(text)
        if self._unseen < STEP:
            return False
        self._unseen = 0
        return loops(self._tail)


def loops(tail: str) -> bool:
    """Whether the end of `tail` is one passage repeated."""
    for period in range(4, LONGEST + 1):
        need = max(period * TIMES, LEAST)
        if len(tail) >= need and tail[-need:-period] == tail[period - need :]:
            return True
    return False
