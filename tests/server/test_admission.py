"""Admission: how much may run, wait, and belong to one tenant."""

from __future__ import annotations

import asyncio
import contextlib
import io
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macaron.errors import Busy, Unavailable
from macaron.hcp.schema import ServiceSection
from macaron.server.admission import Admission
from macaron.server.keys import Caller, Keys
from tests.doubles.engine_double import Reply, Script, Seen
from tests.server.conftest import Standing, until
from tests.server.raw import chat_body, request, wire

CHAT = "/v1/chat/completions"
HI = [{"role": "user", "content": "hi"}]


def admission(active: int = 1, queue: int = 4, share: float = 1.0, wait: float = 5.0) -> Admission:
    return Admission(ServiceSection(max_active=active, max_queue=queue, tenant_share=share, queue_timeout=wait))


async def queued(door: Admission, count: int) -> None:
    """Let the tasks that want in get as far as the queue."""
    await until(lambda: door.queued == count)


async def holding(door: Admission, tenant: str, order: list[str], release: asyncio.Event) -> None:
    async with door.place(tenant):
        order.append(tenant)
        await release.wait()


async def test_the_queue_is_first_in_first_out() -> None:
    door, order, release = admission(), list[str](), asyncio.Event()
    tasks = []
    for number, tenant in enumerate("abcd"):
        tasks.append(asyncio.create_task(holding(door, tenant, order, release)))
        await queued(door, number)
    assert (door.active, order) == (1, ["a"])
    release.set()
    await asyncio.gather(*tasks)
    assert order == list("abcd")
    assert (door.active, door.queued) == (0, 0)


async def test_no_more_run_at_once_than_may() -> None:
    door, running, most = admission(active=3, queue=100), 0, 0

    async def work() -> None:
        nonlocal running, most
        async with door.place("a"):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1

    await asyncio.gather(*(work() for _ in range(40)))
    assert most == 3
    assert (door.active, door.queued) == (0, 0)


async def test_a_full_queue_is_503_with_a_time_to_come_back() -> None:
    door, release = admission(queue=0), asyncio.Event()
    holder = asyncio.create_task(holding(door, "a", [], release))
    await until(lambda: door.active == 1)
    with pytest.raises(Unavailable) as caught:
        await door.enter("b")
    assert (caught.value.code, caught.value.retry_after) == ("overloaded", 2.0)
    release.set()
    await holder


async def test_a_tenant_over_its_share_is_429_and_others_are_let_in() -> None:
    door, release = admission(active=4, queue=0, share=0.5), asyncio.Event()
    tasks = [asyncio.create_task(holding(door, "greedy", [], release)) for _ in range(2)]
    await until(lambda: door.active == 2)
    with pytest.raises(Busy) as caught:
        await door.enter("greedy")
    assert (caught.value.status, caught.value.retry_after) == (429, 2.0)
    tasks.append(asyncio.create_task(holding(door, "modest", [], release)))
    await until(lambda: door.active == 3)
    release.set()
    await asyncio.gather(*tasks)
    async with door.place("greedy"):
        assert door.active == 1


async def test_waiting_ends_after_its_time_and_takes_nothing_along() -> None:
    door, release = admission(wait=0.05), asyncio.Event()
    holder = asyncio.create_task(holding(door, "a", [], release))
    await until(lambda: door.active == 1)
    with pytest.raises(Unavailable) as caught:
        await door.enter("b")
    assert caught.value.status == 503
    assert door.queued == 0
    release.set()
    await holder
    assert door.active == 0
    async with door.place("b"):
        assert door.active == 1


async def test_a_cancelled_waiter_leaves_the_queue() -> None:
    door, order, release = admission(), list[str](), asyncio.Event()
    holder = asyncio.create_task(holding(door, "a", order, release))
    await until(lambda: door.active == 1)
    impatient = asyncio.create_task(holding(door, "b", order, release))
    await queued(door, 1)
    patient = asyncio.create_task(holding(door, "c", order, release))
    await queued(door, 2)
    impatient.cancel()
    await queued(door, 1)
    release.set()
    await asyncio.gather(holder, patient)
    assert order == ["a", "c"]
    assert door.active == 0


async def test_a_waiter_cancelled_as_it_is_called_gives_its_place_on() -> None:
    door, order, release = admission(), list[str](), asyncio.Event()
    await door.enter("a")
    called = asyncio.create_task(holding(door, "b", order, release))
    await queued(door, 1)
    behind = asyncio.create_task(holding(door, "c", order, release))
    await queued(door, 2)
    door.leave("a")
    called.cancel()
    await until(lambda: order == ["c"])
    release.set()
    await behind
    assert (door.active, door.queued) == (0, 0)
    with pytest.raises(asyncio.CancelledError):
        await called


async def test_a_stopping_service_lets_nobody_in() -> None:
    door = admission()
    door.closing = True
    with pytest.raises(Unavailable) as caught:
        await door.enter("a")
    assert (caught.value.code, caught.value.retry_after) == ("stopping", 2.0)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 6), st.none() | st.integers(0, 8)), max_size=25))
def test_whoever_gives_up_whenever_no_place_is_lost(callers: list[tuple[str, int, int | None]]) -> None:
    async def call(door: Admission, tenant: str, work: int) -> None:
        with contextlib.suppress(Busy, Unavailable):
            async with door.place(tenant):
                assert door.active <= 2
                for _ in range(work):
                    await asyncio.sleep(0)

    async def run() -> None:
        door = admission(active=2, queue=5, share=0.7)
        tasks = [(asyncio.create_task(call(door, tenant, work)), patience) for tenant, work, patience in callers]
        for tick in range(9):
            for task, patience in tasks:
                if patience == tick:
                    task.cancel()
            await asyncio.sleep(0)
        outcomes = await asyncio.gather(*(task for task, _ in tasks), return_exceptions=True)
        assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        assert (door.active, door.queued) == (0, 0)
        for tenant in "abc":
            async with door.place(tenant):
                assert door.active == 1

    asyncio.run(run())


# --- over HTTP

TENANTS = {name: Caller(name, frozenset({"chat"})) for name in ("a", "b")}


def gated(gate: asyncio.Event) -> Script:
    """Answers that wait for the gate; routes do not."""

    def script(seen: Seen) -> Reply:
        return Reply("L1") if seen.is_route else Reply("ok", gate=gate)

    return script


def two_keys() -> Keys:
    """The keys `key-of-a` and `key-of-b`."""
    return Keys({sha256(f"key-of-{name}".encode()).digest(): caller for name, caller in TENANTS.items()})


async def test_one_tenants_flood_is_429_while_the_other_is_served(stand: Standing) -> None:
    gate, limits = asyncio.Event(), {"max_active": 4, "max_queue": 0, "tenant_share": 0.5}
    async with stand(gated(gate), keys=two_keys(), service=limits) as running:
        first, second = ({"authorization": f"Bearer key-of-{name}"} for name in "ab")
        # Two questions: the same one asked again is a retry, which may need no route hop.
        asked = ([{"role": "user", "content": text}] for text in ("hi", "hello"))
        held = [asyncio.create_task(running.client.chat(question, headers=first)) for question in asked]
        await running.double.arrived(4)
        refused = await running.client.chat(HI, headers=first)
        other = asyncio.create_task(running.client.chat(HI, headers=second))
        await running.double.arrived(6)
        gate.set()
        statuses = [reply.status for reply in await asyncio.gather(*held, other)]
    assert statuses == [200, 200, 200]
    assert (refused.status, refused.headers["retry-after"]) == (429, "2")
    assert refused.body["error"]["type"] == "rate_limit_error"


@pytest.mark.parametrize(("tenant", "code"), [("a", 429), ("b", 503)])
async def test_who_would_be_refused_is_refused_before_the_body_is_read(stand: Standing, tenant: str, code: int) -> None:
    gate, limits = asyncio.Event(), {"max_active": 1, "max_queue": 0, "tenant_share": 1.0}
    async with stand(gated(gate), keys=two_keys(), service=limits) as running:
        held = asyncio.create_task(running.client.chat(HI, headers={"authorization": "Bearer key-of-a"}))
        await running.double.arrived(2)
        headers = {"content-type": "application/json", "authorization": f"Bearer key-of-{tenant}"}
        async with wire(running.port) as connection:
            await connection.send(request("POST", CHAT, {**headers, "content-length": "1000000"}))
            assert (await connection.answer()).status == code
        async with running.client.session.post(
            running.url + CHAT, data=io.BytesIO(b"[" * 9_000_000), headers=headers
        ) as response:
            assert response.status == code
        gate.set()
        assert (await held).status == 200


async def test_an_unknown_key_is_401_however_full_the_service_is(stand: Standing) -> None:
    async with stand(lambda seen: "L1", keys=two_keys()) as running:
        running.service.admission.closing = True
        assert (await running.client.chat(HI, headers={"authorization": "Bearer guess"})).status == 401


async def test_a_full_service_is_503_streamed_or_not_and_others_pages_answer(stand: Standing) -> None:
    gate, limits = asyncio.Event(), {"max_active": 1, "max_queue": 0, "tenant_share": 1.0}
    async with stand(gated(gate), keys=two_keys(), service=limits) as running:
        first, second = ({"authorization": f"Bearer key-of-{name}"} for name in "ab")
        held = asyncio.create_task(running.client.chat(HI, headers=first))
        await running.double.arrived(2)
        for stream in (False, True):
            body = {"model": "test-model", "messages": HI, "stream": stream}
            refused = await running.client.post(body, headers=second)
            assert (refused.status, refused.headers["retry-after"]) == (503, "2")
            assert refused.body["error"]["code"] == "overloaded"
        assert (await running.client.get("/health")).status == 200
        assert (await running.client.get("/ready")).status == 200
        gate.set()
        assert (await held).status == 200


async def test_a_client_that_leaves_the_queue_frees_its_place(stand: Standing) -> None:
    gate, limits = asyncio.Event(), {"max_active": 1, "max_queue": 1, "tenant_share": 1.0}
    async with stand(gated(gate), service=limits) as running:
        held = asyncio.create_task(running.client.chat(HI))
        await running.double.arrived(2)
        door = running.service.admission
        async with wire(running.port) as connection:
            await connection.send(request("POST", CHAT, body=chat_body()))
            await queued(door, 1)
        await queued(door, 0)
        patient = asyncio.create_task(running.client.chat(HI))
        await queued(door, 1)
        gate.set()
        assert [reply.status for reply in await asyncio.gather(held, patient)] == [200, 200]


async def test_waiting_too_long_in_the_queue_is_503(stand: Standing) -> None:
    gate = asyncio.Event()
    limits = {"max_active": 1, "max_queue": 1, "tenant_share": 1.0, "queue_timeout": 0.1}
    async with stand(gated(gate), service=limits) as running:
        held = asyncio.create_task(running.client.chat(HI))
        await running.double.arrived(2)
        assert (await running.client.chat(HI)).status == 503
        gate.set()
        assert (await held).status == 200


async def test_a_refused_request_costs_the_engine_nothing(stand: Standing) -> None:
    async with stand(lambda seen: "L1") as running:
        running.service.admission.closing = True
        refused = await running.client.chat(HI)
        assert (refused.status, refused.body["error"]["code"]) == (503, "stopping")
        assert running.double.requests == []
        assert (await running.client.get("/ready")).status == 503
