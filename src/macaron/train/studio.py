"""A profile, ready to encode the rows of one of its specialists."""

from __future__ import annotations

from macaron.engine.special import SpecialTokens
from macaron.errors import ConfigError
from macaron.hcp import Loaded
from macaron.models import read_gguf
from macaron.mol.dialogue import labels_in
from macaron.registry.cards import Registry, registry_from
from macaron.train.base import Base
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

    Raises:
        ConfigError: the profile has no template, or its adapters cannot be read.
    """

    def __init__(self, loaded: Loaded, base: Base, tokenizer: Tokenizer) -> None:
        mol, engine = loaded.contract.mol, loaded.contract.engine
        self.registry = registry_from(loaded)
        source = loaded.text("engine.llamacpp.chat_template_path", "") or read_gguf(base.weights).chat_template
        template = ChatTemplate(source, SpecialTokens(engine.special_tokens), eos=tokenizer.text(tokenizer.end))
        self._loaded = loaded
        self._tokenizer = tokenizer
        self._sft = {
            specialist.label: SftEncoder(template, tokenizer, specialist.identity, merge_system=mol.merge_system)
            for specialist in self.registry.specialists
        }
        self._route = RouteEncoder(template, tokenizer)
        self._asked = self.question(self.registry, {name: name for name in self.registry.labels})

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
            raise ConfigError(f"{label!r} is no label of this profile; it has {names}", param="adapter")
        return encoder
