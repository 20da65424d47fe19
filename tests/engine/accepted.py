"""The last moments of a test's server."""

from __future__ import annotations

import asyncio

ROUNDS = 5


async def all_connected_begin() -> None:
    """Wait, before a listener is closed, until the handler of every connection that clients made has begun.

    On a busy machine a client may give up before the server has its side of the connection. asyncio accepts in one
    round of the loop, makes the transport in the next, and in the third begins the handler. A listener that is closed
    between the first two leaves the socket to nobody (Python 3.11: the transport's constructor fails).
    """
    for _ in range(ROUNDS):
        await asyncio.sleep(0)
