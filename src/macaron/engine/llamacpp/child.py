"""The engine's process: `python -m macaron.engine.llamacpp.child`, started by `launch.EngineChild`.

Reads one line of JSON (`LaunchParams`) from standard input, serves until standard input ends, and ends with it: the
parent holds the other end, so that no death of the parent, not even `kill -9`, leaves an engine behind.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from typing import Any, NoReturn

import msgspec

from macaron.cores import usable_cores
from macaron.engine.llamacpp.params import MAX_LINE_BYTES, LaunchParams

MIN_HTTP_THREADS = 32
# For `/health` and the calls that are no hops, so that a probe never waits for a thread that a hop holds.
SPARE_HTTP_THREADS = 8
ERRORS = 1
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve until standard input ends. Exits with 2 for bad parameters, 1 where the engine does not start."""
    # Ctrl-C reaches the whole process group, and a service manager's SIGTERM every process of the service. The parent
    # drains first and decides when the engine ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _die_with_parent()
    launch = _read_params()
    threading.Thread(target=_exit_at_eof, daemon=True).start()
    server = _serve(launch)
    threading.Event().wait()
    del server


def _die_with_parent() -> None:
    """Have the kernel end this process with its parent: while the engine loads, no Python thread sees the end of the
    standard input.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _read_params() -> LaunchParams:
    try:
        return msgspec.json.decode(sys.stdin.buffer.readline(MAX_LINE_BYTES), type=LaunchParams)
    except msgspec.MsgspecError as error:
        _fail(2, f"launch parameters: {error}")


def _exit_at_eof() -> None:
    while os.read(0, 65_536):
        pass
    os._exit(0)


def _serve(launch: LaunchParams) -> Any:
    from xllamacpp import Server

    try:
        return Server(engine_params(launch))
    except Exception as error:
        _fail(1, f"engine did not start: {error}")


def _fail(status: int, reason: str) -> NoReturn:
    sys.stderr.write(reason + "\n")
    sys.stderr.flush()
    os._exit(status)


def engine_params(launch: LaunchParams) -> Any:
    """llama.cpp's parameters for `launch`. Two of them guard correctness: the host's prompt cache ignores adapters,
    and a KV cache shared by the slots fails every running request when one overflows.
    """
    from xllamacpp import CommonAdapterLoraInfo, CommonParams

    params = CommonParams()
    params.cache_ram_mib = 0
    params.kv_unified = False
    params.n_cache_reuse = 0
    params.cache_idle_slots = False
    params.hostnames = ["127.0.0.1"]
    params.port = launch.port
    params.reuse_port = True
    params.api_keys = [launch.api_key]
    params.ui = False
    params.endpoint_slots = False
    params.n_threads_http = max(MIN_HTTP_THREADS, launch.slots + SPARE_HTTP_THREADS)
    params.verbosity = ERRORS
    params.fit_params = False
    params.model.path = launch.weights
    params.lora_adapters = [CommonAdapterLoraInfo(path, 0.0) for path in launch.adapters]
    params.n_parallel = launch.slots
    params.n_ctx = launch.slots * launch.slot_context
    params.n_batch = params.n_ubatch = launch.batch
    params.chat_template = launch.chat_template
    _limit_threads(params, launch.threads or usable_cores())
    return params


def _limit_threads(params: Any, threads: int) -> None:
    for group in (params.cpuparams, params.cpuparams_batch):
        group.n_threads = threads
        # Spinning for work slows everything else on a busy machine many times over.
        group.poll = 0


if __name__ == "__main__":
    main()
