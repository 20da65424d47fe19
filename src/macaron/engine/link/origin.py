"""Where a link connects to: the scheme, host and port of one server."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from macaron.errors import ConfigError


class Origin(NamedTuple):
    """One server. `host` is bare (an IPv6 address without brackets), `authority` is the value of the Host header."""

    scheme: str
    host: str
    port: int
    authority: str

    @property
    def secure(self) -> bool:
        """Whether the connection is TLS."""
        return self.scheme == "https"

    @property
    def url(self) -> str:
        """The origin as it is written in front of a path."""
        return f"{self.scheme}://{self.authority}"


def parse_origin(text: str) -> Origin:
    """Read an origin such as `http://127.0.0.1:8000` or `https://[::1]`.

    Raises:
        ConfigError: it is not an http or https origin, or says more than an origin does.
    """
    # urlsplit drops some control characters without a word, and an IDN would need a policy of its own.
    if not text.isascii() or not text.isprintable() or " " in text:
        raise _refused(text, "it has characters that a URL cannot have")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise _refused(text, str(error)) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _refused(text, "it must begin with http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise ConfigError("an engine's origin has credentials in it; send them as a header instead", param="origin")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise _refused(text, "it must end after the port; paths belong to the requests")
    if port == 0:
        raise _refused(text, "port 0 cannot be connected to")
    return _origin(parts.scheme, parts.hostname, port)


def _origin(scheme: str, host: str, port: int | None) -> Origin:
    name = f"[{host}]" if ":" in host else host
    default = 443 if scheme == "https" else 80
    authority = name if port is None or port == default else f"{name}:{port}"
    return Origin(scheme, host, port or default, authority)


def _refused(text: str, reason: str) -> ConfigError:
    return ConfigError(f"{text[:200]!r} is not an origin: {reason}", param="origin")
