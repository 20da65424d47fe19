"""The keys that seal what stateless clients keep for us. Replicas share the file."""

from __future__ import annotations

import binascii
import os
import secrets
from base64 import b64decode, urlsafe_b64encode
from contextlib import suppress
from pathlib import Path

from macaron.errors import ConfigError
from macaron.mol.seal import KEY_BYTES, key_id
from macaron.server.keys import read_private

MAX_KEYS = 64


def read_state_keys(path: Path) -> tuple[bytes, ...]:
    """Read a key file: one key a line, 32 bytes in base64; `#` begins a comment. The first seals, all open.

    Raises:
        ConfigError: the file is missing, empty, readable by others, or has a bad line (which is named by number only).
    """
    text = read_private(path, "state key file")
    keys: dict[bytes, bytes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            key = _key(line.strip(), f"{path}, line {number}")
            if key_id(key) in keys:
                raise ConfigError(f"{path}, line {number}: this key appears twice; leave one of them out.")
            keys[key_id(key)] = key
    if not 0 < len(keys) <= MAX_KEYS:
        raise ConfigError(f"The state key file {path} holds {len(keys)} keys; it must hold 1 to {MAX_KEYS}.")
    return tuple(keys.values())


def _key(line: str, where: str) -> bytes:
    try:
        key = b64decode(line.encode("ascii"), altchars=b"-_" if {"-", "_"} & set(line) else None, validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise ConfigError(f"{where}: the key must be {KEY_BYTES} bytes in base64, as `openssl rand -base64 32` writes.")
    return key


def create_state_key_file(path: Path) -> None:
    """Write a file with one new key, readable by its owner only, unless there is a file already.

    Services that start at once agree on one: the file appears whole, and whose appears first stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n")
        with suppress(FileExistsError):
            os.link(part, path)
    finally:
        part.unlink()
