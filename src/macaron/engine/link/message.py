"""What a link sends: checked request lines and headers, rendered to bytes.

Everything is refused that could end a line early, so that no value can smuggle a header or a second request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from macaron.engine.link.origin import Origin
from macaron.errors import ConfigError, EngineError, MacaronError

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_OWN = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "proxy-connection",
     "te", "trailer", "transfer-encoding", "upgrade"}
)  # fmt: skip
"""Headers that frame the message or govern the connection; only the link may send them."""


def check_target(method: str, path: str) -> None:
    """Refuse a request line that is not exactly one.

    Raises:
        EngineError: the method is not upper-case letters, or the path is not printable ASCII from a slash on.
    """
    if not (method.isascii() and method.isalpha() and method.isupper()):
        raise EngineError(f"method {method[:40]!r} is not an HTTP method in upper case", param="method")
    if not (path.startswith("/") and path.isascii() and path.isprintable()) or " " in path or "#" in path:
        raise EngineError(
            f"path {path[:200]!r} must begin with / and hold only printable ASCII; percent-encode the rest",
            param="path",
        )


def checked_headers(headers: Mapping[str, str], error: type[MacaronError] = EngineError) -> dict[str, str]:
    """The headers with lower-case names. A value is never shown: it may be a secret.

    Raises:
        error: a name or value has characters that HTTP does not allow, or the header is the link's own.
    """
    checked = {}
    for name, value in headers.items():
        lower = name.lower()
        if not _TOKEN.fullmatch(name):
            raise error(f"header name {name[:80]!r} has characters that HTTP does not allow", param="headers")
        if lower in _OWN:
            raise error(f"header {lower!r} is set by the link; leave it out", param=f"headers.{lower}")
        if not _VALUE.fullmatch(value):
            raise error(
                f"the value of header {lower!r} has a line end or a character outside Latin-1; remove it",
                param=f"headers.{lower}",
            )
        checked[lower] = value
    return checked


REMEMBERED = 64
"""Request lines and header sets that are remembered: an engine uses a handful."""


def constant_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """The headers of every request. Compression is declined: it would delay pieces and invites decompression bombs.

    Raises:
        ConfigError: a header cannot be sent.
    """
    return {"accept-encoding": "identity", **checked_headers(headers or {}, ConfigError)}


class RequestWriter:
    """Renders requests to one origin; what is the same in many of them is checked and rendered once."""

    def __init__(self, origin: Origin, headers: Mapping[str, str] | None) -> None:
        self._constant = constant_headers(headers)
        self._start = f" HTTP/1.1\r\nhost: {origin.authority}\r\n".encode("ascii")
        self._tail = self._start + _lines(self._constant)
        self._tails: dict[tuple[tuple[str, str], ...], bytes] = {}
        self._lines: dict[tuple[str, str], bytes] = {}

    def render(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None) -> bytes:
        """The whole request, head and body. Headers given here replace constant ones of the same name.

        Raises:
            EngineError: the request line or a header cannot be sent.
        """
        line = self._lines.get((method, path)) or self._line(method, path)
        tail = self._tail if not headers else self._tails.get(tuple(headers.items())) or self._merged(headers)
        if body is not None:
            return b"".join((line, tail, b"content-length: %d\r\n\r\n" % len(body), body))
        if method in ("GET", "HEAD", "OPTIONS", "DELETE"):
            return b"".join((line, tail, b"\r\n"))
        return b"".join((line, tail, b"content-length: 0\r\n\r\n"))

    def _line(self, method: str, path: str) -> bytes:
        check_target(method, path)
        line = f"{method} {path}".encode("ascii")
        if len(self._lines) < REMEMBERED:
            self._lines[method, path] = line
        return line

    def _merged(self, headers: Mapping[str, str]) -> bytes:
        own = checked_headers(headers)
        if self._constant.keys().isdisjoint(own):
            tail = self._tail + _lines(own)
        else:
            tail = self._start + _lines({**self._constant, **own})
        if len(self._tails) < REMEMBERED:
            self._tails[tuple(headers.items())] = tail
        return tail


def _lines(headers: Mapping[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("latin-1")
