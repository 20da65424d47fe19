"""The making of one response: its record, its turn, its events, and its end, which is written once."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

import msgspec
from msgspec.structs import replace

from macaron.conversation import Message
from macaron.errors import ContextOverflow, Unavailable
from macaron.mol.events import Answered, Chosen, TurnEvent
from macaron.mol.lookup import TurnRequest
from macaron.server.responses.documents import document
from macaron.server.responses.history import History
from macaron.server.service import Service
from macaron.store.base import Append, Entry, Record
from macaron.wire.responses_answer import About, Body, ResponseStream, usage_object
from macaron.wire.responses_items import WireItem, item_id, kept

TRUNCATIONS = 8
"""Each drops half of what is left, so that this reaches any conversation that fits a body."""


class Run:
    """One response. The events go to a sink; the record, where there is one, is closed by the first who does."""

    def __init__(
        self, service: Service, about: About, turn: TurnRequest, history: History, *, truncate: bool, resumable: bool
    ) -> None:
        """
        Args:
            truncate: the oldest items may go where the context is too short.
            resumable: its events are kept.
        """
        self._service = service
        self._about = about
        self._turn = turn
        self._truncate = truncate
        self._resumable = resumable
        self._history = history
        self._input: list[WireItem] = [
            kept(item, item_id(item["type"], about.id, place)) for place, item in enumerate(history.input)
        ]
        self._given: msgspec.Raw | None = None
        self._key = (turn.tenant, about.id)
        self.events = ResponseStream(about)

    @property
    def id(self) -> str:
        """The response's id."""
        return self._about.id

    @property
    def stored(self) -> bool:
        """Whether it is kept."""
        return self._about.store

    async def keep(self, status: str) -> Body:
        """Put the record before anything is generated; returns the response object.

        Raises:
            StoreFull: there is no room for it.
        """
        body = self._about.body(status)
        await self._service.store.put_record(
            Record(
                scope=self._turn.tenant,
                id=self._about.id,
                user=self._turn.user,
                root=self._history.root or self._about.id,
                parent=self._history.parent,
                created=float(self._about.created),
                body=self._document(body),
                open=True,
                lease=self._service.leases.until(),
            )
        )
        return body

    def vouch(self, cancel: Callable[[], object]) -> None:
        """From now on this worker makes the response, where it is kept; `cancel` ends that."""
        if self.stored:
            self._service.leases.hold(self._key, cancel)

    def turn(self) -> aclosing[AsyncGenerator[TurnEvent, None]]:
        """The turn's events, in a context that ends them."""
        return aclosing(self._events())

    async def _events(self) -> AsyncGenerator[TurnEvent, None]:
        """The turn's events. Where that is wanted, the oldest items go until the rest fits."""
        turn, begun = self._turn, False
        for attempt in range(TRUNCATIONS + 1):
            try:
                async with aclosing(self._service.turns_of(turn.tenant).run(turn)) as events:
                    async for event in events:
                        begun = True
                        if isinstance(event, Chosen):
                            self.events.carry(event.carrier)
                        yield event
                return
            except ContextOverflow:
                shorter = _shortened(turn) if self._truncate and attempt < TRUNCATIONS and not begun else None
                if shorter is None:
                    raise
                turn = shorter

    def finish(self, answered: Answered) -> tuple[list[bytes], Body]:
        """The events that end the items, and the response object; neither says yet that it is durable."""
        usage = usage_object(answered.usage, answered.hops)
        answer, now = answered.answers[0], int(time.time())
        if self._turn.stream:
            return self.events.finish(answer, usage, now)
        return [], self.events.whole(answer, usage, now)

    async def settle(self, body: Body, last: Sequence[bytes] = ()) -> None:
        """Write the end of the response, and its items into its conversation.

        Args:
            last: events to be kept with it.

        Raises:
            Unavailable: somebody else has ended it.
        """
        if not await self.end_as(body, last):
            raise response_ended()

    async def end_as(self, body: Body, last: Sequence[bytes] = ()) -> bool:
        """As `settle`; says whether the end is this one."""
        self._service.leases.drop(self._key)
        if not self.stored:
            return True
        appends = [Append(self.id, tuple(map(Entry, last)))] if last else []
        conversation = self._about.conversation
        if conversation is not None and body["status"] in ("completed", "incomplete"):
            items = (*self._input, *body["output"])
            entries = tuple(Entry(msgspec.json.encode(item), item["id"]) for item in items)
            appends.append(Append(conversation, entries))
        return await self._service.store.revise_record(*self._key, self._document(body), open=False, appends=appends)

    async def proceed(self, status: str, events: Sequence[bytes]) -> bool:
        """Keep how far the response is, and events; False where somebody else has ended it."""
        body = self._document(self._about.body(status))
        appends = [Append(self.id, tuple(map(Entry, events)))] if events else []
        return await self._service.store.revise_record(*self._key, body, open=True, appends=appends)

    async def discard(self) -> None:
        """Nobody has heard of the response, so nothing of it is kept."""
        self._service.leases.drop(self._key)
        if self.stored:
            await self._service.store.delete_record(*self._key)

    def _document(self, body: Body) -> bytes:
        if self._given is None:
            self._given = msgspec.Raw(msgspec.json.encode(self._input))
        return document(body, self._given, streamed=self._resumable)


def response_ended() -> Unavailable:
    """What a client is told whose response somebody else has ended."""
    return Unavailable("The response was cancelled or deleted while it was made.", code="response_ended")


def _shortened(turn: TurnRequest) -> TurnRequest | None:
    """A turn without the older half of its items, cut before a message of the user's; None where nothing can go."""
    starts = [place for place, item in enumerate(turn.items) if isinstance(item, Message) and item.role == "user"]
    later = [place for place in starts if place > 0]
    if not later:
        return None
    cut = next((place for place in later if place >= len(turn.items) // 2), later[-1])
    # Carriers are of the whole history, which the client will send again.
    return replace(turn, items=turn.items[cut:], parent=None, carriers=(), carry=False)
