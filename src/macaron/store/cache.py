"""Steps kept in memory, bounded in bytes. What may change in a step is read from the database every time."""

from __future__ import annotations

from collections import OrderedDict
from itertools import chain
from sys import getsizeof
from threading import Lock
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import astuple

from macaron.conversation import Message, Step, Text
from macaron.store.codec import Codec, Marks, forget

STEP_BYTES = 2560
HOP_BYTES = 640
ITEM_BYTES = 320
PART_BYTES = 64
"""Memory of the objects around the texts: of a step with its ids and digests, a hop, a message, a part of it."""


class Entry(NamedTuple):
    """A step as it was put, what it became under some marks, and the memory both take."""

    put: Step
    marks: Marks | None
    marked: Step
    weight: int


class StepCache:
    """Least recently used steps go first. Safe to use from several threads.

    The key is scope and step id, never a row number: SQLite gives the numbers of evicted rows to new ones.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[tuple[str, str], Entry] = OrderedDict()
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        """Memory taken, never above the bound."""
        return self._bytes

    def put(self, step: Step) -> None:
        """Keep a step as it was put."""
        self._keep((step.scope, step.id), Entry(step, None, step, weigh_step(step)))

    def get(self, key: tuple[str, str], marks: Marks, codec: Codec) -> Step | None:
        """The step under this key with `marks` in force, None where it is not kept."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
        if entry.marks == marks:
            return entry.marked
        put = forget(entry.put) if marks.deleted else entry.put
        marked = codec.mark(put, marks)
        extra = 0 if marked is put else getsizeof(marked) + weigh(marked.hops) + weigh(marks)
        self._keep(key, Entry(put, marks, marked, weigh_step(put) + extra))
        return marked

    def _keep(self, key: tuple[str, str], entry: Entry) -> None:
        with self._lock:
            old = self._entries.pop(key, None)
            self._bytes -= old.weight if old else 0
            if entry.weight > self._max_bytes:
                return
            self._entries[key] = entry
            self._bytes += entry.weight
            while self._bytes > self._max_bytes:
                self._bytes -= self._entries.popitem(last=False)[1].weight


def weigh_step(step: Step) -> int:
    """About the bytes of memory of a step, never less than it takes. Quick for plain text, which most steps are."""
    total = STEP_BYTES + HOP_BYTES * len(step.hops) + getsizeof(step.session) + getsizeof(step.scope)
    for item in chain(step.inputs or (), step.outputs or ()):
        if isinstance(item, Message) and not item.extra:
            total += ITEM_BYTES
            for part in item.parts:
                total += PART_BYTES + getsizeof(part.text) if isinstance(part, Text) else weigh(part)
        else:
            total += weigh(item)
    return total + getsizeof(step.summary) + getsizeof(step.note)


def weigh(value: Any) -> int:
    """Bytes of memory of a value and everything it holds. Without recursion: clients choose the depth."""
    total = 0
    stack = [value]
    while stack:
        item = stack.pop()
        total += getsizeof(item)
        if isinstance(item, str):
            continue
        if isinstance(item, (tuple, list)):
            stack.extend(item)
        elif isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, Struct):
            stack.extend(astuple(item))
    return total
