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

from macaron.cli.paths import default_key_file
from macaron.errors import ConfigError, MacaronError, Unavailable

KEY_VARIABLE = "MACARON_API_KEY"

Url = Annotated[str, typer.Option("--url", help="Address of the service.", envvar="MACARON_URL")]
DEFAULT_URL = "http://127.0.0.1:8200"


def own_key() -> str:
    """The key to send: from the environment, else the first of the key file, else none."""
    if key := os.environ.get(KEY_VARIABLE):
        return key
    named = os.environ.get("MOL_API_KEY_FILE")
    path = Path(named).expanduser() if named else default_key_file()
    if not path.is_file():
        return ""
    lines = [line for line in path.read_text().split("\n") if line.strip() and not line.startswith("#")]
    fields = lines[0].strip().split(":") if lines else [""]
    return fields[1] if len(fields) > 1 else fields[0]


@asynccontextmanager
async def client(url: str) -> AsyncGenerator[aiohttp.ClientSession, None]:
    """An HTTP session with the service.

    Raises:
        Unavailable: nobody answers.
    """
    key = own_key()
    headers = {"authorization": f"Bearer {key}"} if key else {}
    timeout = aiohttp.ClientTimeout(total=None, connect=5)
    try:
        async with aiohttp.ClientSession(url, headers=headers, timeout=timeout) as session:
            yield session
    except aiohttp.ClientConnectorError:
        raise Unavailable(f"Nothing answers at {url}; start it with `macaron serve`.") from None
    except (aiohttp.ClientError, ValueError) as error:
        raise Unavailable(f"The connection to {url} failed: {error}.") from None


async def read_json(response: aiohttp.ClientResponse) -> Any:
    """A response's JSON.

    Raises:
        MacaronError: the service answered with an error; the message is its own.
    """
    body = await response.read()
    try:
        value = msgspec.json.decode(body)
    except msgspec.MsgspecError:
        raise ConfigError(f"What answers at {response.url} is no Macaron service.") from None
    if response.status >= 400 and isinstance(value, dict) and "error" in value:
        raise MacaronError(str(value["error"].get("message")))
    return value
