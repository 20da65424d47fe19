"""`python -m benchmarks.embedded`: the service on its embedded engine, a real model with two real adapters.

Measured in one run: the tokens a second that reach a client at c=1 beside those of the same engine asked directly, with
the same launch parameters, prompt and adapter; the time a route hop takes; and how long one adapter waits while two
other clients keep another adapter busy. The adapters have random weights: only speed is measured, not sense.

Both engines run at the same time, but only one of them is ever asked.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from tests.engine.llamacpp.lora_fixture import write_lora

import macaron.profiles
from benchmarks import report
from benchmarks.candidates import Candidate, start_embedded
from benchmarks.http_client import Exchange, Pool
from benchmarks.process import leave_on_sigterm
from benchmarks.report import Grid, Target, number
from benchmarks.visible import rank
from benchmarks.workload import chat_request
from macaron.engine.llamacpp.launch import EngineChild
from macaron.engine.llamacpp.params import LaunchParams
from macaron.hcp import Loaded, load
from macaron.models import fetch_weights

BUSY, OTHER = "L1", "L2"
ANSWER_TOKENS = 96
QUESTION = "Explain in a few sentences how a bakery plans its night, case {}."
READY_SECONDS = 60.0


class Plan(msgspec.Struct, frozen=True):
    """How often everything is measured."""

    pairs: int
    routes: int
    waits: int


class Speed(msgspec.Struct, frozen=True):
    """Tokens a second of one answer: over its whole time, and from its first text to its end."""

    whole: float
    decode: float


class Figures(msgspec.Struct, frozen=True):
    """Everything measured. Times are seconds."""

    raw: list[Speed]
    service: list[Speed]
    routes: list[float]
    alone: list[float]
    contended: list[float]
    busy_answers: list[float]


def write_profile(folder: Path) -> Path:
    """A copy of `demi` in which two specialists have adapters."""
    source = Path(macaron.profiles.__file__).parent / "demi"
    target = folder / "profile"
    shutil.copytree(source, target)
    text = (target / "profile.toml").read_text()
    for seed, label in enumerate((BUSY, OTHER)):
        write_lora(target / f"{label}.gguf", seed)
        mark = f'label = "{label}"\n'
        if text.count(mark) != 1:
            raise ValueError(f"the profile names {label} {text.count(mark)} times")
        text = text.replace(mark, f'{mark}source = "{label}.gguf"\nformat = "gguf"\n')
    (target / "profile.toml").write_text(text)
    return target / "profile.toml"


@asynccontextmanager
async def raw_engine(loaded: Loaded, weights: Path) -> AsyncIterator[EngineChild]:
    """The same engine without the service, with the service's launch parameters."""
    section = loaded.contract.engine.llamacpp
    specialists = len(loaded.contract.mol.adapters)
    child = EngineChild(
        LaunchParams(
            weights=str(weights),
            port=0,
            api_key="",
            adapters=tuple(str(loaded.file(f"{label}.gguf")) for label in (BUSY, OTHER)),
            slots=1 + specialists * section.slots_per_adapter,
            slot_context=section.slot_context,
            batch=section.batch,
            threads=section.threads,
            chat_template=loaded.text("engine.llamacpp.chat_template_path"),
        )
    )
    await child.start()
    try:
        await child.wait_ready(READY_SECONDS)
        yield child
    finally:
        await child.stop()


def messages(system: str, question: str) -> list[dict[str, str]]:
    """A question with a system message."""
    return [{"role": "system", "content": system}, {"role": "user", "content": question}]


def speed_of(exchange: Exchange) -> Speed:
    """Tokens a second of a streamed answer that reports its usage."""
    tokens = 0
    for line in b"".join(exchange.body).split(b"\n"):
        if line.startswith(b"data: {") and (usage := msgspec.json.decode(line[6:]).get("usage")):
            tokens = usage["completion_tokens"]
    if exchange.status != 200 or tokens < 2:
        raise RuntimeError(f"answer {exchange.status} with {tokens} tokens: {b''.join(exchange.body)[:300]!r}")
    return Speed(tokens / (exchange.end - exchange.began), (tokens - 1) / (exchange.terminal - exchange.first))


class Service:
    """Asks the service."""

    def __init__(self, candidate: Candidate) -> None:
        self._candidate = candidate
        self._pool = Pool(candidate.port, keep_body=True)

    async def ask(self, question: str, tokens: int, label: str = "", stream: bool = True) -> Exchange:
        """One turn, on a specialist or routed; traced, so that the hops' times come with it."""
        body: dict[str, Any] = {"model": self._candidate.model, "max_tokens": tokens, "temperature": 0}
        body |= {"messages": [{"role": "user", "content": question}], "stream": stream}
        if stream:
            body["stream_options"] = {"include_usage": True}
        headers = {"x-macaron-trace": "1"} | ({"x-macaron-adapter": label} if label else {})
        exchange = await self._pool.exchange(chat_request(body, headers))
        if exchange.status != 200:
            raise RuntimeError(f"the service answered {exchange.status}: {b''.join(exchange.body)[:300]!r}")
        return exchange


async def measure_speed(
    service: Service, child: EngineChild, identity: str, pairs: int
) -> tuple[list[Speed], list[Speed]]:
    """The raw engine and the service in turn, the same prompts on the same adapter."""
    pool = Pool(int(child.origin.rpartition(":")[2]), keep_body=True)
    raw, served = [], []
    for turn in range(-1, pairs):
        question = QUESTION.format(turn)
        body: dict[str, Any] = {"messages": messages(identity, question), "max_tokens": ANSWER_TOKENS, "stream": True}
        body |= {"temperature": 0, "stream_options": {"include_usage": True}, "lora": [{"id": 0, "scale": 1.0}]}
        request = chat_request(body | {"id_slot": 1}, {"authorization": f"Bearer {child.api_key}"})
        pair = speed_of(await pool.exchange(request)), speed_of(await service.ask(question, ANSWER_TOKENS, BUSY))
        if turn >= 0:  # the first pair fills both caches
            raw.append(pair[0])
            served.append(pair[1])
    return raw, served


async def measure_routes(service: Service, count: int) -> list[float]:
    """Seconds of route hops, as the service traces them."""
    seconds = []
    for turn in range(count + 1):
        exchange = await service.ask(f"Route case {turn}: {QUESTION.format(turn)}", 1, stream=False)
        metadata = msgspec.json.decode(b"".join(exchange.body))["metadata"]
        seconds.append(float(metadata["macaron_route_seconds"]))
    return seconds[1:]


async def measure_waits(service: Service, count: int) -> tuple[list[float], list[float], list[float]]:
    """Time to first text on one adapter, alone and beside two clients of another; and those clients' answers."""

    async def first(turn: int, where: str) -> float:
        exchange: Exchange = await service.ask(f"Wait case {where} {turn}.", 4, OTHER)
        return exchange.first - exchange.began

    alone = [await first(turn, "alone") for turn in range(max(4, count // 4))]
    answers: list[float] = []

    async def keep_busy(client: int) -> None:
        for turn in _forever():
            exchange = await service.ask(f"Busy {client}: {QUESTION.format(turn)}", 64, BUSY)
            answers.append(exchange.end - exchange.began)

    spacing = random.Random(5)
    contended = []
    clients = [asyncio.create_task(keep_busy(client)) for client in range(2)]
    await asyncio.sleep(1.0)
    for turn in range(count):
        contended.append(await first(turn, "contended"))
        await asyncio.sleep(spacing.expovariate(2.0))
    for client in clients:
        client.cancel()
    await asyncio.gather(*clients, return_exceptions=True)
    return alone, contended, answers


def _forever() -> Iterator[int]:
    turn = 0
    while True:
        yield turn
        turn += 1


async def measure(candidate: Candidate, loaded: Loaded, weights: Path, plan: Plan) -> Figures:
    """Everything, one after another."""
    service = Service(candidate)
    identity = loaded.text(f"mol.adapters.{BUSY}.prompt_path").strip()
    async with raw_engine(loaded, weights) as child:
        raw, served = await measure_speed(service, child, identity, plan.pairs)
    routes = await measure_routes(service, plan.routes)
    return Figures(raw, served, routes, *await measure_waits(service, plan.waits))


def grids_of(figures: Figures, bound: float, admissions: int) -> tuple[list[Grid], list[Target]]:
    """Tables and targets."""

    def median(speeds: list[Speed], what: str) -> float:
        values: list[float] = [getattr(speed, what) for speed in speeds]
        return statistics.median(values)

    shares = [of.whole / raw.whole for of, raw in zip(figures.service, figures.raw, strict=True)]
    decodes = [of.decode / raw.decode for of, raw in zip(figures.service, figures.raw, strict=True)]
    speeds = [
        ("raw engine", number(median(figures.raw, "whole"), 1), number(median(figures.raw, "decode"), 1), "–"),
        (
            "service",
            number(median(figures.service, "whole"), 1),
            number(median(figures.service, "decode"), 1),
            f"{statistics.median(shares):.3f} ({min(shares):.3f}–{max(shares):.3f})",
        ),
    ]
    waits = [
        (name, number(rank(of, 0.5), 3), number(rank(of, 0.95), 3), number(rank(of, 0.99), 3), number(len(of)))
        for name, of in (
            ("route hop", figures.routes),
            (f"first text on {OTHER}, alone", figures.alone),
            (f"first text on {OTHER}, two clients on {BUSY}", figures.contended),
            (f"those clients' answers on {BUSY}", figures.busy_answers),
        )
    ]
    wait = rank(figures.contended, 0.99) - statistics.median(figures.alone)
    targets = [
        Target("share of the raw engine's tokens/s at c=1, whole answer", statistics.median(shares), 0.95, "×", True),
        Target("  the same from first text to end", statistics.median(decodes), 0.95, "×", True),
        Target(f"p99 wait of another adapter, bound {admissions} admissions of the gate", wait, round(bound, 1), "s"),
    ]
    columns = ("answers at c=1", "tokens/s, whole", "tokens/s, decoding", "share of raw, over pairs")
    tables = [Grid("Speed", columns, speeds), Grid("Times", ("", "p50 s", "p95 s", "p99 s", "samples"), waits)]
    return [*tables, report.targets_grid(targets)], targets


def main() -> None:
    """Run, print, write the results."""
    leave_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer samples, for a first look")
    options = parser.parse_args()
    plan = Plan(3, 5, 10) if options.quick else Plan(12, 30, 60)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="macaron-bench-") as folder, ExitStack() as stack:
        loaded = load(str(write_profile(Path(folder))))
        section = loaded.contract.engine
        assert section.weights is not None
        weights = fetch_weights(section.weights)
        candidate = start_embedded(
            Path(folder), Path(folder) / "profile" / "profile.toml", loaded.contract.mol.served_model
        )
        stack.callback(candidate.process.stop)
        figures = uvloop.run(measure(candidate, loaded, weights, plan))
    # The gate's own statement: allowance of an answer and a full turn of every adapter, in admissions.
    admissions = 8 + 3 * section.llamacpp.batch_requests
    grids, targets = grids_of(figures, admissions * statistics.median(figures.busy_answers), admissions)
    report.show(grids)
    written = report.write("embedded", {"plan": plan, "figures": figures, "targets": targets}, grids)
    print(f"{report.description()}; {time.monotonic() - began:.0f} s; written to {written}")


if __name__ == "__main__":
    main()
