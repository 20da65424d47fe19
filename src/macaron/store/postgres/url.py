"""A database's address: what is understood of it, and how it is shown without its secrets."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

from macaron.errors import ConfigError

SCHEME = "postgresql://"

OPTIONS = ("host", "passfile", "port", "sslcert", "sslcrl", "sslkey", "sslmode", "sslrootcert", "user")
"""What may follow the question mark, as in libpq. A password may not: it would be seen in more places."""


def redacted(url: str) -> str:
    """The address without user, password and options, whatever its form."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        scheme, rest = "", url
    secret, at, place = rest.rpartition("@")
    shown = (place if at else rest).partition("?")[0]
    return f"{scheme}{mark}{'***@' if secret or at else ''}{shown}"[:200]


def check_url(url: str) -> None:
    """Refuse an address that names no database, without repeating its secrets.

    Raises:
        ConfigError: it is not `postgresql://[user[:password]@]host[:port]/database[?option=value]`.
    """
    problem = _problem(url)
    if problem:
        raise ConfigError(f"[store] url {redacted(url)!r} {problem}", param="store.url")


def _problem(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        return "is not an address; percent-encode what is special in its user name and password"
    if not url.startswith(SCHEME) or re.search(r"[\s\x00-\x1f]", url) or parts.fragment or port == 0:
        return f"is not an address of the form {SCHEME}user@host:port/database"
    if not parts.path.strip("/") or "/" in parts.path[1:]:
        return f"names no database: write {SCHEME}user@host:port/database"
    if any(name not in OPTIONS for name, _ in options):
        return f"has an option that is not understood; known are {', '.join(OPTIONS)}"
    return ""
