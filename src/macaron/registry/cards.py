"""The registry: one card for each specialist, made from a contract."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from macaron.errors import ConfigError
from macaron.hcp import AdapterEntry, Loaded, is_adapter
from macaron.registry.revision import adapter_revision, prompt_revision, unverified_revision

State = Literal["verified", "unverified", "prompt"]


class Specialist(Struct, frozen=True):
    """What a label stands for.

    Attributes:
        label: routing name.
        name: for people.
        description: for the router: what it does.
        boundary: for the router: what it does not do; may be empty.
        identity: its prompt, the first part of its head.
        revision: `sha256:<hex>` of the adapter's bytes, `unverified:<engine name>`, or `prompt:<hex>`.
        engine_name: the adapter's name in the engine, None for a specialist that is only a prompt.
        model: another model of an `openai` engine that serves this label; empty for the base.
        state: `verified` where the adapter's bytes were read here, `unverified` where only the engine has them,
            `prompt` where there is no adapter.
    """

    label: str
    name: str
    description: str
    boundary: str
    identity: str
    revision: str
    engine_name: str | None
    model: str
    state: State

    @property
    def adapter(self) -> str | None:
        """How a hop names it to the engine: its adapter, or a model of its own; None for the bare base."""
        return self.engine_name or self.model or None

    @property
    def card(self) -> str:
        """One line for the router."""
        limits = f" Not for: {self.boundary}" if self.boundary else ""
        return f"{self.label}: {self.description}{limits}"


class Registry(Struct, frozen=True):
    """The specialists of a service, in the contract's order.

    Attributes:
        entry: label of the one that routes.
        default: label taken when the route hop gives nothing usable.
    """

    specialists: tuple[Specialist, ...]
    entry: str
    default: str

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels."""
        return tuple(item.label for item in self.specialists)

    @property
    def prompt_only(self) -> bool:
        """Whether no specialist has an adapter yet."""
        return all(item.state == "prompt" for item in self.specialists)

    @property
    def entry_specialist(self) -> Specialist:
        """The one that routes."""
        return self._named(self.entry)

    @property
    def default_specialist(self) -> Specialist:
        """The one that answers when nothing else is known."""
        return self._named(self.default)

    def get(self, label: str) -> Specialist | None:
        """The specialist with a label, None where there is none."""
        for item in self.specialists:
            if item.label == label:
                return item
        return None

    def _named(self, label: str) -> Specialist:
        return next(item for item in self.specialists if item.label == label)

    def by_revision(self, revision: str) -> Specialist | None:
        """The first specialist on a revision, None where it is not served any more."""
        return next((item for item in self.specialists if item.revision == revision), None)

    def fill(self, template: str) -> str:
        """A prompt with `{labels}` and `{cards}` filled in, without the white space around it."""
        cards = "\n".join(item.card for item in self.specialists)
        # Cards come last: what stands in them is never taken for a place-holder.
        return template.strip().replace("{labels}", ", ".join(self.labels)).replace("{cards}", cards)


def registry_from(loaded: Loaded) -> Registry:
    """Make the registry of a contract; adapters that can be read are hashed.

    Raises:
        ConfigError: an adapter cannot be read, or its bytes are not those its revision names.
    """
    mol = loaded.contract.mol
    specialists = tuple(_specialist(loaded, entry) for entry in mol.adapters)
    return Registry(specialists=specialists, entry=mol.entry, default=mol.default)


def _specialist(loaded: Loaded, entry: AdapterEntry) -> Specialist:
    identity = loaded.text(f"mol.adapters.{entry.label}.prompt_path").strip()
    revision, state = _revision(loaded, entry, identity)
    return Specialist(
        label=entry.label,
        name=entry.name,
        description=" ".join(entry.description.split()),
        boundary=" ".join(entry.boundary.split()),
        identity=identity,
        revision=revision,
        engine_name=(entry.engine_name or entry.label) if is_adapter(entry) else None,
        model=entry.model,
        state=state,
    )


def _revision(loaded: Loaded, entry: AdapterEntry, identity: str) -> tuple[str, State]:
    if entry.source:
        found = adapter_revision(loaded.file(entry.source))
        if not found.startswith(entry.revision):
            place = f"mol.adapters.{entry.label}.revision"
            raise ConfigError(f"{place} is {entry.revision}, but {entry.source} has {found}", param=place)
        return found, "verified"
    if entry.engine_name:
        return unverified_revision(entry.engine_name), "unverified"
    mol = loaded.contract.mol
    return prompt_revision(identity, entry.model or mol.base_fingerprint or mol.base), "prompt"
