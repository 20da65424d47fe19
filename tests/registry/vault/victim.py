"""A process that kills itself at a named point of an operation, and what must be true of the vault afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from macaron.registry.check import Report
from macaron.registry.revision import adapter_revision
from macaron.registry.vault import Step, Swept, Vault
from tests.registry.vault.handling import left_over


def killed(operation: str, step: Step, vault: Path, source: Path) -> None:
    """Run `bring` or `remove` in a process that SIGKILLs itself at a point."""
    command = [sys.executable, "-m", __name__, operation, step, str(vault), str(source)]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def nothing_or_whole(vault: Vault, source: Path, *, whole: bool) -> None:
    """The adapter is there with every byte and its owner, or there is no trace of it that anything sees."""
    found = vault.list()
    if not whole:
        assert found == ()
        return
    (stored,) = found
    assert adapter_revision(stored.path) == stored.revision == adapter_revision(source)
    assert [owner.tenant for owner in stored.owners] == ["ann"]


def clean(vault: Vault) -> Swept:
    """Tidy, and see that only whole adapters with their records are left."""
    swept = vault.tidy()
    names = {item.path.name for item in vault.list()}
    left = {entry for entry in left_over(vault.folder) if "/" not in entry or entry.startswith("owners/")}
    assert left == names | {f"owners/{name}.json" for name in names}
    assert not list((vault.folder / "staging").iterdir())
    return swept


def main(operation: str, step: str, folder: str, source: str) -> None:
    """The victim."""

    def watch(reached: Step) -> None:
        if reached == step:
            os.kill(os.getpid(), signal.SIGKILL)

    vault = Vault(Path(folder), watch=watch)
    if operation == "remove":
        vault.remove(adapter_revision(Path(source)), "ann", frozenset)
    else:
        with vault.bring(Path(source), [Path(source).parent]) as staged:
            vault.admit(staged, Report((), revision=staged.revision), "ann")


if __name__ == "__main__":
    main(*sys.argv[1:])
