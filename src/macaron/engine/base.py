"""The Engine protocol: what the runtime asks of whatever runs the model.

An engine speaks in `AnswerEvent`s. It is told everything a hop needs in one `HopRequest`; it keeps no conversation of
its own beyond caches that cannot change an answer.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from macaron.conversation import AnswerEvent, HopKind, Usage
from macaron.errors import EngineError

ChatMessage = dict[str, Any]
"""A message in the Chat Completions shape, which every supported engine reads."""


class Capabilities(Struct, frozen=True):
    """What an engine can do; the runtime asks this, never the engine's name.

    Attributes:
        concurrent_adapters: runs requests of different adapters at the same time; speculation needs it.
        adapters: LoRA adapters can be chosen per request.
        media: parts that are not text are understood.
        logprobs: token log-probabilities are returned.
        context_length: tokens of prompt and answer together, None where the engine does not say.
        extra_options: fields beyond the public API that the engine reads; others are refused rather than ignored.
    """

    concurrent_adapters: bool = True
    adapters: bool = True
    media: bool = True
    logprobs: bool = True
    context_length: int | None = None
    extra_options: frozenset[str] = frozenset()


class HopRequest(Struct, frozen=True):
    """One hop, complete.

    Attributes:
        kind: decides priority and metrics.
        adapter: the engine's name of the adapter, None for the bare base.
        messages: the prompt, in order.
        options: client fields that passed the allow list (`temperature`, `tools`, `n`, …), as the client wrote them.
        stream: whether the client wants pieces; an engine may stream all the same.
        choices: for a route hop, the labels of which exactly one is wanted.
        prefill: for a route hop, the beginning of the assistant's answer that the prompt already contains.
        tenant: isolates prefix caches between tenants where the engine can.
        sampled: `Sampled` is wanted before the end of each choice, where the engine can tell.
        timeout: seconds the hop may take in all.
    """

    kind: HopKind
    adapter: str | None
    messages: Sequence[ChatMessage]
    options: Mapping[str, Any]
    stream: bool = True
    choices: tuple[str, ...] = ()
    prefill: str = ""
    tenant: str = ""
    timeout: float = 600.0
    sampled: bool = False


class Choice(Struct, frozen=True):
    """What a route hop said. `label` is None where the text names none of the labels.

    `queued` is seconds spent waiting before the engine began.
    """

    label: str | None
    text: str
    usage: Usage = Usage()
    queued: float = 0.0


class Queued(Struct, frozen=True):
    """First event of an answer from an engine with a queue of ours in front: seconds the hop waited."""

    seconds: float


EngineEvent = AnswerEvent | Queued

Sink = Callable[[Sequence[EngineEvent]], bool]
"""Takes the events of a batch, or returns False and has not touched them. It must be quick."""


class Preempted(EngineError):
    """A summary hop gave way to a route or an answer; it may be tried again."""

    default_code = "preempted"


class Health(Struct, frozen=True):
    """Whether the engine can serve now; `detail` says why not, in words an operator can act on."""

    ok: bool
    detail: str = ""
    adapters: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


@runtime_checkable
class Pluggable(Protocol):
    """An engine that takes adapters while it runs. Its word is not to be trusted: engines answer 200 to loads that did
    nothing, so list what is there and probe it."""

    async def list_adapters(self) -> frozenset[str]:
        """Names of the adapters that the engine says it has.

        Raises:
            EngineError: the engine is not there or failed.
        """
        ...

    async def load_adapter(self, name: str, path: str) -> None:
        """Load an adapter from a folder, by its path on the engine's machine, under a name it never had.

        Raises:
            EngineError: the engine refused or failed.
        """
        ...

    async def unload_adapter(self, name: str) -> None:
        """Let an adapter go that no hop uses.

        Raises:
            EngineError: the engine refused or failed.
        """
        ...


@runtime_checkable
class Tokenizing(Protocol):
    """An engine that tells the tokens of a prompt only when it is asked for them."""

    async def prompt_ids(self, hop: HopRequest) -> Sequence[int]:
        """Token ids of the prompt that a hop has, as the engine reads it.

        Raises:
            EngineError: the engine is not there or failed.
        """
        ...


@runtime_checkable
class Forwarding(Protocol):
    """An engine whose server has more endpoints than chat, which requests can be passed to as they are."""

    async def forward(self, path: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Have the bare base answer a request to a path such as `/v1/embeddings`; gives the answer's body.

        Raises:
            NotSupported: the server has no such endpoint.
            BadRequest: it refused the request; the message is its own.
            EngineError: it is not there or failed.
        """
        ...


class Engine(Protocol):
    """Runs the model. All methods may be called concurrently from one event loop.

    Cancelling a call, or closing the iterator of `answer`, ends the work in the engine as promptly as it can.
    """

    @property
    def kind(self) -> str:
        """One of `llamacpp`, `vllm`, `sglang`, `openai`."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """Known after `start`."""
        ...

    async def start(self) -> None:
        """Open connections and find out capabilities. Does not wait for the engine to be up."""
        ...

    async def close(self) -> None:
        """Release connections; hops still running are ended."""
        ...

    async def choose(self, hop: HopRequest) -> Choice:
        """Run a route hop: greedy, constrained to `hop.choices` by the best means the engine has.

        Raises:
            EngineError: the engine is not there or failed.
            ContextOverflow: the prompt does not fit.
        """
        ...

    def answer(self, hop: HopRequest, sink: Sink | None = None) -> AsyncGenerator[Sequence[EngineEvent], None]:
        """Run an answer or summary hop. Yields batches: what arrived together is yielded together.

        Every choice ends with a `Finish`; a `Usage` comes last where the engine counts. Log-probabilities that only
        `hop.sampled` asks for are in no `Delta`. An engine may offer a batch to `sink` where it arrives, only while the
        next one is awaited: what the sink takes is not yielded.

        Raises:
            BadRequest: the engine refused the request; the message is the engine's own.
            ContextOverflow: the prompt does not fit.
            EngineError: the engine is not there, failed, or sent something corrupt.
        """
        ...

    async def health(self) -> Health:
        """Cheap; never raises."""
        ...

    async def count_tokens(self, messages: Sequence[ChatMessage], options: Mapping[str, Any]) -> int | None:
        """Prompt tokens of `messages` through the engine's template, None where it cannot tell."""
        ...
