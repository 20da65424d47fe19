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

import msgspec
import pytest
from msgspec.structs import replace

from macaron.engine.llamacpp.launch import Backoff, EngineChild
from macaron.engine.llamacpp.params import LaunchParams
from macaron.errors import Unavailable
from tests.engine.llamacpp.conftest import native_link
from tests.engine.llamacpp.hops import until
from tests.engine.llamacpp.lora_fixture import BaseShape, write_lora

pytestmark = pytest.mark.engine
READY_SECONDS = 60.0

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
async def started(params: LaunchParams, backoff: Backoff | None = None) -> AsyncIterator[EngineChild]:
    child = EngineChild(params, backoff=backoff)
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
