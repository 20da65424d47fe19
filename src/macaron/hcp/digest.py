"""The digest that names a contract: equal for equal content, whatever the layout of the file."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import rfc8785

from macaron.errors import ConfigError
from macaron.hcp.aliases import normalise
from macaron.hcp.lines import KeyPath

PREFIX = "hcp1:"


def digest_of(document: Mapping[str, Any], files: Mapping[KeyPath, bytes]) -> str:
    """`hcp1:` and the SHA-256, in hex, of the document's canonical form.

    Args:
        document: the parsed document. No default is filled in and unknown keys count. Environment variables count by
            the names that stand in it; their values are never read.
        files: contents of the prompts and templates it refers to, by place; each stands for its path, so that a renamed
            file with the same content is the same contract.

    Raises:
        ConfigError: an alias stands beside its name, or a value has no canonical form.
    """
    return PREFIX + hashlib.sha256(canonical(document, files)).hexdigest()


def canonical(document: Mapping[str, Any], files: Mapping[KeyPath, bytes]) -> bytes:
    """The bytes under the digest: RFC 8785 JSON."""
    hashes = {place: "sha256:" + hashlib.sha256(content).hexdigest() for place, content in files.items()}
    try:
        return rfc8785.dumps(_portable(normalise(document), (), hashes))
    except (rfc8785.CanonicalizationError, RecursionError) as error:
        raise ConfigError(f"the document has no canonical form: {error}") from None


def portable_path(path: str) -> str:
    """A path as it counts for the digest: NFC, POSIX separators, without `.` and doubled separators."""
    return str(PurePosixPath(unicodedata.normalize("NFC", path)))


def _portable(value: Any, place: KeyPath, hashes: Mapping[KeyPath, str]) -> Any:
    if place in hashes:
        return hashes[place]
    match value:
        case Mapping():
            held = {key: _portable(item, (*place, key), hashes) for key, item in value.items()}
            return _pinned(held) if place == ("engine", "weights") else held
        case list():
            return [_portable(item, (*place, index), hashes) for index, item in enumerate(value)]
        case str() if _is_path(place):
            return portable_path(value)
        case _:
            return value


def _is_path(place: KeyPath) -> bool:
    match place:
        case ("mol", "adapters", int(), "source") | ("engine", "weights", "path"):
            return True
        case _:
            return False


def _pinned(weights: dict[str, Any]) -> dict[str, Any]:
    # Weights pinned by their hash are the same base wherever they lie on this machine.
    return {**weights, "path": f"sha256:{weights['sha256']}"} if {"path", "sha256"} <= weights.keys() else weights
