"""The files a contract refers to: found inside its folder only, read once, bounded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from macaron.errors import ConfigError
from macaron.hcp.document import MAX_TEXT, read_bytes
from macaron.hcp.lines import KeyPath
from macaron.hcp.schema import EngineSection, MolSection


class Reference(NamedTuple):
    """A text file named in a document.

    Attributes:
        place: where it is named.
        name: its name in `Loaded.texts`, such as `mol.adapters.L2.prompt_path`.
        value: the path as written.
    """

    place: KeyPath
    name: str
    value: str


def references(mol: MolSection | None, engine: EngineSection | None) -> Iterator[Reference]:
    """Every prompt and template file that the sections name."""
    if mol is not None:
        yield Reference(("mol", "route", "prompt_path"), "mol.route.prompt_path", mol.route.prompt_path)
        if mol.route.examples_path:
            yield Reference(("mol", "route", "examples_path"), "mol.route.examples_path", mol.route.examples_path)
        if mol.summary_prompt_path:
            yield Reference(("mol", "summary_prompt_path"), "mol.summary_prompt_path", mol.summary_prompt_path)
        for index, entry in enumerate(mol.adapters):
            name = f"mol.adapters.{entry.label}.prompt_path"
            yield Reference(("mol", "adapters", index, "prompt_path"), name, entry.prompt_path)
    if engine is not None and engine.llamacpp.chat_template_path:
        name = "engine.llamacpp.chat_template_path"
        yield Reference(("engine", "llamacpp", "chat_template_path"), name, engine.llamacpp.chat_template_path)


def inside(folder: Path, value: str) -> Path:
    """Where a relative path leads, after all symbolic links.

    Raises:
        ConfigError: it is absolute, climbs, does not exist, or leads out of `folder`.
    """
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or "\\" in value or "\0" in value or not path.parts:
        raise ConfigError(f"{value!r} must be a relative path inside the document's folder, with / and without ..")
    real = (folder / path).resolve()
    if not real.is_relative_to(folder):
        raise ConfigError(f"{value!r} leads out of the document's folder, to {real}")
    if not real.exists():
        raise ConfigError(f"{value!r} does not exist in {folder}")
    return real


def read_reference(folder: Path, reference: Reference) -> bytes:
    """The bytes of a referenced text.

    Raises:
        ConfigError: it is not a UTF-8 file inside `folder` of at most 1 MiB, or it is empty.
    """
    raw = read_bytes(inside(folder, reference.value), MAX_TEXT)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{reference.value!r} is not UTF-8: byte {error.start} cannot be decoded") from None
    if not text.strip():
        raise ConfigError(f"{reference.value!r} is empty")
    return raw
