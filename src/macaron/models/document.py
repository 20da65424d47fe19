"""JSON of a stranger's, read strictly: bounded by its reader, no key twice, no numbers that JSON does not have."""

from __future__ import annotations

import json
from typing import Any, NoReturn

# A text within its bound of bytes can still be one that takes a hundred times as much memory when it is parsed.
MAX_COLONS, MAX_COMMAS = 1_048_576, 1_310_720


class NotAnObjectError(ValueError):
    """The text is no JSON object."""


class DuplicateKeyError(ValueError):
    """A key is there twice, so that two readers may see different things; `key` is its name."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {key[:80]!r} is there twice")
        self.key = key


def parse_object(raw: bytes) -> dict[str, Any]:
    """The object that `raw` holds, in UTF-8.

    Raises:
        DuplicateKeyError: at any depth.
        NotAnObjectError: it is anything else, or has more entries than can be.
    """
    if raw.count(b":") > MAX_COLONS or raw.count(b",") > MAX_COMMAS:
        raise NotAnObjectError("it has more entries than any model's")
    try:
        found = json.loads(raw.decode(), object_pairs_hook=_unique, parse_constant=_refuse)
    except DuplicateKeyError:
        raise
    except RecursionError:
        raise NotAnObjectError("it is nested too deeply") from None
    except ValueError as error:
        raise NotAnObjectError(str(error)[:120]) from None
    if not isinstance(found, dict):
        raise NotAnObjectError(f"it is a {type(found).__name__}")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise DuplicateKeyError(key)
            seen.add(key)
    return found


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
