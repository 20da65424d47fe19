"""How long work tells what it is doing."""

from __future__ import annotations

from typing import Literal, Protocol

Stage = Literal["wait", "find", "download", "unpack", "check"]


class Progress(Protocol):
    """Called as work advances, at most about once a mebibyte.

    Args:
        stage: what is being done; a stage may begin again, after a dropped connection for instance.
        done: bytes so far.
        total: bytes in all, None where that is not known.
    """

    def __call__(self, stage: Stage, done: int, total: int | None) -> None: ...


def silent(stage: Stage, done: int, total: int | None) -> None:
    """Progress nobody watches."""
