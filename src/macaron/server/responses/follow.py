"""The events of a response in the background, told from the store: by any worker, from any place, repeatedly."""

from __future__ import annotations

import asyncio
import time

from macaron.server.responses.documents import find
from macaron.server.stream import EventStream
from macaron.store.base import Store
from macaron.wire.sse import DONE

LOOK_SECONDS = (0.02, 0.25)
"""After nothing new, the store is looked at again; the longer nothing comes, the later."""

PAGE = 256


async def follow(store: Store, tenant: str, response_id: str, after: int, stream: EventStream) -> None:
    """Tell the events after the sequence number `after`, as they come, to the last.

    A response that was cancelled or deleted has no last event: the stream ends where it stopped.
    """
    # The client knows at once that there is a stream, however long its next event may take.
    await stream.write(b"")
    pause = LOOK_SECONDS[0]
    while True:
        # In this order: what was written before the end is seen after it.
        record = await store.record(tenant, response_id)
        over = record is None or not record.open
        while page := await store.entries(tenant, response_id, after=after, limit=PAGE):
            await stream.write(b"".join(entry.body for entry in page))
            after, pause = page[-1].position, LOOK_SECONDS[0]
        if over:
            await stream.end(DONE)
            return
        if record is not None and record.lease < time.time():
            await find(store, tenant, response_id, time.time())
            continue
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, LOOK_SECONDS[1])
