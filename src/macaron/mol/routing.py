"""The route hop: asks the entry specialist for a label, and always ends with one."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from macaron.conversation import Hop, HopKind, Usage
from macaron.engine.base import ChatMessage, Choice, Engine, HopRequest
from macaron.errors import BadRequest, EngineError, Unavailable
from macaron.hcp.schema import Contract
from macaron.mol.doubts import Doubts
from macaron.mol.lookup import Found, TurnRequest
from macaron.mol.observer import Observer
from macaron.mol.prompt import question_messages
from macaron.mol.route import RouteTemplate, context_text, question, request_text
from macaron.registry.cards import Registry, Specialist

log = logging.getLogger("macaron.mol")

Reason = Literal["routed", "fallback", "retry", "single"]
MEMO_ENTRIES = 8192
ATTEMPTS = 2

Memo = OrderedDict[tuple[str, str], str]
"""Labels by scope and question."""


class Routed(Struct, frozen=True):
    """A label, why it was taken, and the hop that was made for it, if any."""

    specialist: Specialist
    reason: Reason
    hop: Hop | None = None


def route_hop(
    contract: Contract, registry: Registry, messages: Sequence[ChatMessage], tenant: str, kind: HopKind = "route"
) -> HopRequest:
    """The hop that asks for one of a registry's labels.

    Args:
        kind: `summary` for a question that nobody waits for, which every other hop overtakes.
    """
    route = contract.mol.route
    options: dict[str, Any] = {"temperature": 0, "max_tokens": contract.mol.route_tokens}
    if route.chat_template_kwargs:
        options["chat_template_kwargs"] = route.chat_template_kwargs
    return HopRequest(
        kind=kind,
        adapter=registry.entry_specialist.adapter,
        messages=messages,
        options=options,
        stream=False,
        choices=registry.labels,
        prefill=route.prefill,
        tenant=tenant,
        timeout=contract.engine.timeouts.route,
    )


class Router:
    """Routes turns. The same question at the same place gets the same label, so that a retry does not re-route."""

    def __init__(
        self,
        engine: Engine,
        registry: Registry,
        contract: Contract,
        template: RouteTemplate,
        observer: Observer,
        memo: Memo,
        doubts: Doubts,
    ) -> None:
        """`memo` may be shared by routers that would decide alike."""
        self._engine = engine
        self._registry = registry
        self._contract = contract
        self._template = template
        self._observer = observer
        self._entry = registry.entry_specialist
        self._default = registry.default_specialist
        self._memo = memo
        self._doubts = doubts

    def known(self, request: TurnRequest, found: Found) -> Routed | None:
        """The decision that needs no hop: a retry, or a service with one specialist."""
        if len(self._registry.specialists) == 1:
            return Routed(self._registry.specialists[0], "single")
        label = self._memo.get((request.scope, found.asked))
        if label is None and found.retry is not None and _was_routed(found.retry.hops):
            label = found.retry.label
        specialist = self._registry.get(label) if label else None
        if specialist is None:
            return None
        self._remember((request.scope, found.asked), specialist.label)
        return Routed(specialist, "retry")

    async def route(self, request: TurnRequest, found: Found) -> Routed:
        """Ask L0. An unusable answer is asked for once more, then the default label is taken."""
        started, clock = time.time(), time.perf_counter()
        label, usage, queued = None, Usage(), 0.0
        for attempt in range(ATTEMPTS):
            choice = await self._ask(request, found, shrink=4**attempt)
            usage, queued = usage + choice.usage, queued + choice.queued
            label = choice.label
            if label is not None:
                break
            self._observer.event("route_retry" if attempt + 1 < ATTEMPTS else "route_fallback")
            # What is not kept must not stay in a log either.
            said = choice.text if request.keep else f"{len(choice.text)} characters"
            log.warning("the route hop of %s gave no label: %.200s", request.id, said)
        specialist = (self._registry.get(label) if label else None) or self._default
        entry = self._entry
        outcome = "ok" if label else "fallback"
        hop = Hop("route", entry.label, entry.revision, started, time.perf_counter() - clock, queued, usage, outcome)
        self._observer.hop(hop)
        if label:
            self._remember((request.scope, found.asked), label)
        return Routed(specialist, "routed" if label else "fallback", hop)

    async def _ask(self, request: TurnRequest, found: Found, shrink: int) -> Choice:
        mol = self._contract.mol
        tokens = self._template.input_tokens // shrink
        context = context_text(found.path, tokens, found.hidden) if mol.route_context == "labels" else ""
        template = self._template if shrink == 1 else self._template._replace(input_tokens=tokens)
        asked = question_messages(question(template, request_text(request.items), context))
        hop = route_hop(self._contract, self._registry, asked, request.tenant)
        try:
            choice = await self._engine.choose(hop)
        except (EngineError, Unavailable, BadRequest) as error:
            self._doubts.failed(hop, error)
            return Choice(None, error.message)
        if choice.label is None:
            self._doubts.saw(hop, None)
        return choice

    def _remember(self, key: tuple[str, str], label: str) -> None:
        self._memo[key] = label
        self._memo.move_to_end(key)
        if len(self._memo) > MEMO_ENTRIES:
            self._memo.popitem(last=False)


def _was_routed(hops: tuple[Hop, ...]) -> bool:
    """A label that was pinned, or taken because the route failed, binds nobody."""
    return any(hop.kind == "route" and hop.outcome == "ok" for hop in hops)
