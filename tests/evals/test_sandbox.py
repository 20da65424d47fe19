"""Programs that try to get out, to stay, or to take more than they may."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from macaron.evals import enclosure
from macaron.evals.enclosure import TOOLS, missing_tools
from macaron.evals.probe import Listener
from macaron.evals.sandbox import Sandbox

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    """A sandbox that runs programs; where this machine has none, there is nothing to test."""
    sandbox = Sandbox()
    if sandbox.refusal:
        pytest.skip(f"no sandbox here: {sandbox.refusal}")
    return sandbox


def processes_with(mark: str) -> list[int]:
    """Processes of this machine whose command line or environment names `mark`."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in line:
                found.append(int(folder.name))
    return found


def wait_until(holds: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_a_program_that_runs_to_its_end_has_passed(sandbox: Sandbox) -> None:
    result = sandbox.run_python("import sys\nprint('out')\nprint('err', file=sys.stderr)")
    assert result.outcome == "passed"
    assert sorted(result.output.split()) == ["err", "out"]


@pytest.mark.parametrize("source", ["1 / 0", "def broken(:", "raise SystemExit(3)"])
def test_a_program_that_raises_has_failed(sandbox: Sandbox, source: str) -> None:
    assert sandbox.run_python(source).outcome == "failed"


@pytest.mark.parametrize("leave", ["raise SystemExit(0)", "import os; os._exit(0)", "import sys; sys.exit()"])
def test_a_program_that_leaves_before_its_end_has_not_passed(sandbox: Sandbox, leave: str) -> None:
    assert sandbox.run_python(f"{leave}\nassert False").outcome == "failed"


def test_a_program_cannot_reach_the_loopback_of_this_machine(sandbox: Sandbox) -> None:
    attempt = "import socket\nsocket.create_connection(('127.0.0.1', {port}), timeout=2)\n"
    with Listener() as listener:
        source = attempt.format(port=listener.port)
        result = sandbox.run_python(source)
        assert result.outcome == "failed"
        assert not listener.was_hit()
        subprocess.run([sys.executable, "-c", source], check=True, timeout=30)
        assert listener.was_hit(), "the same program outside arrives, so the listener would have noticed"


def test_a_program_cannot_reach_a_socket_file_of_this_machine(sandbox: Sandbox, tmp_path: Path) -> None:
    import socket

    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        result = sandbox.run_python(f"import socket\nsocket.socket(socket.AF_UNIX).connect({path!r})")
    assert result.outcome == "failed"


@pytest.mark.parametrize("folder", [Path.home(), PROJECT, Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path("/")])
def test_a_program_cannot_write_outside(sandbox: Sandbox, folder: Path) -> None:
    target = folder / f"macaron-escape-{os.getpid()}"
    sandbox.run_python(f"import os\nos.makedirs({str(folder)!r}, exist_ok=True)\nopen({str(target)!r}, 'w').write('x')")
    assert not target.exists()


def test_what_a_program_writes_is_gone_in_the_next(sandbox: Sandbox) -> None:
    assert sandbox.run_python("open('/tmp/kept', 'w').write('x')").outcome == "passed"
    assert sandbox.run_python("open('/tmp/kept')").outcome == "failed"


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_program_cannot_read_a_file_of_ours(sandbox: Sandbox, tmp_path: Path, mode: int) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a-secret-word")
    secret.chmod(mode)
    result = sandbox.run_python(f"print(open({str(secret)!r}).read())")
    assert result.outcome == "failed"
    assert "a-secret-word" not in result.output


def test_a_program_sees_no_environment_and_no_other_process(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "a-secret-word")
    source = """
    import os
    print(dict(os.environ))
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("cmdline", "environ"):
            try:
                print(open(f"/proc/{pid}/{name}", "rb").read())
            except OSError:
                pass
    print("processes", len(list(filter(str.isdigit, os.listdir("/proc")))))
    """
    result = sandbox.run_python(textwrap.dedent(source))
    assert result.outcome == "passed"
    assert "a-secret-word" not in result.output
    assert "processes 2" in result.output


def test_a_fork_bomb_is_bounded_and_gone_afterwards(sandbox: Sandbox) -> None:
    result = sandbox.run_python("import os\nwhile True:\n    os.fork()", timeout=2)
    assert result.outcome in ("failed", "timeout")
    assert sandbox.run_python("pass").outcome == "passed"


def test_memory_is_bounded(sandbox: Sandbox) -> None:
    assert sandbox.run_python("bytearray(400 << 20)", memory=256 << 20).outcome == "failed"
    assert sandbox.run_python("bytearray(100 << 20)", memory=256 << 20).outcome == "passed"


def test_shared_memory_that_outlives_its_process_cannot_be_had(sandbox: Sandbox) -> None:
    source = "import ctypes\nassert ctypes.CDLL(None).shmget(0, 1 << 20, 0o1600) == -1"
    assert sandbox.run_python(source).outcome == "passed"


def test_an_endless_loop_ends_in_time(sandbox: Sandbox) -> None:
    started = time.monotonic()
    assert sandbox.run_python("while True:\n    pass", timeout=1).outcome == "timeout"
    assert time.monotonic() - started < 5


def test_ignored_signals_do_not_help(sandbox: Sandbox) -> None:
    source = """
    import signal, time
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(1)
    """
    assert sandbox.run_python(textwrap.dedent(source), timeout=1).outcome == "timeout"


def test_a_program_cannot_kill_what_started_it(sandbox: Sandbox) -> None:
    source = """
    import os, signal
    for pid in (os.getppid(), 1, -1, TESTER):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    print("still here")
    """.replace("TESTER", str(os.getpid()))
    result = sandbox.run_python(textwrap.dedent(source))
    assert result.outcome in ("passed", "failed", "killed")
    assert sandbox.run_python("pass").outcome == "passed"


@pytest.mark.parametrize("ending", ["", "while True: pass"])
def test_a_daemon_left_behind_is_gone(sandbox: Sandbox, ending: str) -> None:
    mark = f"left-behind-{os.getpid()}-{len(ending)}"
    source = f"""
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for file in (0, 1, 2):
            os.close(file)
        os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)", {mark!r}])
    os._exit(0)
os.wait()
{ending}
"""
    sandbox.run_python(source.replace("sys.executable", repr(str(enclosure.interpreter()))), timeout=2)
    assert wait_until(lambda: not processes_with(mark))


def test_the_daemon_of_the_test_above_would_be_seen() -> None:
    mark = f"left-behind-control-{os.getpid()}"
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", mark])
    try:
        assert wait_until(lambda: processes_with(mark) == [process.pid])
    finally:
        process.kill()
        process.wait()


def test_huge_output_is_cut_off(sandbox: Sandbox) -> None:
    result = sandbox.run_python("while True:\n    print('x' * 10000)", timeout=20)
    assert result.outcome == "killed"
    assert len(result.output) <= 64 << 10
    assert result.seconds < 10


def test_a_program_cannot_forge_the_report_of_its_end(sandbox: Sandbox) -> None:
    source = """
    import os
    for file in range(32):
        try:
            os.write(file, b"ready\\n0\\n")
        except OSError:
            pass
    os._exit(1)
    """
    assert sandbox.run_python(textwrap.dedent(source)).outcome == "failed"


def test_packages_can_be_imported_and_not_changed(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "given.py").write_text("VALUE = 7\n")
    tmp_path.chmod(0o755)
    reading = sandbox.run_python("import given\nassert given.VALUE == 7", packages=[tmp_path])
    assert reading.outcome == "passed"
    writing = sandbox.run_python("import given\nopen(given.__file__, 'a').write('x')", packages=[tmp_path])
    assert writing.outcome == "failed"
    assert (tmp_path / "given.py").read_text() == "VALUE = 7\n"


def test_packages_that_the_program_could_not_read_are_refused(sandbox: Sandbox, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root's programs are strangers to its files")
    tmp_path.chmod(0o700)
    result = sandbox.run_python("pass", packages=[tmp_path])
    assert (result.outcome, str(tmp_path) in result.reason) == ("refused", True)


def test_a_program_that_is_too_long_is_refused(sandbox: Sandbox) -> None:
    assert sandbox.run_python("#" * (2 << 20)).outcome == "refused"


def test_nothing_of_a_run_stays_on_the_disk(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sandbox.run_python("open('/tmp/x', 'w')")
    assert not list(tmp_path.iterdir())


def test_without_the_system_commands_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("macaron.evals.enclosure.SYSTEM_PATH", "/nowhere")
    assert missing_tools() == list(TOOLS)
    result = Sandbox().run_python("pass")
    assert result.outcome == "refused"
    assert "unshare" in result.reason


HOLES = {
    "network": ("--net", "network"),
    "processes": ("--nproc=4", "processes are not bounded"),
    "memory": ("--as=268435456", "memory is not bounded"),
    "privileges": ("--no-new-privs", "gain privileges"),
}


@pytest.fixture(params=HOLES)
def hole(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """One part of the enclosure is taken away; what the refusal should say."""
    part, reason = HOLES[request.param]
    whole = enclosure.enclosed_command

    def without(*arguments: object, **named: object) -> list[str]:
        return [word for word in whole(*arguments, **named) if word != part]  # type: ignore[arg-type]

    monkeypatch.setattr("macaron.evals.sandbox.enclosed_command", without)
    return reason


def test_an_enclosure_with_a_hole_is_noticed_before_anything_runs(sandbox: Sandbox, hole: str) -> None:
    result = Sandbox().run_python("pass")
    assert result.outcome == "refused"
    assert hole in result.reason


def test_it_holds_for_somebody_who_is_not_root(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> None:
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if os.getuid() != 0 or python is None or not _same_version(python):
        pytest.skip("needs root and an interpreter of this version that everybody may use")
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(Path(msgspec.__file__).parent, folder / "msgspec")
        (folder / "macaron").mkdir()
        (folder / "macaron" / "__init__.py").touch()
        shutil.copytree(PROJECT / "src/macaron/evals", folder / "macaron" / "evals")
        subprocess.run(["chmod", "-R", "a+rX", name], check=True)
        program = (
            "from macaron.evals.sandbox import Sandbox; s = Sandbox(); print(s.refusal, s.run_python('1').outcome)"
        )
        command = ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups", python, "-c", program]
        done = subprocess.run(command, env={"PYTHONPATH": name}, capture_output=True, text=True, timeout=60)
    if "Operation not permitted" in done.stdout:
        assert done.stdout.split()[-1] == "refused"
        pytest.skip("user namespaces are not allowed here")
    assert done.stdout.split() == ["passed"], done.stdout + done.stderr


def _same_version(python: str) -> bool:
    program = "import sys; print(sys.version_info[:2])"
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, timeout=30)
    return done.stdout.strip() == str(sys.version_info[:2])
