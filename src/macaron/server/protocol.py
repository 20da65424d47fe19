"""The HTTP/1.1 protocol of the server: uvicorn's, with bounds on how slowly and how much a client may send first."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADER_BYTES = 65_536
DEFAULT_HEADER_TIMEOUT = 10.0


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections whose request line and headers do not arrive whole, in time and within size.

    uvicorn bounds neither: a client that sends one byte a minute, or headers without end, would hold it for ever.
    """

    header_timeout = DEFAULT_HEADER_TIMEOUT

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._header_bytes = 0
        self._header_timer: asyncio.TimerHandle | None = self.loop.call_later(self.header_timeout, self._late)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self._header_timer is None and self._between_requests():
            self._header_timer = self.loop.call_later(self.header_timeout, self._late)
        if self._header_timer is not None:
            self._header_bytes += len(data)
        super().data_received(data)
        if self._header_timer is not None and self._header_bytes > MAX_HEADER_BYTES:
            self._refuse(b"431 Request Header Fields Too Large")

    def on_headers_complete(self) -> None:
        """See `httptools`."""
        self._stop_timer()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._stop_timer()
        super().connection_lost(exc)

    def _between_requests(self) -> bool:
        cycle: Any = self.cycle
        return cycle is None or cycle.response_complete

    def _stop_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None
        self._header_bytes = 0

    def _late(self) -> None:
        self._header_timer = None
        self._refuse(b"408 Request Timeout")

    def _refuse(self, status: bytes) -> None:
        self._stop_timer()
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 " + status + b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            self.transport.close()


def protocol_class(header_timeout: float) -> type[BoundedProtocol]:
    """The protocol with this many seconds for a request's headers."""
    return type("BoundedProtocol", (BoundedProtocol,), {"header_timeout": header_timeout})
