"""Laws of views over random trees of turns: several specialists and heads, tool loops, imported history."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from macaron.conversation import AnswerEvent, Item, Message, Reasoning, Text, ToolCall
from macaron.engine.base import ChatMessage, HopRequest
from macaron.hcp import Loaded
from tests.mol.heart import Heart, InstantEngine, answering, result, said, user

LABELS = ("L0", "L1", "L2", "L3")
MARK = re.compile(r"[a-z]+#\d+#")
Kind = Literal["text", "long", "calls", "reasoned"]
Ask = Literal["results", "some", "both", "user"]


class Move(NamedTuple):
    """One request: which of the histories so far it extends, whom it is for, and what comes back.

    `ask` says what to do about open calls: answer all or some of them, answer them and say more, or leave them.
    """

    place: int
    label: str
    kind: Kind
    ask: Ask
    imported: bool
    system: str = ""


MOVES = st.lists(
    st.builds(
        Move,
        st.integers(0, 30),
        st.sampled_from(LABELS),
        st.sampled_from(["text", "long", "calls", "reasoned"]),
        st.sampled_from(["results", "some", "both", "user"]),
        st.booleans(),
        st.sampled_from(["", "", "another head"]),
    ),
    min_size=2,
    max_size=14,
)


@dataclass(frozen=True)
class History:
    """A branch as its client has it, and what a specialist may see of it.

    Attributes:
        open: ids of the calls that wait for their results.
        label: who answered last.
        said: marks in the user's words, and in what was imported.
        private: marks in calls, results and reasoning, by the label that may see them.
        answered: marks in visible answers.
        shown: the messages each specialist was given last on this branch, by label and system message.
    """

    items: tuple[Item, ...] = ()
    open: tuple[str, ...] = ()
    label: str = ""
    said: frozenset[str] = frozenset()
    private: dict[str, frozenset[str]] = field(default_factory=dict)
    answered: frozenset[str] = frozenset()
    shown: dict[tuple[str, str], list[ChatMessage]] = field(default_factory=dict)

    @property
    def marks(self) -> frozenset[str]:
        return self.said.union(self.answered, *self.private.values())


class Walk:
    """Makes moves against a heart, and checks every view on the way. Call ids are the same in every turn."""

    def __init__(self, loaded: Loaded) -> None:
        self.engine = InstantEngine(lambda _: self.wanted, self.script)
        self.heart = Heart(loaded, self.engine)
        self.histories = [History()]
        self.numbers: Iterator[int] = iter(range(10_000))
        self.wanted = ""
        self.reply: Sequence[AnswerEvent] = ()

    def script(self, hop: HopRequest) -> Sequence[AnswerEvent]:
        if hop.kind == "answer":
            return self.reply
        answer = next(message for message in reversed(hop.messages) if message["role"] == "assistant")
        return answering("in short: " + " ".join(MARK.findall(str(answer["content"]))))

    def mark(self, kind: str) -> str:
        return f"{kind}#{next(self.numbers)}#"

    async def move(self, move: Move) -> None:
        before = self.histories[move.place % len(self.histories)]
        history, asks = self.asked(before, move)
        self.wanted = move.label
        label = move.label if asks else history.label
        reply, private, answered = self.answer(move.kind)
        self.reply = reply
        system = (Message("system", (Text(move.system),)),) if move.system else ()
        outcome = await self.heart.turn(history.items, system=system)
        assert outcome.label == label
        assert (outcome.reason == "sticky") is not asks
        shown = [*self.engine.last("answer").messages]
        self.check(history, label, move.system, shown)
        calls = tuple(item.call_id for item in outcome.items if isinstance(item, ToolCall))
        self.histories.append(
            replace(
                history,
                # The client keeps no reasoning.
                items=history.items + tuple(item for item in outcome.items if not isinstance(item, Reasoning)),
                open=calls,
                label=label,
                private={**history.private, label: history.private.get(label, frozenset()) | private},
                answered=history.answered | answered,
                shown={**history.shown, (label, move.system): shown},
            )
        )

    def asked(self, history: History, move: Move) -> tuple[History, bool]:
        """The history with what the client adds, and whether that begins a turn."""
        results: list[Item] = []
        hidden: set[str] = set()
        if history.open and move.ask != "user":
            count = 1 if move.ask == "some" else len(history.open)
            outputs = [self.mark("result") for _ in history.open[:count]]
            hidden.update(outputs)
            results += map(result, history.open[:count], outputs)
        asks = not results or move.ask == "both"
        new: list[Item] = []
        words: set[str] = set()
        if asks:
            if move.imported:
                new, words = self.imported()
            words.add(question := self.mark("user"))
            new.append(user(question))
        private = {**history.private, history.label: history.private.get(history.label, frozenset()) | hidden}
        added = replace(
            history, items=(*history.items, *results, *new), said=history.said | words, private=private, open=()
        )
        return added, asks

    def imported(self) -> tuple[list[Item], set[str]]:
        """What another service answered in the same conversation, with a tool loop under an id that is used here."""
        marks = [self.mark("foreign") for _ in range(4)]
        loop: list[Item] = [ToolCall("c0", "elsewhere", f'{{"a":"{marks[1]}"}}'), result("c0", marks[2])]
        return [user(marks[0]), *loop, said(marks[3])], set(marks)

    def answer(self, kind: Kind) -> tuple[Sequence[AnswerEvent], frozenset[str], frozenset[str]]:
        """What the engine says, the marks only its specialist may see again, and those the client sees."""
        text = self.mark("answer")
        if kind == "calls":
            arguments = [self.mark("argument"), self.mark("argument")]
            calls = [ToolCall(f"c{place}", "look", f'{{"a":"{mark}"}}') for place, mark in enumerate(arguments)]
            return answering(text, calls), frozenset(arguments), frozenset((text,))
        if kind == "reasoned":
            thought = self.mark("thought")
            return answering(text, reasoning=thought), frozenset((thought,)), frozenset((text,))
        return answering(text + " and more" * (400 if kind == "long" else 0)), frozenset(), frozenset((text,))

    def check(self, history: History, label: str, system: str, shown: Sequence[ChatMessage]) -> None:
        data = encode(shown)
        seen = frozenset(MARK.findall(data.decode()))
        assert data.startswith(encode(history.shown.get((label, system), []))), "the view before is a prefix"
        assert seen <= history.marks, "nothing of another branch"
        assert history.said <= seen, "the user's words are kept"
        for other, marks in history.private.items():
            if other != label:
                assert not seen & marks, f"calls, results and thoughts of {other} are not shown to {label}"
        calls = {call["id"] for message in shown for call in list_of(message.get("tool_calls"))}
        assert {str(message["tool_call_id"]) for message in shown if message["role"] == "tool"} <= calls


def list_of(value: object) -> list[dict[str, object]]:
    return value if isinstance(value, list) else []


def encode(messages: Sequence[ChatMessage]) -> bytes:
    """Canonical JSON without the bracket that closes it."""
    return msgspec.json.encode(messages, order="deterministic")[:-1]


@settings(deadline=None, max_examples=150)
@given(MOVES, st.integers(0, 2))
def test_views_only_grow_keep_the_users_words_and_leak_nothing(
    loaded: Loaded, thinking: Loaded, digests: Loaded, moves: list[Move], contract: int
) -> None:
    async def law() -> None:
        walk = Walk((loaded, thinking, digests)[contract])
        for move in moves:
            await walk.move(move)
        await walk.heart.service.background.drain(1.0)

    asyncio.run(law())
