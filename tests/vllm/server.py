"""A real vLLM on the CPU: what it serves, made once and kept, and its process."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import platformdirs

from macaron.models import sha256_of, silent
from macaron.profiles import find_profile
from tests.processes import ROOT, until

PYTHON = ROOT / ".venv-vllm" / "bin" / "python"
STAMP = ROOT / ".venv-vllm" / ".installed"
BUILD = Path(__file__).with_name("build_models.py")
ADAPTERS = ("L0", "L1")
CONTEXT = 2048
START_SECONDS = 240.0
BUILD_SECONDS = 240.0
OFFLINE = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
SWITCHES = {
    **OFFLINE,
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
    # Log-probabilities are ranked by a function that is compiled anew for batches of another size, in spite of
    # `--enforce-eager`; nothing else runs meanwhile, for half a minute on a busy machine.
    "TORCHDYNAMO_DISABLE": "1",
}


def built_models(weights: Path) -> Path:
    """The folder with `base`, `L0` and `L1`, made from the weights if that was not done yet."""
    template = find_profile("demi").with_name("chat_template.jinja")
    made_of = (BUILD.read_bytes(), template.read_bytes(), sha256_of(weights, silent))
    cache = platformdirs.user_cache_path("macaron") / "tests"
    folder = cache / f"vllm-{sha256(repr(made_of).encode()).hexdigest()[:12]}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        begun = Path(tempfile.mkdtemp(prefix="vllm-", dir=cache))
        try:
            command = [PYTHON, BUILD, weights, template, begun]
            subprocess.run(command, env={**os.environ, **OFFLINE}, check=True, timeout=BUILD_SECONDS)
            begun.rename(folder)
        finally:
            shutil.rmtree(begun, ignore_errors=True)
    return folder


@contextmanager
def serving_vllm(models: Path, log: Path) -> Iterator[str]:
    """A vLLM with both adapters until the block ends; gives its origin."""
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [PYTHON, *_arguments(models, port)],
            env={**os.environ, **SWITCHES},
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        until(lambda: process.poll() is not None or _healthy(url), START_SECONDS, f"vLLM is healthy; its log is {log}")
        assert process.poll() is None, f"vLLM did not start: {log.read_text(errors='replace')[-4000:]}"
        yield url
    finally:
        _stop(process)


def memory_of(url: str) -> int:
    """Bytes of the server behind an origin, with the processes that it started."""
    mark = f"--port\0{url.rpartition(':')[2]}\0".encode()
    sessions = {pid: _session(pid) for pid in map(int, filter(str.isdigit, os.listdir("/proc")))}
    (leader,) = (pid for pid, session in sessions.items() if pid == session and mark in _read(pid, "cmdline"))
    return sum(_resident(pid) for pid, session in sessions.items() if session == leader)


def _session(pid: int) -> int:
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return int(fields[3]) if fields else 0


def _resident(pid: int) -> int:
    pages = _read(pid, "statm").split()
    return int(pages[1]) * os.sysconf("SC_PAGE_SIZE") if pages else 0


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _arguments(models: Path, port: int) -> list[str]:
    named = ["--host", "127.0.0.1", "--port", str(port), "--model", str(models / "base"), "--served-model-name", "base"]
    adapters = [f"{name}={models / name}" for name in ADAPTERS]
    lora = ["--enable-lora", "--max-lora-rank", "16", "--max-loras", "4", "--lora-modules", *adapters]
    tools = ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
    # Full precision keeps greedy answers apart from each other's batches.
    size = ["--max-model-len", str(CONTEXT), "--dtype", "float32", "--enforce-eager"]
    server = "vllm.entrypoints.openai.api_server"
    return ["-m", server, *named, *lora, *tools, *size, "--enable-prefix-caching", "--enable-prompt-tokens-details"]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=2) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and the engine processes that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(20)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(5)
