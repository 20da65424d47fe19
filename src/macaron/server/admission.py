"""How much may run at once: a bounded number of requests, a bounded queue, and a share for every tenant."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from types import TracebackType

from macaron.errors import Busy, Unavailable
from macaron.hcp.schema import ServiceSection

RETRY_AFTER = 2.0


class Admission:
    """Admits requests of one worker. The queue is first in, first out."""

    def __init__(self, limits: ServiceSection) -> None:
        self._limits = limits
        self._share = max(1, int((limits.max_active + limits.max_queue) * limits.tenant_share))
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._held: Counter[str] = Counter()
        self.active = 0
        self.closing = False

    @property
    def queued(self) -> int:
        """Requests that wait."""
        return len(self._waiting)

    def place(self, tenant: str) -> _Place:
        """A context that holds a place for one request.

        Raises, on entering:
            Busy: the tenant holds its whole share.
            Unavailable: the queue is full, the wait was too long, or the service is stopping.
        """
        return _Place(self, tenant)

    def check(self, tenant: str) -> None:
        """Refuse whom `enter` would not even let wait. Takes no place: ask before anything is spent on the request.

        Raises:
            Busy: the tenant holds its whole share.
            Unavailable: the queue is full, or the service is stopping.
        """
        if self.closing:
            raise Unavailable("The service is stopping.", code="stopping", retry_after=RETRY_AFTER)
        if self._held[tenant] >= self._share:
            raise Busy(f"This key holds {self._share} requests already, its share.", retry_after=RETRY_AFTER)
        if self.active >= self._limits.max_active and len(self._waiting) >= self._limits.max_queue:
            raise Unavailable("The service is full.", code="overloaded", retry_after=RETRY_AFTER)

    async def enter(self, tenant: str) -> None:
        """Take a place, waiting for one within bounds."""
        self.check(tenant)
        self._held[tenant] += 1
        try:
            if self.active < self._limits.max_active:
                self.active += 1
            else:
                await self._wait()
        except BaseException:
            self._release_share(tenant)
            raise

    def leave(self, tenant: str) -> None:
        """Give the place to the next in the queue."""
        self._release_share(tenant)
        self._pass_on()

    def _release_share(self, tenant: str) -> None:
        self._held[tenant] -= 1
        if not self._held[tenant]:
            del self._held[tenant]

    async def _wait(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            async with asyncio.timeout(self._limits.queue_timeout):
                await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled():
                self._pass_on()
            elif waiter in self._waiting:
                self._waiting.remove(waiter)
            if isinstance(error, TimeoutError):
                message = f"The service was full for {self._limits.queue_timeout:g} seconds."
                raise Unavailable(message, code="overloaded", retry_after=RETRY_AFTER) from None
            raise

    def _pass_on(self) -> None:
        """Give a place that has become free to the first that still waits."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self.active -= 1


class _Place:
    def __init__(self, admission: Admission, tenant: str) -> None:
        self._admission = admission
        self._tenant = tenant

    async def __aenter__(self) -> None:
        await self._admission.enter(self._tenant)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._admission.leave(self._tenant)
