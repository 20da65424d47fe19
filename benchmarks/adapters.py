"""`python -m benchmarks.adapters`: what many adapters of one base cost, beside as many merged copies of it.

Memory and tokens a second for 1, 4, 16 and 64 adapters of rank 8 on each engine that runs here, and the seconds from a
registration to the first routed answer. The adapters have random weights: only size and speed are measured, not sense.

Merged copies run in an engine each. More of them than `COPIES` are not started: their memory and speed stand in the
table as computed, from what one copy more took.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import uvloop
from tests.models.markers import saying
from tests.models.peft_folder import tensors, write_folder
from tests.registry.check.adapters import TARGETS
from tests.service.test_adapters import SMOLLM2
from tests.vllm import server as vllm

import macaron.profiles
from benchmarks import report
from benchmarks.process import Process, free_port, leave_on_sigterm, memory_of
from benchmarks.report import Grid, number
from macaron.conversation import Usage
from macaron.engine.base import HopRequest
from macaron.engine.link import create_link
from macaron.engine.llamacpp.config import EngineConfig
from macaron.engine.llamacpp.engine import LlamaCppEngine
from macaron.engine.llamacpp.launch import EngineChild
from macaron.engine.llamacpp.params import LaunchParams
from macaron.hcp import load
from macaron.models import fetch_weights
from macaron.models.merge import merge_gguf
from macaron.profiles.adapters import gguf_adapter
from macaron.registry.revision import adapter_revision

COUNTS = (1, 4, 16, 64)
COPIES = (1, 4)
RANK = 8
CLIENTS, REQUESTS, TOKENS = 16, 128, 16
SLOT_CONTEXT = 512
READY_SECONDS = 600.0
MEBIBYTE = 1024 * 1024
QUESTION = "Explain in a few sentences how a bakery plans its night, case {}."
ROUTED = "Write a Python function that returns the second largest number of a list."
KEY = "bench-owner-key-0123456789"


class Figure(msgspec.Struct, frozen=True):
    """One row. Memory is proportional, of all processes of the engines, in bytes; speed in answer tokens a second."""

    engine: str
    kind: str
    count: int
    memory: int
    speed: float
    measured: bool = True


class First(msgspec.Struct, frozen=True):
    """Seconds after a registration was sent."""

    engine: str
    registered: float
    proved: float
    answered: float


class Ask(msgspec.Struct, frozen=True):
    """One question to one of the things measured."""

    engine: Any
    adapter: str | None


async def speed_of(asks: Sequence[Ask]) -> float:
    """Answer tokens a second of `CLIENTS` clients that go round all of them."""
    await asyncio.gather(*(_answer(ask, number) for number, ask in enumerate(asks)))  # every prompt's head is cached
    numbers = iter(range(REQUESTS))
    tokens = 0

    async def client() -> None:
        nonlocal tokens
        for turn in numbers:
            tokens += await _answer(asks[turn % len(asks)], turn)

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return tokens / (time.perf_counter() - began)


async def _answer(ask: Ask, turn: int) -> int:
    messages = [
        {"role": "system", "content": "You help in a bakery."},
        {"role": "user", "content": QUESTION.format(turn)},
    ]
    options = {"temperature": 0, "max_tokens": TOKENS, "ignore_eos": True}
    hop = HopRequest("answer", ask.adapter, messages, options, timeout=READY_SECONDS)
    used = Usage()
    async with aclosing(ask.engine.answer(hop)) as batches:
        async for batch in batches:
            used = next((event for event in batch if isinstance(event, Usage)), used)
    return used.completion


@asynccontextmanager
async def embedded(weights: Path, template: str, adapters: Sequence[Path]) -> AsyncIterator[tuple[Any, EngineChild]]:
    """The embedded engine with these adapters, or on the bare base."""
    names = tuple(f"A{number}" for number in range(len(adapters)))
    config = EngineConfig("", "", names, specialists=names or (None,), slot_context=SLOT_CONTEXT)
    child = EngineChild(
        LaunchParams(
            weights=str(weights), port=0, api_key="", adapters=tuple(map(str, adapters)), slots=config.slots,
            slot_context=SLOT_CONTEXT, chat_template=template,
        )
    )  # fmt: skip
    await child.start()
    try:
        await child.wait_ready(READY_SECONDS)
        config = msgspec.structs.replace(config, origin=child.origin, api_key=child.api_key)
        engine = LlamaCppEngine(config, partial(create_link, "native"))
        await engine.start()
        try:
            yield engine, child
        finally:
            await engine.close()
    finally:
        await child.stop()


async def measure_embedded(folder: Path, weights: Path, template: str, counts: Sequence[int]) -> list[Figure]:
    """Adapters on one base, then merged copies."""
    found = []
    files = [gguf_adapter(peft, weights, cache_dir=folder / "cache") for peft in peft_folders(folder, max(counts))]
    for count in counts:
        async with embedded(weights, template, files[:count]) as (engine, child):
            speed = await speed_of([Ask(engine, f"A{number}") for number in range(count)])
            found.append(Figure("embedded", "adapters", count, memory_of([child.pid or 0]).pss, speed))
    copies = [folder / f"copy{number}.gguf" for number in range(max(COPIES))]
    for peft, copy in zip(peft_folders(folder, len(copies)), copies, strict=True):
        merge_gguf(weights, peft, copy)
    merged = []
    for count in COPIES:
        async with AsyncExitStack() as stack:
            running = [await stack.enter_async_context(embedded(copy, template, ())) for copy in copies[:count]]
            speed = await speed_of([Ask(engine, None) for engine, _ in running])
            memory = memory_of([child.pid or 0 for _, child in running]).pss
            merged.append(Figure("embedded", "merged copies", count, memory, speed))
    return found + completed(merged, counts)


def completed(merged: list[Figure], counts: Sequence[int]) -> list[Figure]:
    """With the counts that were not measured, from what each copy more took."""
    first, last = merged[0], merged[-1]
    more = (last.memory - first.memory) / max(1, last.count - first.count) or first.memory
    known = {figure.count: figure for figure in merged}
    return [
        known.get(count)
        or msgspec.structs.replace(
            last, count=count, memory=round(first.memory + more * (count - first.count)), measured=False
        )
        for count in counts
    ]


def peft_folders(folder: Path, count: int) -> list[Path]:
    """So many adapters for the base, in PEFT's format."""
    made = []
    for seed in range(count):
        target = folder / "peft" / f"A{seed}"
        if not target.is_dir():
            weights = tensors(SMOLLM2, RANK, seed=seed)
            write_folder(target, weights, r=RANK, lora_alpha=2 * RANK, target_modules=TARGETS)
        made.append(target)
    return made


async def measure_vllm(folder: Path, weights: Path, counts: Sequence[int]) -> list[Figure]:
    """Adapters that a running vLLM was started for, then one copy of the base without any, taken so many times."""
    from macaron.engine.special import SpecialTokens
    from macaron.engine.vllm import VllmEngine

    models = vllm.built_models(weights)
    peft = peft_folders(folder, max(counts))
    found = []
    for count in (0, *counts):
        lora = ["--enable-lora", "--max-lora-rank", str(RANK), "--max-loras", str(count)] if count else []
        with _running_vllm(models, folder / f"vllm-{count}.log", lora) as (url, process):
            engine = VllmEngine(create_link("native", url), base_model="base", special=SpecialTokens(()))
            await engine.start()
            for number in range(count):
                await engine.load_adapter(f"A{number}", str(peft[number]))
            speed = await speed_of([Ask(engine, f"A{number}") for number in range(count)] or [Ask(engine, None)])
            found.append(Figure("vLLM", "adapters", count, process.memory().pss, speed))
            await engine.close()
    bare, *adapted = found
    one = msgspec.structs.replace(bare, kind="merged copies", count=1)
    return adapted + completed([one], counts)


@contextmanager
def _running_vllm(models: Path, log: Path, lora: list[str]) -> Iterator[tuple[str, Process]]:
    port = free_port()
    argv = [str(vllm.PYTHON), "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1", "--port", str(port)]
    argv += ["--model", str(models / "base"), "--served-model-name", "base", "--dtype", "float32", "--enforce-eager"]
    argv += ["--max-model-len", str(SLOT_CONTEXT), *lora]
    with Process("vLLM", argv, log, vllm.SWITCHES, log.parent) as process:
        process.wait_ready(port, "/health", READY_SECONDS)
        yield f"http://127.0.0.1:{port}", process


async def measure_first(folder: Path, profile: Path, weights: Path, rounds: int) -> list[First]:
    """Register a revision of the label that a question is routed to, promote it, and ask until it answers."""
    home = folder / "home"
    home.mkdir()
    keys = home / "keys"
    keys.write_text(f"owner:{KEY}:chat,trace,pin,admin")
    keys.chmod(0o600)
    port = free_port()
    argv = ["-m", "macaron", "serve", "--profile", str(profile), "--port", str(port), "--store", f"sqlite://{home}/db"]
    with _service(argv, folder / "service.log", keys) as process:
        process.wait_ready(port, "/ready", READY_SECONDS)
        head = {"authorization": f"Bearer {KEY}"}
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=head) as session:
            adapters = [saying(folder / "first" / word, weights, word) for word in ("tea", "apple", "music")[:rounds]]
            return [await _first(session, adapter) for adapter in adapters]


def _service(argv: list[str], log: Path, keys: Path) -> Process:
    return Process("macaron", [sys.executable, *argv], log, {"MOL_API_KEY_FILE": str(keys)})


async def _first(session: aiohttp.ClientSession, adapter: Path) -> First:
    path = "/v1/admin/adapters"
    began = time.perf_counter()
    await _json(session, "POST", path, {"label": "L2", "folder": str(adapter), "override": True})
    registered = time.perf_counter() - began
    await _until_ready(session, f"{path}/L2")
    proved = time.perf_counter() - began
    await _json(session, "POST", f"{path}/L2/promote", {"waive_route_check": "a benchmark"})
    body = {"model": "macaron-demi", "messages": [{"role": "user", "content": ROUTED}], "max_tokens": 4}
    answer = await _json(session, "POST", "/v1/chat/completions", body)
    if answer["metadata"]["macaron_revision"] != adapter_revision(adapter):
        raise RuntimeError(f"another revision answered: {answer['metadata']}")
    return First("embedded", registered, proved, time.perf_counter() - began)


async def _until_ready(session: aiohttp.ClientSession, path: str) -> None:
    state = ""
    while state != "ready":
        engine = (await _json(session, "GET", path))["revisions"][-1]["engine"] or {}
        if (state := engine.get("state", "")) == "failed":
            raise RuntimeError(f"the engine does not use it: {engine}")
        await asyncio.sleep(0.02)


async def _json(session: aiohttp.ClientSession, method: str, path: str, body: Any = None) -> Any:
    async with session.request(method, path, json=body, headers={"x-macaron-trace": "1"}) as answer:
        said = await answer.json()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path} answered {answer.status}: {said}")
        return said


def write_profile(folder: Path) -> Path:
    """A copy of `demi` that reads adapters from the folder, with slots as small as the other rows'."""
    target = folder / "profile"
    shutil.copytree(Path(macaron.profiles.__file__).parent / "demi", target)
    document = target / "profile.toml"
    text = document.read_text().replace("slot_context = 8192", f"slot_context = {2 * SLOT_CONTEXT}")
    document.write_text(f'{text}\n[registry]\nroots = ["{folder / "first"}"]\n')
    return document


def grids_of(figures: list[Figure], firsts: list[First]) -> list[Grid]:
    """The tables."""
    rows = [
        (
            figure.engine,
            figure.kind,
            str(figure.count),
            number(figure.memory / MEBIBYTE),
            number(figure.speed, 1) if figure.measured else "–",
            "measured" if figure.measured else "computed",
        )
        for figure in figures
    ]
    columns = ("engine", "what", "count", "memory MiB", "tokens/s", "")
    title = f"{CLIENTS} clients, {REQUESTS} answers of {TOKENS} tokens, rank {RANK}"
    times = [
        (item.engine, str(place), *(number(value, 2) for value in (item.registered, item.proved, item.answered)))
        for place, item in enumerate(firsts, 1)
    ]
    heads = ("engine", "round", "registered s", "proved s", "first routed answer s")
    return [Grid(title, columns, rows), Grid("From a registration on", heads, times)]


async def measure(folder: Path, counts: Sequence[int], rounds: int, engines: Sequence[str]) -> list[Grid]:
    """Everything, one after another."""
    profile = write_profile(folder)
    loaded = load(str(profile))
    assert loaded.contract.engine.weights is not None
    weights = fetch_weights(loaded.contract.engine.weights)
    figures: list[Figure] = []
    firsts: list[First] = []
    if "embedded" in engines:
        template = loaded.text("engine.llamacpp.chat_template_path")
        figures += await measure_embedded(folder, weights, template, counts)
        firsts = await measure_first(folder, profile, weights, rounds)
    if "vllm" in engines and vllm.STAMP.exists():
        figures += await measure_vllm(folder, weights, counts)
    grids = grids_of(figures, firsts)
    report.write("adapters", {"figures": figures, "firsts": firsts}, grids)
    return grids


def main() -> None:
    """Run, print, write the results."""
    leave_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1 and 4 adapters, one registration")
    parser.add_argument("--engine", choices=("embedded", "vllm"), help="only one of them")
    options = parser.parse_args()
    engines = (options.engine,) if options.engine else ("embedded", "vllm")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="macaron-bench-") as folder:
        counts, rounds = (COUNTS[:2], 1) if options.quick else (COUNTS, 3)
        grids = uvloop.run(measure(Path(folder), counts, rounds, engines))
    report.show(grids)
    print(report.markdown(grids))
    print(f"{report.description()}; {time.monotonic() - began:.0f} s; written to {report.RESULTS}")


if __name__ == "__main__":
    main()
