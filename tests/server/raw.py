"""Requests byte by byte, for what no HTTP client would send."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """A response as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> dict[str, Any]:
        """The error in it."""
        error: dict[str, Any] = json.loads(self.body)["error"]
        return error


class Wire:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        """Write some bytes."""
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, within: float = 5.0) -> Answer:
        """Read one response of known length, or a chunked one."""
        async with asyncio.timeout(within):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            pairs = (line.partition(": ") for line in head[1:] if line)
            headers = {name.lower(): value for name, _, value in pairs}
            if "content-length" in headers:
                body = await self.reader.readexactly(int(headers["content-length"]))
            else:
                body = await self._chunks()
        return Answer(int(head[0].split(" ")[1]), headers, body)

    async def ended(self, within: float = 5.0) -> bytes:
        """What comes until the service closes the connection."""
        async with asyncio.timeout(within):
            try:
                return await self.reader.read()
            except ConnectionResetError:
                return b""

    async def _chunks(self) -> bytes:
        body = b""
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            body += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readexactly(2)
        return body


@contextlib.asynccontextmanager
async def wire(port: int) -> AsyncGenerator[Wire, None]:
    """A connection to the service."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def request(
    method: str, path: str, headers: Mapping[str, str | None] | None = None, body: bytes | None = None
) -> bytes:
    """The bytes of a request; a header given as `None` is left out."""
    given = {"host": "127.0.0.1", **(headers or {})}
    if body is not None:
        given = {"content-type": "application/json", "content-length": str(len(body)), **given}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value is not None)]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")


def chat_body(content: str = "hi", **fields: Any) -> bytes:
    """A Chat request."""
    message = {"role": "user", "content": content}
    return json.dumps({"model": "test-model", "messages": [message], **fields}).encode()


async def ask(port: int, data: bytes) -> Answer:
    """One request on a connection of its own."""
    async with wire(port) as connection:
        await connection.send(data)
        return await connection.answer()
