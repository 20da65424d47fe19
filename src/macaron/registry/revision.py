"""Revisions: names of an adapter or a prompt by content, which therefore never change meaning."""

from __future__ import annotations

import hashlib
from pathlib import Path

from macaron.errors import ConfigError

ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")
"""The files of an adapter in a folder, as PEFT writes them."""

_CHUNK = 1_048_576


def adapter_revision(source: Path) -> str:
    """`sha256:<64 hex>` over an adapter's bytes.

    A file counts by its content; a folder by the names and contents of `ADAPTER_FILES`, whatever else lies in it.

    Raises:
        ConfigError: it cannot be read, or the folder lacks one of the files.
    """
    try:
        if source.is_dir():
            lines = "".join(f"{_sha256(source / name)}  {name}\n" for name in ADAPTER_FILES)
            return "sha256:" + hashlib.sha256(lines.encode()).hexdigest()
        return "sha256:" + _sha256(source)
    except OSError as error:
        raise ConfigError(f"adapter {source} cannot be read: {error.strerror or error}") from None


def prompt_revision(identity: str, base: str) -> str:
    """`prompt:<12 hex>` of a specialist that is only a prompt on a base."""
    return "prompt:" + hashlib.sha256(f"{base}\0{identity}".encode()).hexdigest()[:12]


def unverified_revision(engine_name: str) -> str:
    """The revision of an adapter that a running engine holds and whose bytes cannot be read here."""
    return f"unverified:{engine_name}"


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
