"""How the other commands reach a running service."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import msgspec
import typer
from yarl import URL

from macaron.cli.paths import default_key_file
from macaron.errors import ConfigError, MacaronError, Unavailable

KEY_VARIABLE = "MACARON_API_KEY"
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0

Url = Annotated[str, typer.Option("--url", help="Address of the service.", envvar="MACARON_URL")]
DEFAULT_URL = "http://127.0.0.1:8200"


def own_key() -> str:
    """The key to send: from the environment, else the first of the key file, else none.

    Raises:
        ConfigError: the key file cannot be read.
    """
    if key := os.environ.get(KEY_VARIABLE):
        return key
    named = os.environ.get("MOL_API_KEY_FILE")
    path = Path(named).expanduser() if named else default_key_file()
    if not path.is_file():
        return ""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The key file {path} cannot be read: {error}; or put the key into {KEY_VARIABLE}.") from None
    fields = next((line.split(":") for line in lines if line and not line.startswith("#")), [""])
    return fields[1] if len(fields) > 1 else fields[0]


@asynccontextmanager
async def client(url: str, *, timeout: float | None = None) -> AsyncGenerator[aiohttp.ClientSession, None]:
    """An HTTP session with the service; `timeout` is for a whole request, in seconds.

    Raises:
        ConfigError: `url` is no address, or the key file cannot be read.
        Unavailable: nobody answers.
    """
    _check_url(url)
    key = own_key()
    headers = {"authorization": f"Bearer {key}"} if key else {}
    limits = aiohttp.ClientTimeout(total=timeout, connect=CONNECT_SECONDS)
    try:
        async with aiohttp.ClientSession(url, headers=headers, timeout=limits) as session:
            yield session
    except aiohttp.ClientConnectorError:
        raise Unavailable(
            f"Nothing answers at {url}; start the service with `macaron serve`, or give its address with --url."
        ) from None
    except TimeoutError:
        raise Unavailable(f"The service at {url} did not answer in time.") from None
    except (aiohttp.ClientError, ValueError) as error:
        raise Unavailable(f"The connection to {url} broke: {error or type(error).__name__}.") from None


def _check_url(url: str) -> None:
    try:
        parts = URL(url)
    except ValueError:
        parts = URL()
    if parts.scheme not in ("http", "https") or not parts.host:
        raise ConfigError(f"--url {url} is no address; give one such as {DEFAULT_URL}.")


async def read_json(response: aiohttp.ClientResponse) -> Any:
    """A response's JSON.

    Raises:
        MacaronError: the service answered with an error; the message is its own.
    """
    body = await response.read()
    try:
        value = msgspec.json.decode(body)
    except msgspec.MsgspecError:
        raise _foreign(response) from None
    if response.status < 400:
        return value
    match value:
        case {"error": {"message": str(message), "code": code}}:
            hint = f" It is read from {KEY_VARIABLE}, else from the key file." if response.status == 401 else ""
            raise MacaronError(message + hint, code=code if isinstance(code, str) else None)
    return value


def expect(response: aiohttp.ClientResponse, value: Any, *names: str) -> dict[str, Any]:
    """`value` as an object that has these fields.

    Raises:
        ConfigError: it is none, so that something else answers there.
    """
    if not isinstance(value, dict) or not all(name in value for name in names):
        raise _foreign(response)
    return value


def _foreign(response: aiohttp.ClientResponse) -> ConfigError:
    return ConfigError(f"What answers at {response.url.origin()} is no Macaron service.")
