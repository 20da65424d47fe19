"""A PostgreSQL server for a test session: on a Unix socket and on loopback, in memory where there is such a folder."""

from __future__ import annotations

import asyncio
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import asyncpg
from benchmarks.process import free_port

from macaron.store import postgres
from tests.postgres_programs import Programs, find_programs

USER = "macaron"
PASSWORD = "p:s/w@rd"
"""Every character in it is one that an address must encode."""

FAST = {"fsync": "off", "full_page_writes": "off"}
"""A test's machine does not lose power; a server that is killed keeps what it wrote."""

START_SECONDS = 30.0
TEMPLATE = "migrated"

EMPTY = """
DO $$
DECLARE found record;
BEGIN
    FOR found IN
        SELECT tablename FROM pg_tables WHERE schemaname = 'macaron' AND tablename NOT IN ('migrations', 'config')
    LOOP EXECUTE format('DELETE FROM macaron.%I', found.tablename); END LOOP;
    UPDATE macaron.config SET generation = 0, document = '';
END $$"""

T = TypeVar("T")


class PostgresServer:
    """A server of its own user, which may not be root."""

    def __init__(self, programs: Programs, folder: Path, settings: dict[str, str]) -> None:
        self.folder = folder
        self.port = free_port()
        self._programs = programs
        self._data = folder / "data"
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count()
        self._shared = ""
        self._owner: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._owner = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)

    def create(self) -> None:
        """Make the data folder."""
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        arguments = (
            "-D",
            str(self._data),
            "-U",
            USER,
            "--locale=C",
            "--encoding=UTF8",
            "--no-sync",
            "--auth-local=trust",
        )
        self._run("initdb", *arguments, "--auth-host=scram-sha-256", f"--pwfile={secret}")
        secret.unlink()

    def start(self) -> None:
        """Start, and wait until it takes connections."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            "timezone": "GMT",
            "log_timezone": "GMT",
            "jit": "off",
            "shared_buffers": "32MB",
            "max_connections": "60",
            **self._settings,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._programs.folder / "postgres"), "-D", str(self._data), *options],
                env=self._programs.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self._owner,
            )
        began = time.monotonic()
        while not self._accepts():
            ended = self._process.poll() is not None or time.monotonic() - began > START_SECONDS
            assert not ended, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.02)

    def stop(self, number: int = signal.SIGINT) -> None:
        """End it, as its fast shutdown does; SIGQUIT ends it as a crash would."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(START_SECONDS)
            self._process = None

    def pause(self, processes: Sequence[int] | None = None) -> list[int]:
        """Hold all its processes, so that it is there and answers nothing; returns them. Let those given go on."""
        if processes is not None:
            for pid in processes:
                os.kill(pid, signal.SIGCONT)
            return []
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        pids = [self._process.pid, *map(int, children)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        return pids

    def url(self, database: str, *, password: bool = False) -> str:
        """A database's address: on the socket, or on loopback with the password."""
        if password:
            return f"postgresql://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}/{database}"
        return f"postgresql://{USER}@/{database}?host={quote(str(self.folder))}&port={self.port}"

    def fresh(self, *, migrated: bool = True) -> str:
        """The name of a new database."""
        name = f"db{next(self._numbers)}"
        self.ask("postgres", f"CREATE DATABASE {name} TEMPLATE {TEMPLATE if migrated else 'template0'}")
        return name

    def empty(self) -> str:
        """The name of a migrated database that the tests share one after another, emptied: a tenth of a fresh one's
        time. All connections to it must be closed."""
        if not self._shared:
            self._shared = self.fresh()
            return self._shared
        self.ask(self._shared, EMPTY)
        return self._shared

    def prepare(self) -> None:
        """Make the database that others are copied from."""
        self.ask("postgres", f"CREATE DATABASE {TEMPLATE} TEMPLATE template0")
        wait(lambda: postgres.migrate(self.url(TEMPLATE)))

    def ask(self, database: str, sql: str) -> list[Any]:
        """The rows of a statement."""

        async def fetch() -> list[Any]:
            connection = await asyncpg.connect(self.url(database), timeout=5)
            try:
                rows: list[Any] = await connection.fetch(sql)
                return rows
            finally:
                await connection.close()

        return wait(fetch)

    def _accepts(self) -> bool:
        try:
            self.ask("postgres", "SELECT 1")
        except (OSError, asyncpg.PostgresError):
            return False
        return True

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._programs.folder / program), *arguments],
            env=self._programs.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            **self._owner,
        )
        assert done.returncode == 0, done.stderr


def wait(work: Callable[[], Awaitable[T]]) -> T:
    """Run something asynchronous to its end, also where a loop runs already: on a thread."""

    async def run() -> T:
        return await work()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, run()).result()


@contextmanager
def postgres_server(**settings: str) -> Iterator[PostgresServer]:
    """A server until the block ends.

    Raises:
        NotHereError: there is no PostgreSQL and none can be fetched.
    """
    memory = Path("/dev/shm")
    fast = "fsync" in settings
    folder = Path(tempfile.mkdtemp(prefix="macaron-pg-", dir=memory if fast and memory.is_dir() else None))
    try:
        programs = find_programs()
        if os.geteuid() == 0:
            folder.chmod(0o755)
            programs = programs.moved(folder / "programs")
        server = PostgresServer(programs, folder, settings)
        server.create()
        server.start()
        try:
            server.prepare()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
