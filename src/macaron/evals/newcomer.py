"""A specialist that the router was never trained with: does its card alone win its requests, and at whose cost?"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from macaron.errors import ConfigError
from macaron.registry.cards import Registry
from macaron.train.data.rows import RouteRow

SOURCE = "newcomer"


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    label: str
    name: str
    description: str
    boundary: str = ""
    en: tuple[str, ...] = ()
    zh: tuple[str, ...] = ()


class Newcomer(NamedTuple):
    """A registry with one card more, and requests for it."""

    registry: Registry
    rows: list[RouteRow]


def read_newcomer(path: Path, registry: Registry) -> Newcomer:
    """Read a card and its requests from TOML: `label`, `name`, `description`, `boundary`, and lists `en` and `zh`.

    Raises:
        ConfigError: the file cannot be read, a field is wrong, or the label is taken.
    """
    try:
        found = msgspec.convert(tomllib.loads(path.read_text("utf-8")), _File)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", param="newcomer") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ConfigError(f"{path} is no card with requests: {error}", param="newcomer") from None
    if registry.get(found.label) is not None:
        raise ConfigError(f"{path}: label {found.label!r} is taken; choose another", param="newcomer")
    card = replace(
        registry.default_specialist,
        label=found.label, name=found.name, description=found.description, boundary=found.boundary,
    )  # fmt: skip
    rows = [
        RouteRow(
            id=f"{SOURCE}-{language}-{number}", source=SOURCE, language=language, label=found.label,
            messages=({"role": "user", "content": text},),
        )
        for language, texts in (("en", found.en), ("zh", found.zh))
        for number, text in enumerate(texts)
    ]  # fmt: skip
    return Newcomer(replace(registry, specialists=(*registry.specialists, card)), rows)
