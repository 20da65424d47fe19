"""The supervisor's control socket: one JSON object in, one out, for the user who runs the service."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

MAX_LINE = 1_048_576
READ_SECONDS = 5.0

Handler = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


async def serve_control(path: Path, handle: Handler) -> asyncio.Server:
    """Listen on a Unix socket that only its owner can open; its folder must exist and the path be free."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                line = await reader.readline()
            message = msgspec.json.decode(line, type=dict[str, Any])
            reply = msgspec.json.encode(await handle(message)) + b"\n"
            # The asker may be gone by now, and uvloop's closed transport answers a write with a RuntimeError.
            if not writer.is_closing():
                writer.write(reply)
                await writer.drain()
        except (TimeoutError, ValueError, OSError, asyncio.CancelledError):
            # Who asks nothing, or nonsense, or leaves, gets no answer. Cancelled at the end of the service, too:
            # asyncio's streams take a cancelled task for a fault, and log it.
            pass
        finally:
            writer.close()

    mask = os.umask(0o177)
    try:
        return await asyncio.start_unix_server(answer, path, limit=MAX_LINE)
    finally:
        os.umask(mask)


async def ask_control(path: Path, command: str, *, timeout: float = READ_SECONDS, **arguments: Any) -> dict[str, Any]:
    """Send one command and wait up to `timeout` seconds for its end.

    Raises:
        OSError: nobody listens, or no answer comes in time.
        ValueError: what comes is no answer.
    """
    reader, writer = await asyncio.open_unix_connection(path, limit=MAX_LINE)
    try:
        async with asyncio.timeout(timeout):
            writer.write(msgspec.json.encode({"command": command, **arguments}) + b"\n")
            await writer.drain()
            return msgspec.json.decode(await reader.readline(), type=dict[str, Any])
    finally:
        writer.close()
