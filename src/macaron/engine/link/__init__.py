"""Links: HTTP clients for one engine each, behind one narrow interface."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Literal, assert_never

from macaron.engine.link.base import Limits, Link
from macaron.engine.link.origin import parse_origin
from macaron.errors import ConfigError

LinkKind = Literal["native", "aiohttp"]

__all__ = ["LinkKind", "create_link"]


def create_link(
    kind: LinkKind, origin: str, *, headers: Mapping[str, str] | None = None, limits: Limits | None = None,
    tls: ssl.SSLContext | None = None,
) -> Link:  # fmt: skip
    """Make a link; nothing is connected before the first request.

    Args:
        kind: `native` is the project's own client; `aiohttp` is the library, as a fallback and a yardstick.
        origin: scheme, host and port, such as `http://127.0.0.1:8000`.
        headers: sent with every request; a request's own header of the same name replaces one.
        limits: bounds, or the defaults.
        tls: how to verify an https origin, by default with the system's certificates.

    Raises:
        ConfigError: the origin or a header cannot be used, or `tls` is given for an http origin.
    """
    where = parse_origin(origin)
    bounds = limits or Limits()
    if bounds.connections < 1:
        raise ConfigError(f"limit `connections` is {bounds.connections}; at least 1 is needed", param="connections")
    if tls is not None and not where.secure:
        raise ConfigError(f"`tls` is given but {where.url} is not https; leave it out or use https", param="tls")
    if where.secure and tls is None:
        tls = ssl.create_default_context()
    match kind:
        case "native":
            from macaron.engine.link.native import NativeLink

            return NativeLink(where, headers, bounds, tls)
        case "aiohttp":
            from macaron.engine.link.library import LibraryLink

            return LibraryLink(where, headers, bounds, tls)
        case _:
            assert_never(kind)
