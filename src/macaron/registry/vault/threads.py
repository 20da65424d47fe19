"""Blocking work beside the event loop that is never left running behind a cancelled caller's back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def to_end(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a call in a thread; cancelled, wait for it to end first, so that what it uses can then be taken away."""
    running = asyncio.ensure_future(asyncio.to_thread(call, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        if not running.cancelled():
            # The caller learns of its cancellation; the call's own error is only marked as seen.
            running.exception()
        raise
