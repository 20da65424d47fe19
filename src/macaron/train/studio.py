"""A profile, ready to encode the rows of one of its specialists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from macaron.engine.special import SpecialTokens
from macaron.errors import ConfigError
from macaron.hcp import Loaded
from macaron.models import read_gguf
from macaron.mol.dialogue import labels_in
from macaron.registry.cards import Registry, registry_from
from macaron.train.base import Base
from macaron.train.config import AddedCard
from macaron.train.data.rows import PreferenceRow, RouteRow, SftRow
from macaron.train.encode import (
    Encoded,
    Pair,
    RouteEncoder,
    RouteQuestion,
    SftEncoder,
    Tokenizer,
    route_question,
)
from macaron.train.render import ChatTemplate


class Studio:
    """Encodes rows for the specialists of a profile.

    Args:
        added: cards that the router is asked with beside the profile's.
        newcomers: system prompts, by label, of specialists that the profile does not have.

    Attributes:
        added: labels of those cards.

    Raises:
        ConfigError: the profile has no template, its adapters cannot be read, or it has the label of what is added.
    """

    def __init__(
        self,
        loaded: Loaded,
        base: Base,
        tokenizer: Tokenizer,
        added: Sequence[AddedCard] = (),
        newcomers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        mol, engine = loaded.contract.mol, loaded.contract.engine
        own = registry_from(loaded)
        self.registry = _extended(own, added)
        self.added = frozenset(card.label for card in added)
        source = loaded.text("engine.llamacpp.chat_template_path", "") or read_gguf(base.weights).chat_template
        template = ChatTemplate(source, SpecialTokens(engine.special_tokens), eos=tokenizer.text(tokenizer.end))
        self._loaded = loaded
        self._tokenizer = tokenizer
        identities = {specialist.label: specialist.identity for specialist in own.specialists}
        if taken := identities.keys() & newcomers.keys():
            reason = (
                f"the profile has its own system prompt for {min(taken)}; leave --identity out, or choose another label"
            )
            raise ConfigError(reason, param="identity")
        self._sft = {
            label: SftEncoder(template, tokenizer, identity, merge_system=mol.merge_system)
            for label, identity in {**identities, **newcomers}.items()
        }
        self._route = RouteEncoder(template, tokenizer)
        self._asked = self.question(self.registry, {name: name for name in self.registry.labels})
        self._asked_before = self.question(own, {name: name for name in own.labels}) if added else self._asked

    def labels(self, row: RouteRow) -> set[str]:
        """The labels that a route row names."""
        return {row.label} | labels_in(row.messages, self._loaded.contract.mol.entry)

    def question(self, registry: Registry, names: dict[str, str]) -> RouteQuestion:
        """How the profile asks for a label of a registry."""
        return route_question(self._loaded, registry, names, self._tokenizer)

    def sft(self, row: SftRow, label: str) -> Encoded:
        """A conversation of the specialist with a label.

        Raises:
            ConfigError: the profile has no such label.
        """
        return self._of(label).encode(row)

    def pair(self, row: PreferenceRow, label: str) -> Pair:
        """A preference between two answers of the specialist with a label.

        Raises:
            ConfigError: the profile has no such label.
        """
        return self._of(label).encode_pair(row)

    def route(self, row: RouteRow, asked: RouteQuestion | None = None) -> Encoded:
        """A question for a label, as the profile asks it or in another way."""
        return self._route.encode(row, asked or self._asked)

    def route_before(self, row: RouteRow) -> Encoded:
        """A question for a label as the profile asks it without the cards that were added."""
        return self._route.encode(row, self._asked_before)

    def check(self, label: str) -> None:
        """See that a label is one of the profile's.

        Raises:
            ConfigError: it is not.
        """
        self._of(label)

    def _of(self, label: str) -> SftEncoder:
        encoder = self._sft.get(label)
        if encoder is None:
            names = ", ".join(self.registry.labels)
            reason = f"{label!r} is no label of this profile; it has {names}; a newcomer's system prompt is --identity"
            raise ConfigError(reason, param="adapter")
        return encoder


def _extended(registry: Registry, added: Sequence[AddedCard]) -> Registry:
    for card in added:
        if registry.get(card.label) is not None:
            reason = f"label {card.label!r} is one of the profile's"
            raise ConfigError(f"{reason}; a card is added for a label that it does not have", param="route.add")
    blank = registry.default_specialist
    cards = (
        # As registration keeps them, so that training and serving show the same line.
        replace(
            blank, label=card.label, name=" ".join(card.name.split()), description=" ".join(card.description.split()),
            boundary=" ".join(card.boundary.split()),
        )
        for card in added
    )  # fmt: skip
    return replace(registry, specialists=(*registry.specialists, *cards))
