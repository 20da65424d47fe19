"""What is committed and when, end to end, and what a fault leaves behind."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from macaron.conversation import Step
from macaron.errors import StoreError
from tests.doubles.engine_double import EngineDouble, Reply, Seen, by_words
from tests.harness import serve, write_profile
from tests.mol.talk import (
    LONG,
    TRACE,
    all_steps,
    content,
    events,
    eventually,
    is_summary,
    outputs,
    read_until,
    said,
    shown,
    steps,
    user,
)


async def test_a_step_is_committed_before_the_terminal_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go = asyncio.Event(), asyncio.Event()
    async with EngineDouble(by_words({}, answer="one two")) as double:
        async with serve(write_profile(tmp_path, double.origin)) as running:
            put = running.service.store.put_steps

            async def gated(what: Any) -> None:
                begun.set()
                await go.wait()
                await put(what)

            monkeypatch.setattr(running.service.store, "put_steps", gated)
            async with running.client.stream([user("hi")]) as response:
                before = await read_until(response, " two")
                await begun.wait()
                assert '"finish_reason":"stop"' not in before
                assert await all_steps(running) == []
                go.set()
                after = await read_until(response, "[DONE]")
            assert '"finish_reason":"stop"' in after
            assert len(await all_steps(running)) == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_a_store_that_cannot_commit_gives_an_error_and_no_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    async def broken(what: Any) -> None:
        raise StoreError("the disk is full")

    async with EngineDouble(by_words({}, answer=LONG)) as double:
        async with serve(write_profile(tmp_path, double.origin)) as running:
            monkeypatch.setattr(running.service.store, "put_steps", broken)
            if stream:
                async with running.client.stream([user("hi")]) as response:
                    assert response.status == 200
                    chunks = await events(response)
                assert [chunk["error"]["code"] for chunk in chunks if "error" in chunk] == ["store_unavailable"]
                reasons = [choice["finish_reason"] for chunk in chunks for choice in chunk.get("choices", ())]
                assert [reason for reason in reasons if reason] == ["error"]
            else:
                reply = await running.client.chat([user("hi")])
                assert (reply.status, reply.body["error"]["code"]) == (503, "store_unavailable")
            await running.service.background.drain(1.0)
    assert not [seen for seen in double.requests if is_summary(seen)]


async def test_the_summary_never_delays_the_terminal_event(tmp_path: Path) -> None:
    never = asyncio.Event()

    def script(seen: Seen) -> Reply | str:
        if seen.is_route:
            return "L1"
        return Reply("late", gate=never) if is_summary(seen) else LONG

    async with EngineDouble(script) as double, serve(write_profile(tmp_path, double.origin)) as running:
        async with asyncio.timeout(5):
            async with running.client.stream([user("hi")], stream_options={"include_usage": True}) as response:
                chunks = await events(response)
            assert chunks[-1]["usage"]["completion_tokens"] > 0
            await running.client.chat([user("hello")])
            summary = await double.arrived(3)
        assert is_summary(summary)
        assert not summary.ended.is_set()
        never.set()


async def test_a_client_that_leaves_after_the_full_text_keeps_its_turn(tmp_path: Path) -> None:
    linger = asyncio.Event()

    def script(seen: Seen) -> Reply | str:
        if seen.is_route:
            return "L1"
        return Reply("one two three", gate=linger, gate_after=4) if len(shown(seen)) == 1 else "fine"

    async with EngineDouble(script) as double, serve(write_profile(tmp_path, double.origin)) as running:
        async with running.client.stream([user("hi")], headers=TRACE) as response:
            session = response.headers["x-macaron-session"]
            await read_until(response, " three")
        await double.requests[1].ended.wait()
        await eventually(lambda: running.service.store._nodes)  # type: ignore[attr-defined]
        history = [user("hi"), said("one two three"), user("and now?")]
        reply = await running.client.chat(history, headers=TRACE)
        first, second = await steps(running, session)
    assert reply.headers["x-macaron-session"] == session
    assert outputs(first) == "one two three"
    assert second.parent == first.id


async def test_a_client_that_leaves_when_the_answer_has_ended_leaves_a_completed_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disconnect meets the commit itself."""
    begun, go = asyncio.Event(), asyncio.Event()
    async with EngineDouble(by_words({}, answer="one two")) as double:
        database = f"sqlite://{tmp_path / 'store.db'}"
        async with serve(write_profile(tmp_path, double.origin), database) as running:
            put = running.service.store.put_steps

            async def slow(what: Any) -> None:
                writing = asyncio.ensure_future(put(what))
                begun.set()
                await go.wait()
                await writing

            monkeypatch.setattr(running.service.store, "put_steps", slow)
            async with running.client.stream([user("hi")], headers=TRACE) as response:
                session = response.headers["x-macaron-session"]
                await read_until(response, " two")
                await begun.wait()
            await eventually(lambda: running.service.admission.active == 0)
            (step,) = await steps(running, session)
    assert (step.status, outputs(step)) == ("completed", "one two")


async def test_a_client_that_leaves_mid_answer_leaves_a_cancelled_step_with_what_it_was_sent(tmp_path: Path) -> None:
    never = asyncio.Event()

    def script(seen: Seen) -> Reply | str:
        return "L1" if seen.is_route else Reply("one two three", gate=never, gate_after=3)

    async with EngineDouble(script) as double, serve(write_profile(tmp_path, double.origin)) as running:
        async with running.client.stream([user("hi")], headers=TRACE) as response:
            session = response.headers["x-macaron-session"]
            await read_until(response, " two")
        await asyncio.wait_for(double.requests[1].ended.wait(), 5)
        await eventually(lambda: running.service.store._nodes)  # type: ignore[attr-defined]
        (step,) = await steps(running, session)
    assert double.requests[1].outcome == "cancelled"
    assert (step.status, outputs(step)) == ("cancelled", "one two")
    assert step.hops[-1].outcome == "cancelled"


async def test_a_client_that_leaves_before_an_answer_that_is_not_streamed_leaves_no_step(tmp_path: Path) -> None:
    never = asyncio.Event()
    script = by_words({}, answer="x")
    async with EngineDouble(lambda seen: script(seen) if seen.is_route else Reply("x", gate=never)) as double:
        async with serve(write_profile(tmp_path, double.origin)) as running:
            waiting = asyncio.create_task(running.client.chat([user("hi")]))
            answer = await double.arrived(2)
            waiting.cancel()
            await asyncio.wait_for(answer.ended.wait(), 5)
            await eventually(lambda: running.service.admission.active == 0)
            await running.service.background.drain(1.0)
            assert await all_steps(running) == []
    assert answer.outcome == "cancelled"


@pytest.mark.parametrize("fault", ["die", "error", "corrupt", "no_finish"])
async def test_an_engine_that_fails_in_the_middle_leaves_a_failed_step_and_gives_an_error_event(
    tmp_path: Path, fault: Any
) -> None:
    after = 4 if fault == "no_finish" else 2
    reply = Reply("one two three", fault=fault, fault_after=after)
    async with EngineDouble(lambda seen: "L1" if seen.is_route else reply) as double:
        async with serve(write_profile(tmp_path, double.origin)) as running:
            async with running.client.stream([user("hi")], headers=TRACE) as response:
                session = response.headers["x-macaron-session"]
                chunks = await events(response)
            await running.service.background.drain(1.0)
            (step,) = await steps(running, session)
    assert [chunk for chunk in chunks if "error" in chunk]
    assert content(chunks) == outputs(step)
    assert outputs(step).startswith("one")
    assert step.status == "failed"
    assert step.hops[-1].outcome not in ("ok", "cancelled")


async def test_an_engine_that_fails_before_its_first_word_is_an_error_with_a_status_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    async with EngineDouble(lambda seen: "L1" if seen.is_route else Reply(status=500)) as double:
        async with serve(write_profile(tmp_path, double.origin)) as running:
            for stream in (True, False):
                reply = await running.client.chat([user("hi")], stream=stream)
                assert reply.status == 502
            assert await all_steps(running) == []


async def test_what_a_cut_off_answer_said_is_part_of_the_conversation(tmp_path: Path) -> None:
    reply = Reply("one two three", fault="die", fault_after=3)
    async with EngineDouble(lambda seen: "L1" if seen.is_route else reply) as double:
        async with serve(write_profile(tmp_path, double.origin)) as running:
            async with running.client.stream([user("hi")], headers=TRACE) as response:
                session = response.headers["x-macaron-session"]
                text = content(await events(response))
            await running.service.background.drain(1.0)
            double.script = by_words({}, default="L1")
            again = await running.client.chat([user("hi"), said(text), user("go on")], headers=TRACE)
    assert again.headers["x-macaron-session"] == session


@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_an_answer_that_was_cut_by_the_engine_is_incomplete_and_not_summarised(
    tmp_path: Path, finish: str
) -> None:
    async with EngineDouble(lambda seen: "L1" if seen.is_route else Reply(LONG, finish=finish)) as double:
        async with serve(write_profile(tmp_path, double.origin)) as running:
            reply = await running.client.chat([user("hi")])
            await running.service.background.drain(1.0)
            (step,) = await all_steps(running)
    assert reply.body["choices"][0]["finish_reason"] == finish
    assert (step.status, step.finish, step.summary) == ("incomplete", finish, None)
    assert len(double.requests) == 2


async def test_every_choice_is_a_sibling_and_can_be_continued(tmp_path: Path) -> None:
    """The engine's choices differ, as they do at any temperature above zero."""

    def script(seen: Seen) -> Reply | str:
        if seen.is_route:
            return "L1"
        texts = ["the left", "the right", "the middle"]
        choices = [
            {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            for index, text in enumerate(texts[: seen.body.get("n", 1)])
        ]
        return Reply(raw=json.dumps({"object": "chat.completion", "choices": choices}).encode())

    async with EngineDouble(script) as double, serve(write_profile(tmp_path, double.origin)) as running:
        first = await running.client.chat([user("where?")], n=3, headers=TRACE)
        session = first.headers["x-macaron-session"]
        siblings = await steps(running, session)
        texts = [choice["message"]["content"] for choice in first.body["choices"]]
        for text in texts:
            history = [user("where?"), said(text), user(f"and after {text}?")]
            await running.client.chat(history)
            assert [message["content"] for message in shown(double.requests[-1])] == [m["content"] for m in history]
        later = (await steps(running, session))[3:]
    assert [outputs(step) for step in siblings] == texts
    assert {step.parent for step in siblings} == {None}
    assert [step.parent for step in later] == [step.id for step in siblings]
    assert siblings[0].id == first.body["id"]


async def test_streamed_choices_are_siblings_too(tmp_path: Path) -> None:
    async with EngineDouble(by_words({}, answer="one two")) as double:
        async with serve(write_profile(tmp_path, double.origin)) as running:
            async with running.client.stream([user("hi")], n=2, headers=TRACE) as response:
                session = response.headers["x-macaron-session"]
                chunks = await events(response)
            siblings = await steps(running, session)
    assert [content(chunks, choice) for choice in (0, 1)] == ["one two", "one two"]
    assert [outputs(step) for step in siblings] == ["one two", "one two"]


async def test_a_conversation_that_does_not_fit_is_400_in_the_dialect_clients_compact_on(tmp_path: Path) -> None:
    error = {"message": "This model's maximum context length is 8192 tokens. You requested 9000.", "code": 400}
    async with EngineDouble(lambda seen: "L1" if seen.is_route else Reply(status=400, error=error)) as double:
        async with serve(write_profile(tmp_path, double.origin)) as running:
            for stream in (False, True):
                reply = await running.client.chat([user("hi")], stream=stream)
                assert (reply.status, reply.body["error"]["code"]) == (400, "context_length_exceeded")
                assert reply.body["error"]["type"] == "invalid_request_error"
            assert await all_steps(running) == []


async def test_a_step_records_who_answered_under_which_generation_and_contract(tmp_path: Path) -> None:
    async with EngineDouble(by_words({}, default="L3", answer="done")) as double:
        async with serve(write_profile(tmp_path, double.origin)) as running:
            reply = await running.client.chat([user("hi")])
            (step,) = await all_steps(running)
            service = running.service
            assert (step.generation, step.contract) == (service.generation, service.loaded.digest)
    assert isinstance(step, Step)
    assert (step.id, step.label, step.revision) == (reply.body["id"], "L3", "unverified:L3")
    assert [hop.kind for hop in step.hops] == ["route", "answer"]
    assert step.hops[1].usage.completion == 1
