"""Responses that are made whether or not anybody listens. Their events are kept, so that any worker can tell them."""

from __future__ import annotations

import asyncio

from macaron.errors import MacaronError, Unavailable
from macaron.mol.events import Answered, Chosen, Done
from macaron.server.admission import RETRY_AFTER
from macaron.server.exchange import stopping
from macaron.server.responses.run import Run
from macaron.server.service import Service
from macaron.store.base import Append, Entry, Store
from macaron.wire.responses_answer import Body


async def start(service: Service, run: Run, tenant: str, *, streamed: bool) -> Body:
    """Begin a response in the background; returns its object as it is now.

    Raises:
        Unavailable: too much runs in the background.
        StoreFull: there is no room for it.
    """
    if service.background.full:
        raise Unavailable("Too much runs in the background.", code="overloaded", retry_after=RETRY_AFTER)
    body = await run.keep("queued")
    making = _Making(service, run, tenant, streamed)
    task = service.background.start(making.make(), f"response {run.id}")
    run.vouch(task.cancel)
    return body


class _Making:
    def __init__(self, service: Service, run: Run, tenant: str, streamed: bool) -> None:
        self._service = service
        self._run = run
        self._tenant = tenant
        self._kept = _Kept(service.store, tenant, run.id, streamed)

    async def make(self) -> None:
        """Make the response to its end, whatever that is."""
        run = self._run
        try:
            await self._kept.add(run.events.queued())
            async with self._service.admission.place(self._tenant):
                await self._answer()
        except asyncio.CancelledError:
            # Somebody has ended the response, and then this end is not taken; or the service stops.
            await self._end(run.events.failed(stopping()))
        except MacaronError as error:
            await self._end(run.events.failed(error))
        except Exception:
            await self._end(run.events.failed(MacaronError("The service failed; its log says more.", code="internal")))
            raise

    async def _answer(self) -> None:
        run = self._run
        if not await run.proceed("in_progress", ()):
            return
        await self._kept.add(run.events.begin())
        body: Body = {}
        async with run.turn() as events:
            async for event in events:
                match event:
                    case list():
                        await self._kept.add(run.events.chunks(event))
                    case Chosen():
                        self._service.metrics.turn(event.specialist.label, event.reason)
                    case Answered():
                        closing, body = run.finish(event)
                        await self._kept.add(closing)
                    case Done():
                        await self._end(body)

    async def _end(self, body: Body) -> None:
        last = await self._kept.rest()
        await self._run.end_as(body, [*last, *self._kept.wanted(self._run.events.terminal(body))])


class _Kept:
    """Events on their way into the store. While some are being written, others gather."""

    def __init__(self, store: Store, scope: str, response_id: str, wanted: bool) -> None:
        self._store = store
        self._scope = scope
        self._id = response_id
        self._wanted = wanted
        self._waiting: list[bytes] = []
        self._writing: asyncio.Task[None] | None = None

    def wanted(self, events: list[bytes]) -> list[bytes]:
        """The events that are to be kept."""
        return events if self._wanted else []

    async def add(self, events: list[bytes]) -> None:
        """Have events written soon. What a slow disk has not taken holds the answer up, so that little is waiting."""
        self._waiting += self.wanted(events)
        if self._writing is not None and not self._writing.done() and len(self._waiting) < 512:
            return
        await self._written()
        if self._waiting:
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def rest(self) -> list[bytes]:
        """The events that are not written yet, once those that are being written are."""
        await self._written()
        rest, self._waiting = self._waiting, []
        return rest

    async def _written(self) -> None:
        """Wait for what is being written; who is cancelled meanwhile does not undo it."""
        if self._writing is not None:
            await asyncio.wait((self._writing,))
            self._writing.result()

    async def _write(self) -> None:
        events, self._waiting = self._waiting, []
        await self._store.append(self._scope, Append(self._id, tuple(map(Entry, events))))
