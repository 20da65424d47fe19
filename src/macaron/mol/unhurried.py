"""Routing conversations that nobody waits for: with the service's own question, behind every live hop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from macaron.engine.base import ChatMessage, Choice, Engine, HopRequest, Preempted
from macaron.errors import BadRequest
from macaron.hcp.schema import Contract
from macaron.mol.dialogue import route_messages
from macaron.mol.route import RouteTemplate
from macaron.mol.routing import ATTEMPTS, route_hop
from macaron.registry.cards import Registry

PATIENCE_SECONDS = 600.0
"""How long a hop may wait for its turn behind live ones."""

GIVES_WAY = 4
"""How often a hop ends for a live one before it takes its turn among the answers. It is short, and beside a client that
asks without a pause it would never come to its end otherwise."""


class Unhurried:
    """Routes as a `Router` of the same registry does, one conversation at a time.

    Its hops have the order of summaries: all others overtake them, and on the embedded engine end them. They use the
    entry specialist's conversation slots, so that the route slot keeps what live routes need.
    """

    def __init__(
        self, engine: Engine, registry: Registry, contract: Contract, template: RouteTemplate, tenant: str
    ) -> None:
        """`tenant` keeps its prompts out of others' caches."""
        self._engine = engine
        self._registry = registry
        self._contract = contract
        self._template = template
        self._tenant = tenant
        self._names = {label: label for label in registry.labels}
        self._context = contract.mol.route_context == "labels"

    async def route(self, messages: Sequence[ChatMessage]) -> str:
        """The label that the conversation's last request gets.

        Raises:
            EngineError, Unavailable: the engine failed. Other than in a turn no label is taken for it.
        """
        if len(self._registry.specialists) == 1:
            return self._registry.labels[0]
        for attempt in range(ATTEMPTS):
            choice = await self._choose(messages, shrink=4**attempt)
            if choice.label is not None:
                return choice.label
        return self._registry.default

    async def _choose(self, messages: Sequence[ChatMessage], shrink: int) -> Choice:
        template = self._template._replace(input_tokens=self._template.input_tokens // shrink)
        entry = self._registry.entry
        asked = route_messages(template, messages, self._names, entry=entry, context=self._context)
        hop = route_hop(self._contract, self._registry, asked, self._tenant, kind="summary")
        hop = replace(hop, timeout=PATIENCE_SECONDS)
        for _ in range(GIVES_WAY):
            try:
                return await self._answered(hop)
            except Preempted:
                await asyncio.sleep(0)
        return await self._answered(replace(hop, kind="answer"))

    async def _answered(self, hop: HopRequest) -> Choice:
        try:
            return await self._engine.choose(hop)
        except BadRequest as error:
            return Choice(None, error.message)
