"""Views: the conversation as one specialist sees it. Pure.

A view is a head and a body. The body is a sequence of blocks that only grows along a path of the session's tree: a
block, once in a view, is the same in every successor, so that engines find their prefix cached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct

from macaron.conversation import Item, Message, Step, Text, ToolCall, ToolResult

Block = tuple[Item, ...]
"""Items that belong together: what one request added, or what one answer said."""


class Head(Struct, frozen=True):
    """What stands before the conversation: who the specialist is, the client's system run, the tools."""

    identity: str
    system: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...]


class View(Struct, frozen=True):
    """What one specialist is shown."""

    head: Head
    body: tuple[Block, ...]


class Turn(Struct, frozen=True):
    """The steps of one user turn on a path, oldest first."""

    label: str
    steps: tuple[Step, ...]

    @property
    def end(self) -> Step:
        """The step at which the turn's note is kept."""
        return self.steps[-1]


def turns(path: Sequence[Step]) -> list[Turn]:
    """A path, grouped into turns."""
    groups = (tuple(steps) for _, steps in groupby(path, key=lambda step: step.turn))
    return [Turn(steps[0].label, steps) for steps in groups]


def foreign_turns(path: Sequence[Step], label: str) -> list[Turn]:
    """The turns that a specialist sees only by their notes."""
    return [turn for turn in turns(path) if turn.label != label]


def view(head: Head, path: Sequence[Step], label: str, new: Sequence[Item], notes: Mapping[str, str]) -> View:
    """The view of the specialist `label` at the end of `path`, with the items that are new.

    Args:
        path: steps from the root, each with its items.
        notes: the note of every turn of another specialist, by the id of the turn's last step.
    """
    hidden: set[str] = set()
    blocks: list[Block] = []
    for turn in turns(path):
        if turn.label == label:
            for step in turn.steps:
                blocks += _shown(step.inputs or (), hidden), _shown(step.outputs or (), hidden)
        else:
            for step in turn.steps:
                blocks.append(_shown(step.inputs or (), hidden))
                hidden |= {item.call_id for item in step.outputs or () if isinstance(item, ToolCall)}
            blocks.append((note_message(turn.label, notes[turn.end.id]),))
    blocks.append(_shown(new, hidden))
    return View(head, tuple(block for block in blocks if block))


def _shown(items: Sequence[Item], hidden: set[str]) -> Block:
    """Items without the results of hidden calls; a call that is shown takes its id out of hiding."""
    shown: list[Item] = []
    for item in items:
        match item:
            case ToolCall(call_id):
                hidden.discard(call_id)
            case ToolResult(call_id) if call_id in hidden:
                continue
        shown.append(item)
    return tuple(shown)


def note_message(label: str, note: str) -> Message:
    """A note in the assistant's place, marked as another specialist's summary."""
    return Message("assistant", (Text(f"[summary of {label}'s answer: {note}]"),))
