"""What is measured side by side: the double itself, the service, the floor prototype and LiteLLM's proxy."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from benchmarks.process import Process, ProcessError, free_port

ROOT = Path(__file__).resolve().parent.parent
PROFILE = ROOT / "benchmarks" / "profiles" / "instant" / "profile.toml"
FLOOR_FOLDER = ROOT.parent / "shared"
FLOOR = FLOOR_FOLDER / "floor_prototype.py"
LITELLM = ROOT / ".venv-litellm" / "bin" / "litellm"
LITELLM_KEY = "sk-bench-3f9d1c7a5e8b2460"


class Candidate(msgspec.Struct, frozen=True):
    """A running server under test. `model` is the name to ask for, `headers` go with every request."""

    name: str
    process: Process
    port: int
    model: str
    headers: dict[str, str] = {}


def start_engine(folder: Path, *options: str, name: str = "engine direct") -> Candidate:
    """Start the double with options of its command line."""
    port = free_port()
    argv = [sys.executable, "-m", "benchmarks.instant_engine", "--port", str(port), *options]
    process = Process(name, argv, folder / f"engine-{port}.log", cwd=ROOT)
    return _ready(Candidate(name, process, port, "L2"), "/health", 10)


def start_macaron(
    folder: Path,
    engine: Candidate,
    workers: int = 1,
    profile: Path = PROFILE,
    name: str = "",
    store: str = "",
    env: Mapping[str, str] | None = None,
) -> Candidate:
    """Start the service in front of `engine`: open on loopback unless `env` says more, a fresh store unless named."""
    port = free_port()
    name = name or f"macaron, {workers} worker{'s' if workers > 1 else ''}"
    argv = [sys.executable, "-m", "macaron", "serve", "--profile", str(profile), "--port", str(port)]
    argv += ["--engine", f"http://127.0.0.1:{engine.port}", "--workers", str(workers)]
    argv += ["--store", store or f"sqlite://{folder}/macaron-{port}.db"]
    process = Process(name, argv, folder / f"macaron-{port}.log", env or {"MOL_ALLOW_UNAUTHENTICATED": "1"}, ROOT)
    return _ready(Candidate(name, process, port, "macaron-bench"), "/ready", 30)


def start_embedded(folder: Path, profile: Path, model: str) -> Candidate:
    """Start the service on its embedded engine, open on loopback, with a fresh store; the weights must be here."""
    port = free_port()
    argv = [sys.executable, "-m", "macaron", "serve", "--profile", str(profile), "--port", str(port)]
    argv += ["--store", f"sqlite://{folder}/embedded.db"]
    process = Process("macaron, embedded", argv, folder / "embedded.log", {"MOL_ALLOW_UNAUTHENTICATED": "1"}, ROOT)
    return _ready(Candidate("macaron, embedded", process, port, model), "/ready", 60)


def start_floor(folder: Path, engine: Candidate, client: str) -> Candidate | None:
    """Start the floor prototype with one of its HTTP clients; None where the file is not there."""
    if not FLOOR.is_file():
        return None
    port = free_port()
    name = f"floor, {client}"
    argv = [sys.executable, "-m", "uvicorn", "floor_prototype:app", "--loop", "uvloop", "--http", "httptools"]
    argv += ["--port", str(port), "--log-level", "warning", "--no-access-log"]
    env = {"ENG": f"http://127.0.0.1:{engine.port}", "CLIENT": client, "DB": str(folder / f"floor-{client}.db")}
    process = Process(name, argv, folder / f"floor-{client}.log", env | {"PYTHONDONTWRITEBYTECODE": "1"}, FLOOR_FOLDER)
    return _ready(Candidate(name, process, port, "m"), "/health", 10)


def start_litellm(folder: Path, engine: Candidate) -> Candidate | None:
    """Start LiteLLM's proxy from its own environment; None where that is not installed."""
    if not LITELLM.is_file():
        return None
    port = free_port()
    config = folder / "litellm.yaml"
    config.write_text(
        "model_list:\n"
        "  - model_name: bench\n"
        f"    litellm_params: {{model: openai/L2, api_base: 'http://127.0.0.1:{engine.port}/v1', api_key: none}}\n"
        f"general_settings: {{master_key: {LITELLM_KEY}}}\n"
        "litellm_settings: {telemetry: false}\n"
    )
    argv = [str(LITELLM), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    env = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "LITELLM_MODE": "PRODUCTION"}
    process = Process("LiteLLM", argv, folder / "litellm.log", env)
    headers = {"authorization": f"Bearer {LITELLM_KEY}"}
    return _ready(Candidate("LiteLLM", process, port, "bench", headers), "/health/liveliness", 60)


def profile_copy(folder: Path, name: str, **switches: str) -> Path:
    """A copy of the benchmark profile in which the given keys, each written once, have other TOML values."""
    target = folder / name
    shutil.copytree(PROFILE.parent, target)
    lines = (target / "profile.toml").read_text().splitlines()
    for key, value in switches.items():
        places = [n for n, line in enumerate(lines) if line.startswith(f"{key} = ")]
        if len(places) != 1:
            raise ValueError(
                f"the benchmark profile writes {key!r} {len(places)} times; a switch must stand there once"
            )
        lines[places[0]] = f"{key} = {value}"
    (target / "profile.toml").write_text("\n".join(lines) + os.linesep)
    return target / "profile.toml"


def _ready(candidate: Candidate, path: str, seconds: float) -> Candidate:
    try:
        candidate.process.wait_ready(candidate.port, path, seconds)
    except ProcessError:
        candidate.process.stop()
        raise
    return candidate
