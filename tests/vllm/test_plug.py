"""Adapters that come and go while a real vLLM serves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from macaron.conversation import Answer
from macaron.engine.vllm import VllmEngine
from macaron.hcp import load
from macaron.mol.background import Background
from macaron.mol.doubts import Doubts
from macaron.mol.residency import Residency
from macaron.registry.desired import engine_name
from macaron.registry.revision import adapter_revision
from macaron.server.keys import read_keys
from tests.harness import Client, Running, serve
from tests.models.markers import HUGE, saying
from tests.mol.talk import content, events, user
from tests.vllm.server import built_models, memory_of
from tests.vllm.talk import GREEDY, QUESTION, Server, hop, pinned, profile

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.engine, pytest.mark.timeout(1800)]

KEY = {"authorization": "Bearer owner-key-0123456789"}
PATH = "/v1/admin/adapters"
CARD = {"name": "Poet", "description": "writes poems", "identity": "You are specialist L1."}
PATIENCE = 600.0
CLIENTS, TOKENS = 32, 4
CYCLES, WARM = 50, 10
MEBIBYTE = 1024 * 1024


@pytest.fixture
def models(weights: Path) -> Path:
    return built_models(weights)


class Desk:
    """An administrator of a service in front of vLLM."""

    def __init__(self, running: Running, vllm: Server) -> None:
        self.running = running
        self.client: Client = running.client
        self.vllm = vllm

    async def verb(self, path: str, **body: Any) -> Any:
        answer = await self.client.post(body, path=PATH + path, headers=KEY)
        assert answer.status < 300, answer.body
        return answer.body

    async def standing(self, label: str) -> dict[str, Any]:
        """What the engine says of the newest revision."""
        found: dict[str, Any] = (await self.client.get(f"{PATH}/{label}", KEY)).body["revisions"][-1]
        return {**found, "engine": found["engine"] or {}}

    async def until_engine(self, label: str, state: str) -> dict[str, Any]:
        """Wait until the newest revision is this far on the engine; returns it."""
        async with asyncio.timeout(PATIENCE):
            while (item := await self.standing(label))["engine"].get("state") != state:  # noqa: ASYNC110, vLLM works
                await asyncio.sleep(0.1)
        return item

    async def plugged(self, label: str, folder: Path, **more: Any) -> str:
        """Register, wait for the proof, and promote."""
        await self.verb("", label=label, folder=str(folder), **CARD, **more)
        item = await self.until_engine(label, "ready")
        await self.verb(f"/{label}/promote", waive_route_check="a test")
        return engine_name(label, item["revision"])

    async def until_listed(self, name: str, there: bool) -> None:
        async with asyncio.timeout(PATIENCE):
            while (name in await self.vllm.models()) is not there:  # noqa: ASYNC110, it is vLLM that changes it
                await asyncio.sleep(0.1)

    async def ask(self, label: str) -> str:
        answer = await self.client.chat([user(QUESTION)], headers={**KEY, **pinned(label)}, **GREEDY)
        assert answer.status == 200, answer.body
        assert answer.adapter == label
        return answer.text


@contextlib.asynccontextmanager
async def desk(folder: Path, origin: str, roots: tuple[Path, ...], vllm: Server) -> AsyncGenerator[Desk, None]:
    def prepared() -> Any:
        document = profile(folder, origin)
        listed = ", ".join(f'"{root}"' for root in roots)
        document.write_text(f"{document.read_text()}\n[registry]\nroots = [{listed}]\n")
        keys = folder / "keys"
        keys.write_text("owner:owner-key-0123456789:chat,trace,pin,admin")
        keys.chmod(0o600)
        return load(document), read_keys(keys)

    loaded, keys = await asyncio.to_thread(prepared)
    async with serve(loaded, keys=keys) as running:
        yield Desk(running, vllm)


@pytest.fixture
def marked(tmp_path: Path, weights: Path) -> Callable[..., Path]:
    """Makes an adapter that says one word, whatever it is asked."""

    def make(word: str, **more: Any) -> Path:
        return saying(tmp_path / "marked" / word, weights, word, **more)

    return make


async def test_a_plugged_adapter_answers_as_it_does_when_vllm_is_started_with_it(
    tmp_path: Path, origin: str, models: Path, vllm: Server
) -> None:
    async with desk(tmp_path, origin, (models,), vllm) as at:
        name = await at.plugged("L4", models / "L1")
        assert name == engine_name("L4", await asyncio.to_thread(adapter_revision, models / "L1"))
        # The same bytes and the same prompt as L1's.
        assert await at.ask("L4") == await at.ask("L1")
        await at.verb("/L4/disable")
        await at.until_listed(name, False)


class Streams:
    """Clients that stream all the time; `words` is what each label is to say now, and `newcomer` a label that every
    fourth of them asks."""

    def __init__(self, at: Desk, words: dict[str, str]) -> None:
        self._at = at
        self.words = {label: {word} for label, word in words.items()}
        self.newcomer = ""
        self.done = [0] * CLIENTS
        self.told: dict[str, set[str]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def _client(self, number: int) -> None:
        labels = ("L0", "L1")
        while True:
            label = self.newcomer if self.newcomer and number % 4 == 3 else labels[number % 2]
            before = set(self.words[label])
            fields: dict[str, Any] = {"temperature": 0, "max_tokens": TOKENS, "headers": {**KEY, **pinned(label)}}
            async with self._at.client.stream([user(f"{QUESTION} {number}")], **fields) as response:
                assert (response.status, response.headers["x-macaron-adapter"]) == (200, label)
                said = content(await events(response)).split()
            # A token may be a line's end.
            assert len(said) in (TOKENS - 1, TOKENS)
            assert len(set(said)) == 1
            assert said[0] in before | self.words[label]
            self.told.setdefault(label, set()).add(said[0])
            self.done[number] += 1

    @contextlib.asynccontextmanager
    async def flowing(self) -> AsyncGenerator[None, None]:
        self._tasks = [asyncio.create_task(self._client(number)) for number in range(CLIENTS)]
        try:
            yield
        finally:
            self.faults()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def faults(self) -> None:
        """Raise what a client found wrong."""
        for task in self._tasks:
            if task.done():
                task.result()

    async def all_answered(self) -> None:
        before = list(self.done)
        async with asyncio.timeout(PATIENCE):
            while any(now == then for now, then in zip(self.done, before, strict=True)):
                self.faults()
                await asyncio.sleep(0.05)


async def test_a_fifth_specialist_comes_and_goes_while_32_clients_stream(
    tmp_path: Path, origin: str, vllm: Server, marked: Callable[..., Path]
) -> None:
    async with desk(tmp_path, origin, (tmp_path / "marked",), vllm) as at:
        for label, word in (("L0", "tea"), ("L1", "river")):
            await at.plugged(label, marked(word), override=True)
        streams = Streams(at, {"L0": "tea", "L1": "river"})
        async with streams.flowing():
            await at.plugged("L4", marked("apple"))
            streams.words["L4"] = {"apple"}
            streams.newcomer = "L4"
            await streams.all_answered()
            streams.words["L4"] = {"apple", "music"}
            second = await at.plugged("L4", marked("music"))
            streams.words["L4"] = {"music"}
            await streams.all_answered()
            streams.words["L4"] = {"apple", "music"}
            await at.verb("/L4/rollback")
            streams.words["L4"] = {"apple"}
            await at.until_listed(second, False)
            await streams.all_answered()
            streams.newcomer = ""
            await streams.all_answered()
            await streams.all_answered()
            await at.verb("/L4/disable")
            await at.verb("/L4/remove")
            await streams.all_answered()
        assert streams.told == {"L0": {"tea"}, "L1": {"river"}, "L4": {"apple", "music"}}


async def test_fifty_loads_and_unloads_leave_the_engine_as_it_was(
    tmp_path: Path, origin: str, vllm: Server, marked: Callable[..., Path]
) -> None:
    async with desk(tmp_path, origin, (tmp_path / "marked",), vllm) as at:
        name = await at.plugged("L4", marked("apple"))
        before = 0
        for cycle in range(CYCLES + WARM):
            if cycle == WARM:
                before = memory_of(origin)
            await at.verb("/L4/disable")
            await at.until_listed(name, False)
            await at.verb("/L4/enable")
            await at.until_listed(name, True)
        more = memory_of(origin) - before
        await at.until_engine("L4", "ready")
        assert set((await at.ask("L4")).split()) == {"apple"}
    print(f"{CYCLES} cycles, vLLM grew by {more / MEBIBYTE:.1f} MiB")  # noqa: T201
    assert more < 32 * MEBIBYTE


async def test_finite_weights_that_overflow_are_refused_by_the_probe(
    tmp_path: Path, origin: str, vllm: Server, marked: Callable[..., Path]
) -> None:
    folder = marked("green", times=HUGE)
    async with desk(tmp_path, origin, (tmp_path / "marked",), vllm) as at:
        await at.verb("", label="L4", folder=str(folder), **CARD)
        item = await at.until_engine("L4", "failed")
        assert "not numbers" in item["engine"]["reason"]
        answer = await at.client.post({"waive_route_check": "a test"}, path=f"{PATH}/L4/promote", headers=KEY)
        assert answer.body["error"]["code"] == "not_probed"
        assert await at.ask("L0")


async def test_an_adapter_that_answers_nothing_for_want_of_numbers_is_found_out(
    engine: VllmEngine, marked: Callable[..., Path]
) -> None:
    found: list[tuple[str, str]] = []
    background = Background()
    doubts = Doubts(engine, Residency(), background)
    doubts.broken = lambda adapter, reason: found.append((adapter, reason))
    names = {"L8@000000000001": marked("green", times=HUGE), "L8@000000000002": marked("apple")}
    doubts.keep(frozenset(names))
    for name, folder in names.items():
        await engine.load_adapter(name, str(folder))
        doubts.saw(hop(name, [user(QUESTION)]), Answer(0, "", "length"))
    await background.drain(PATIENCE)
    for name in names:
        await engine.unload_adapter(name)
    [(broken, reason)] = found
    assert broken == "L8@000000000001"
    assert "not numbers" in reason or "equally likely" in reason
