"""The supervisor's control socket: one JSON object in, one out, for the user who runs the service."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

MAX_LINE = 65_536
READ_SECONDS = 5.0

Handler = Callable[[str], Awaitable[dict[str, Any]]]


async def serve_control(path: Path, handle: Handler) -> asyncio.Server:
    """Listen on a Unix socket that only its owner can open; its folder must exist and the path be free."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                line = await reader.readline()
            command = msgspec.json.decode(line, type=dict[str, str]).get("command", "")
            reply = msgspec.json.encode(await handle(command)) + b"\n"
            # The asker may be gone by now, and uvloop's closed transport answers a write with a RuntimeError.
            if not writer.is_closing():
                writer.write(reply)
                await writer.drain()
        except (TimeoutError, ValueError, OSError):
            # Who asks nothing, or nonsense, or leaves, gets no answer; nobody else is concerned.
            pass
        finally:
            writer.close()

    mask = os.umask(0o177)
    try:
        return await asyncio.start_unix_server(answer, path, limit=MAX_LINE)
    finally:
        os.umask(mask)


async def ask_control(path: Path, command: str) -> dict[str, Any]:
    """Send one command.

    Raises:
        OSError: nobody listens, or no answer comes in time.
        ValueError: what comes is no answer.
    """
    reader, writer = await asyncio.open_unix_connection(path, limit=MAX_LINE)
    try:
        async with asyncio.timeout(READ_SECONDS):
            writer.write(msgspec.json.encode({"command": command}) + b"\n")
            await writer.drain()
            return msgspec.json.decode(await reader.readline(), type=dict[str, Any])
    finally:
        writer.close()
