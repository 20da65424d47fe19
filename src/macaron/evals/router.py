"""The route hop as an evaluation asks it: the question, the options and the fall-back are those of the service."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

from macaron.conversation import Delta
from macaron.engine.base import ChatMessage, Choice, Engine, HopRequest
from macaron.engine.labels import parse_label
from macaron.errors import BadRequest
from macaron.hcp import Loaded
from macaron.mol.dialogue import route_messages
from macaron.mol.route import RouteTemplate
from macaron.registry.cards import Registry

# Longer than the service waits: on a busy machine a late answer is a long time in the report, not a wrong label.
PATIENCE_SECONDS = 600.0

ATTEMPTS = 2
"""As in the service: an unusable answer is asked for once more, of a quarter of the request."""


class RouteAnswer(NamedTuple):
    """What a route hop said.

    Attributes:
        label: the label the service would take, the default where the hop gave none.
        decided: whether the hop gave a label.
        text: what the model writes to the same prompt when nothing constrains it.
        canonical: that text is a label and nothing else.
        parsed: a label can be read out of that text.
        seconds: of the constrained hop, which is the one that is served.
        tokens: of the prompt.
    """

    label: str
    decided: bool
    text: str
    canonical: bool
    parsed: bool
    seconds: float
    tokens: int


class Questions:
    """Makes the question about a conversation, as the profile asks it and as training has learned it. Pure."""

    def __init__(self, loaded: Loaded, registry: Registry) -> None:
        route = loaded.contract.mol.route
        self.loaded = loaded
        self.registry = registry
        self.prefill = route.prefill
        self._names = {label: label for label in registry.labels}
        self._context = loaded.contract.mol.route_context == "labels"
        self._template = RouteTemplate(
            instruction=registry.fill(loaded.text("mol.route.prompt_path")),
            shape=route.shape,
            prefill=route.prefill,
            input_tokens=loaded.contract.mol.route_input_tokens,
        )

    def about(self, messages: Sequence[ChatMessage], shrink: int = 1) -> list[ChatMessage]:
        """The messages of the hop; earlier turns are shown where the profile shows them.

        Raises:
            ConfigError: a message has no shape that is understood.
        """
        template = self._template._replace(input_tokens=self._template.input_tokens // shrink)
        return route_messages(template, messages, self._names, entry=self.registry.entry, context=self._context)


class RouteAsker:
    """Asks for the label of a conversation's last request, one at a time."""

    def __init__(self, questions: Questions, engine: Engine, adapter: str | None) -> None:
        """`adapter` is the one the engine was started to route with, None for the bare base."""
        mol = questions.loaded.contract.mol
        self.questions = questions
        self._registry = questions.registry
        self._engine = engine
        self._adapter = adapter
        self._options: dict[str, Any] = {"temperature": 0, "max_tokens": mol.route_tokens}
        if mol.route.chat_template_kwargs:
            self._options["chat_template_kwargs"] = mol.route.chat_template_kwargs

    async def ask(self, messages: Sequence[ChatMessage]) -> RouteAnswer:
        """Route a conversation as the service does, then let the model write freely to the same prompt.

        Raises:
            ConfigError: a message has no shape that is understood.
            EngineError, Unavailable: the engine failed.
        """
        began = time.perf_counter()
        choice, prompt = await self._choose(messages)
        seconds = time.perf_counter() - began
        text = await self._free(prompt)
        labels = self._registry.labels
        return RouteAnswer(
            label=choice.label or self._registry.default,
            decided=choice.label is not None,
            text=text,
            canonical=text in labels,
            parsed=parse_label(text, labels, self.questions.prefill) is not None,
            seconds=seconds,
            tokens=choice.usage.prompt,
        )

    async def _choose(self, messages: Sequence[ChatMessage]) -> tuple[Choice, list[ChatMessage]]:
        choice, prompt = Choice(None, ""), list[ChatMessage]()
        for attempt in range(ATTEMPTS):
            prompt = self.questions.about(messages, shrink=4**attempt)
            hop = HopRequest(
                "route", self._adapter, prompt, self._options, stream=False, choices=self._registry.labels,
                prefill=self.questions.prefill, timeout=PATIENCE_SECONDS,
            )  # fmt: skip
            try:
                choice = await self._engine.choose(hop)
            except BadRequest as error:
                choice = Choice(None, error.message)
            if choice.label is not None:
                break
        return choice, prompt

    async def _free(self, prompt: list[ChatMessage]) -> str:
        """The text of an unconstrained hop. It runs in the route's slot, whose cache holds the prompt already."""
        prefill = self.questions.prefill
        begun: list[ChatMessage] = [{"role": "assistant", "content": prefill}] if prefill else []
        hop = HopRequest("route", self._adapter, [*prompt, *begun], self._options, timeout=PATIENCE_SECONDS)
        pieces = [prefill]
        try:
            async with aclosing(self._engine.answer(hop)) as batches:
                async for batch in batches:
                    pieces += [event.text for event in batch if isinstance(event, Delta)]
        except BadRequest:
            return ""
        return "".join(pieces)
