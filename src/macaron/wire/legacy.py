"""Requests of the APIs beside chat, which go to the engine as they are once their fields are known. Pure.

They are about raw text and about vectors: no turn, no specialist, no session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from macaron.errors import BadRequest
from macaron.wire.chat_options import vendor_options
from macaron.wire.fields import (
    array,
    boolean,
    decode_object,
    integer,
    mapping,
    number,
    one_of,
    refuse,
    required,
    string,
)

MAX_TEXTS = 2048
MAX_STOPS = 16

Check = Callable[[Any, str], Any]


class LegacyRequest(Struct, frozen=True):
    """A request as it is passed on: `fields` are those for the engine, `options` those that only some engines read."""

    model: str
    fields: dict[str, Any]
    options: dict[str, Any]


def completion_request(body: bytes) -> LegacyRequest:
    """Read a `POST /v1/completions` body.

    Raises:
        BadRequest: with the field at fault.
    """
    return _request(body, "prompt", _completion_checks())


def embedding_request(body: bytes) -> LegacyRequest:
    """Read a `POST /v1/embeddings` body.

    Raises:
        BadRequest: with the field at fault.
    """
    return _request(body, "input", _embedding_checks())


def _request(body: bytes, text: str, checks: Mapping[str, Check]) -> LegacyRequest:
    fields = decode_object(body)
    model = string(required(fields, "model"), "model")
    kept = {text: _texts(required(fields, text), text)}
    options = vendor_options(fields)
    for name, value in fields.items():
        if value is None:
            continue
        if name not in checks:
            raise BadRequest(
                f"`{name}` is not a field this service knows or passes on.", param=name, code="unknown_parameter"
            )
        kept[name] = checks[name](value, name)
    return LegacyRequest(model, kept, options)


def _completion_checks() -> dict[str, Check]:
    return {
        "suffix": string,
        "max_tokens": lambda value, path: integer(value, path, 0, 2**31),
        "temperature": lambda value, path: number(value, path, 0, 2),
        "top_p": lambda value, path: number(value, path, 0, 1),
        "n": lambda value, path: integer(value, path, 1, 16),
        "best_of": lambda value, path: integer(value, path, 1, 16),
        "stop": _stop,
        "seed": lambda value, path: integer(value, path, -(2**63), 2**63 - 1),
        "presence_penalty": lambda value, path: number(value, path, -2, 2),
        "frequency_penalty": lambda value, path: number(value, path, -2, 2),
        "logit_bias": mapping,
        "logprobs": lambda value, path: integer(value, path, 0, 20),
        "echo": boolean,
        "user": string,
        "stream": _whole,
    }


def _embedding_checks() -> dict[str, Check]:
    return {
        "encoding_format": lambda value, path: one_of(value, path, ("float", "base64")),
        "dimensions": lambda value, path: integer(value, path, 1, 2**20),
        "user": string,
    }


def _texts(value: Any, path: str) -> Any:
    """A text or several. Lists of token numbers are refused, since control tokens may be among them."""
    if isinstance(value, str):
        return value
    if not 1 <= len(array(value, path)) <= MAX_TEXTS:
        raise BadRequest(f"`{path}` must hold 1 to {MAX_TEXTS} texts, not {len(value)}.", param=path)
    return [string(item, f"{path}[{index}]") for index, item in enumerate(value)]


def _stop(value: Any, path: str) -> Any:
    if isinstance(value, str):
        return value
    if len(array(value, path)) > MAX_STOPS:
        refuse(path, value, f"it may hold at most {MAX_STOPS} strings")
    return [string(item, f"{path}[{index}]") for index, item in enumerate(value)]


def _whole(value: Any, path: str) -> bool:
    if boolean(value, path):
        refuse(path, value, "completions are answered whole here; chat is streamed", "unsupported_value")
    return False
