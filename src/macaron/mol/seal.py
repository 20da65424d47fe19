"""Sealed bytes that clients keep for us: nobody without a key can read or change them, or use them elsewhere.

A sealed text is base64url of a header and a ciphertext. The header is version (1 byte), key id (4), expiry in Unix
seconds (4), the beginning of the bond's digest (8) and a salt (16). ChaCha20-Poly1305 (RFC 8439) runs under a key and a
nonce of their own for every salt, since one key may seal more texts than random nonces of 96 bits allow for. The header
and the bond are its associated data. Nothing is compressed: lengths would tell what is inside about what is beside it.
"""

from __future__ import annotations

import binascii
import hashlib
import os
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

KEY_BYTES = 32
MAX_STATE = 16_384
"""Bytes that are sealed at most; a client sends all it has got with every request."""

MAX_TEXT = 24_576
"""Characters of a sealed text; a longer one is none of ours."""

_VERSION = 1
_HINT = 8
_SALT = 16
_HEADER = 1 + 4 + 4 + _HINT + _SALT
_HEADER_TEXT = _HEADER * 4 // 3
_TAG = 16
_NONCE = 12
_LATEST = 2**32 - 1

Refusal = Literal["malformed", "oversized", "unknown_key", "expired", "elsewhere", "refused"]
"""Why a text is not opened. `elsewhere`: it belongs to no place of this conversation; `refused`: its contents or its
bond are not what was sealed."""


class Bond(NamedTuple):
    """What a sealed text is good for: one scope, one head, one visible history, all by name or digest."""

    scope: str
    head: str
    digest: str


class Envelope(Struct, frozen=True):
    """What can be read on the outside of a sealed text. None of it is proved before the text is opened.

    Attributes:
        header: all of it, as bytes.
        key: id of the key.
        expires: Unix time in seconds.
        hint: which digest the text is bound to; see `hint_of`.
    """

    header: bytes
    key: bytes
    expires: int
    hint: str


class Sealer:
    """Seals with the first key; opens with all, so that keys can be changed without losing what is out."""

    def __init__(self, keys: Sequence[bytes], lifetime: float, clock: Callable[[], float] = time.time) -> None:
        """
        Args:
            keys: at least one, of 32 bytes.
            lifetime: seconds for which a sealed text is good.
        """
        # Loading it takes longer than everything else a command does that seals nothing.
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        self._cipher = ChaCha20Poly1305
        self._invalid = InvalidTag
        self._keys = {key_id(key): key for key in reversed(keys)}
        self._first = keys[0]
        self._lifetime = lifetime
        self._clock = clock

    def seal(self, state: bytes, bond: Bond) -> str | None:
        """A text that `open` turns back into `state` for an equal bond; None where the state is too large."""
        if len(state) > MAX_STATE:
            return None
        expires = max(0, min(int(self._clock() + self._lifetime), _LATEST))
        salt = os.urandom(_SALT)
        hint = bytes.fromhex(hint_of(bond.digest))
        header = b"%c%b%b%b%b" % (_VERSION, key_id(self._first), expires.to_bytes(4, "big"), hint, salt)
        key, nonce = _derived(self._first, salt)
        return urlsafe_b64encode(header + self._cipher(key).encrypt(nonce, state, _bound(header, bond))).decode()

    def envelope(self, text: str) -> Envelope | Refusal:
        """What stands on the outside of a text, or why it cannot be opened whatever it is bound to."""
        if len(text) > MAX_TEXT:
            return "oversized"
        header = _decoded(text[:_HEADER_TEXT])
        if header is None or len(header) < _HEADER or header[0] != _VERSION:
            return "malformed"
        key, expires = header[1:5], int.from_bytes(header[5:9], "big")
        if key not in self._keys:
            return "unknown_key"
        if expires <= self._clock():
            return "expired"
        return Envelope(header, key, expires, header[9 : 9 + _HINT].hex())

    def open(self, text: str, envelope: Envelope, bond: Bond) -> bytes | Refusal:
        """What was sealed for this bond."""
        sealed = _decoded(text)
        if sealed is None or len(sealed) < _HEADER + _TAG:
            return "malformed"
        key, nonce = _derived(self._keys[envelope.key], envelope.header[-_SALT:])
        try:
            return self._cipher(key).decrypt(nonce, sealed[_HEADER:], _bound(envelope.header, bond))
        except self._invalid:
            return "refused"


def key_id(key: bytes) -> bytes:
    """Names a key without telling anything of it."""
    return hashlib.blake2b(key, digest_size=4, person=b"macaron key id").digest()


def hint_of(digest: str) -> str:
    """The part of a history's digest that stands on the outside, in hexadecimal."""
    return digest.rpartition(":")[2][: 2 * _HINT].ljust(2 * _HINT, "0")


def _derived(key: bytes, salt: bytes) -> tuple[bytes, bytes]:
    made = hashlib.blake2b(salt, key=key, digest_size=KEY_BYTES + _NONCE, person=b"macaron carrier").digest()
    return made[:KEY_BYTES], made[KEY_BYTES:]


def _bound(header: bytes, bond: Bond) -> bytes:
    return msgspec.msgpack.encode((header, *bond))


def _decoded(text: str) -> bytes | None:
    """The bytes of base64url; None where it is none, or not the one way to write them."""
    try:
        data = urlsafe_b64decode(text.encode("ascii"))
    except (UnicodeEncodeError, binascii.Error, ValueError):
        return None
    return data if urlsafe_b64encode(data).decode() == text else None
