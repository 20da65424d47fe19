"""Which of the engine's slots a hop uses, so that it finds the KV cache of its own past.

Slot 0 is for routing. Every adapter has slots of its own, since a cache computed under one adapter is wrong under any
other. The prompt-only specialists, which all run on the bare base, have theirs in one pool and are told apart by what
their prompts begin with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from macaron.engine.llamacpp.gate import Lane

DIGEST_BYTES = 16

Chain = tuple[tuple[bytes, int], ...]
"""For each prefix of a prompt its digest, which covers everything before it, and its size in bytes."""


def chain_of(pieces: Iterable[bytes], longest: int) -> Chain:
    """The chain of a prompt that is cut in `pieces`, one a message; pieces after the `longest` first are left out."""
    links: list[tuple[bytes, int]] = []
    digest, size = b"", 0
    for piece in pieces:
        if len(links) == longest:
            break
        digest = blake2b(digest + piece, digest_size=DIGEST_BYTES).digest()
        size += len(piece)
        links.append((digest, size))
    return tuple(links)


def shared_bytes(one: Chain, other: Chain) -> int:
    """Size of the longest prefix that two prompts share."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[middle - 1] == other[middle - 1]:
            low = middle
        else:
            high = middle - 1
    return one[low - 1][1] if low else 0


class _Slot:
    __slots__ = ("busy", "chain", "number", "used")

    def __init__(self, number: int) -> None:
        self.number = number
        self.chain: Chain = ()
        self.used = 0
        self.busy = False


class SlotTable:
    """Where each conversation was last seen. Not thread-safe; every method costs at most the slots of one lane."""

    def __init__(
        self, specialists: Sequence[str | None], entry: str | None, per_adapter: int, routers: Sequence[str] = ()
    ) -> None:
        """`specialists` names each specialist's adapter, None for the bare base; `entry` is the one that routes, and
        `routers` are others that may, each with a slot of its own for it."""
        self._lanes: dict[Lane, list[_Slot]] = {Lane(entry, True): [_Slot(0)]}
        self._clock = 0
        for position, adapter in enumerate(specialists):
            first = 1 + position * per_adapter
            slots = self._lanes.setdefault(Lane(adapter, False), [])
            slots.extend(_Slot(first + offset) for offset in range(per_adapter))
        first = slots_needed(len(specialists), per_adapter)
        for position, router in enumerate(routers):
            self._lanes[Lane(router, True)] = [_Slot(first + position)]

    def capacity(self, lane: Lane) -> int:
        """Slots of a lane, 0 for one that the engine was not started with."""
        return len(self._lanes.get(lane, ()))

    def take(self, lane: Lane, chain: Chain) -> int:
        """Number of a slot that no other hop uses; `release` it.

        The slot that shares the most with the prompt wins if that is at least half of what it holds. Otherwise it
        holds another conversation, worth more than the head it shares with this one, and the least recently used is
        taken.
        """
        free = [slot for slot in self._lanes[lane] if not slot.busy]
        if not free:
            raise LookupError(f"no free slot in {lane}: the gate admitted too many hops")
        slot = max(free, key=lambda slot: (_worth(slot, chain), -slot.used))
        self._clock += 1
        slot.busy, slot.chain, slot.used = True, chain, self._clock
        return slot.number

    def release(self, number: int) -> None:
        """The hop that took this slot has ended."""
        for slots in self._lanes.values():
            for slot in slots:
                if slot.number == number:
                    slot.busy = False


def _worth(slot: _Slot, chain: Chain) -> int:
    shared = shared_bytes(slot.chain, chain)
    return shared if slot.chain and 2 * shared >= slot.chain[-1][1] else 0


def slots_needed(specialists: int, per_adapter: int) -> int:
    """Slots the engine is launched with."""
    return 1 + specialists * per_adapter
