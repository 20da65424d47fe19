"""The base a new profile stands on: a GGUF file, a model id for vLLM, or a server that is already running."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from macaron.errors import ConfigError

_MODEL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")


class GgufBase(Struct, frozen=True):
    """A model file for the embedded engine."""

    path: Path


class HubBase(Struct, frozen=True):
    """A model that vLLM serves under this id."""

    model_id: str


class ServerBase(Struct, frozen=True):
    """A model of a running OpenAI-compatible server."""

    origin: str
    model: str


Base = GgufBase | HubBase | ServerBase


def parse_base(text: str, model: str = "") -> Base:
    """Read the `--base` of a new profile; `model` names the model of a server.

    Raises:
        ConfigError: it is none of `FILE.gguf`, `hf:ID` and `http://…`, or the model is missing or not wanted.
    """
    if text.startswith(("http://", "https://")):
        return ServerBase(_origin(text), _wanted(model))
    if model:
        raise ConfigError(f"--model is for a server's address, not for {text!r}; leave it out", param="model")
    if text.startswith("hf:"):
        if not _MODEL_ID.fullmatch(text[3:]):
            raise ConfigError(f"{text!r} is not hf:OWNER/NAME", param="base")
        return HubBase(text[3:])
    path = Path(text).expanduser()
    if not path.is_file():
        reason = f"there is no file {text!r}; a base is FILE.gguf, hf:OWNER/NAME or http://HOST:PORT"
        raise ConfigError(reason, param="base")
    return GgufBase(path.resolve())


def _origin(text: str) -> str:
    parts = urlsplit(text)
    if parts.path.rstrip("/") not in ("", "/v1") or parts.query or parts.fragment or "@" in parts.netloc:
        raise ConfigError(
            "--base takes a server's origin, such as http://127.0.0.1:8000; a key goes into an environment variable",
            param="base",
        )
    return f"{parts.scheme}://{parts.netloc}"


def _wanted(model: str) -> str:
    if not model:
        raise ConfigError("--base with a server's address needs --model, the name to ask it for", param="model")
    return model
