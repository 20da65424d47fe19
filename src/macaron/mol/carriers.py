"""Carriers: what a stateless client keeps of its conversation for us, sealed, and what is made of it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from macaron.conversation import Item
from macaron.mol.carrier import Carried, CarriedTurn, Restored, packed, restored, unpacked
from macaron.mol.identity import by_model, visible_count
from macaron.mol.lookup import Found, TurnRequest, hydrate
from macaron.mol.notes import Notes
from macaron.mol.observer import Observer
from macaron.mol.seal import MAX_STATE, Bond, Refusal, Sealer, hint_of
from macaron.mol.steps import Frame
from macaron.mol.view import turns

MAX_CARRIERS = 256
MAX_OPENED = 8
"""Of a request's carriers, the newest are looked at, and few of those are deciphered: the newest good one is enough."""


class Opened(NamedTuple):
    """A carrier that is good for a request: `cut` items are what it stands for, `asked` of them its last question."""

    carried: Carried
    asked: int
    cut: int


class Carriers:
    """Makes carriers, and restores paths from them. The store wins where it knows as much."""

    def __init__(self, sealer: Sealer, notes: Notes, observer: Observer) -> None:
        self._sealer = sealer
        self._notes = notes
        self._observer = observer

    def make(self, frame: Frame) -> str | None:
        """The carrier of a turn whose answer begins now, bound to the visible history up to its question."""
        request = frame.request
        data = packed(self._carried(frame), MAX_STATE)
        bond = Bond(request.scope, frame.head, frame.found.asked)
        sealed = None if data is None else self._sealer.seal(data, bond)
        self._observer.carrier("not_made" if sealed is None else "made")
        return sealed

    def restore(self, request: TurnRequest, head: str, found: Found) -> Found:
        """What is known of a request with the help of the carriers that it brings."""
        if not self._lacks(found):
            return found
        opened = self._opened(request, head, found.digests)
        if opened is None:
            return found
        self._observer.carrier("opened")
        carried, asked, cut = opened
        known = len(request.items) - len(found.new)
        rooted = bool(found.path) and found.path[0].parent is None
        if known > cut or (known == cut and rooted):
            self._learn(carried, found.unkept)
            return found
        path = restored(carried, request.scope, head, visible_count(request.items[asked:cut]))
        self._learn(carried, {step.id for step in path.path})
        return _found(path, request.items, cut, found)

    def _lacks(self, found: Found) -> bool:
        """Whether a carrier could add to what the store knows."""
        if not found.path or found.path[0].parent is not None or any(map(by_model, found.new)):
            return True
        return any(turn.end.id in found.unkept and not self._notes.told(turn.end) for turn in turns(found.path))

    def _opened(self, request: TurnRequest, head: str, digests: Sequence[str]) -> Opened | None:
        places = _places(digests)
        tries = 0
        for text in reversed(request.carriers[-MAX_CARRIERS:]):
            opened = self._open(text, request, head, places)
            if isinstance(opened, Opened):
                return opened
            self._observer.carrier(opened)
            tries += opened == "refused"
            if tries == MAX_OPENED:
                break
        return None

    def _open(self, text: str, request: TurnRequest, head: str, places: Mapping[str, Place]) -> Opened | Refusal:
        envelope = self._sealer.envelope(text)
        if isinstance(envelope, str):
            return envelope
        place = places.get(envelope.hint)
        cut = None if place is None else _answered(request.items, place.asked)
        if place is None or cut is None:
            return "elsewhere"
        data = self._sealer.open(text, envelope, Bond(request.scope, head, place.digest))
        if isinstance(data, str):
            return data
        carried = unpacked(data)
        return "malformed" if carried is None else Opened(carried, place.asked, cut)

    def _learn(self, carried: Carried, steps: frozenset[str] | set[str]) -> None:
        for turn in carried.turns:
            if turn.text and turn.end in steps:
                self._notes.learn(turn.end, turn.text, decided=turn.decided)

    def _carried(self, frame: Frame) -> Carried:
        request, found = frame.request, frame.found
        path = turns(found.path)
        pairs = [(turn.label, turn.end.revision) for turn in path]
        pairs.append((frame.specialist.label, frame.specialist.revision))
        specialists = tuple(dict.fromkeys(pairs))
        made: list[CarriedTurn] = []
        for turn, pair in zip(path, pairs, strict=False):
            hidden = turn.end.id in found.hidden
            text, decided = (self._notes.told(turn.end) if hidden else None) or ("", False)
            counts = tuple(count for step in turn.steps for count in (step.input_count, step.output_count))
            who = specialists.index(pair)
            made.append(CarriedTurn(turn.end.turn, turn.end.id, who, counts, hidden, text, decided))
        who, counts = specialists.index(pairs[-1]), (visible_count(found.new),)
        if made and made[-1].id == frame.turn:
            # A tool turn goes on: what stood for it so far stands for less than it is now.
            counts = (*made.pop().counts, *counts)
        made.append(CarriedTurn(frame.turn, request.id, who, counts))
        return Carried(frame.session, specialists, tuple(made))


class Place(NamedTuple):
    """A place in a conversation: how many items come before it, and the digest of those that are visible."""

    asked: int
    digest: str


def _places(digests: Sequence[str]) -> dict[str, Place]:
    """By hint, the first place at which a digest stands."""
    places: dict[str, Place] = {}
    for index, digest in enumerate(digests, 1):
        places.setdefault(hint_of(digest), Place(index, digest))
    return places


def _answered(items: Sequence[Item], asked: int) -> int | None:
    """Where the answer after the first `asked` items ends; None where there is none."""
    end = asked
    while end < len(items) and by_model(items[end]):
        end += 1
    return end if end > asked else None


def _found(path: Restored, items: Sequence[Item], cut: int, found: Found) -> Found:
    steps, _ = hydrate(path.path, items[:cut])
    return Found(
        path=steps,
        new=tuple(items[cut:]),
        asked=found.asked,
        depth=found.depth,
        hidden=path.hidden,
        retry=None,
        unkept=frozenset(step.id for step in steps),
        digests=found.digests,
    )
