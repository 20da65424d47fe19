"""Keeps web pages from talking to a service on loopback."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Set

from macaron.errors import BadRequest, Forbidden

_AUTHORITY = rb"(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]{1,5})?"
_HOST = re.compile(_AUTHORITY, re.IGNORECASE)
_ORIGIN = re.compile(rb"https?://" + _AUTHORITY, re.IGNORECASE)


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only be this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def check_origin(
    method: str, headers: Mapping[bytes, bytes], *, loopback: bool, allowed: Set[bytes] = frozenset()
) -> None:
    """Refuse, on loopback, a foreign `Host` (DNS rebinding) and a foreign `Origin` (cross-site requests).

    A POST must say `application/json`, which a page of another origin cannot send without asking first.

    Args:
        allowed: origins that may call all the same.

    Raises:
        Forbidden: the request comes from somewhere else.
        BadRequest: a POST of another content type.
    """
    if loopback:
        if not _HOST.fullmatch(headers.get(b"host", b"")):
            raise Forbidden("The Host header does not name this machine.", code="foreign_host")
        origin = headers.get(b"origin")
        if origin is not None and origin not in allowed and not _ORIGIN.fullmatch(origin):
            raise Forbidden("Requests from web pages of other origins are refused.", code="foreign_origin")
    if method == "POST" and not _is_json(headers.get(b"content-type", b"")):
        raise BadRequest("Send `Content-Type: application/json`.", param="content-type", code="invalid_content_type")


def _is_json(content_type: bytes) -> bool:
    return content_type == b"application/json" or (
        content_type.partition(b";")[0].strip().lower() == b"application/json"
    )
