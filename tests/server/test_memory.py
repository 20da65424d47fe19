"""Memory: what clients send is not kept, whoever they are."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc

import pytest

from macaron.server.keys import Keys
from tests.doubles.engine_double import EngineDouble, by_words
from tests.server.conftest import Standing
from tests.server.raw import ask, chat_body, request

pytestmark = pytest.mark.slow
MEGABYTE = 1_048_576


def grown(double: EngineDouble) -> int:
    """Bytes in use, without what the double remembers."""
    double.requests.clear()
    double.others.clear()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


async def test_two_thousand_callers_without_a_key_leave_nothing_behind(stand: Standing) -> None:
    async def knock(number: int) -> None:
        body = chat_body("x" * 2000) if number % 2 else None
        method, path = ("POST", "/v1/chat/completions") if number % 2 else ("GET", f"/{number}/{'y' * 200}")
        headers = {"authorization": f"Bearer {number}", "x-request-id": f"r{number}", "x-session-id": f"s{number}"}
        answer = await ask(running.port, request(method, path, headers, body))
        assert answer.status in (401, 404)

    async with stand(by_words({}), keys=Keys({})) as running:
        tracemalloc.start()
        try:
            for number in range(200):
                await knock(number)
            before = grown(running.double)
            for first in range(200, 2200, 20):
                await asyncio.gather(*(knock(number) for number in range(first, first + 20)))
            after = grown(running.double)
        finally:
            tracemalloc.stop()
    assert after - before < MEGABYTE / 2


async def test_sixty_long_chats_are_in_the_store_and_nowhere_else(stand: Standing) -> None:
    more = "[store]\nmax_bytes = 2000000\n"
    async with stand(by_words({}, answer="fine"), more=more) as running:
        tracemalloc.start()
        try:
            for number in range(12):
                await running.client.chat([{"role": "user", "content": f"{number} " + "word " * 40_000}])
            before = grown(running.double)
            for number in range(60):
                reply = await running.client.chat([{"role": "user", "content": f"{number} more " + "word " * 40_000}])
                assert reply.status == 200
            after = grown(running.double)
        finally:
            tracemalloc.stop()
    # The store may hold up to two megabytes, and held as much before.
    assert after - before < MEGABYTE


async def test_long_requests_that_are_refused_leave_nothing_behind(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        tracemalloc.start()
        try:
            for _ in range(10):
                await running.client.chat([{"role": "nobody", "content": "x" * 200_000}])
            before = grown(running.double)
            for number in range(60):
                reply = await running.client.chat([{"role": f"r{number}", "content": "x" * 200_000}])
                assert reply.status == 400
            after = grown(running.double)
        finally:
            tracemalloc.stop()
    assert after - before < MEGABYTE / 2
