"""How an untrusted program is shut in: the command line that builds its own small system and runs Python in it.

The first process of new network, PID, mount, IPC and UTS namespaces is a shell that makes an empty root file system,
binds the system's libraries and the interpreter into it read-only, leaves the old root, and starts the program as a
user nobody else is, without capabilities and under resource limits. The shell stays: when it is killed, so is
everything under it, and what the program leaves behind dies with it. (The kernel forgets a process's parent-death
signal when its user changes, so the program itself could not be the first process.) The program's root is a second
mount of that file system, because the kernel lets nobody make a user namespace, and with it mounts, in a changed root.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import SystemRandom

from msgspec import Struct

TOOLS = ("unshare", "mount", "umount", "pivot_root", "setpriv", "prlimit", "env", "mkdir", "ln", "sh")
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
PACKAGES = "/packages"

# A range that no distribution gives to people, services or containers. Each run has its own user, because the kernel
# counts processes by user.
_USERS = range(1879048192, 2147483647)

_SETUP = """
set -eu
root=$1 tmp=$2; shift 2
mount -t tmpfs -o mode=755,size=1m,nosuid,nodev enclosure "$root"
mkdir "$root/old" "$root/cell" "$root/proc" "$root/tmp" "$root/dev"
while [ "$1" != links ]; do
    if [ -d "$1" ]; then mkdir -p "$root$2"; else mkdir -p "$root${2%/*}"; : > "$root$2"; fi
    mount --bind "$1" "$root$2"
    case $1 in
        /dev/*) mount -o remount,bind,ro,nosuid,noexec "$root$2" ;;
        *) mount -o remount,bind,ro,nosuid,nodev "$root$2" ;;
    esac
    shift 2
done
shift
while [ "$1" != run ]; do ln -s "$2" "$root$1"; shift 2; done
shift
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount -t tmpfs -o "mode=1777,size=$tmp,nosuid,nodev" tmp "$root/tmp"
cd "$root"
pivot_root . old
umount -l /old
mount -o remount,bind,ro,nosuid,nodev /
mount --rbind / /cell
# Shared memory of System V would not count against anybody's limit.
echo 0 > /proc/sys/kernel/shmall
echo ready
code=0
"$@" >&2 || code=$?
echo "$code"
exit 0
"""

_DRIVER = """
def run():
    import sys
    nonce, source = sys.stdin.buffer.read().decode().split("\\n", 1)
    sys.path[:0] = sys.argv[1:]
    exec(compile(source, "case.py", "exec"), {"__name__": "__main__"})
    sys.stdout.flush()
    sys.stderr.flush()
    sys.stderr.write(nonce)
run()
"""


class Limits(Struct, frozen=True):
    """What a program may use: seconds of time, bytes of memory a process, processes and threads, bytes in a file and in
    its temporary folder, open files, bytes of output."""

    timeout: float
    memory: int
    processes: int = 4
    file_size: int = 8 << 20
    files: int = 32
    output: int = 64 << 10


def missing_tools() -> list[str]:
    """The system commands that are needed and not there."""
    return [tool for tool in TOOLS if shutil.which(tool, path=SYSTEM_PATH) is None]


def enclosed_command(root: Path, limits: Limits, packages: Sequence[Path], *, user: int) -> list[str]:
    """The command that runs the program given on its standard input.

    Args:
        root: an empty folder to build the file system on.
        packages: folders of importable packages, found at `/packages/<n>` inside.
        user: who runs this; anybody but root needs user namespaces.
    """
    places = {path: f"{PACKAGES}/{at}" for at, path in enumerate(packages)}
    binds, links = _system_binds()
    command = [tool("unshare"), *([] if user == 0 else ["--user", "--map-root-user"])]
    command += ["--net", "--pid", "--mount", "--ipc", "--uts", "--fork", "--kill-child"]
    command += [tool("sh"), "-c", _SETUP, "enclosure", str(root), str(limits.file_size)]
    for source, target in {**binds, **places}.items():
        command += [str(source), target]
    command.append("links")
    for name, goal in links.items():
        command += [name, goal]
    command += ["run", *_demotion(user), *_limited(limits)]
    return [*command, str(interpreter()), "-I", "-S", "-c", _DRIVER, *places.values()]


def tool(name: str) -> str:
    return shutil.which(name, path=SYSTEM_PATH) or name


def _demotion(user: int) -> list[str]:
    drop = ["--no-new-privs", "--bounding-set", "-all", "--inh-caps", "-all"]
    moved = [tool("unshare"), "--root=/cell", "--wd=/tmp"]
    if user == 0:
        nobody = str(SystemRandom().choice(_USERS))
        return [*moved, tool("setpriv"), "--reuid", nobody, "--regid", nobody, "--clear-groups", *drop]
    moved += ["--user", "--map-user=65534", "--map-group=65534", "--keep-caps"]
    return [*moved, tool("setpriv"), "--ambient-caps", "-all", *drop]


def _limited(limits: Limits) -> list[str]:
    values: Mapping[str, int] = {
        "nproc": limits.processes,
        "as": limits.memory,
        "cpu": int(limits.timeout) + 1,
        "fsize": limits.file_size,
        "nofile": limits.files,
        "core": 0,
        "memlock": 0,
        "msgqueue": 0,
    }
    return [tool("prlimit"), *(f"--{name}={value}" for name, value in values.items()), tool("env"), "-i"]


def interpreter() -> Path:
    """The Python that programs run on, which is the one below any virtual environment."""
    return Path(sys.base_prefix).resolve() / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"


def _system_binds() -> tuple[dict[Path, str], dict[str, str]]:
    binds: dict[Path, str] = {Path("/usr"): "/usr"}
    links: dict[str, str] = {}
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        path = Path(name)
        if path.is_symlink():
            links[name] = os.readlink(path)
        elif path.is_dir():
            binds[path] = name
    for name in ("/etc/ld.so.cache", "/dev/null", "/dev/urandom"):
        if Path(name).exists():
            binds[Path(name)] = name
    prefix = Path(sys.base_prefix).resolve()
    if not prefix.is_relative_to("/usr"):
        binds[prefix] = str(prefix)
    return binds, links
