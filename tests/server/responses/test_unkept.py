"""`store: false` over several turns and specialists: no text reaches the disk, and views lose nothing meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from macaron.hcp import load
from tests.doubles.engine_double import EngineDouble, Reply, Seen
from tests.harness import Running, serve, write_profile

LONG = "tangerine " * 400


def script(seen: Seen) -> Reply:
    """`code` goes to L1 and `plan` to L3; long answers, and a summary of one word."""
    if seen.is_route:
        question = seen.prompt
        return Reply("L3" if "clementine" in question else "L1")
    if "Summarise what you did." in seen.prompt:
        return Reply("mandarin")
    return Reply(LONG)


async def respond(running: Running, items: list[dict[str, Any]], store: bool) -> list[dict[str, Any]]:
    """One turn with everything sent again; returns the whole conversation."""
    body = {"model": "test-model", "input": items, "store": store}
    reply = await running.client.post(body, path="/v1/responses")
    assert reply.status == 200, reply.body
    await running.service.background.drain(5)
    return [*items, *reply.body["output"]]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def on_disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("store.db*"))


@pytest.mark.parametrize("store", [False, True])
async def test_neither_words_nor_summaries_nor_notes_reach_the_file(tmp_path: Path, store: bool) -> None:
    """With `store: true` the words are found, which shows that the search would find them."""
    async with EngineDouble(script) as double:
        loaded = await asyncio.to_thread(load, write_profile(tmp_path, double.origin))
        async with serve(loaded, f"sqlite://{tmp_path / 'store.db'}") as running:
            items = await respond(running, [user("code pineapple")], store)
            items = await respond(running, [*items, user("plan clementine")], store)
            # L3 saw L1's turn by its summary: it was there although it was kept nowhere.
            seen = next(
                request for request in reversed(double.requests) if request.body["messages"][-1]["role"] == "user"
            )
            assert "mandarin" in double.requests[-2].prompt + seen.prompt
            data = await asyncio.to_thread(on_disk, tmp_path)
        data += await asyncio.to_thread(on_disk, tmp_path)
    words = ["pineapple", "clementine", "tangerine", "mandarin"]
    assert [word for word in words if word.encode() in data] == (words if store else [])


async def test_a_kept_turn_after_one_that_is_not_keeps_no_note_of_it(tmp_path: Path) -> None:
    async with EngineDouble(script) as double:
        loaded = await asyncio.to_thread(load, write_profile(tmp_path, double.origin))
        async with serve(loaded, f"sqlite://{tmp_path / 'store.db'}") as running:
            first = await running.client.post(
                {"model": "test-model", "input": [user("code pineapple")], "store": False}, path="/v1/responses"
            )
            await running.service.background.drain(5)
            items = [user("code pineapple"), *first.body["output"], user("plan clementine")]
            await running.client.post({"model": "test-model", "input": items}, path="/v1/responses")
            (step, *_) = await running.service.store.path("local", first.body["id"])
            assert (step.inputs, step.outputs, step.summary, step.note) == (None, None, None, None)
