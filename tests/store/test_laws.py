"""Laws that hold for any history, found by hypothesis and checked against a plain model."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from macaron.conversation import Step
from macaron.store import migrate, open_store
from macaron.store.base import Limits, Store
from tests.postgres_server import PostgresServer
from tests.store.steps import make


class Put(NamedTuple):
    """A step to put: the index of its parent among those before it, and what it has in common with others."""

    parent: int
    scope: int
    session: int
    digest: int
    head: int


class Ask(NamedTuple):
    scope: int
    digests: list[int]
    asked: int
    session: int
    head: int


small = st.integers(0, 2)
puts = st.lists(st.builds(Put, st.integers(-1, 7), small, small, st.integers(0, 5), small), min_size=1, max_size=10)
asks = st.lists(
    st.builds(Ask, small, st.lists(st.integers(0, 7), max_size=6, unique=True), st.integers(0, 7), small, small),
    min_size=1,
    max_size=5,
)
few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def fast_folder() -> Path | None:
    """Where hundreds of stores are made: in memory, if the system has such a folder."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() else None


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> PostgresServer | None:
    """The server, if there is one: the laws hold without it, too."""
    try:
        server: PostgresServer = request.getfixturevalue("postgres")
    except pytest.skip.Exception:
        return None
    return server


def each(check: Callable[[Store], Awaitable[None]], server: PostgresServer | None) -> None:
    """Run a check on each kind of store, empty."""

    async def run() -> None:
        with tempfile.TemporaryDirectory(dir=fast_folder()) as folder:
            migrate(Path(folder) / "store.db")
            shared = [server.url(server.empty())] if server is not None else []
            for url in (f"sqlite://{folder}/store.db", "memory:", *shared):
                store = open_store(url, limits=Limits(), durability="normal")
                try:
                    await check(store)
                finally:
                    await store.close()

    asyncio.run(run())


def steps_of(plan: list[Put]) -> list[Step]:
    """The steps of a plan. A parent of another scope is no parent, so the model drops it."""
    steps: list[Step] = []
    for number, put in enumerate(plan):
        scope = f"scope-{put.scope}"
        parent = steps[put.parent] if 0 <= put.parent < number else None
        steps.append(
            make(
                f"s{number}",
                parent if parent and parent.scope == scope else None,
                scope=scope,
                session=f"session-{put.session}",
                digest=f"d{put.digest}",
                asked=f"d{put.digest + put.head}",
                head=f"h{put.head}",
            )
        )
    return steps


def best(steps: list[Step], ask: Ask, digest: int) -> Step | None:
    """The model of preference: named session, then equal head, then newest."""
    found = [s for s in steps if s.scope == f"scope-{ask.scope}" and s.digest == f"d{digest}"]
    ranked = [(s.session == f"session-{ask.session}", s.head == f"h{ask.head}", steps.index(s)) for s in found]
    return steps[max(ranked)[2]] if ranked else None


@few
@given(puts, asks)
def test_the_longest_prefix_of_the_scope_wins_by_the_order_of_preference(
    server: PostgresServer | None, plan: list[Put], questions: list[Ask]
) -> None:
    async def check(store: Store) -> None:
        steps = steps_of(plan)
        for step in steps:
            await store.put_steps([step])
        for ask in questions:
            lookup = await store.locate(
                f"scope-{ask.scope}",
                [f"d{digest}" for digest in ask.digests],
                asked=f"d{ask.asked}",
                session=f"session-{ask.session}",
                head=f"h{ask.head}",
            )
            known = [(i, best(steps, ask, digest)) for i, digest in enumerate(ask.digests)]
            expected = [(i, step) for i, step in known if step is not None][-1:]
            assert ([(lookup.prefix.position, lookup.prefix.step)] if lookup.prefix else []) == expected
            parent = lookup.prefix.step.id if lookup.prefix else "none"
            again = [step for step in steps if step.parent == parent and step.asked == f"d{ask.asked}"]
            assert lookup.asked == (again[0] if again else None)

    each(check, server)


@few
@given(puts)
def test_a_path_equals_the_chain_that_was_put(server: PostgresServer | None, plan: list[Put]) -> None:
    async def check(store: Store) -> None:
        steps = steps_of(plan)
        await store.put_steps(steps)
        by_id = {step.id: step for step in steps}
        for step in steps:
            chain = [step]
            while chain[-1].parent is not None:
                chain.append(by_id[chain[-1].parent])
            assert await store.path(step.scope, step.id) == tuple(reversed(chain))
            assert await store.path("scope-other", step.id) == ()

    each(check, server)


@few
@given(puts, st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["summary", "note", "delete"])), max_size=12))
def test_totals_equal_the_sum_of_what_is_kept(
    server: PostgresServer | None, plan: list[Put], changes: list[tuple[int, str]]
) -> None:
    seen = []

    async def check(store: Store) -> None:
        steps = steps_of(plan)
        await store.put_steps(steps)
        for number, change in changes:
            step = steps[number % len(steps)]
            if change == "summary":
                await store.put_summary(step.scope, step.id, f"summary {number}", None)
            elif change == "note":
                await store.freeze_note(step.scope, step.id, f"note {number}")
            else:
                await store.delete_step(step.scope, step.id)
        scopes = [await store.totals(f"scope-{number}") for number in range(3)]
        everybody = await store.totals()
        assert everybody.bytes == sum(total.bytes for total in scopes)
        assert everybody.steps == len(steps)
        assert everybody.sessions == len({(step.scope, step.session) for step in steps})
        seen.append(scopes)

    each(check, server)
    assert all(scopes == seen[0] for scopes in seen)


@few
@given(st.lists(st.text(max_size=20), min_size=1, max_size=6))
def test_every_caller_gets_the_first_note(server: PostgresServer | None, notes: list[str]) -> None:
    async def check(store: Store) -> None:
        await store.put_steps([make("s")])
        frozen = [await store.freeze_note("t", "s", note) for note in notes]
        assert set(frozen) == {notes[0]}

    each(check, server)
