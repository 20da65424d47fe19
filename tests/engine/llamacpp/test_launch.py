"""The engine's process lives as long as its parent wants, no longer, and says why it did not start."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from macaron.engine.llamacpp.client import ServerClient
from macaron.engine.llamacpp.launch import Backoff, EngineChild
from macaron.engine.llamacpp.params import LaunchParams
from macaron.engine.llamacpp.watch import Rule, Watch
from macaron.errors import EngineError, Unavailable
from tests.engine.llamacpp.conftest import native_link
from tests.engine.llamacpp.hops import rest_of, until
from tests.engine.llamacpp.lora_fixture import BaseShape, write_lora

pytestmark = pytest.mark.engine
READY_SECONDS = 60.0
PATIENT = Rule(every=60.0, timeout=60.0, failures=2)

PARENT = """
import asyncio, sys
import msgspec
from macaron.engine.llamacpp.launch import EngineChild
from macaron.engine.llamacpp.params import LaunchParams

async def main() -> None:
    child = EngineChild(msgspec.json.decode(sys.stdin.readline(), type=LaunchParams))
    await child.start()
    await child.wait_ready(60)
    print(child.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@asynccontextmanager
async def started(
    params: LaunchParams, backoff: Backoff | None = None, watch: Watch | None = None
) -> AsyncIterator[EngineChild]:
    child = EngineChild(params, backoff=backoff, watch=watch)
    await child.start()
    try:
        yield child
    finally:
        await child.stop()


def is_running(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def shown_to_everybody(child: EngineChild) -> bytes:
    process = Path(f"/proc/{child.pid}")
    return (process / "cmdline").read_bytes() + (process / "environ").read_bytes()


async def status(child: EngineChild, api_key: str) -> int:
    link = native_link()(child.origin, headers={"authorization": f"Bearer {api_key}"})
    try:
        return (await link.request("GET", "/v1/models")).status
    finally:
        await link.close()


STOPPER = """
import ctypes, os, sys
from pathlib import Path

SEIZE, INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000

def spent(task: Path) -> int:
    fields = (task / "stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])

tasks = list(Path(f"/proc/{sys.argv[1]}/task").iterdir())
busiest = int(max(tasks, key=spent).name)
libc = ctypes.CDLL(None)
for request in (SEIZE, INTERRUPT):
    if libc.ptrace(request, busiest, None, None) != 0:
        sys.exit(1)
os.waitpid(busiest, WALL)
print("stopped", flush=True)
os.waitpid(busiest, WALL)
"""


@asynccontextmanager
async def one_thread_stopped(pid: int) -> AsyncIterator[None]:
    """Stop the thread of a process that has computed most, and only that; it ends with the process."""
    tracer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", STOPPER, str(pid), stdout=asyncio.subprocess.PIPE
    )
    assert tracer.stdout is not None
    if await asyncio.wait_for(tracer.stdout.readline(), 10) != b"stopped\n":
        await tracer.wait()
        pytest.skip("this system lets no process stop another one's thread")
    try:
        yield
        await asyncio.wait_for(tracer.wait(), 10)
    finally:
        with contextlib.suppress(ProcessLookupError):
            tracer.kill()


async def events_from(client: ServerClient, body: dict[str, Any]) -> None:
    """Read an answer to its end; it has one."""
    batches = [batch async for batch in client.stream(body)]
    assert sum(map(len, batches))


async def test_engine_serves_only_with_its_key(launch_params: LaunchParams) -> None:
    async with started(launch_params) as child:
        await child.wait_ready(READY_SECONDS)
        assert child.alive
        assert await status(child, child.api_key) == 200
        assert await status(child, "guess") == 401


async def test_key_is_in_neither_arguments_nor_environment(launch_params: LaunchParams) -> None:
    async with started(launch_params) as child:
        assert child.api_key.encode() not in shown_to_everybody(child)


async def test_environment_of_the_service_is_not_passed_on(
    launch_params: LaunchParams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET_OF_THE_SERVICE", "x")
    async with started(launch_params) as child:
        assert b"A_SECRET_OF_THE_SERVICE" not in shown_to_everybody(child)


async def test_stop_ends_the_process(launch_params: LaunchParams) -> None:
    async with started(launch_params) as child:
        await child.wait_ready(READY_SECONDS)
        pid = child.pid
        assert pid is not None
    assert not child.alive
    assert not is_running(pid)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
async def test_signals_for_the_whole_service_do_not_end_it(launch_params: LaunchParams, sent: signal.Signals) -> None:
    async with started(launch_params) as child:
        await child.wait_ready(READY_SECONDS)
        assert child.pid is not None
        os.kill(child.pid, sent)
        assert await status(child, child.api_key) == 200


async def test_killed_engine_is_restarted_on_the_same_port_with_the_same_key(launch_params: LaunchParams) -> None:
    async with started(launch_params, Backoff(first=0.01)) as child:
        await child.wait_ready(READY_SECONDS)
        supervisor = asyncio.create_task(child.supervise())
        first, origin = child.pid, child.origin
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await until(lambda: child.restarts == 1 and child.pid not in (None, first))
        await child.wait_ready(READY_SECONDS)
        assert child.origin == origin
        assert await status(child, child.api_key) == 200
    await asyncio.wait_for(supervisor, 5)


async def test_engine_that_hangs_is_killed_and_restarted(
    launch_params: LaunchParams, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "macaron.engine")
    watch = Watch(health=Rule(0.01, 0.1, 3), work=PATIENT)
    async with started(launch_params, Backoff(first=0.01), watch) as child:
        await child.wait_ready(READY_SECONDS)
        supervisor = asyncio.create_task(child.supervise())
        first = child.pid
        assert first is not None
        await until(lambda: "the engine serves" in caplog.text)
        os.kill(first, signal.SIGSTOP)
        await until(lambda: child.restarts == 1 and child.pid not in (None, first))
        await child.wait_ready(READY_SECONDS)
        assert not is_running(first)
        assert await status(child, child.api_key) == 200
    await asyncio.wait_for(supervisor, 5)
    assert "the engine hangs: 3 calls of /health in a row failed; it is killed" in caplog.text


@pytest.mark.slow
async def test_engine_whose_computing_thread_hangs_is_killed_and_restarted(
    launch_params: LaunchParams, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "macaron.engine")
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 400, "stream": True, "ignore_eos": True}
    watch = Watch(health=Rule(0.05, 5.0, 1), work=Rule(0.05, 3.0, 2))
    async with started(launch_params, Backoff(first=0.01), watch) as child:
        await child.wait_ready(READY_SECONDS)
        supervisor, first = asyncio.create_task(child.supervise()), child.pid
        assert first is not None
        await until(lambda: "the engine serves" in caplog.text)
        headers = {"authorization": f"Bearer {child.api_key}"}
        client = ServerClient(native_link()(child.origin, headers=headers))
        stream = client.stream(body)
        await anext(stream)
        async with one_thread_stopped(first):
            await until(lambda: child.restarts == 1 and child.pid not in (None, first), 20)
        await child.wait_ready(READY_SECONDS)
        with pytest.raises(EngineError):
            await rest_of(stream)
        await client.close()
    await asyncio.wait_for(supervisor, 5)
    assert "the engine hangs: 2 calls of /lora-adapters in a row failed; it is killed" in caplog.text


async def test_engine_that_does_not_come_to_serve_is_killed_and_restarted(launch_params: LaunchParams) -> None:
    async with started(launch_params, Backoff(first=0.01), Watch(PATIENT, PATIENT, loading=0.01)) as child:
        supervisor = asyncio.create_task(child.supervise())
        await until(lambda: child.restarts == 1, 30)
    await asyncio.wait_for(supervisor, 5)


@pytest.mark.slow
async def test_engine_that_reads_long_prompts_in_all_its_slots_is_not_taken_for_hung(
    launch_params: LaunchParams,
) -> None:
    body = {"messages": [{"role": "user", "content": "word " * 400}], "max_tokens": 1, "stream": True}
    async with started(launch_params, watch=Watch(Rule(0.01, 2.0, 1), Rule(0.3, 30.0, 1))) as child:
        await child.wait_ready(READY_SECONDS)
        supervisor, first = asyncio.create_task(child.supervise()), child.pid
        headers = {"authorization": f"Bearer {child.api_key}"}
        client = ServerClient(native_link()(child.origin, headers=headers))
        await asyncio.gather(*(events_from(client, {**body, "id_slot": slot}) for slot in range(launch_params.slots)))
        await client.close()
        assert (child.restarts, child.pid) == (0, first)
    await asyncio.wait_for(supervisor, 5)


async def test_engine_that_keeps_dying_is_restarted_ever_more_slowly(launch_params: LaunchParams) -> None:
    broken = replace(launch_params, weights="/nowhere.gguf")
    async with started(broken, Backoff(first=0.05, longest=0.2)) as child:
        supervisor = asyncio.create_task(child.supervise())
        await until(lambda: child.restarts == 1, 30)
        began = asyncio.get_running_loop().time()
        await until(lambda: child.restarts == 3, 30)
        assert asyncio.get_running_loop().time() - began >= 0.1 + 0.2
    await asyncio.wait_for(supervisor, 5)


async def test_missing_weights_are_named(launch_params: LaunchParams) -> None:
    async with started(replace(launch_params, weights="/nowhere.gguf")) as child:
        with pytest.raises(Unavailable, match=r"/nowhere\.gguf"):
            await child.wait_ready(READY_SECONDS)


async def test_adapter_of_another_shape_is_named_with_the_reason(launch_params: LaunchParams, tmp_path: Path) -> None:
    wrong = write_lora(tmp_path / "wrong.gguf", 1, shape=BaseShape(layers=2, hidden=288, heads=9))
    async with started(replace(launch_params, adapters=(str(wrong),))) as child:
        with pytest.raises(Unavailable, match=r"(?s)tensor.*wrong\.gguf"):
            await child.wait_ready(READY_SECONDS)


async def test_engine_that_is_still_loading_is_not_ready(launch_params: LaunchParams) -> None:
    async with started(launch_params) as child:
        with pytest.raises(Unavailable, match="not ready"):
            await child.wait_ready(0.001)


def test_child_starts_without_the_rest_of_the_service() -> None:
    program = "import sys, macaron.engine.llamacpp.child; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"asyncio", "aiohttp", "xllamacpp", "macaron.engine.base", "macaron.conversation"} & set(loaded)


async def test_child_refuses_parameters_it_does_not_know() -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "macaron.engine.llamacpp.child",
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await child.communicate(b'{"model": "x"}\n')
    assert child.returncode == 2
    assert b"launch parameters" in said


@pytest.mark.slow
def test_no_engine_outlives_a_killed_parent(launch_params: LaunchParams) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        parent.stdin.write(msgspec.json.encode(launch_params) + b"\n")
        parent.stdin.flush()
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.kill()
        parent.wait(10)
        try:
            asyncio.run(until(lambda: not is_running(pid), 10))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
