"""How a build tells what it is doing."""

from __future__ import annotations

from typing import Protocol


class BuildProgress(Protocol):
    """Called as a build advances.

    Args:
        step: what is being done, in words, such as `reading bfcl`.
        done: rows so far.
        total: rows in all, None where that is not known.
    """

    def __call__(self, step: str, done: int, total: int | None) -> None: ...


def unwatched(step: str, done: int, total: int | None) -> None:
    """Progress nobody watches."""
