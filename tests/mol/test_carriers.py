"""Carriers: a service that forgets everything between turns shows its specialists what one that remembers shows."""

from __future__ import annotations

import asyncio
from typing import Literal, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macaron.conversation import AnswerEvent, Item, ToolCall
from macaron.engine.base import HopRequest
from macaron.hcp import Loaded
from macaron.mol.carrier import Carried, CarriedTurn, packed, restored, unpacked
from tests.mol.heart import Heart, InstantEngine, Outcome, answering, profile, result, said, user

KEY = b"k" * 32
LABELS = ("L0", "L1", "L2", "L3")


class Move(NamedTuple):
    """One request: whom it is for, what comes back, and what a client may do to its history first."""

    label: str
    kind: Literal["text", "long", "calls", "reasoned"]
    results: bool
    imported: bool


MOVES = st.lists(
    st.builds(
        Move,
        st.sampled_from(LABELS),
        st.sampled_from(["text", "long", "calls", "reasoned"]),
        st.booleans(),
        st.booleans(),
    ),
    min_size=2,
    max_size=8,
)


def script(hop: HopRequest) -> list[AnswerEvent]:
    """What comes back is what the number of messages and the last of them ask for."""
    words = str(hop.messages[-1]["content"])
    name = f"a{len(hop.messages)}"
    if "calls" in words:
        return answering("", (ToolCall(f"{name}-0", "look", "{}"), ToolCall(f"{name}-1", "look", "{}")))
    return answering(name + (" word" * 500 if "long" in words else ""), reasoning="hm" if "reasoned" in words else "")


def engine() -> InstantEngine:
    return InstantEngine(lambda hop: str(hop.messages[-1]["content"]).rpartition("to:")[2][:2], script)


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """No summary hops: when those end is no law."""
    return profile(tmp_path_factory.mktemp("silent"), mol='summary = "off"')


class Client:
    """Sends everything again each turn, with the carriers it was given."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.carriers: list[str] = []
        self.count = 0

    async def ask(self, heart: Heart, items: list[Item]) -> Outcome:
        self.items += items
        self.count += 1
        outcome = await heart.turn(
            self.items, id=f"r{self.count}", keep=False, carriers=tuple(self.carriers), carry=True
        )
        self.items += outcome.items
        assert outcome.carrier is not None
        self.carriers.append(outcome.carrier)
        return outcome


def asked(move: Move, items: list[Item], number: int) -> list[Item]:
    """What a client says next."""
    calls = []
    for item in reversed(items):
        if not isinstance(item, ToolCall):
            break
        calls.append(item)
    if calls and move.results:
        return [result(call.call_id, f"{move.kind} result {number}") for call in reversed(calls)]
    imported = [user("earlier"), said("foreign")] if move.imported else []
    return [*imported, user(f"{number} {move.kind} to:{move.label}")]


@settings(max_examples=60, deadline=None)
@given(moves=MOVES)
def test_who_forgets_shows_what_who_remembers_shows(silent: Loaded, moves: list[Move]) -> None:
    async def both() -> None:
        one, other = Client(), Client()
        remembering = Heart(silent, engine(), state_keys=[KEY])
        sessions = set()
        for number, move in enumerate(moves):
            forgetting = Heart(silent, engine(), state_keys=[KEY])
            kept = await one.ask(remembering, asked(move, one.items, number))
            carried = await other.ask(forgetting, asked(move, other.items, number))
            assert carried[:2] == kept[:2]
            assert forgetting.engine.last("answer").messages == remembering.engine.last("answer").messages
            sessions.add(carried.session)
        assert len(sessions) == 1

    asyncio.run(both())


async def test_a_branch_from_an_earlier_turn_is_restored_by_that_turns_carrier(silent: Loaded) -> None:
    client, heart = Client(), Heart(silent, engine(), state_keys=[KEY])
    await client.ask(heart, [user("long to:L1")])
    branch = list(client.items)
    await client.ask(heart, [user("text to:L2")])
    other = Heart(silent, engine(), state_keys=[KEY])
    client.items = branch
    await client.ask(other, [user("text to:L3")])
    assert "[summary of L1's answer" in str(other.engine.last("answer").messages)


async def test_a_step_behind_a_carrier_is_found_again_whole(silent: Loaded) -> None:
    """The store has the newest step only; its carrier goes further back."""
    client, heart = Client(), Heart(silent, engine(), state_keys=[KEY])
    await client.ask(heart, [user("long to:L1")])
    other = Heart(silent, engine(), state_keys=[KEY])
    await client.ask(other, [user("text to:L2")])
    await client.ask(other, [user("text to:L3")])
    shown = str(other.engine.last("answer").messages)
    assert "[summary of L1's answer" in shown
    assert "[summary of L2's answer" in shown


async def test_a_changed_answer_is_no_tool_turn_of_somebody_else(silent: Loaded) -> None:
    """A carrier binds the history up to the question: other calls under it are the client's own affair."""
    client, heart = Client(), Heart(silent, engine(), state_keys=[KEY])
    await client.ask(heart, [user("calls to:L1")])
    other = Heart(silent, engine(), state_keys=[KEY])
    client.items[0] = user("calls to:L2")
    outcome = await client.ask(other, [result("a2-0", "x"), result("a2-1", "y"), user("text to:L3")])
    assert (outcome.label, outcome.reason) == ("L3", "routed")
    assert "[summary of L1" not in str(other.engine.last("answer").messages)


TURNS = st.lists(
    st.builds(
        CarriedTurn,
        id=st.text("abc", min_size=1, max_size=40),
        end=st.text("abc", min_size=1, max_size=40),
        who=st.just(0),
        counts=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9).map(
            lambda pairs: tuple(count for pair in pairs for count in pair)
        ),
        hidden=st.booleans(),
        text=st.text(max_size=300),
        decided=st.booleans(),
    ),
    min_size=1,
    max_size=30,
).map(lambda made: (*made[:-1], msgspec.structs.replace(made[-1], counts=made[-1].counts[:-1])))


def carried(turns: tuple[CarriedTurn, ...]) -> Carried:
    return Carried("sess_1", (("L1", "a" * 64),), turns)


@given(TURNS)
def test_what_is_packed_is_unpacked(turns: tuple[CarriedTurn, ...]) -> None:
    data = packed(carried(turns), 1_000_000)
    assert data is not None
    assert unpacked(data) == carried(turns)


@given(TURNS, st.integers(300, 4000))
def test_packing_keeps_the_bound_and_the_newest(turns: tuple[CarriedTurn, ...], limit: int) -> None:
    data = packed(carried(turns), limit)
    if data is None:
        return
    assert len(data) <= limit
    kept = unpacked(data)
    assert kept is not None
    assert [turn.end for turn in kept.turns] == [turn.end for turn in turns[-len(kept.turns) :]]
    lost = [turn.text for turn, whole in zip(kept.turns, turns[-len(kept.turns) :], strict=True) if turn != whole]
    assert not any(lost)


@given(TURNS)
def test_a_restored_path_has_every_step_once(turns: tuple[CarriedTurn, ...]) -> None:
    path = restored(carried(turns), "s", "h", 7).path
    assert len(path) == sum((len(turn.counts) + 1) // 2 for turn in turns)
    assert path[-1].output_count == 7
    assert path[0].parent is None
    assert [step.parent for step in path[1:]] == [step.id for step in path[:-1]]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode(["s", [["L1", "r"]], []]),
        msgspec.msgpack.encode(["s", [["L1", "r"]], [["t", "t", 1, [1]]]]),
        msgspec.msgpack.encode(["s", [["L1", "r"]], [["t", "t", 0, [1, 1]]]]),
        msgspec.msgpack.encode(["s", [["L1", "r"]], [["t", "t", 0, []], ["u", "u", 0, [1]]]]),
        msgspec.msgpack.encode(["s", [["L1", "r"]], [["t", "t", 0, [-1]]]]),
        msgspec.msgpack.encode(["s", [["L1", "r"]], [["t", "t", 0, [1]]], "more"]),
    ],
)
def test_what_another_version_packed_is_not_taken(data: bytes) -> None:
    assert unpacked(data) is None
