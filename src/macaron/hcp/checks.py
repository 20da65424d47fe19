"""What must hold between the values of a contract beyond their types."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from macaron.hcp.document import Problem
from macaron.hcp.lines import KeyPath
from macaron.hcp.schema import (
    AdapterEntry,
    Contract,
    EngineSection,
    MolSection,
    RegistrySection,
    ServiceSection,
    StoreSection,
    WeightsSection,
)

MAX_SPECIALISTS = 64
LABEL = re.compile(r"[A-Z][A-Za-z0-9_-]{0,31}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REVISION = re.compile(r"sha256:[0-9a-f]{12,64}")
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def mol_problems(mol: MolSection) -> Iterator[Problem]:
    """What is wrong within `[mol]`."""
    if not mol.served_model.strip():
        yield Problem(("mol", "served_model"), "must not be empty; clients ask for the model by this name")
    yield from _duplicates((mol.served_model, *mol.aliases), ("mol", "aliases"))
    if not 1 <= len(mol.adapters) <= MAX_SPECIALISTS:
        yield Problem(("mol", "adapters"), f"must be 1 to {MAX_SPECIALISTS} specialists, there are {len(mol.adapters)}")
    labels = [entry.label for entry in mol.adapters]
    yield from _duplicates(labels, ("mol", "adapters"))
    for role, label in (("entry", mol.entry), ("default", mol.default)):
        if label not in labels:
            yield Problem(("mol", role), f"{label!r} is none of the labels: {', '.join(labels)}")
    if mol.summary != "off" and not mol.summary_prompt_path:
        yield Problem(("mol", "summary_prompt_path"), f'is missing; summary = "{mol.summary}" needs its instruction')
    for index, entry in enumerate(mol.adapters):
        yield from _entry_problems(entry, ("mol", "adapters", index))


def engine_problems(engine: EngineSection, table: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong within `[engine]`; `table` is the section as written."""
    embedded = engine.kind == "llamacpp"
    if embedded:
        if engine.address:
            yield Problem(("engine", "address"), "must be empty: the embedded engine is started here; remove it")
        if engine.weights is None:
            yield Problem(("engine", "weights"), "is missing; the embedded engine needs [engine.weights]")
    else:
        if not _is_origin(engine.address):
            wanted = "must be an http(s) origin such as http://127.0.0.1:8000, without path, query or password"
            yield Problem(("engine", "address"), f"{wanted}, the value is {_without_password(engine.address)!r}")
        for name in ("weights", "llamacpp"):
            if name in table:
                yield Problem(("engine", name), f'is for kind = "llamacpp" only, the kind is "{engine.kind}"')
    if engine.weights is not None:
        yield from weights_problems(engine.weights)
    if engine.adapter_root and (embedded or not _is_absolute(engine.adapter_root)):
        wanted = "must be an absolute path on the machine of a running engine; the embedded one needs none"
        yield Problem(("engine", "adapter_root"), f"{wanted}, the value is {engine.adapter_root!r}")
    if engine.api_key_env and not _VARIABLE.fullmatch(engine.api_key_env):
        # The value is not shown: whoever confuses the two has written the key itself here.
        yield Problem(("engine", "api_key_env"), "must be the name of an environment variable, never a key itself")
    for index, token in enumerate(engine.special_tokens):
        if not 0 < len(token) <= 128:
            yield Problem(("engine", "special_tokens", index), "a special token has 1 to 128 characters")
    for index, host in enumerate(engine.media_hosts):
        if not _HOST.fullmatch(host):
            yield Problem(("engine", "media_hosts", index), f"{host!r} is not a host name in lower case")


def weights_problems(weights: WeightsSection) -> Iterator[Problem]:
    """What is wrong within `[engine.weights]`."""
    place = ("engine", "weights")
    sources = [name for name in ("wheel", "url", "path") if getattr(weights, name)]
    if len(sources) != 1:
        yield Problem(place, f"needs exactly one of wheel, url and path, there is {' and '.join(sources) or 'none'}")
    if not weights.file or "/" in weights.file or "\\" in weights.file or weights.file in (".", ".."):
        yield Problem((*place, "file"), f"must be a plain file name, the value is {weights.file!r}")
    if weights.sha256 and not _SHA256.fullmatch(weights.sha256):
        yield Problem((*place, "sha256"), "must be 64 hexadecimal digits in lower case")
    if bool(weights.wheel) != bool(weights.member):
        yield Problem((*place, "member"), "names the file inside a wheel; wheel and member go together")
    if weights.wheel and not _REQUIREMENT.fullmatch(weights.wheel):
        yield Problem((*place, "wheel"), f"must be name==version, the value is {weights.wheel!r}")
    if weights.url and not _is_web(weights.url):
        yield Problem((*place, "url"), "must be an http(s) address without user name and password")
    if weights.path.startswith("/") and not weights.sha256:
        yield Problem((*place, "sha256"), "is missing; a path outside the document's folder is pinned by its hash")


def store_problems(store: StoreSection) -> Iterator[Problem]:
    """What is wrong within `[store]`."""
    shared = store.url.startswith("postgresql://")
    if shared and re.search(r"//[^@]*:.*@", store.url):
        yield Problem(("store", "url"), "must hold no password: it is read from PGPASSFILE or PGPASSWORD")
    if not shared and store.url not in ("sqlite://", "memory:") and not store.url.startswith("sqlite:///"):
        allowed = "sqlite:///absolute/path, sqlite://, postgresql://user@host/database or memory:"
        yield Problem(("store", "url"), f"must be {allowed}, the value is {_without_password(store.url)!r}")


def service_problems(service: ServiceSection) -> Iterator[Problem]:
    """What is wrong within `[service]`."""
    for index, origin in enumerate(service.cors_origins):
        # Browsers send an origin in lower case and without a path, and the two are compared as they are.
        if not _is_origin(origin) or origin.endswith("/") or origin != origin.lower():
            wanted = "must be an origin as browsers send it, such as https://app.example.com"
            yield Problem(("service", "cors_origins", index), f"{wanted}, the value is {_without_password(origin)!r}")


def registry_problems(registry: RegistrySection) -> Iterator[Problem]:
    """What is wrong within `[registry]`."""
    for index, root in enumerate(registry.roots):
        if not _is_absolute(root):
            yield Problem(("registry", "roots", index), f"must be an absolute path, the value is {root!r}")


def joint_problems(contract: Contract) -> Iterator[Problem]:
    """What `[mol]` asks and `[engine]` cannot do."""
    mol, engine = contract.mol, contract.engine
    if mol.speculate and engine.kind == "llamacpp":
        reason = "the embedded engine runs one adapter at a time, so a speculated answer would only delay the route"
        yield Problem(("mol", "speculate"), f"{reason}; set it to false")
    weights = engine.weights
    if weights and weights.sha256 and mol.base_fingerprint not in ("", f"sha256:{weights.sha256}"):
        yield Problem(("mol", "base_fingerprint"), f"differs from sha256:{weights.sha256} of [engine.weights]")
    names = [entry.engine_name or entry.label for entry in mol.adapters if is_adapter(entry)]
    yield from _duplicates(names, ("mol", "adapters"))
    for index, entry in enumerate(mol.adapters):
        yield from _placed_entry_problems(entry, engine, ("mol", "adapters", index))


def is_adapter(entry: AdapterEntry) -> bool:
    """Whether a specialist has an adapter; otherwise it is its prompt on the base, or on another model."""
    return bool(entry.source or entry.engine_name)


def _entry_problems(entry: AdapterEntry, place: KeyPath) -> Iterator[Problem]:
    if not LABEL.fullmatch(entry.label):
        wanted = "must be a capital letter and up to 31 letters, digits, _ or -"
        yield Problem((*place, "label"), f"{wanted}, the value is {entry.label!r}")
    for name in ("name", "description"):
        if not getattr(entry, name).strip():
            yield Problem((*place, name), "must not be empty; the router reads it")
    if entry.revision and not _REVISION.fullmatch(entry.revision):
        yield Problem((*place, "revision"), f"must be sha256:<12 to 64 hex digits>, the value is {entry.revision!r}")
    if entry.revision and not entry.source:
        yield Problem((*place, "revision"), "names bytes that are not here: add source, or remove the revision")
    if entry.model and is_adapter(entry):
        yield Problem((*place, "model"), "and an adapter exclude each other; keep one")


def _placed_entry_problems(entry: AdapterEntry, engine: EngineSection, place: KeyPath) -> Iterator[Problem]:
    match engine.kind:
        case "llamacpp" if entry.model:
            yield Problem((*place, "model"), "is for openai engines only; the embedded engine runs one base")
        case "llamacpp" if entry.engine_name:
            yield Problem((*place, "engine_name"), "is for running engines; the embedded engine loads source itself")
        case "vllm" | "sglang" if entry.model:
            yield Problem((*place, "model"), f"is for openai engines only, the engine is {engine.kind}")
        case "openai" if is_adapter(entry):
            name = "source" if entry.source else "engine_name"
            yield Problem((*place, name), "an openai engine has no adapters; name another model with model, if any")
    if engine.kind != "llamacpp" and not (is_adapter(entry) or entry.model or engine.base_model):
        yield Problem(("engine", "base_model"), f"is missing; {entry.label} is only a prompt and runs on the bare base")


def _duplicates(values: Sequence[str], place: KeyPath) -> Iterator[Problem]:
    for value, count in Counter(values).items():
        if count > 1:
            yield Problem(place, f"{value!r} is there {count} times; each must be there once")


def _is_origin(address: str) -> bool:
    return _is_web(address) and urlsplit(address)[2:] in {("", "", ""), ("/", "", "")}


def _is_absolute(path: str) -> bool:
    return path.startswith("/") and "\0" not in path and ".." not in path.split("/")


def _is_web(address: str) -> bool:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return False
    secure = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    return secure and port != 0 and address.isascii() and not re.search(r"[\s\x00-\x1f]", address)


def _without_password(address: str) -> str:
    return re.sub(r"//.*@", "//***@", address)[:200]
