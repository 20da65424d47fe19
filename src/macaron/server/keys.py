"""Who may call: keys from a file, each with a name and scopes."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from macaron.errors import ConfigError, Forbidden, Unauthorized

SCOPES = frozenset({"chat", "trace", "pin", "admin"})
LOCAL = "local"
OWNER = "owner"
MAX_KEY = 512
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Caller(NamedTuple):
    """A known caller: its tenant and what it may do."""

    tenant: str
    scopes: frozenset[str]

    def require(self, scope: str, what: str) -> None:
        """Raise `Forbidden` where the caller's key lacks a scope."""
        if scope not in self.scopes:
            raise Forbidden(f"{what} needs a key with the scope `{scope}`.", code="missing_scope")


class Keys:
    """The keys of a service. Only their hashes are kept.

    Open mode (no keys) takes every caller for tenant `local`, which is never an administrator.
    """

    def __init__(self, callers: Mapping[bytes, Caller] | None) -> None:
        self._callers = callers
        self._local = Caller(LOCAL, SCOPES - {"admin"})

    @property
    def open(self) -> bool:
        """Whether anybody may call."""
        return self._callers is None

    @property
    def tenants(self) -> int:
        """How many tenants there are."""
        return 1 if self._callers is None else len({caller.tenant for caller in self._callers.values()})

    def authenticate(self, headers: Mapping[bytes, bytes]) -> Caller:
        """The caller behind a request's headers.

        Raises:
            Unauthorized: there is no key, or it is not known.
        """
        if self._callers is None:
            return self._local
        key = _presented(headers)
        if not key:
            raise Unauthorized("Send your key as `Authorization: Bearer <key>`.", code="missing_api_key")
        # Looking up a hash takes the same time for every wrong key, whatever part of it is right.
        caller = self._callers.get(_hash(key)) if len(key) <= MAX_KEY else None
        if caller is None:
            raise Unauthorized("The key is not known to this service.")
        return caller


def _presented(headers: Mapping[bytes, bytes]) -> bytes:
    scheme, _, key = headers.get(b"authorization", b"").partition(b" ")
    return key.strip() if scheme.lower() == b"bearer" else headers.get(b"x-api-key", b"").strip()


def _hash(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


def read_private(path: Path, what: str) -> str:
    """The text of a file that only its owner may read.

    Raises:
        ConfigError: it cannot be read, or others can read it; `what` is what it is called.
    """
    try:
        text = path.read_text(encoding="utf-8")
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The {what} {path} cannot be read: {error}.") from None
    if mode & 0o077:
        raise ConfigError(f"The {what} {path} is readable by others; run `chmod 600 {path}`.")
    return text


def read_keys(path: Path) -> Keys:
    """Read a key file: lines `name:key[:scope,…]`, `#` begins a comment. A file that holds nothing but one key is its
    owner's, with every scope.

    Raises:
        ConfigError: the file is missing, empty, readable by others, or has a bad line (which is named by number only).
    """
    text = read_private(path, "key file")
    if _is_bare(text):
        key = _checked_key(text.strip(), str(path))
        return Keys({_hash(key): Caller(OWNER, SCOPES)})
    callers: dict[bytes, Caller] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            key, caller = _read_line(line.strip(), f"{path}, line {number}")
            if _hash(key) in callers:
                raise ConfigError(f"{path}, line {number}: this key appears twice; every name needs its own.")
            callers[_hash(key)] = caller
    if not callers:
        raise ConfigError(f"The key file {path} holds no key; add a line `name:key`.")
    return Keys(callers)


def _read_line(line: str, where: str) -> tuple[bytes, Caller]:
    name, _, rest = line.partition(":")
    key, _, scopes = rest.partition(":")
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{where}: the name before the first colon may hold letters, digits, `_`, `.` and `-`.")
    checked = _checked_key(key, where)
    chosen = frozenset(scope.strip() for scope in scopes.split(",")) if scopes else frozenset({"chat"})
    if unknown := chosen - SCOPES:
        # What is no scope may be the rest of a key that holds a colon, so it is not shown.
        known = ", ".join(sorted(SCOPES))
        raise ConfigError(
            f"{where}: {len(unknown)} of the scopes after the second colon are unknown; known are {known}."
        )
    return checked, Caller(name, chosen)


def _checked_key(key: str, where: str) -> bytes:
    if len(key) < 16 or len(key) > MAX_KEY or not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(f"{where}: the key must be 16 to {MAX_KEY} printable ASCII characters without spaces.")
    return key.encode()


def _is_bare(text: str) -> bool:
    return len(text.split()) == 1 and ":" not in text and not text.lstrip().startswith("#")


def create_key_file(path: Path) -> None:
    """Write a file that holds one new key, readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"mac-{secrets.token_urlsafe(32)}\n")
