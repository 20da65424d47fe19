"""What every store does, whatever it is made of."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from macaron.conversation import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from macaron.errors import StoreError
from macaron.store.base import Config, Limits, Lookup, Store, Totals
from tests.store.conftest import Clock, OpenStore
from tests.store.steps import answered, hop, make


async def chain(store: Store, length: int, **fields: object) -> list[str]:
    """Put a session of `length` steps s0, s1, …; returns their ids."""
    parent = None
    for number in range(length):
        parent = make(f"s{number}", parent, **fields)
        await store.put_steps([parent])
    return [f"s{number}" for number in range(length)]


async def test_a_step_comes_back_as_it_was_put(store: Store) -> None:
    step = make(
        "s",
        inputs=(
            Message(
                "developer", (Text("rules \u4f60\u597d \U0001f600"), Media("image", {"url": "data:,"})), {"name": "x"}
            ),
            ToolResult("c0", (Text("42"),)),
            Opaque("computer_call", {"big": 10**30, "deep": [[{"a": None}]], "float": 0.1}),
        ),
        outputs=(Reasoning("hm"), ToolCall("c1", "run", '{"a": 1}', "custom")),
        hops=(hop(), hop(3, 4)),
        status="incomplete",
        finish="length",
        summary="sum",
        note="note",
    )
    await store.put_steps([step])
    assert await store.path("t", "s") == (step,)


async def test_a_step_without_kept_items_comes_back_without_them(store: Store) -> None:
    step = make("s", inputs=None, outputs=None, input_count=7, output_count=1)
    await store.put_steps([step])
    assert await store.path("t", "s") == (step,)


async def test_a_path_is_the_chain_from_the_root(store: Store) -> None:
    ids = await chain(store, 5)
    assert [step.id for step in await store.path("t", "s4")] == ids
    assert [step.id for step in await store.path("t", "s2")] == ids[:3]


async def test_siblings_share_their_parent_and_not_each_others_path(store: Store) -> None:
    root = make("root")
    await store.put_steps([root])
    await store.put_steps([make("a", root), make("b", root)])
    assert [step.id for step in await store.path("t", "b")] == ["root", "b"]


async def test_an_unknown_step_has_no_path(store: Store) -> None:
    assert await store.path("t", "nobody") == ()


async def test_siblings_are_put_all_or_none(store: Store) -> None:
    await store.put_steps([make("taken")])
    with pytest.raises(StoreError):
        await store.put_steps([make("new"), make("taken")])
    assert await store.path("t", "new") == ()
    assert (await store.totals()).steps == 1


async def test_a_refused_put_leaves_the_puts_beside_it_alone(store: Store) -> None:
    await store.put_steps([make("taken")])
    puts = [store.put_steps([make(step_id)]) for step_id in ("a", "taken", "b")]
    results = await asyncio.gather(*puts, return_exceptions=True)
    assert [type(result) for result in results] == [type(None), StoreError, type(None)]
    assert await store.path("t", "a")
    assert await store.path("t", "b")


async def test_the_longest_known_digest_wins(store: Store) -> None:
    await chain(store, 3)
    lookup = await store.locate("t", ["v1:d-s0", "x", "v1:d-s1", "y"], asked="none")
    assert lookup.prefix is not None
    assert (lookup.prefix.step.id, lookup.prefix.position) == ("s1", 2)
    assert lookup.asked is None


@pytest.mark.parametrize("known", [0, 300, 968, 1199])
async def test_a_known_digest_is_found_anywhere_in_a_long_history(store: Store, known: int) -> None:
    await store.put_steps([make("s", digest=f"v1:{known}")])
    lookup = await store.locate("t", [f"v1:{number}" for number in range(1200)], asked="none")
    assert lookup.prefix is not None
    assert lookup.prefix.position == known


async def test_an_unknown_history_is_not_located(store: Store) -> None:
    await chain(store, 1)
    lookup = await store.locate("t", ["x", "y"], asked="z", session="session-s0", head="head")
    assert (lookup.prefix, lookup.asked) == (None, None)


async def test_a_retry_is_the_first_step_that_asked_the_same_of_the_same_parent(store: Store) -> None:
    root, stranger = make("root"), make("stranger")
    first = make("first", root, asked="v1:again")
    same = [make(step_id, root, asked="v1:again", head="other") for step_id in ("second", "third")]
    other = [make("elsewhere", stranger, asked="v1:again"), make("different", root, asked="v1:else")]
    for step in (root, stranger, *other, first, *same):
        await store.put_steps([step])
    assert (await store.locate("t", [root.digest], asked="v1:again", head="other")).asked == first
    assert (await store.locate("t", [root.digest], asked="v1:never")).asked is None


async def test_a_question_at_no_known_place_has_no_retry(store: Store) -> None:
    await chain(store, 2)
    assert await store.locate("t", [], asked="v1:a-s1") == Lookup(None, None)


PREFERENCES = [
    ("other", "session-own", "own-old-head"),
    ("head", "session-own", "own-equal-head"),
    ("head", None, "newest-equal-head"),
    ("unknown", "session-gone", "newest"),
    ("unknown", "session-own", "own-equal-head"),
]


@pytest.mark.parametrize(("head", "session", "expected"), PREFERENCES)
async def test_a_named_session_then_an_equal_head_then_the_newest_is_preferred(
    store: Store, head: str, session: str | None, expected: str
) -> None:
    for step in (
        make("equal-head", head="head"),
        make("own-old-head", session="session-own", head="other"),
        make("own-equal-head", session="session-own", head="head"),
        make("newest-equal-head", head="head"),
        make("newest", head="third"),
    ):
        await store.put_steps([replace(step, digest="v1:same")])
    lookup = await store.locate("t", ["v1:same"], asked="none", session=session, head=head)
    assert lookup.prefix is not None
    assert lookup.prefix.step.id == expected


async def test_scopes_do_not_see_each_other(store: Store) -> None:
    mine = make("s", scope="mine", session="one")
    theirs = make("s", scope="theirs", session="one", outputs=answered("secret"))
    await store.put_steps([mine])
    await store.put_steps([theirs])
    assert await store.path("mine", "s") == (mine,)
    assert await store.session("mine", "one") == (mine,)
    lookup = await store.locate("mine", [mine.digest], asked=mine.asked, session="one")
    assert lookup.prefix is not None
    assert lookup.prefix.step == mine
    assert (await store.locate("nobody", [mine.digest], asked=mine.asked)).prefix is None
    assert await store.delete_step("nobody", "s") is False


async def test_a_parent_of_another_scope_is_no_parent(store: Store) -> None:
    theirs = make("theirs", scope="theirs")
    await store.put_steps([theirs])
    mine = replace(make("mine"), parent="theirs")
    await store.put_steps([mine])
    assert await store.path("t", "mine") == (mine,)


async def test_a_session_gives_its_newest_steps_oldest_first(store: Store) -> None:
    await chain(store, 5)
    await store.put_steps([make("other")])
    assert [step.id for step in await store.session("t", "session-s0")] == ["s0", "s1", "s2", "s3", "s4"]
    assert [step.id for step in await store.session("t", "session-s0", limit=2)] == ["s3", "s4"]
    assert await store.session("t", "nobody") == ()


async def test_a_summary_and_its_hop_are_added(store: Store) -> None:
    step = make("s")
    await store.put_steps([step])
    await store.put_summary("t", "s", None, hop(1, 1))
    await store.put_summary("t", "s", "what was done", hop(2, 2))
    expected = replace(step, summary="what was done", hops=(*step.hops, hop(1, 1), hop(2, 2)))
    assert await store.path("t", "s") == (expected,)
    assert (await store.totals("t")).prompt_tokens == 13


async def test_a_failed_summary_leaves_the_one_before(store: Store) -> None:
    await store.put_steps([make("s", summary="first")])
    await store.put_summary("t", "s", None, hop())
    assert (await store.path("t", "s"))[0].summary == "first"


async def test_a_summary_of_a_step_that_is_gone_is_not_an_error(store: Store) -> None:
    await store.put_summary("t", "gone", "text", hop())
    assert (await store.totals()).steps == 0


async def test_a_note_is_frozen_once_for_all_callers(store: Store) -> None:
    await store.put_steps([make("s")])
    notes = await asyncio.gather(*(store.freeze_note("t", "s", f"note {number}") for number in range(8)))
    assert len(set(notes)) == 1
    assert (await store.path("t", "s"))[0].note == notes[0]
    assert await store.freeze_note("t", "s", "late") == notes[0]


async def test_a_step_that_is_gone_takes_a_note(store: Store) -> None:
    assert await store.freeze_note("t", "gone", "note") == "note"


async def test_a_deleted_step_loses_its_content_and_keeps_the_chain(store: Store) -> None:
    await chain(store, 3, summary="sum", note="note")
    before = await store.path("t", "s2")
    assert await store.delete_step("t", "s1") is True
    emptied = replace(before[1], inputs=None, outputs=None, summary=None, note="")
    assert await store.path("t", "s2") == (before[0], emptied, before[2])
    lookup = await store.locate("t", ["v1:d-s1"], asked="")
    assert lookup.prefix is not None
    assert lookup.prefix.step == emptied


async def test_a_deleted_step_takes_no_summary_and_no_note(store: Store) -> None:
    step = make("s")
    await store.put_steps([step])
    await store.delete_step("t", "s")
    await store.put_summary("t", "s", "leaked", hop(1, 1))
    assert await store.freeze_note("t", "s", "leaked") == ""
    (found,) = await store.path("t", "s")
    assert (found.summary, found.note, found.hops) == (None, "", (*step.hops, hop(1, 1)))


async def test_a_step_is_deleted_once(store: Store) -> None:
    await store.put_steps([make("s")])
    deleted = [await store.delete_step("t", step_id) for step_id in ("s", "s", "gone")]
    assert deleted == [True, False, False]


async def test_the_configuration_begins_empty(store: Store) -> None:
    assert await store.config() == Config(0, b"")


async def test_only_the_configuration_in_force_is_replaced(store: Store) -> None:
    assert await store.compare_and_set(0, b"one") == Config(1, b"one")
    assert await store.compare_and_set(0, b"late") == Config(1, b"one")
    assert await store.compare_and_set(1, b"two") == Config(2, b"two")
    assert await store.config() == Config(2, b"two")


async def test_totals_count_a_scope_and_everybody(store: Store) -> None:
    await store.put_steps([make("a"), make("b", session="session-a")])
    await store.put_steps([make("c", scope="other")])
    mine, theirs, everybody = [await store.totals(scope) for scope in ("t", "other", None)]
    assert (mine.steps, mine.sessions, mine.prompt_tokens, mine.completion_tokens) == (2, 1, 20, 10)
    assert (theirs.steps, theirs.sessions) == (1, 1)
    assert (everybody.steps, everybody.sessions) == (3, 2)
    assert everybody.bytes == mine.bytes + theirs.bytes
    assert await store.totals("nobody") == Totals()


async def test_bytes_follow_what_is_kept(store: Store) -> None:
    await store.put_steps([make("s", outputs=answered("x" * 10_000))])
    full = (await store.totals("t")).bytes
    await store.freeze_note("t", "s", "n" * 100)
    assert (await store.totals("t")).bytes == full + 100
    await store.delete_step("t", "s")
    assert (await store.totals("t")).bytes < full - 10_000


async def test_sessions_beyond_the_age_go(opened: OpenStore, clock: Clock) -> None:
    store = opened(Limits(max_age=100.0))
    await store.put_steps([make("old")])
    clock.now += 60
    await store.put_steps([make("young")])
    clock.now += 60
    assert await store.expire() == 1
    assert await store.path("t", "old") == ()
    assert await store.path("t", "young")


async def test_a_session_that_is_used_does_not_age(opened: OpenStore, clock: Clock) -> None:
    store = opened(Limits(max_age=100.0))
    root = make("root")
    await store.put_steps([root])
    clock.now += 60
    await store.put_steps([make("next", root)])
    clock.now += 60
    assert await store.expire() == 0
    assert len(await store.path("t", "next")) == 2


async def test_the_least_recently_used_session_goes_first(opened: OpenStore, clock: Clock) -> None:
    store = opened(Limits(max_sessions=2))
    first = make("a")
    for step in (first, make("b"), make("a2", first), make("c")):
        clock.now += 1
        await store.put_steps([step])
    await store.expire()
    assert [bool(await store.path("t", step_id)) for step_id in ("a", "b", "a2", "c")] == [True, False, True, True]


async def test_bytes_stay_within_their_bound_without_being_asked(opened: OpenStore, clock: Clock) -> None:
    store = opened(Limits(max_bytes=50_000))
    for number in range(20):
        clock.now += 1
        await store.put_steps([make(f"s{number}", outputs=answered("x" * 10_000))])
    await store.ping()
    assert 30_000 < (await store.totals()).bytes <= 50_000
    assert await store.path("t", "s19")


async def test_an_evicted_session_leaves_nothing_in_the_totals_but_tokens(opened: OpenStore, clock: Clock) -> None:
    store = opened(Limits(max_age=10.0))
    await store.put_steps([make("s")])
    clock.now += 20
    await store.expire()
    assert await store.totals("t") == Totals()
    assert await store.totals() == Totals(0, 0, 0, 10, 5)


async def test_a_step_outlives_its_parents_session(opened: OpenStore, clock: Clock) -> None:
    store = opened(Limits(max_age=100.0))
    parent = make("parent")
    await store.put_steps([parent])
    clock.now += 60
    child = make("child", parent, session="elsewhere")
    await store.put_steps([child])
    assert await store.path("t", "child") == (parent, child)
    clock.now += 60
    assert await store.expire() == 1
    assert await store.path("t", "child") == (child,)


async def test_a_step_of_an_evicted_parent_begins_a_path(opened: OpenStore, clock: Clock) -> None:
    store = opened(Limits(max_age=100.0))
    parent = make("parent")
    await store.put_steps([parent])
    clock.now += 101
    await store.expire()
    await store.put_steps([make("child", parent)])
    await store.put_steps([replace(parent, outputs=answered("again"))])
    assert [step.id for step in await store.path("t", "child")] == ["child"]


async def test_a_closed_store_says_so(opened: OpenStore) -> None:
    store = opened(Limits())
    await store.close()
    for call in (store.ping, lambda: store.path("t", "s"), lambda: store.put_steps([make("s")]), store.config):
        with pytest.raises(StoreError, match="closed"):
            await call()


async def test_a_store_is_closed_twice_without_harm(opened: OpenStore) -> None:
    store = opened(Limits())
    await store.ping()
    await store.close()
    await store.close()
