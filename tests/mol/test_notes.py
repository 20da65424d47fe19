"""What stands for a turn in other specialists' views, end to end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from macaron.conversation import Item, ToolCall
from macaron.hcp import Loaded
from macaron.mol import notes, summaries
from macaron.mol.activity import Activity
from macaron.mol.background import Background
from macaron.mol.note import clip
from macaron.mol.notes import Notes
from macaron.mol.summaries import Summaries
from macaron.mol.texts import Bounds
from tests.doubles.engine_double import Call, EngineDouble, Reply, Seen
from tests.harness import Running, serve, write_profile
from tests.mol.coder import NOTE, answers, coded, engine, note
from tests.mol.heart import Heart, InstantEngine, Silent, answering, profile
from tests.mol.heart import user as user_item
from tests.mol.talk import LONG, TOOLS, TRACE, all_steps, eventually, is_summary, said, shown, user
from tests.mol.talk import result as tool_message


async def summarised(running: Running) -> None:
    """Wait until the first step's summary hop is over, in whatever way."""
    store = running.service.store
    await eventually(lambda: next(iter(store._nodes.values())).step.hops[-1].kind == "summary")  # type: ignore[attr-defined]


async def test_a_note_once_decided_is_the_same_for_all_specialists_and_branches(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with EngineDouble(engine(lambda: Reply("the summary", gate=gate))) as double:
        async with serve(write_profile(tmp_path, double.origin, mol="summary_wait = 0.05")) as running:
            history = await coded(running)
            await running.client.chat([*history, user("plan a trip")])
            first = note(double)
            gate.set()
            await summarised(running)
            await running.client.chat([*history, user("make a page")])
            assert note(double) == first
            await running.client.chat([*history, user("plan another trip")])
            assert note(double) == first
            assert (await all_steps(running))[0].summary == "the summary"
    assert first.startswith(NOTE.format("word word")[:-1])


async def test_two_requests_that_decide_a_note_at_once_agree(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with EngineDouble(engine(lambda: Reply("the summary", gate=gate))) as double:
        async with serve(write_profile(tmp_path, double.origin, mol="summary_wait = 0.05")) as running:
            history = await coded(running)
            asked = [[*history, user("plan a trip")], [*history, user("make a page")]]
            await asyncio.gather(*(running.client.chat(messages) for messages in asked))
            gate.set()
            decided = (await all_steps(running))[0].note
    assert decided is not None
    assert [shown(seen)[1]["content"] for seen in answers(double)[1:]] == [NOTE.format(decided)] * 2


@pytest.mark.parametrize(
    "summary",
    [
        pytest.param(lambda: Reply(status=500), id="failed"),
        pytest.param(lambda: Reply(""), id="empty"),
        pytest.param(lambda: Reply(" \n "), id="white space"),
        pytest.param(lambda: Reply("half", fault="die", fault_after=1), id="broken off"),
        pytest.param(lambda: Reply("x", gate=asyncio.Event()), id="hung"),
        pytest.param(lambda: Reply("", reasoning="only thoughts"), id="only reasoning"),
    ],
)
async def test_without_a_usable_summary_the_clipped_answer_is_the_note(
    tmp_path: Path, summary: Callable[[], Reply]
) -> None:
    async with EngineDouble(engine(summary)) as double:
        async with serve(write_profile(tmp_path, double.origin, mol="summary_wait = 0.05")) as running:
            history = await coded(running)
            reply = await running.client.chat([*history, user("plan a trip")], headers=TRACE)
    assert reply.adapter == "L1"
    assert note(double) == NOTE.format(clip(LONG.strip(), 768))


async def test_a_hung_summary_holds_nothing_but_the_bounded_wait_of_who_needs_it(tmp_path: Path) -> None:
    never = asyncio.Event()
    async with EngineDouble(engine(lambda: Reply("late", gate=never))) as double:
        async with serve(write_profile(tmp_path, double.origin, mol="summary_wait = 0.2")) as running:
            async with asyncio.timeout(5):
                history = await coded(running)
                same = await running.client.chat([*history, user("more code")], headers=TRACE)
                other = await running.client.chat([*history, user("plan a trip")], headers=TRACE)
            hung = [seen for seen in double.requests if is_summary(seen)]
            assert (same.adapter, other.adapter) == ("L2", "L1")
            assert not hung[0].ended.is_set()
            never.set()


async def test_the_specialist_that_answered_does_not_wait_for_its_own_summary(tmp_path: Path) -> None:
    never = asyncio.Event()
    async with EngineDouble(engine(lambda: Reply("late", gate=never))) as double:
        async with serve(write_profile(tmp_path, double.origin, mol="summary_wait = 60.0")) as running:
            history = await coded(running)
            async with asyncio.timeout(5):
                await running.client.chat([*history, user("more code")])
            never.set()


async def test_who_needs_a_note_waits_for_the_summary_that_is_being_made(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with EngineDouble(engine(lambda: Reply("the summary", gate=gate))) as double:
        async with serve(write_profile(tmp_path, double.origin, mol="summary_wait = 30.0")) as running:
            history = await coded(running)
            await double.arrived(3)
            waiting = asyncio.create_task(running.client.chat([*history, user("plan a trip")]))
            await double.arrived(4)
            gate.set()
            await waiting
    assert note(double) == NOTE.format("the summary")


async def test_a_summary_that_ends_while_the_next_request_is_routed_is_used(tmp_path: Path) -> None:
    summary, route = asyncio.Event(), asyncio.Event()

    def script(seen: Seen) -> Reply | str:
        if seen.is_route:
            second = "trip" in seen.prompt
            return Reply("L1" if second else "L2", gate=route if second else None)
        return Reply("the summary", gate=summary) if is_summary(seen) else LONG

    async with EngineDouble(script) as double, serve(write_profile(tmp_path, double.origin)) as running:
        history = await coded(running)
        waiting = asyncio.create_task(running.client.chat([*history, user("plan a trip")]))
        await double.arrived(4)
        summary.set()
        await summarised(running)
        route.set()
        await waiting
    assert note(double) == NOTE.format("the summary")


async def test_an_answer_within_the_cap_is_its_own_summary_without_a_hop(tmp_path: Path) -> None:
    async with EngineDouble(engine(lambda: "never asked", answer="short answer")) as double:
        async with serve(write_profile(tmp_path, double.origin)) as running:
            history = await coded(running)
            await running.client.chat([*history, user("plan a trip")])
    assert note(double) == NOTE.format("short answer")
    assert not [seen for seen in double.requests if is_summary(seen)]


async def test_a_long_reasoning_does_not_make_a_short_answer_need_a_summary(tmp_path: Path) -> None:
    loaded = profile(tmp_path)
    heart = Heart(loaded, InstantEngine(lambda _: "L1", lambda _: answering("short", reasoning=LONG)))
    await heart.turn([user_item("q")])
    await heart.service.background.drain(1.0)
    assert [hop.kind for hop in heart.engine.hops] == ["route", "answer"]


async def test_the_summary_hop_extends_the_answers_prompt_on_the_same_adapter(tmp_path: Path) -> None:
    async with EngineDouble(engine(lambda: "the summary")) as double:
        async with serve(write_profile(tmp_path, double.origin)) as running:
            await coded(running, tools=TOOLS, tool_choice="auto", temperature=0.7, stop=["x"], max_tokens=4000)
            summary = await double.arrived(3)
    answer = double.requests[1]
    assert summary.body["model"] == answer.body["model"] == "L2"
    assert summary.body["messages"][: len(answer.body["messages"])] == answer.body["messages"]
    assert [message["role"] for message in summary.body["messages"][-2:]] == ["assistant", "user"]
    assert summary.body["tools"] == answer.body["tools"]
    assert (summary.body["tool_choice"], summary.body["max_tokens"], summary.body["temperature"]) == ("none", 192, 0)
    assert "stop" not in summary.body


async def test_an_abandoned_tool_loops_note_names_its_calls(tmp_path: Path) -> None:
    calls = iter((Call("search", '{"q":"secret words"}'), Call("book", "{}")))

    def script(seen: Seen) -> Reply | str:
        if seen.is_route:
            return "L2" if "code" in seen.body["messages"][-1]["content"] else "L1"
        return Reply("let me see", calls=(next(calls),)) if seen.body["model"] == "L2" else "fine"

    async with EngineDouble(script) as double, serve(write_profile(tmp_path, double.origin)) as running:
        history = await coded(running, tools=TOOLS)
        history.append(tool_message("call_double", "found it"))
        history.append(said(await running.client.chat(history, tools=TOOLS)))
        await running.client.chat([*history, user("forget it, plan a trip")], tools=TOOLS)
    assert note(double) == NOTE.format("called search, book. let me see")
    seen = answers(double)[-1]
    assert "secret words" not in seen.prompt
    assert "found it" not in seen.prompt
    assert not [message for message in shown(seen) if message["role"] == "tool" or message.get("tool_calls")]


async def test_a_note_is_bounded_whatever_the_model_called(tmp_path: Path) -> None:
    call = ToolCall("c", "f" * 100_000, "{}")
    heart = Heart(profile(tmp_path), InstantEngine(lambda _: "L1", lambda _: answering("ok", [call])))
    items: list[Item] = [user_item("q")]
    items += (await heart.turn(items)).items
    heart.engine.label = lambda _: "L2"
    await heart.turn([*items, user_item("something else")])
    assert len(str(heart.engine.last("answer").messages[2]["content"])) < 1000


async def test_a_summary_is_bounded_whatever_the_engine_made_of_its_limit(tmp_path: Path) -> None:
    def script(hop: Any) -> Any:
        return answering("summary " * 100_000 if hop.kind == "summary" else LONG)

    heart = Heart(profile(tmp_path), InstantEngine(lambda _: "L1", script))
    outcome = await heart.turn([user_item("q")])
    await heart.service.background.drain(5.0)
    (step,) = await heart.store.session("local", outcome.session)
    assert step.summary is not None
    assert len(step.summary) < 4000


async def test_a_request_with_another_head_and_no_session_gets_labels_but_nothing_hidden(tmp_path: Path) -> None:
    async with EngineDouble(engine(lambda: "the hidden summary")) as double:
        async with serve(write_profile(tmp_path, double.origin)) as running:
            history = await coded(running)
            await summarised(running)
            system = {"role": "system", "content": "another head"}
            reply = await running.client.chat([system, *history, user("plan a trip")], headers=TRACE)
            assert note(double) == NOTE.format(clip(LONG.strip(), 768))
            assert (await all_steps(running))[0].note is None
            # A second request under that head has it as its parent's, and still no claim on what came before.
            more = [system, *history, user("plan a trip"), said(reply), user("now a page")]
            await running.client.chat(more)
            assert note(double) == NOTE.format(clip(LONG.strip(), 768))
            await running.client.chat([*history, user("plan a trip")])
            assert note(double) == NOTE.format("the hidden summary")


async def test_a_named_session_keeps_its_hidden_state_under_another_head(tmp_path: Path) -> None:
    named = {"x-session-id": "mine"}
    async with EngineDouble(engine(lambda: "the hidden summary")) as double:
        async with serve(write_profile(tmp_path, double.origin)) as running:
            history = await coded(running, headers=named)
            await summarised(running)
            system = {"role": "system", "content": "another head"}
            await running.client.chat([system, *history, user("plan a trip")], headers=named)
    assert note(double) == NOTE.format("the hidden summary")


async def test_stickiness_survives_another_head(tmp_path: Path) -> None:
    def script(seen: Seen) -> Reply | str:
        if seen.is_route:
            return "L2"
        return "done" if shown(seen)[-1]["role"] == "tool" else Reply(calls=(Call("weather"),))

    async with EngineDouble(script) as double, serve(write_profile(tmp_path, double.origin)) as running:
        history = await coded(running, tools=TOOLS)
        system = {"role": "system", "content": "It is 10:32."}
        history = [system, *history, tool_message("call_double", "rain")]
        reply = await running.client.chat(history, tools=TOOLS, headers=TRACE)
    assert (reply.adapter, reply.headers["x-macaron-hops"]) == ("L2", "answer")


async def test_lazy_summaries_are_made_when_another_specialist_first_needs_them(tmp_path: Path) -> None:
    async with EngineDouble(engine(lambda: "the summary")) as double:
        async with serve(write_profile(tmp_path, double.origin, mol='summary = "lazy"')) as running:
            history = await coded(running)
            await running.client.chat([*history, user("more code")])
            assert not [seen for seen in double.requests if is_summary(seen)]
            await running.client.chat([*history, user("plan a trip")])
            assert len([seen for seen in double.requests if is_summary(seen)]) == 1
    assert note(double) == NOTE.format("the summary")


async def test_without_summaries_notes_are_clipped_answers(tmp_path: Path) -> None:
    async with EngineDouble(engine(lambda: "never")) as double:
        async with serve(write_profile(tmp_path, double.origin, mol='summary = "off"')) as running:
            history = await coded(running)
            await running.client.chat([*history, user("plan a trip")])
    assert not [seen for seen in double.requests if is_summary(seen)]
    assert note(double) == NOTE.format(clip(LONG.strip(), 768))


async def test_idle_summaries_wait_until_nothing_else_runs(tmp_path: Path) -> None:
    gate = asyncio.Event()

    def script(seen: Seen) -> Reply | str:
        if not seen.is_route and "busy" in seen.prompt:
            return Reply("done", gate=gate)
        return engine(lambda: "the summary")(seen)

    async with EngineDouble(script) as double:
        async with serve(write_profile(tmp_path, double.origin, mol='summary = "idle"')) as running:
            busy = asyncio.create_task(running.client.chat([user("busy")]))
            await double.arrived(2)
            await coded(running)
            assert len(double.requests) == 4
            gate.set()
            await busy
            assert is_summary(await double.arrived(5))


def test_clipping_keeps_head_and_tail_marks_the_cut_and_splits_no_character() -> None:
    text = "你好" * 1000
    short = clip(text, 100)
    assert len(short.encode()) < 120
    assert short.startswith("你好")
    assert short.endswith("你好")
    assert "[…]" in short
    assert clip("as it is", 100) == "as it is"


async def test_a_turn_without_a_word_still_has_a_note(loaded: Loaded) -> None:
    heart = Heart(loaded, InstantEngine(lambda _: "L1", lambda _: answering("")))
    items: list[Item] = [user_item("q")]
    items += (await heart.turn(items)).items
    heart.engine.label = lambda _: "L2"
    await heart.turn([*items, user_item("r")])
    assert heart.engine.last("answer").messages[2]["content"] == "[summary of L1's answer: no text]"
    assert [hop.kind for hop in heart.engine.hops].count("summary") == 0


async def test_a_summary_of_another_worker_counts_although_the_path_was_read_before_it(tmp_path: Path) -> None:
    """Two services on one store, as two workers are: the second one's path was read before the first one's summary."""
    heart = Heart(profile(tmp_path), InstantEngine(lambda _: "L1", lambda _: answering("word " * 400)))
    other = Heart(profile(tmp_path), heart.engine)
    outcome = await heart.turn([user_item("q")])
    await heart.service.background.drain(5.0)
    (step,) = await heart.store.session("local", outcome.session)
    stale = (replace(step, summary=None),)
    await heart.store.put_summary("local", step.id, "the other worker's summary", None)
    contract = other.service.contract
    silent = Silent()
    made = Summaries(other.engine, heart.store, contract, "", Background(), Activity(), silent)
    told = await Notes(heart.store, made, contract, silent).for_view("local", stale, "L2", {step.id})
    assert told == {step.id: "the other worker's summary"}


async def test_notes_and_summaries_that_may_not_be_stored_are_forgotten_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (notes, summaries):
        monkeypatch.setattr(module, "REMEMBERED", Bounds(100, 10_000, seconds=0.0))
    async with EngineDouble(engine(lambda: "the summary")) as double:
        document = write_profile(tmp_path, double.origin, more='[store]\nchat = "digests"')
        async with serve(document) as running:
            history = await coded(running)
            made = running.service._summaries._made
            await eventually(lambda: not running.service.background._tasks and not len(made))
            await running.client.chat([*history, user("plan a trip")])
            assert note(double) == NOTE.format(clip(LONG.strip(), 768))
            await eventually(lambda: not len(running.service._notes._memory))


async def test_prompts_of_lazy_summaries_that_may_not_be_stored_are_forgotten_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summaries, "TEXT_SECONDS", 0.0)
    heart = Heart(profile(tmp_path, mol='summary = "lazy"'), InstantEngine(lambda _: "L1", lambda _: answering(LONG)))
    for keep in (True, False):
        await heart.turn([user_item("q")], keep=keep)
    await asyncio.sleep(0)
    made = heart.service._summaries
    assert [job.keep for job in made._lazy.values()] == [True, False]
    made.sweep()
    assert [job.keep for job in made._lazy.values()] == [True]
    assert made._bytes == sum(job.size for job in made._lazy.values())
