"""A program of ours that tries to get out of the enclosure before any other is let in."""

from __future__ import annotations

import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from macaron.evals.enclosure import Limits, tool

_PROBE = """
import os, socket

def fails(action, *arguments):
    try:
        action(*arguments)
    except (OSError, MemoryError):
        return True
    return False

def status(name):
    with open("/proc/self/status") as file:
        return next(line.split()[1] for line in file if line.startswith(name + ":"))

def connect():
    socket.create_connection(("127.0.0.1", PORT), timeout=2).close()

def fork_until_refused():
    children = []
    try:
        for _ in range(PROCESSES + 1):
            child = os.fork()
            if child == 0:
                os.close(pipe[1])
                os.read(pipe[0], 1)
                os._exit(0)
            children.append(child)
    finally:
        os.close(pipe[1])
        for child in children:
            os.waitpid(child, 0)

pipe = os.pipe()
assert fails(connect), "the network is there"
assert [name for _, name in socket.if_nameindex()] == ["lo"], "there are network interfaces"
for folder in ("/", "/usr", "/dev", "/proc", "/etc", os.path.dirname(SECRET), PREFIX):
    assert fails(open, os.path.join(folder, "macaron-probe"), "w"), "it can write to " + folder
assert fails(open, SECRET), "it can read a file of the user who started it"
assert os.getuid() not in (0, USER) and os.getgid() != 0, "it is a user that exists"
for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    assert int(status(name), 16) == 0, "it has capabilities: " + name
assert status("NoNewPrivs") == "1", "it can gain privileges"
assert os.spawnv(os.P_WAIT, UNSHARE, ["unshare", "--user", "true"]) != 0, "it can make a user namespace"
assert os.getppid() == 1, "it sees the processes outside"
assert not os.environ.keys() - {"LC_CTYPE"}, "it has an environment"
assert fails(bytearray, MEMORY), "memory is not bounded"
with open("/tmp/large", "wb", buffering=0) as file:
    file.write(bytes(FILE_SIZE))
    assert fails(file.write, b"more"), "files are not bounded"
assert fails(fork_until_refused), "processes are not bounded"
"""


class Listener:
    """A loopback port that notices whether anyone came."""

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._socket.close()

    def answers(self) -> bool:
        """Whether a connection from here, the control of the experiment, arrives."""
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=2).close()
        except OSError:
            return False
        self._socket.settimeout(2)
        return self.was_hit()

    def was_hit(self) -> bool:
        """Whether somebody came since the last time this was asked."""
        try:
            self._socket.accept()[0].close()
        except OSError:
            return False
        finally:
            self._socket.setblocking(False)
        return True


def probe_source(*, port: int, secret: Path, user: int, limits: Limits) -> str:
    """The program. `secret` is a readable file of `user`, who started this; `port` is one that listens."""
    import sys

    values = {
        "PORT": port,
        "SECRET": str(secret),
        "USER": user,
        "PREFIX": sys.base_prefix,
        "MEMORY": limits.memory,
        "FILE_SIZE": limits.file_size,
        "UNSHARE": tool("unshare"),
        "PROCESSES": limits.processes,
    }
    return "".join(f"{name} = {value!r}\n" for name, value in values.items()) + _PROBE
