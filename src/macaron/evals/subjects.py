"""Subjects: what is evaluated, answering through the same engine and the same rendering that serve.

async with open_subjects(loaded, {"L1": Path("L1.gguf")}) as subjects:
    base = subjects.subject("base", head="L1")
    trained = subjects.subject("L1", head="L1", adapter="L1")
    answer = await trained.answer([{"role": "user", "content": "hello"}])
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import msgspec

from macaron.conversation import Delta, Finish, Usage
from macaron.engine.base import ChatMessage, Engine, HopRequest
from macaron.engine.link import create_link
from macaron.engine.llamacpp.config import EngineConfig
from macaron.engine.llamacpp.engine import LlamaCppEngine
from macaron.engine.llamacpp.launch import EngineChild
from macaron.engine.llamacpp.params import LaunchParams
from macaron.errors import ConfigError
from macaron.evals.repetition import RepetitionWatch
from macaron.evals.suite import Answer, Call
from macaron.hcp import Loaded
from macaron.models import fetch_weights
from macaron.mol.collect import Collector
from macaron.profiles.adapters import gguf_adapter
from macaron.registry.cards import Registry, Specialist, registry_from
from macaron.registry.revision import adapter_revision
from macaron.train.render import LEADING, chat_messages, shown_tools

BASE = "base"
EXAMPLES = "base+examples"
LOAD_SECONDS = 120.0
ANSWER_SECONDS = 600.0
PARALLEL = 4
SLOT_CONTEXT = 4096


class EngineSubject:
    """A `Subject` on the embedded engine: the base or one adapter, under one specialist's head."""

    def __init__(
        self, name: str, engine: Engine, specialist: Specialist, revision: str, *, merge_system: bool,
        adapter: str | None = None, examples: Sequence[ChatMessage] = (),
    ) -> None:  # fmt: skip
        self._name = name
        self._engine = engine
        self._specialist = specialist
        self._adapter = adapter
        self._examples = tuple(examples)
        self._merge_system = merge_system
        self.revision = _digest([revision, specialist.identity, self._examples])

    @property
    def name(self) -> str:
        """Such as `base`, `base+examples` or `L1`."""
        return self._name

    async def answer(
        self, messages: Sequence[dict[str, Any]], *, tools: Sequence[dict[str, Any]] = (), max_tokens: int = 512
    ) -> Answer:
        """Answer greedily; several answers may be asked for at once.

        An answer that only repeats itself is left where it is, incomplete: it would run to `max_tokens`.

        Raises:
            BadRequest: a message cannot be shown to the engine.
            ContextOverflow: the prompt does not fit.
            EngineError, Unavailable: the engine failed.
        """
        hop = self.hop(messages, tools=tools, max_tokens=max_tokens)
        collector, watch, tokens, began = Collector(), RepetitionWatch(), 0, time.perf_counter()
        async with aclosing(self._engine.answer(hop)) as batches:
            async for batch in batches:
                pieces = collector.add([event for event in batch if isinstance(event, Delta | Finish | Usage)])
                tokens += len(pieces)
                if watch.repeats("".join(map(_written, pieces))):
                    break
        said = collector.answers()[0]
        return Answer(
            text=said.text,
            calls=tuple(Call(call.name, call.arguments) for call in said.calls),
            status="completed" if said.finish in ("stop", "tool_calls") else "incomplete",
            seconds=time.perf_counter() - began,
            tokens=collector.usage.completion or tokens,
        )

    def hop(
        self, messages: Sequence[dict[str, Any]], *, tools: Sequence[dict[str, Any]] = (), max_tokens: int = 512
    ) -> HopRequest:
        """The hop that answers, as a first request is served: head, examples, conversation.

        Raises:
            ConfigError: a message has no shape that is understood.
        """
        run = list(takewhile(lambda message: message.get("role") in LEADING, messages))
        conversation = [*run, *self._examples, *messages[len(run) :]]
        prompt = chat_messages(self._specialist.identity, conversation, merge_system=self._merge_system)
        options: dict[str, Any] = {"temperature": 0, "max_tokens": max_tokens}
        if tools:
            options["tools"] = shown_tools(tools)
        return HopRequest("answer", self._adapter, prompt, options, timeout=ANSWER_SECONDS)


class Subjects:
    """A running engine with its adapters, and the subjects on it."""

    def __init__(self, loaded: Loaded, registry: Registry, engine: Engine, revisions: Mapping[str, str]) -> None:
        self.loaded = loaded
        self.registry = registry
        self.engine = engine
        self._revisions = revisions

    @property
    def adapters(self) -> tuple[str, ...]:
        """Names of the adapters that can be chosen."""
        return tuple(self._revisions)

    def revision(self, adapter: str | None) -> str:
        """Names everything below the head that decides an answer: weights, template, adapter.

        Raises:
            ConfigError: the engine was not started with that adapter.
        """
        if adapter is not None and adapter not in self._revisions:
            raise ConfigError(
                f"there is no adapter {adapter!r}; there are {', '.join(self._revisions) or 'none'}", param="adapters"
            )
        template = self.loaded.text("engine.llamacpp.chat_template_path", "")
        return _digest([
            self.loaded.contract.mol.base_fingerprint, template, self._revisions[adapter] if adapter else "",
        ])  # fmt: skip

    def subject(
        self, name: str, *, head: str, adapter: str | None = None, examples: Sequence[ChatMessage] = ()
    ) -> EngineSubject:
        """A subject under the head of the specialist with label `head`.

        Raises:
            ConfigError: there is no such specialist or adapter.
        """
        specialist = self.registry.get(head)
        if specialist is None:
            raise ConfigError(f"there is no label {head!r}; there are {', '.join(self.registry.labels)}", param="head")
        return EngineSubject(
            name, self.engine, specialist, self.revision(adapter), adapter=adapter, examples=examples,
            merge_system=self.loaded.contract.mol.merge_system,
        )  # fmt: skip

    def named(self, name: str, *, head: str, examples: Sequence[ChatMessage] = ()) -> EngineSubject:
        """A subject by its name in reports: `base`, `base+examples`, or that of an adapter.

        Raises:
            ConfigError: there is no such specialist or adapter.
        """
        if name == BASE:
            return self.subject(name, head=head)
        if name == EXAMPLES:
            return self.subject(name, head=head, examples=examples)
        return self.subject(name, head=head, adapter=name)


@asynccontextmanager
async def open_subjects(
    loaded: Loaded, adapters: Mapping[str, Path] | None = None, *, routes: bool = False, entry: str | None = None,
    parallel: int = PARALLEL, slot_context: int = SLOT_CONTEXT,
) -> AsyncIterator[Subjects]:  # fmt: skip
    """Start the embedded engine of a contract with LoRA files, and end it with the block.

    Args:
        adapters: GGUF files, or folders in PEFT's format, by the names of their subjects.
        routes: the engine only routes, with the adapter `entry`, or on the bare base where that is None. It has then
            one slot of the profile's own size, so that a route takes the time it takes in a quiet service.
        parallel: answers of one subject that run at once.
        slot_context: tokens that each of them may hold.

    Raises:
        ConfigError: the profile has no embedded engine, or a file cannot be read.
        Unavailable: the engine does not start, or the weights cannot be fetched.
    """
    weights = _weights(loaded)
    sources = {name: path.resolve() for name, path in (adapters or {}).items()}
    revisions = {name: adapter_revision(path) for name, path in sources.items()}
    files = {name: gguf_adapter(path, weights, revision=revisions[name]) for name, path in sources.items()}
    config = EngineConfig(
        origin="", api_key="", adapters=tuple(files), entry=entry, slots_per_adapter=parallel,
        specialists=() if routes else (None, *files),
        slot_context=loaded.contract.engine.llamacpp.slot_context if routes else slot_context,
        special_tokens=loaded.contract.engine.special_tokens,
    )  # fmt: skip
    async with AsyncExitStack() as stack:
        child = EngineChild(_launch_params(loaded, config, weights, files.values()))
        stack.push_async_callback(child.stop)
        await child.start()
        await child.wait_ready(LOAD_SECONDS)
        known = msgspec.structs.replace(config, origin=child.origin, api_key=child.api_key)
        engine = LlamaCppEngine(known, partial(create_link, loaded.contract.engine.link))
        await engine.start()
        stack.push_async_callback(engine.close)
        yield Subjects(loaded, registry_from(loaded), engine, revisions)


def _written(piece: Delta) -> str:
    return piece.text + "".join(call.arguments for call in piece.calls)


def _weights(loaded: Loaded) -> Path:
    engine = loaded.contract.engine
    if engine.kind != "llamacpp" or engine.weights is None:
        raise ConfigError(
            f"evaluations run on the embedded engine, but engine.kind is {engine.kind!r}; choose a profile with "
            "`llamacpp` and weights",
            param="engine.kind",
        )
    return fetch_weights(engine.weights, folder=loaded.folder)


def _launch_params(loaded: Loaded, config: EngineConfig, weights: Path, adapters: Iterable[Path]) -> LaunchParams:
    section = loaded.contract.engine.llamacpp
    return LaunchParams(
        weights=str(weights), port=0, api_key="", adapters=tuple(map(str, adapters)), slots=config.slots,
        slot_context=config.slot_context, batch=section.batch, threads=section.threads,
        chat_template=loaded.text("engine.llamacpp.chat_template_path", ""),
    )  # fmt: skip


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:16]
