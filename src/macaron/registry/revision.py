"""Revisions: names of an adapter or a prompt by content, which therefore never change meaning."""

from __future__ import annotations

import hashlib
from pathlib import Path

from macaron.errors import ConfigError
from macaron.models.files import sha256_of, sha256_of_listing
from macaron.models.peft import CONFIG_FILE, WEIGHTS_FILE
from macaron.models.progress import silent

ADAPTER_FILES = (CONFIG_FILE, WEIGHTS_FILE)
"""The files of an adapter in a folder, as PEFT writes them."""


def adapter_revision(source: Path) -> str:
    """`sha256:<64 hex>` over an adapter's bytes.

    A file counts by its content; a folder by the names and contents of `ADAPTER_FILES`, whatever else lies in it.

    Raises:
        ConfigError: it cannot be read, or the folder lacks one of the files.
    """
    try:
        if source.is_dir():
            return folder_revision(*(sha256_of(source / name, silent) for name in ADAPTER_FILES))
        return f"sha256:{sha256_of(source, silent)}"
    except OSError as error:
        raise ConfigError(f"adapter {source} cannot be read: {error.strerror or error}") from None


def folder_revision(config: str, weights: str) -> str:
    """`adapter_revision` of a folder, from the SHA-256 of its two files in hex."""
    return f"sha256:{sha256_of_listing(zip(ADAPTER_FILES, (config, weights), strict=True))}"


def prompt_revision(identity: str, base: str) -> str:
    """`prompt:<12 hex>` of a specialist that is only a prompt on a base."""
    return "prompt:" + hashlib.sha256(f"{base}\0{identity}".encode()).hexdigest()[:12]


def unverified_revision(engine_name: str) -> str:
    """The revision of an adapter that a running engine holds and whose bytes cannot be read here."""
    return f"unverified:{engine_name}"
