"""The heart without HTTP: a whole service's turns over a real store, in front of an engine that answers at once.

The engine stands for a GPU engine, so that laws over many turns can be tested in milliseconds.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple

from macaron.conversation import AnswerEvent, CallDelta, Delta, Finish, Hop, Item, Message, Text, ToolCall, ToolResult
from macaron.engine.base import Capabilities, ChatMessage, Choice, EngineEvent, Health, HopRequest, Sink
from macaron.experience import Recorder
from macaron.hcp import Loaded, load
from macaron.mol.early import Early
from macaron.mol.events import Answered, Chosen, Done, TurnEvent
from macaron.mol.lookup import TurnRequest
from macaron.mol.observer import CarrierOutcome, Event, Speculation
from macaron.registry.cards import Registry, registry_from
from macaron.server.keys import Keys
from macaron.server.service import Service
from macaron.store import open_store
from macaron.store.base import Limits
from tests.harness import write_profile

Script = Callable[[HopRequest], Sequence[AnswerEvent]]


class InstantEngine:
    """Implements `Engine`: routes with `label`, answers with `script`, and keeps every hop it was given."""

    def __init__(self, label: Callable[[HopRequest], str], script: Script) -> None:
        self.label = label
        self.script = script
        self.hops: list[HopRequest] = []

    @property
    def kind(self) -> str:
        return "vllm"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def choose(self, hop: HopRequest) -> Choice:
        self.hops.append(hop)
        label = self.label(hop)
        return Choice(label if label in hop.choices else None, label)

    async def answer(self, hop: HopRequest, sink: Sink | None = None) -> AsyncGenerator[Sequence[EngineEvent], None]:
        self.hops.append(hop)
        yield self.script(hop)

    async def health(self) -> Health:
        return Health(True)

    async def count_tokens(self, messages: Sequence[ChatMessage], options: Mapping[str, Any]) -> int | None:
        return None

    def last(self, kind: str) -> HopRequest:
        """The newest hop of a kind."""
        return next(hop for hop in reversed(self.hops) if hop.kind == kind)


class Outcome(NamedTuple):
    """What a turn told its client."""

    label: str
    reason: str
    session: str
    items: tuple[Item, ...]
    carrier: str | None = None


class Heart:
    """Turns, to be run without a server."""

    def __init__(
        self,
        loaded: Loaded,
        engine: InstantEngine,
        registry: Registry | None = None,
        recorder: Recorder | None = None,
        state_keys: Sequence[bytes] = (),
    ) -> None:
        self.engine = engine
        self.store = open_store("memory:", limits=Limits(), durability="normal")
        self.service = Service(
            loaded, registry or registry_from(loaded), 1, engine, self.store, Keys(None), None, recorder, state_keys
        )
        self._count = 0

    def start(
        self, items: Sequence[Item], *, early: Early | None = None, **fields: Any
    ) -> AsyncGenerator[TurnEvent, None]:
        """A turn, to be iterated."""
        self._count += 1
        request = TurnRequest(id=fields.pop("id", f"r{self._count}"), tenant="local", items=tuple(items), **fields)
        return self.service.turns.run(request, early)

    async def turn(self, items: Sequence[Item], **fields: Any) -> Outcome:
        """Run one turn to its end."""
        chosen, answered, done = None, None, False
        async with aclosing(self.start(items, **fields)) as events:
            async for event in events:
                match event:
                    case Chosen():
                        chosen = event
                    case Answered():
                        answered = event
                    case Done():
                        done = True
        assert chosen is not None
        assert answered is not None
        assert done
        return Outcome(
            chosen.specialist.label, chosen.reason, chosen.session, answered.answers[0].items(), chosen.carrier
        )


def profile(folder: Path, mol: str = "", more: str = "", labels: tuple[str, ...] = ("L0", "L1", "L2", "L3")) -> Loaded:
    """A contract for an engine that is never asked over HTTP."""
    return load(write_profile(folder, "http://127.0.0.1:9", labels=labels, mol=mol, more=more))


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def said(text: str) -> Message:
    return Message("assistant", (Text(text),))


def result(call_id: str, text: str) -> ToolResult:
    return ToolResult(call_id, (Text(text),))


def answering(text: str = "", calls: Sequence[ToolCall] = (), reasoning: str = "") -> list[AnswerEvent]:
    """The events of an answer that comes at once."""
    pieces = tuple(CallDelta(index, call.call_id, call.name, call.arguments) for index, call in enumerate(calls))
    return [Delta(0, text, reasoning, "", pieces), Finish("tool_calls" if calls else "stop")]


class Silent:
    """An observer that counts nothing."""

    def hop(self, hop: Hop) -> None: ...

    def first_token(self, label: str, seconds: float) -> None: ...

    def speculation(self, outcome: Speculation) -> None: ...

    def event(self, event: Event) -> None: ...

    def carrier(self, outcome: CarrierOutcome) -> None: ...
