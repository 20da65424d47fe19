"""The points at which an operation on the vault may be interrupted, named so that each can be tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

Step = Literal[
    "stage.locked",
    "stage.opened",
    "file.opened",
    "file.written",
    "file.synced",
    "stage.sealed",
    "owners.written",
    "owners.replaced",
    "adapter.moved",
    "adapter.admitted",
    "adapter.withdrawn",
    "adapter.forgotten",
]
"""`file.written` comes once for each piece; the last two belong to `remove`, after its folder has left its place and
after its owners are gone."""

STEPS: tuple[Step, ...] = get_args(Step)

Watch = Callable[[Step], None]
"""Called at each point; what it raises is treated as a fault at that point."""


def unwatched(_: Step) -> None:
    """Let every point pass."""
