"""The engine double for tests that block: in a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.doubles.engine_double import EngineDouble, Script


@contextmanager
def engine_in_thread(script: Script) -> Iterator[EngineDouble]:
    """The double until the block ends."""
    loop, double = asyncio.new_event_loop(), EngineDouble(script)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(double.__aenter__(), loop).result(10)
        yield double
    finally:
        asyncio.run_coroutine_threadsafe(double.__aexit__(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
