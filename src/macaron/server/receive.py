"""Reading requests: bounded in size and time, and noticing when the client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

from starlette.types import Receive, Scope

from macaron.errors import TimedOut, TooLarge

LENGTH_DIGITS = 18


class ClientLeft(Exception):
    """The client closed its connection before its request was complete; nobody is there to be told."""


def header_map(scope: Scope) -> dict[bytes, bytes]:
    """The request's headers, names in lower case; of a repeated one, the last. `Front` has gathered them."""
    headers: dict[bytes, bytes] = scope["state"]["headers"]
    return headers


async def read_body(scope: Scope, receive: Receive, limit: int, timeout: float) -> bytes:
    """The whole request body. One that is here already, as most are, needs no clock.

    Raises:
        TooLarge: before more than `limit` bytes are kept.
        TimedOut: the client took longer than `timeout` seconds.
        ClientLeft: it did.
    """
    declared = header_map(scope).get(b"content-length", b"")
    if declared.isdigit() and (len(declared) > LENGTH_DIGITS or int(declared) > limit):
        raise _too_large(limit)
    departure: Departure | None = scope["state"].get("departure")
    if departure is not None and departure.arrived:
        return await _gathered(receive, limit)
    try:
        async with asyncio.timeout(timeout):
            return await _gathered(receive, limit)
    except TimeoutError:
        raise TimedOut(f"The request body did not arrive within {timeout:g} seconds.") from None


async def _gathered(receive: Receive, limit: int) -> bytes:
    """See `read_body`."""
    # One buffer, since a list of parts of a few bytes each would be many times as large as the body.
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        part: bytes = message.get("body", b"")
        if len(body) + len(part) > limit:
            raise _too_large(limit)
        if not message.get("more_body"):
            return bytes(body) + part if body else part
        body += part


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"The body is larger than the {limit} bytes this service accepts.")


class Departure:
    """Tells at most one listener that a request's client has left. The protocol puts one into every request's state.

    Attributes:
        arrived: the whole request is here.
        happened: the client has left.
    """

    __slots__ = ("_listener", "arrived", "happened")

    def __init__(self, *, arrived: bool = False) -> None:
        self.arrived = arrived
        self.happened = False
        self._listener: Callable[[], None] | None = None

    def listen(self, listener: Callable[[], None] | None) -> None:
        """Call `listener` when the client leaves, at once where it has left already; None listens no more."""
        self._listener = listener
        if self.happened and listener is not None:
            listener()

    def happen(self) -> None:
        """The client has left."""
        self.happened = True
        if self._listener is not None:
            self._listener()


class CancelOnDisconnect:
    """Cancels the surrounding block when the client leaves; the block then ends quietly.

    `left` says afterwards whether that happened. Under another server than ours, which has no `Departure`, a task waits
    for the disconnect message.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._departure: Departure | None = scope["state"].get("departure")
        self._receive = receive
        self._watch: asyncio.Task[None] | None = None
        self.left = False

    def __enter__(self) -> CancelOnDisconnect:
        task = asyncio.current_task()
        assert task is not None
        self._main = task
        if self._departure is not None:
            self._departure.listen(self._leave)
        else:
            self._watch = asyncio.get_running_loop().create_task(self._until_left())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._departure is not None:
            self._departure.listen(None)
        if self._watch is not None:
            self._watch.cancel()
        if self.left and isinstance(error, asyncio.CancelledError):
            return self._main.uncancel() == 0
        return False

    def _leave(self) -> None:
        self.left = True
        self._main.cancel()

    async def _until_left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._leave()
