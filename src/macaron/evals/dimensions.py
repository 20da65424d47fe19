"""What a diagnosis looks at: named dimensions with a rubric, and conversations that probe each."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from macaron.errors import ConfigError

MAX_FILE = 4 << 20


class Probe(Struct, frozen=True, forbid_unknown_fields=True):
    """A conversation that ends with something the person says. `turns` alternate, the person's first."""

    id: str
    turns: tuple[str, ...]
    language: str = "en"

    def messages(self) -> tuple[dict[str, Any], ...]:
        """In the Chat Completions shape."""
        roles = ("user", "assistant")
        return tuple({"role": roles[at % 2], "content": turn} for at, turn in enumerate(self.turns))


class Dimension(Struct, frozen=True, forbid_unknown_fields=True):
    """One quality of an answer.

    Attributes:
        name: as it is written in results.
        question: what the judge decides.
        scores: what the scores 1 to 5 mean, in this order.
    """

    name: str
    title: str
    question: str
    scores: tuple[str, ...]
    probes: tuple[Probe, ...]


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    dimensions: tuple[Dimension, ...]


def load_dimensions(path: Path | None = None) -> tuple[Dimension, ...]:
    """The dimensions of a TOML file, or our own.

    Raises:
        ConfigError: the file cannot be read, or a dimension or probe in it cannot be used.
    """
    if path is None:
        return _checked(files("macaron.evals").joinpath("dimensions.toml").read_bytes(), "dimensions.toml")
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", param="dimensions") from None
    if len(raw) > MAX_FILE:
        raise ConfigError(f"{path} is larger than {MAX_FILE} bytes", param="dimensions")
    return _checked(raw, str(path))


def _checked(raw: bytes, place: str) -> tuple[Dimension, ...]:
    try:
        found = msgspec.toml.decode(raw, type=_Document).dimensions
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ConfigError(f"{place} does not describe dimensions: {error}", param="dimensions") from None
    if not found:
        raise ConfigError(f"{place} has no dimensions", param="dimensions")
    names: set[str] = set()
    for dimension in found:
        for name, problem in _problems(dimension):
            raise ConfigError(f"{place}: {name}: {problem}", param=f"dimensions.{dimension.name}")
        for name in (dimension.name, *(probe.id for probe in dimension.probes)):
            if name in names:
                raise ConfigError(f"{place}: {name!r} is there twice", param=f"dimensions.{dimension.name}")
            names.add(name)
    return found


def _problems(dimension: Dimension) -> list[tuple[str, str]]:
    problems = []
    if len(dimension.scores) != 5:
        problems.append((dimension.name, f"`scores` has {len(dimension.scores)} entries; it describes 1 to 5"))
    if not dimension.probes:
        problems.append((dimension.name, "it has no probes"))
    problems += [
        (probe.id, "`turns` must end with the person's, so their number is odd")
        for probe in dimension.probes
        if len(probe.turns) % 2 == 0
    ]
    return problems
