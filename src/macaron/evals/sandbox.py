"""Runs Python that a model wrote: in its own small system, within limits, or not at all."""

from __future__ import annotations

import fcntl
import os
import secrets
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Literal, NamedTuple

from msgspec import Struct

from macaron.evals.enclosure import SYSTEM_PATH, Limits, enclosed_command, missing_tools
from macaron.evals.probe import Listener, probe_source

Outcome = Literal["passed", "failed", "timeout", "killed", "refused"]

SOURCE_LIMIT = 1 << 20
_PROBE = Limits(timeout=10, memory=256 << 20)
_STATUS_LIMIT = 64


class SandboxResult(Struct, frozen=True):
    """What became of a program.

    Attributes:
        outcome: `passed` if it ran to its end; `failed` if it raised, left early or could not be compiled; `killed` if
            a signal or the output's bound ended it; `refused` if it was not run.
        output: what it wrote to standard output and standard error, clipped to the limit.
        seconds: wall-clock time, starting the enclosure included.
        reason: why it was refused or killed.
    """

    outcome: Outcome
    output: str = ""
    seconds: float = 0.0
    reason: str = ""


class Sandbox:
    """Where untrusted Python runs.

    A program has no network, sees no file but the system's libraries and the interpreter, may write to nothing but a
    temporary folder of its own, is a user nobody else is, has no capability, and is killed with everything it started
    when its time is over. Before the first one, a program of ours tries to get out; if it could, nothing is run.

    A program that is written to deceive the code checking it, in the same process, can; one that merely leaves early
    has not passed.
    """

    def __init__(self) -> None:
        self._refusal: str | None = None

    @property
    def refusal(self) -> str:
        """Why nothing is run here, empty if programs are."""
        if self._refusal is None:
            self._refusal = _probe()
        return self._refusal

    def run_python(
        self, source: str, *, timeout: float = 10.0, memory: int = 512 << 20, packages: Sequence[Path] = ()
    ) -> SandboxResult:
        """Run a program.

        Args:
            timeout: seconds after which it is killed.
            memory: bytes of address space for each of its at most four processes.
            packages: folders whose packages it may import. Started by root, it is a stranger to them, so everybody must
                be able to read them.
        """
        if self.refusal:
            return SandboxResult("refused", reason=self.refusal)
        closed = [path for path in packages if os.getuid() == 0 and path.stat().st_mode & 0o005 != 0o005]
        if closed:
            return SandboxResult("refused", reason=f"{closed[0]} cannot be read by everybody; chmod it to 755")
        return _run(source, Limits(timeout=timeout, memory=memory), packages)


class _End(NamedTuple):
    status: bytes
    output: bytes
    stopped: Literal["", "timeout", "output"]


def _probe() -> str:
    """Why the enclosure does not hold here, empty if it does."""
    missing = missing_tools()
    if missing:
        return f"these commands of util-linux and coreutils are not there: {', '.join(missing)}"
    with tempfile.TemporaryDirectory(prefix="macaron-probe-") as folder, Listener() as listener:
        secret = Path(folder, "secret")
        secret.write_text("seen", encoding="utf-8")
        if not listener.answers():
            return "the probe's own listener cannot be reached, so it could not tell whether the network is gone"
        source = probe_source(port=listener.port, secret=secret, user=os.getuid(), limits=_PROBE)
        result = _run(source, _PROBE, ())
        if listener.was_hit():
            return "a program could reach the network of this machine"
    if result.outcome == "passed":
        return ""
    return f"the enclosure could not be built or did not hold: {result.reason or result.output.strip()[-500:]}"


def _run(source: str, limits: Limits, packages: Sequence[Path]) -> SandboxResult:
    data = source.encode("utf-8", "replace")
    if len(data) > SOURCE_LIMIT:
        return SandboxResult("refused", reason=f"the program has {len(data)} bytes; at most {SOURCE_LIMIT} are run")
    nonce = secrets.token_hex(16)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="macaron-root-") as root:
        command = enclosed_command(Path(root), limits, [path.resolve() for path in packages], user=os.getuid())
        stdin = _sealed(nonce.encode() + b"\n" + data)
        try:
            end = _watch(command, stdin, limits)
        except OSError as error:
            return SandboxResult("refused", reason=f"the enclosure could not be started: {error}")
        finally:
            os.close(stdin)
    return _judge(end, nonce, time.monotonic() - started, limits)


def _sealed(data: bytes) -> int:
    """A file in memory that nobody can change or grow any more, for standard input."""
    file = os.memfd_create("program", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
    os.lseek(file, 0, os.SEEK_SET)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
    return file


def _watch(command: Sequence[str], stdin: int, limits: Limits) -> _End:
    process = subprocess.Popen(
        command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"PATH": SYSTEM_PATH}, cwd="/",
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        return _read(process.stdout, process.stderr, time.monotonic() + limits.timeout, limits.output)
    finally:
        # Killing the group reaches `unshare` and the first process of the namespace, whose death ends all in it.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process.stderr.close()


def _read(status: IO[bytes], output: IO[bytes], deadline: float, limit: int) -> _End:
    """Read until both have ended, the time is over, or the output is too long."""
    held = {status.fileno(): bytearray(), output.fileno(): bytearray()}
    stopped: Literal["", "timeout", "output"] = ""
    with selectors.DefaultSelector() as selector:
        for file in held:
            selector.register(file, selectors.EVENT_READ)
        while selector.get_map() and not stopped:
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            for key, _ in ready:
                chunk = os.read(key.fd, 1 << 14)
                held[key.fd] += chunk
                if not chunk:
                    selector.unregister(key.fd)
            if time.monotonic() >= deadline and selector.get_map():
                stopped = "timeout"
            elif len(held[output.fileno()]) > limit or len(held[status.fileno()]) > _STATUS_LIMIT:
                stopped = "output"
    return _End(bytes(held[status.fileno()]), bytes(held[output.fileno()]), stopped)


def _judge(end: _End, nonce: str, seconds: float, limits: Limits) -> SandboxResult:
    ready, _, code = end.status.decode("ascii", "replace").partition("\n")
    text = end.output[: limits.output].decode("utf-8", "replace")
    if ready != "ready":
        return SandboxResult("refused", reason=f"no enclosure: {text.strip()[-500:]}", seconds=seconds)
    if end.stopped == "timeout":
        return SandboxResult("timeout", text, seconds, f"over its {limits.timeout:g} s")
    if end.stopped == "output":
        return SandboxResult("killed", text, seconds, f"wrote more than {limits.output} bytes")
    code = code.strip()
    if code == "0" and text.endswith(nonce):
        return SandboxResult("passed", text.removesuffix(nonce), seconds)
    if code.isdigit() and int(code) <= 128:
        return SandboxResult("failed", text, seconds)
    reason = f"ended by signal {int(code) - 128}" if code.isdigit() else "the enclosure ended before the program"
    return SandboxResult("killed", text, seconds, reason)
