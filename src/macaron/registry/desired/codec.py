"""The document as the store keeps it. What the machine cannot reach is not read."""

from __future__ import annotations

from typing import Final

import msgspec

from macaron.errors import Conflict, StoreError
from macaron.registry.check.report import shown
from macaron.registry.desired.document import Desired
from macaron.registry.desired.invariants import problems

MAX_DOCUMENT: Final = 16_777_216


def encode(desired: Desired) -> bytes:
    """The document in JSON.

    Raises:
        Conflict: it would be larger than `MAX_DOCUMENT` bytes.
    """
    document = msgspec.json.encode(desired)
    if len(document) > MAX_DOCUMENT:
        reason = f"the registry would take {len(document)} bytes, the limit is {MAX_DOCUMENT}"
        raise Conflict(f"{reason}; remove retired revisions, or shorten prompts", param="entries", code="registry_full")
    return document


def decode(document: bytes) -> Desired:
    """The document that `encode` wrote. A store of generation 0 holds none: begin with `Desired(contract)`.

    Raises:
        StoreError: it is none, or in a state that no change leads to.
    """
    if len(document) > MAX_DOCUMENT:
        raise _unreadable("registry", f"it has {len(document)} bytes, the limit is {MAX_DOCUMENT}")
    try:
        desired = msgspec.json.decode(document, type=Desired)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable("registry", shown(error)) from None
    if (problem := next(problems(desired), None)) is not None:
        raise _unreadable(problem.place, problem.message)
    return desired


def _unreadable(place: str, reason: str) -> StoreError:
    remedy = "restore the store from a copy, or change the registry with `macaron adapter` only"
    return StoreError(f"the registry in the store cannot be used: {place}: {reason}; {remedy}", param=place)
