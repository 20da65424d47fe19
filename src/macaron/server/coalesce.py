"""A transport that writes once in a turn of the event loop what was written to it in pieces."""

from __future__ import annotations

import asyncio
from typing import Any


class CoalescingTransport(asyncio.Transport):
    """Wraps a transport. Nothing waits longer than for the callbacks that are due already.

    A response's head and body, or the events of a stream that come together, then cost one system call; and clients on
    the same machine are woken by all connections' writes together instead of between them.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """See `asyncio.WriteTransport`."""
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(bytes(data))

    def write_now(self, data: bytes) -> None:
        """Write a piece that comes alone and has nothing to wait for; it never overtakes what was written before."""
        if self._pieces:
            self._pieces.append(data)
        else:
            self._transport.write(data)

    def close(self) -> None:
        """See `asyncio.BaseTransport`: what was written is sent first."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """See `asyncio.WriteTransport`."""
        self._pieces = []
        self._transport.abort()

    def is_closing(self) -> bool:
        """See `asyncio.BaseTransport`."""
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """See `asyncio.BaseTransport`."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._transport.resume_reading()

    def get_write_buffer_size(self) -> int:
        """See `asyncio.WriteTransport`."""
        return self._transport.get_write_buffer_size() + sum(map(len, self._pieces))

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """See `asyncio.BaseTransport`."""
        self._transport.set_protocol(protocol)

    def _flush(self) -> None:
        pieces, self._pieces = self._pieces, []
        if pieces and not self._transport.is_closing():
            self._transport.write(pieces[0] if len(pieces) == 1 else b"".join(pieces))
