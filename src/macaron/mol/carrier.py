"""What a carrier holds: the part of a conversation's path that its visible items do not show. Pure.

Who answered each turn, how the items divide into steps, and what stands for turns in other specialists' views. The
items themselves come back with the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from macaron.conversation import Step


class CarriedTurn(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One turn.

    Attributes:
        id: of the turn, which is its first step's.
        end: id of its last step.
        who: which of the specialists answered.
        counts: visible items of each step, in and out by turns. The last answer of all is not counted: it is written
            when the carrier is already sealed.
        hidden: whether what is hidden of it may be used under the head that the carrier is bound to.
        text: its note or summary; empty where there is none.
        decided: whether that is its note, which stays.
    """

    id: str
    end: str
    who: int
    counts: tuple[int, ...]
    hidden: bool = True
    text: str = ""
    decided: bool = False


class Carried(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A path. `specialists` are labels with revisions; turns are oldest first."""

    session: str
    specialists: tuple[tuple[str, str], ...]
    turns: tuple[CarriedTurn, ...]


class Restored(Struct, frozen=True):
    """The path that a carrier stands for, without its items; `hidden` are the steps whose hidden state may be used."""

    path: tuple[Step, ...]
    hidden: frozenset[str]


def packed(carried: Carried, limit: int) -> bytes | None:
    """At most `limit` bytes: the oldest texts go first, then the oldest turns. None where not one turn fits."""
    data = msgspec.msgpack.encode(carried)
    if len(data) > limit:
        carried = replace(carried, turns=_without_texts(carried.turns, len(data) - limit))
        data = msgspec.msgpack.encode(carried)
    while len(data) > limit and len(carried.turns) > 1:
        carried = replace(carried, turns=carried.turns[(len(carried.turns) + 1) // 2 :])
        data = msgspec.msgpack.encode(carried)
    return data if len(data) <= limit else None


def _without_texts(turns: Sequence[CarriedTurn], excess: int) -> tuple[CarriedTurn, ...]:
    shorter = []
    for turn in turns:
        if excess > 0 and turn.text:
            excess -= len(turn.text.encode("utf-8", "surrogatepass"))
            turn = replace(turn, text="", decided=False)
        shorter.append(turn)
    return tuple(shorter)


def unpacked(data: bytes) -> Carried | None:
    """What was packed; None where the bytes are not from a version that packs as this one does."""
    try:
        carried = msgspec.msgpack.decode(data, type=Carried)
    except msgspec.MsgspecError:
        return None
    return carried if _is_sound(carried) else None


def _is_sound(carried: Carried) -> bool:
    *earlier, last = carried.turns or (None,)
    return (
        last is not None
        and len(last.counts) % 2 == 1
        and all(turn is not None and turn.counts and len(turn.counts) % 2 == 0 for turn in earlier)
        and all(0 <= turn.who < len(carried.specialists) and min(turn.counts) >= 0 for turn in carried.turns)
    )


def restored(carried: Carried, scope: str, head: str, last_count: int) -> Restored:
    """The path of a carrier.

    Args:
        last_count: visible items of the last answer.
    """
    steps: list[Step] = []
    hidden: set[str] = set()
    for turn in carried.turns:
        counts = turn.counts if len(turn.counts) % 2 == 0 else (*turn.counts, last_count)
        places = len(counts) // 2
        names = [turn.id, *(f"{turn.id}~{place}" for place in range(1, places))]
        names[-1] = turn.end
        label, revision = carried.specialists[turn.who]
        for place, name in enumerate(names):
            given, answered = counts[2 * place : 2 * place + 2]
            steps.append(_step(name, carried.session, turn.id, scope, head, label, revision, given, answered))
        hidden |= set(names) if turn.hidden else set()
    first = steps[:1]
    later = (replace(step, parent=before.id) for before, step in pairwise(steps))
    return Restored((*first, *later), frozenset(hidden))


def _step(
    name: str, session: str, turn: str, scope: str, head: str, label: str, revision: str, given: int, answered: int
) -> Step:
    return Step(
        id=name,
        session=session,
        parent=None,
        turn=turn,
        scope=scope,
        depth=0,
        digest="",
        asked="",
        head=head,
        label=label,
        revision=revision,
        status="completed",
        finish="",
        generation=0,
        contract="",
        created=0.0,
        inputs=None,
        outputs=None,
        input_count=given,
        output_count=answered,
    )
