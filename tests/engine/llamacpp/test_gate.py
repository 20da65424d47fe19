"""The fair gate: who is next, what joins, what gives way, and that nobody waits for ever."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.conversation import HopKind
from macaron.engine.base import Preempted
from macaron.engine.llamacpp.gate import ALLOWANCE, Gate, Lane, Limits, Schedule, Ticket
from macaron.errors import Busy, EngineError
from tests.engine.llamacpp.hops import until


def schedule(slots: int = 2, requests: int = 4, tokens: int = 1000) -> Schedule:
    return Schedule(lambda lane: 1 if lane.routing else slots, Limits(requests, tokens))


def begin(plan: Schedule, kind: HopKind, adapter: str | None) -> Ticket:
    """Enter a ticket that can begin at once."""
    ticket = plan.enter(kind, adapter)
    assert ticket in plan.admit()
    return ticket


def end(plan: Schedule, ticket: Ticket) -> list[Ticket]:
    plan.leave(ticket)
    return plan.admit()


def test_idle_gate_lets_the_first_in() -> None:
    begin(schedule(), "answer", "a")


def test_same_adapter_joins_a_running_batch() -> None:
    plan = schedule()
    begin(plan, "answer", "a")
    begin(plan, "answer", "a")


def test_no_more_join_than_there_are_slots() -> None:
    plan = schedule(slots=2)
    first = begin(plan, "answer", "a")
    begin(plan, "answer", "a")
    third = plan.enter("answer", "a")
    assert plan.admit() == []
    assert end(plan, first) == [third]


def test_route_has_a_slot_of_its_own() -> None:
    plan = schedule(slots=1)
    begin(plan, "answer", "a")
    begin(plan, "route", "a")
    plan.enter("route", "a")
    assert plan.admit() == []


def test_other_adapter_waits_for_the_batch_to_end() -> None:
    plan = schedule()
    first = begin(plan, "answer", "a")
    second = begin(plan, "answer", "a")
    other = plan.enter("answer", "b")
    assert plan.admit() == []
    assert end(plan, first) == []
    assert end(plan, second) == [other]


def test_batch_takes_no_more_than_its_requests_while_others_wait() -> None:
    plan = schedule(slots=8, requests=3)
    first = begin(plan, "answer", "a")
    plan.enter("answer", "b")
    begin(plan, "answer", "a")
    begin(plan, "answer", "a")
    plan.enter("answer", "a")
    assert plan.admit() == []
    assert end(plan, first) == []


def test_batch_that_has_spent_its_tokens_takes_no_more_while_others_wait() -> None:
    plan = schedule(tokens=100)
    begin(plan, "answer", "a")
    plan.enter("answer", "b")
    plan.spend(100)
    plan.enter("answer", "a")
    assert plan.admit() == []


def test_batch_is_unbounded_while_nobody_else_waits() -> None:
    plan = schedule(slots=8, requests=2, tokens=10)
    plan.spend(1000)
    for _ in range(8):
        begin(plan, "answer", "a")


def test_others_get_their_turn_in_order_of_arrival() -> None:
    plan = schedule(slots=1)
    running = begin(plan, "answer", "a")
    waiting = [plan.enter("answer", adapter) for adapter in ("c", "b", "a", "d")]
    served = []
    for _ in waiting:
        (running,) = end(plan, running)
        served.append(running.lane.adapter)
    # The one that has just had its turn is last.
    assert served == ["c", "b", "d", "a"]


def test_route_is_served_before_answers_that_came_a_little_earlier() -> None:
    plan = schedule()
    running = begin(plan, "answer", "a")
    plan.enter("summary", "b")
    plan.enter("answer", "c")
    route = plan.enter("route", "d")
    assert end(plan, running) == [route]


def test_answer_is_served_before_a_summary_of_the_same_adapter() -> None:
    plan = schedule(slots=1)
    running = begin(plan, "answer", "a")
    plan.enter("summary", "a")
    answer = plan.enter("answer", "a")
    assert end(plan, running) == [answer]


def test_summary_gives_way_to_an_answer_that_waits() -> None:
    plan = schedule()
    summary = begin(plan, "summary", "a")
    assert plan.to_preempt() == []
    plan.enter("answer", "b")
    assert plan.admit() == []
    assert plan.to_preempt() == [summary]


def test_summary_does_not_join_a_batch_while_something_urgent_waits() -> None:
    plan = schedule()
    begin(plan, "answer", "a")
    plan.enter("answer", "b")
    plan.enter("summary", "a")
    assert plan.admit() == []


def test_summary_does_not_give_way_to_another_summary() -> None:
    plan = schedule()
    begin(plan, "summary", "a")
    plan.enter("summary", "b")
    assert plan.admit() == []
    assert plan.to_preempt() == []


def test_summary_whose_turn_came_though_others_wait_runs_to_its_end() -> None:
    plan = schedule(slots=1)
    running = begin(plan, "answer", "a")
    summary = plan.enter("summary", "b")
    for _ in range(ALLOWANCE["summary"] + 2 * 4):
        plan.enter("answer", "a")
        (running,) = end(plan, running)
        if running is summary:
            break
    assert running is summary
    plan.enter("answer", "a")
    assert plan.to_preempt() == []


@pytest.mark.parametrize("began", [True, False])
def test_ticket_that_leaves_has_left_no_trace(began: bool) -> None:
    plan = schedule()
    running = begin(plan, "answer", "a")
    ticket = plan.enter("answer", "a" if began else "b")
    assert (ticket in plan.admit()) is began
    plan.leave(ticket)
    plan.leave(running)
    assert (plan.running, plan.waiting()) == (0, 0)
    assert plan.admit() == []


KINDS: list[HopKind] = ["route", "answer", "summary"]
ADAPTERS = ["a", "b", "c", None]
arrivals = st.tuples(st.just("enter"), st.sampled_from(KINDS), st.sampled_from(ADAPTERS))
others = st.tuples(st.sampled_from(["end", "give up", "spend"]), st.integers(0, 1 << 16), st.none())
moves = st.lists(arrivals | others, max_size=200)


@given(moves=moves, slots=st.integers(1, 3), requests=st.integers(1, 5), tokens=st.integers(1, 500))
def test_one_adapter_runs_at_a_time_within_its_slots(
    moves: list[tuple[str, object, str | None]], slots: int, requests: int, tokens: int
) -> None:
    plan = schedule(slots, requests, tokens)
    running: list[Ticket] = []
    waiting: list[Ticket] = []
    for move, detail, adapter in moves:
        _make(plan, move, detail, adapter, running, waiting)
        for ticket in plan.admit():
            waiting.remove(ticket)
            running.append(ticket)
        lanes = [ticket.lane for ticket in running]
        assert len({lane.adapter for lane in lanes}) <= 1
        assert all(lanes.count(lane) <= (1 if lane.routing else slots) for lane in lanes)
        assert (plan.running, plan.waiting()) == (len(running), len(waiting))
        # The engine is never idle while somebody waits.
        assert running or not waiting


def _make(
    plan: Schedule, move: str, detail: object, adapter: str | None, running: list[Ticket], waiting: list[Ticket]
) -> None:
    match move, detail:
        case "enter", str(kind):
            waiting.append(plan.enter(next(known for known in KINDS if known == kind), adapter))
        case "end", int(which) if running:
            plan.leave(running.pop(which % len(running)))
        case "give up", int(which) if waiting:
            plan.leave(waiting.pop(which % len(waiting)))
        case "spend", int(count):
            plan.spend(count)


@given(
    kind=st.sampled_from(KINDS),
    crowd=st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(ADAPTERS)), min_size=1, max_size=30),
    which=st.lists(st.integers(0, 1 << 16), min_size=1, max_size=50),
    slots=st.integers(1, 3),
    requests=st.integers(1, 5),
)
def test_waiting_adapter_is_served_within_the_stated_bound(
    kind: HopKind, crowd: list[tuple[HopKind, str | None]], which: list[int], slots: int, requests: int
) -> None:
    """Whoever has waited for less is replaced at once by somebody like him: a crowd that never gets smaller."""
    plan = schedule(slots, requests)
    for one_kind, adapter in crowd:
        plan.enter(one_kind, adapter)
    running = plan.admit()
    waiting = plan.enter(kind, "late")
    bound = plan.admitted + ALLOWANCE[kind] + (len(ADAPTERS) + 1) * requests
    step = 0
    while waiting not in running:
        assert plan.admitted <= bound
        ended = running.pop(which[step % len(which)] % len(running))
        plan.leave(ended)
        plan.enter(ended.kind, ended.lane.adapter)
        running += plan.admit()
        step += 1


async def test_turn_tells_how_long_it_waited() -> None:
    gate = Gate(schedule())
    first_may_end = asyncio.Event()
    waits: list[float] = []

    async def first() -> None:
        async with gate.turn("answer", "a"):
            await first_may_end.wait()

    async def second() -> None:
        async with gate.turn("answer", "b") as waited:
            waits.append(waited)

    tasks = [asyncio.create_task(first()), asyncio.create_task(second())]
    await until(lambda: (gate.running, gate.waiting) == (1, 1))
    await asyncio.sleep(0.02)
    first_may_end.set()
    await asyncio.gather(*tasks)
    assert waits[0] >= 0.02
    assert (gate.running, gate.waiting) == (0, 0)


async def test_preempted_summary_is_cancelled_where_it_waits() -> None:
    gate = Gate(schedule())
    told: list[str] = []

    async def summary() -> None:
        async with gate.turn("summary", "a"):
            await asyncio.Event().wait()

    running = asyncio.create_task(summary())
    await until(lambda: gate.running == 1)
    async with gate.turn("answer", "b"):
        told.append("answered")
    with pytest.raises(Preempted):
        await running
    assert told == ["answered"]
    assert (gate.running, gate.waiting) == (0, 0)


async def test_cancelled_waiter_leaves_the_queue() -> None:
    gate = Gate(schedule())

    async def wait() -> None:
        async with gate.turn("answer", "b"):
            pytest.fail("cancelled before its turn")

    async with gate.turn("answer", "a"):
        waiter = asyncio.create_task(wait())
        await until(lambda: gate.waiting == 1)
        waiter.cancel()
        await asyncio.wait([waiter])
        assert gate.waiting == 0
    assert gate.running == 0


async def test_waiter_cancelled_as_its_turn_comes_gives_it_back() -> None:
    gate = Gate(schedule(slots=1))

    async def wait(reached: list[str]) -> None:
        async with gate.turn("answer", "a"):
            reached.append("turn")

    reached: list[str] = []
    async with gate.turn("answer", "a"):
        waiter = asyncio.create_task(wait(reached))
        await until(lambda: gate.waiting == 1)
    # Its turn has come, and it has not run since.
    assert gate.running == 1
    waiter.cancel()
    await asyncio.wait([waiter])
    assert reached == []
    assert gate.running == 0


async def test_time_limit_inside_a_turn_is_not_taken_for_preemption() -> None:
    gate = Gate(schedule())
    with pytest.raises(TimeoutError):
        async with gate.turn("summary", "a"), asyncio.timeout(0.01):
            await asyncio.Event().wait()


def test_lane_tells_routing_apart() -> None:
    plan = schedule()
    assert plan.enter("route", None).lane == Lane(None, True)
    assert plan.enter("summary", None).lane == Lane(None, False)


async def test_closed_gate_waits_for_what_runs_and_lets_nothing_begin() -> None:
    gate = Gate(schedule())
    inside, end, began = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hop(done: asyncio.Event, entered: asyncio.Event) -> None:
        async with gate.turn("answer", "a"):
            entered.set()
            await done.wait()

    running = asyncio.create_task(hop(end, inside))
    await inside.wait()
    async with asyncio.TaskGroup() as group:

        async def close() -> None:
            async with gate.closed(5):
                assert gate.running == 0
                waiting.append(group.create_task(hop(end, began)))
                await until(lambda: gate.waiting == 1)
                assert not began.is_set()

        waiting: list[asyncio.Task[None]] = []
        closing = group.create_task(close())
        await asyncio.sleep(0)
        assert not closing.done()
        end.set()
        await running
        await closing
        await waiting[0]
    assert began.is_set()


async def test_gate_that_does_not_run_empty_in_time_is_open_again() -> None:
    gate = Gate(schedule())
    async with gate.turn("answer", "a"):
        with pytest.raises(Busy, match=r"more than 0\.01 s"):
            async with gate.closed(0.01):
                pytest.fail("a hop is running")
        async with asyncio.timeout(5), gate.turn("answer", "a"):
            pass


async def test_hop_whose_adapter_left_while_it_waited_fails_and_holds_nobody_up() -> None:
    lanes = {"a": 1, "b": 1}
    gate = Gate(Schedule(lambda lane: lanes.get(lane.adapter or "", 0), Limits()))

    async def hop(adapter: str) -> None:
        async with gate.turn("answer", adapter):
            pass

    async with gate.closed(5):
        gone, stays = asyncio.create_task(hop("a")), asyncio.create_task(hop("b"))
        await until(lambda: gate.waiting == 2)
        del lanes["a"]
        gate.expel()
    with pytest.raises(EngineError, match="not served any more"):
        await asyncio.wait_for(gone, 5)
    await asyncio.wait_for(stays, 5)
    assert (gate.waiting, gate.running) == (0, 0)
