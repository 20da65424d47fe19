"""A command in a pseudo-terminal, as a person sees and steers it."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from fcntl import ioctl

COLUMNS = 80
STYLES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """`macaron …` with a controlling terminal."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        self._screen = b""
        self._pid, self._master = pty.fork()
        if self._pid == 0:
            # A shell's background job ignores Ctrl-C, and so would everything it starts.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execve(sys.executable, [sys.executable, "-m", "macaron", *arguments], {**environment, "TERM": "xterm"})
        ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        self._status: int | None = None

    @property
    def shown(self) -> str:
        """Everything printed so far, without colours."""
        return STYLES.sub("", self._screen.decode(errors="replace")).replace("\r\n", "\n")

    def type(self, text: str) -> None:
        """Press keys: `\\r` is Enter, `\\x03` Ctrl-C, `\\x04` Ctrl-D."""
        os.write(self._master, text.encode())

    def sees(self, text: str, seconds: float = 30, times: int = 1) -> None:
        """Wait until a text has appeared as often as that."""
        until = time.monotonic() + seconds
        while self.shown.count(text) < times:
            assert time.monotonic() < until, f"not seen: {text!r} in {self.shown!r}"
            assert self._read(0.1) or self.shown.count(text) >= times, f"it ended without {text!r}: {self.shown!r}"

    def ended(self, seconds: float = 30, press: str = "") -> int:
        """Wait for the end, pressing a key every three seconds; returns the exit status.

        Python's line editor misses a Ctrl-C in the instant between its prompt and its waiting, as no person could. One
        that is pressed again too soon would meet the interpreter while it ends.
        """
        began, pressed = time.monotonic(), 0
        while self._read(0.1):
            passed = time.monotonic() - began
            assert passed < seconds, f"still there: {self.shown!r}"
            if press and passed > pressed * 3:
                self.type(press)
                pressed += 1
        return self._wait()

    def close(self) -> None:
        """End it."""
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)
            self._wait()
        os.close(self._master)

    def _wait(self) -> int:
        self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._status

    def _read(self, seconds: float) -> bool:
        """Take what has been printed; False where nobody can print any more."""
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self._master, 65_536)
        except OSError:
            return False
        self._screen += piece
        return bool(piece)
