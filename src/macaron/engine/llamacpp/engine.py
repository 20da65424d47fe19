"""The Engine over the child's HTTP: the gate decides when a hop runs, the slot table where, the grammar what it says.

Every hop is streamed, since llama.cpp cancels promptly only what it streams, and names its adapter, since a request
that names none runs with whatever its slot ran last.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from msgspec.structs import replace

from macaron.conversation import AnswerEvent, Delta, Usage
from macaron.engine.base import Capabilities, ChatMessage, Choice, EngineEvent, Health, HopRequest, Queued, Sink
from macaron.engine.link.base import Limits as LinkLimits
from macaron.engine.link.base import LinkFactory
from macaron.engine.llamacpp.choices import ROUTE_TOKENS, ChoicePlan, plan_choice
from macaron.engine.llamacpp.client import Layout, ServerClient
from macaron.engine.llamacpp.config import EngineConfig
from macaron.engine.llamacpp.gate import Gate, Lane, Limits, Schedule
from macaron.engine.llamacpp.prompt import pieces
from macaron.engine.llamacpp.reader import ChoiceReader, tokens_in
from macaron.engine.llamacpp.relay import Put, relayed
from macaron.engine.llamacpp.request import Prepared, adapter_fields, choice_count, prefilled, prepare, with_seed
from macaron.engine.llamacpp.slots import SlotTable, chain_of
from macaron.engine.special import SpecialTokens
from macaron.errors import EngineError, EngineTimeout, MacaronError

PLANS_KEPT = 64
EXTRA_OPTIONS = frozenset({"top_k", "min_p", "typical_p", "repeat_penalty", "repeat_last_n"})
# The engine closes an idle connection after five seconds, and each open one holds one of its threads.
KEEP_ALIVE_SECONDS = 3.0
SPARE_CONNECTIONS = 4
# The time limit of a hop is what ends it; the engine says nothing while it reads a long prompt.
SILENCE_SECONDS = 3600.0


class LlamaCppEngine:
    """`macaron.engine.base.Engine` for the child of `launch.EngineChild`.

    One a service, on one event loop: the gate must see every hop.
    """

    def __init__(self, config: EngineConfig, links: LinkFactory) -> None:
        self._config = config
        self._links = links
        self._opened: ServerClient | None = None
        self._special = SpecialTokens(config.special_tokens)
        self._lay_out(config)
        limits = Limits(config.batch_requests, config.batch_tokens)
        # Asked anew each time, since a relaunch brings other slots.
        self._gate = Gate(Schedule(lambda lane: self._slots.capacity(lane), limits))
        self._relaunching = False
        self._choice_plans: dict[tuple[tuple[str, ...], str], ChoicePlan] = {}

    @property
    def kind(self) -> str:
        """`llamacpp`."""
        return "llamacpp"

    @property
    def capabilities(self) -> Capabilities:
        """Known from the start."""
        return Capabilities(
            concurrent_adapters=False,
            adapters=bool(self._ids),
            media=False,
            context_length=self._config.slot_context,
            extra_options=EXTRA_OPTIONS,
        )

    @property
    def config(self) -> EngineConfig:
        """The child as it is now."""
        return self._config

    @property
    def idle(self) -> bool:
        """Whether no hop runs or waits."""
        return not (self._gate.running or self._gate.waiting)

    @property
    def gate(self) -> Gate:
        """Hops waiting and running, for metrics."""
        return self._gate

    async def start(self) -> None:
        """Open the link; the child need not be up yet."""
        limits = LinkLimits(
            connections=self._config.slots + SPARE_CONNECTIONS,
            first_byte=SILENCE_SECONDS,
            idle=SILENCE_SECONDS,
            keep_alive=KEEP_ALIVE_SECONDS,
        )
        headers = {"authorization": f"Bearer {self._config.api_key}"}
        self._opened = ServerClient(self._links(self._config.origin, headers=headers, limits=limits))

    async def close(self) -> None:
        """Close the link; running hops fail."""
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    async def relaunch(
        self, registered: tuple[str, ...], restart: Callable[[int], Awaitable[None]], drain: float
    ) -> float:
        """Go on with a child that has other registered adapters; hops that come meanwhile wait. Gives the seconds for
        which they had to.

        Args:
            restart: puts a child with so many slots in place of the old one, and leaves one like the old where it
                raises.
            drain: seconds that running hops may take to end.

        Raises:
            Busy: they took longer; nothing has changed.
            MacaronError: from `restart`; nothing has changed.
        """
        began = asyncio.get_running_loop().time()
        async with self._gate.closed(drain):
            self._relaunching = True
            try:
                config = replace(self._config, registered=registered)
                await restart(config.slots)
                self._lay_out(config)
                self._gate.expel()
            finally:
                self._relaunching = False
        return asyncio.get_running_loop().time() - began

    async def choose(self, hop: HopRequest) -> Choice:
        """One of the labels, by grammar; see `Engine.choose`."""
        lane = self._lane(hop)
        prepared = prepare(hop, self._special)
        async with _time_limit(hop):
            text, usage = "", Usage()
            async with self._gate.turn(hop.kind, hop.adapter) as queued:
                # Behind the gate, like all that needs the child.
                plan = await self._choice_plan(hop)
                async with aclosing(self._run(lane, _asking(prepared, hop, plan))) as batches:
                    async for events in batches:
                        text += "".join(event.text for event in events if isinstance(event, Delta))
                        usage = next((event for event in events if isinstance(event, Usage)), usage)
        return Choice(plan.label(text), plan.prefill + text, usage, queued)

    def answer(self, hop: HopRequest, sink: Sink | None = None) -> AsyncGenerator[Sequence[EngineEvent], None]:
        """Events of an answer or summary hop, after `Queued`; see `Engine.answer`.

        Raises:
            Preempted: a summary gave way to a route or an answer.
        """
        return relayed(lambda put: self._answer(hop, put))

    async def health(self) -> Health:
        """Whether the child serves."""
        fault = "the engine's link is not open" if self._opened is None else await self._fault(self._opened)
        return Health(fault is None, fault or "", self._config.names if fault is None else ())

    async def count_tokens(self, messages: Sequence[ChatMessage], options: Mapping[str, Any]) -> int:
        """Prompt tokens of `messages` with the tools that `options` names."""
        return len(await self.prompt_ids(HopRequest("answer", None, messages, options)))

    async def prompt_ids(self, hop: HopRequest) -> list[int]:
        """See `Tokenizing.prompt_ids`."""
        prepared = prepare(hop, self._special)
        prompt = await self._client.render(prepared.messages, prepared.fields["chat_template_kwargs"])
        return [token for token, _ in await self._client.tokenize(prompt)]

    def _lay_out(self, config: EngineConfig) -> None:
        self._config = config
        self._ids = {name: number for number, name in enumerate(config.names)}
        self._slots = SlotTable(config.lanes, config.entry, config.slots_per_adapter, config.routers)
        self._layout_proved = False

    async def _fault(self, client: ServerClient) -> str | None:
        if self._relaunching:
            return "the engine is restarted with other adapters; requests wait"
        fault = await client.fault()
        if fault is not None or self._layout_proved:
            return fault
        # A slot or adapter that the engine does not have is answered with 200 and another slot, or none.
        expected = Layout(self._config.slots, self._config.slot_context, len(self._ids))
        try:
            found = await client.layout()
        except MacaronError as error:
            return error.message
        self._layout_proved = found == expected
        return None if self._layout_proved else f"the engine was launched with {found}, but {expected} is needed"

    async def _answer(self, hop: HopRequest, put: Put) -> None:
        lane = self._lane(hop)
        prepared = prepare(hop, self._special)
        total = Usage()
        async with _time_limit(hop):
            for choice in range(choice_count(hop.options)):
                # The engine pins no slot for several choices at once, so each is a request and a turn of its own.
                async with self._gate.turn(hop.kind, hop.adapter) as queued:
                    if choice == 0:
                        put([Queued(queued)])
                    used = await self._answer_choice(lane, prepared, choice, put)
                # The choices of one request share its prompt.
                total = total + (used if choice == 0 else Usage(completion=used.completion, reasoning=used.reasoning))
        put([total])

    async def _answer_choice(self, lane: Lane, prepared: Prepared, choice: int, put: Put) -> Usage:
        reader = ChoiceReader(choice, prepared.plan.callable)
        prepared = prepared._replace(fields=with_seed(prepared.fields, choice))
        async with aclosing(self._run(lane, prepared)) as batches:
            async for events in batches:
                put(reader.read(events))
        return reader.usage

    async def _run(self, lane: Lane, prepared: Prepared) -> AsyncGenerator[Sequence[AnswerEvent], None]:
        """One request to the engine; the caller holds a turn of the gate."""
        chain = chain_of(pieces(prepared.messages, prepared.plan.shown), self._config.slot_context)
        slot = self._slots.take(lane, chain)
        lora = {} if not self._ids else adapter_fields(None if lane.adapter is None else self._ids[lane.adapter])
        body = {
            **prepared.fields,
            **lora,
            "messages": prepared.messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            "cache_prompt": True,
            "id_slot": slot,
        }
        try:
            stream = self._client.stream(body, sampled=prepared.sampled, logprobs=prepared.logprobs)
            async with aclosing(stream) as batches:
                async for events in batches:
                    self._gate.spend(tokens_in(events))
                    yield events
        finally:
            self._slots.release(slot)

    def _lane(self, hop: HopRequest) -> Lane:
        lane = Lane(hop.adapter, hop.kind == "route")
        if not self._slots.capacity(lane):
            raise EngineError(
                f"The embedded engine was not started for this {hop.kind} hop; the service's log says more.",
                code="unknown_adapter",
                detail=f"The embedded engine was not started for a {hop.kind} hop on adapter {hop.adapter!r}; it has "
                f"{', '.join(self._ids) or 'no adapters'}. Restart the service with it.",
            )
        return lane

    async def _choice_plan(self, hop: HopRequest) -> ChoicePlan:
        key = (hop.choices, hop.prefill)
        plan = self._choice_plans.get(key)
        if plan is None:
            plan = await plan_choice(hop.choices, hop.prefill, self._client.tokenize)
            if len(self._choice_plans) >= PLANS_KEPT:
                self._choice_plans.clear()
            self._choice_plans[key] = plan
        return plan

    @property
    def _client(self) -> ServerClient:
        if self._opened is None:
            raise EngineError("The embedded engine's link is not open; call start first.")
        return self._opened


def _asking(prepared: Prepared, hop: HopRequest, plan: ChoicePlan) -> Prepared:
    fields = {
        **prepared.fields,
        "temperature": 0,
        "grammar": plan.grammar,
        "max_tokens": 1 if plan.one_token else prepared.fields.get("max_tokens") or ROUTE_TOKENS,
    }
    return prepared._replace(messages=prefilled(prepared.messages, hop.prefill, plan.prefill), fields=fields)


@asynccontextmanager
async def _time_limit(hop: HopRequest) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(hop.timeout):
            yield
    except TimeoutError:
        raise EngineTimeout(
            f"The {hop.kind} hop took longer than {hop.timeout:g} s, waiting for its turn included; "
            "ask for less or allow more."
        ) from None
