"""`[store] chat = "digests"`: no text of a conversation reaches the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from macaron.mol.note import clip
from tests.doubles.engine_double import Call, EngineDouble, Reply, Seen
from tests.harness import serve, write_profile
from tests.mol.coder import NOTE, answers, coded, engine, note
from tests.mol.talk import LONG, TOOLS, TRACE, is_summary, said, shown, user
from tests.mol.talk import result as tool_message

MORE = '[store]\nchat = "digests"'


def on_disk(folder: Path) -> bytes:
    """All bytes of a store's files."""
    return b"".join(path.read_bytes() for path in folder.glob("store.db*"))


@pytest.mark.parametrize("mode", ["digests", "full"])
async def test_no_text_reaches_the_file_and_sessions_are_found(tmp_path: Path, database: str, mode: str) -> None:
    """With `full` the words are found, which shows that the search would find them."""
    script = engine(lambda: "mandarin summary", answer="tangerine " * 400)
    async with EngineDouble(script) as double:
        document = write_profile(tmp_path, double.origin, more=f'[store]\nchat = "{mode}"')
        async with serve(document, database) as running:
            history = [{"role": "system", "content": "persimmon"}, user("code pineapple")]
            first = await running.client.chat(history, headers=TRACE, tools=TOOLS)
            await double.arrived(3)
            history += [said(first), user("plan clementine")]
            second = await running.client.chat(history, headers=TRACE, tools=TOOLS)
            assert second.headers["x-macaron-session"] == first.headers["x-macaron-session"]
            # The write-ahead log counts too, and closing the store would move what is in it.
            data = on_disk(tmp_path)
        data += on_disk(tmp_path)
    assert first.headers["x-macaron-session"].encode() in data
    words = ("pineapple", "mandarin", "tangerine", "clementine")
    found = [word for word in (*words, "persimmon") if word.encode() in data]
    assert found == (list(words) if mode == "full" else [])


async def test_notes_are_summaries_kept_in_memory(tmp_path: Path, database: str) -> None:
    async with EngineDouble(engine(lambda: "the summary")) as double:
        async with serve(write_profile(tmp_path, double.origin, more=MORE), database) as running:
            history = await coded(running)
            await running.service.background.drain(5.0)
            await running.client.chat([*history, user("plan a trip")])
            assert note(double) == NOTE.format("the summary")
            await running.client.chat([*history, user("make a page")])
            assert note(double) == NOTE.format("the summary")


async def test_a_short_answer_needs_no_summary_here_either(tmp_path: Path, database: str) -> None:
    async with EngineDouble(engine(lambda: "never", answer="short answer")) as double:
        async with serve(write_profile(tmp_path, double.origin, more=MORE), database) as running:
            history = await coded(running)
            await running.service.background.drain(5.0)
            await running.client.chat([*history, user("plan a trip")])
    assert note(double) == NOTE.format("short answer")
    assert not [seen for seen in double.requests if is_summary(seen)]


async def test_tool_results_stay_with_their_specialist_through_a_restart(tmp_path: Path, database: str) -> None:
    def script(seen: Seen) -> Reply | str:
        if seen.is_route:
            return "L2"
        return "done" if shown(seen)[-1]["role"] == "tool" else Reply(calls=(Call("weather"),))

    async with EngineDouble(script) as double:
        document = write_profile(tmp_path, double.origin, more=MORE)
        async with serve(document, database) as running:
            history = await coded(running, tools=TOOLS)
        async with serve(document, database) as running:
            history[1]["tool_calls"][0]["id"] = "rewritten"
            history.append(tool_message("rewritten", "rain"))
            reply = await running.client.chat(history, tools=TOOLS, headers=TRACE)
    assert (reply.adapter, reply.headers["x-macaron-hops"], reply.text) == ("L2", "answer", "done")
    assert [message["role"] for message in shown(answers(double)[-1])] == ["user", "assistant", "tool"]


async def test_after_a_restart_the_visible_answer_serves(tmp_path: Path, database: str) -> None:
    async with EngineDouble(engine(lambda: "the summary")) as double:
        document = write_profile(tmp_path, double.origin, more=MORE)
        async with serve(document, database) as running:
            history = await coded(running)
        async with serve(document, database) as running:
            await running.client.chat([*history, user("plan a trip")])
    assert note(double) == NOTE.format(clip(LONG.strip(), 768))
