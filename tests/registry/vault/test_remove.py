"""Removing, and several processes and threads at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from macaron.registry.revision import adapter_revision
from macaron.registry.vault import STEPS, InUse, NotStored, Staged, Step, Vault
from tests.registry.vault.handling import admitted, another, checked, left_over
from tests.registry.vault.victim import nothing_or_whole

SECONDS = 20


def test_the_last_owner_takes_the_files_along(vault: Vault, source: Path, root: Path) -> None:
    revision = admitted(vault, source, root).revision
    vault.remove(revision, "ann", frozenset)
    assert left_over(vault.folder) == []
    with pytest.raises(NotStored):
        vault.path(revision)


def test_the_files_stay_while_another_tenant_owns_them(vault: Vault, source: Path, root: Path) -> None:
    revision = admitted(vault, source, root, "bob").revision
    admitted(vault, source, root, "ann")
    vault.remove(revision, "bob", frozenset)
    nothing_or_whole(vault, source, whole=True)
    assert vault.list("bob") == ()


@pytest.mark.parametrize("tenant", ["ann", "eve"])
def test_what_a_tenant_does_not_own_it_cannot_remove(vault: Vault, source: Path, root: Path, tenant: str) -> None:
    revision = admitted(vault, source, root, "bob").revision
    with pytest.raises(NotStored) as caught:
        vault.remove(revision, tenant, frozenset)
    with pytest.raises(NotStored) as unknown:
        vault.remove("sha256:" + "0" * 64, tenant, frozenset)
    assert caught.value.reason == unknown.value.reason
    assert len(vault.list()) == 1


def test_what_is_in_use_stays(vault: Vault, source: Path, root: Path) -> None:
    revision = admitted(vault, source, root).revision
    with pytest.raises(InUse) as caught:
        vault.remove(revision, "ann", lambda: {revision})
    assert caught.value.status == 409
    nothing_or_whole(vault, source, whole=True)


def test_what_else_is_in_use_does_not_matter(vault: Vault, source: Path, root: Path) -> None:
    first, second = admitted(vault, source, root), admitted(vault, another(root, 7), root)
    vault.remove(first.revision, "ann", lambda: {second.revision})
    assert vault.list() == (second,)


def test_what_is_being_registered_stays_until_that_has_ended(vault: Vault, source: Path, root: Path) -> None:
    revision = admitted(vault, source, root).revision
    with vault.bring(source, [root]) as staged:
        vault.admit(staged, checked(staged), "ann")
        with pytest.raises(InUse, match="being registered"):
            Vault(vault.folder).remove(revision, "ann", frozenset)
    vault.remove(revision, "ann", frozenset)
    assert left_over(vault.folder) == []


def test_what_one_tenant_registers_holds_no_other_up(vault: Vault, source: Path, root: Path) -> None:
    revision = admitted(vault, source, root, "bob").revision
    with vault.bring(source, [root]) as staged:
        vault.admit(staged, checked(staged), "ann")
        vault.remove(revision, "bob", frozenset)
    nothing_or_whole(vault, source, whole=True)


def test_a_copy_that_was_not_admitted_yet_holds_nothing_up_and_still_comes_in(
    vault: Vault, source: Path, root: Path
) -> None:
    revision = admitted(vault, source, root).revision
    with vault.bring(source, [root]) as staged:
        Vault(vault.folder).remove(revision, "ann", frozenset)
        vault.admit(staged, checked(staged), "ann")
    nothing_or_whole(vault, source, whole=True)


def test_nothing_is_admitted_between_the_question_what_is_in_use_and_the_removal(
    vault: Vault, source: Path, root: Path
) -> None:
    revision = admitted(vault, source, root).revision
    with vault.bring(source, [root]) as staged, ThreadPoolExecutor(1) as threads:
        report, asked = checked(staged), Event()

        def in_use() -> Collection[str]:
            asked.set()
            assert not admitting.done()
            return ()

        def admit() -> None:
            assert asked.wait(SECONDS)
            vault.admit(staged, report, "ann")

        admitting = threads.submit(admit)
        vault.remove(revision, "ann", in_use)
        admitting.result(SECONDS)
    nothing_or_whole(vault, source, whole=True)


def test_an_error_of_the_question_is_the_callers_and_removes_nothing(vault: Vault, source: Path, root: Path) -> None:
    revision = admitted(vault, source, root).revision

    def in_use() -> Collection[str]:
        raise TimeoutError("the store does not answer")

    with pytest.raises(TimeoutError):
        vault.remove(revision, "ann", in_use)
    nothing_or_whole(vault, source, whole=True)


def test_threads_that_bring_the_same_bytes_make_one_adapter(vault: Vault, source: Path, root: Path) -> None:
    with ThreadPoolExecutor(6) as threads:
        tenants = ["ann", "bob", "cid", "dan", "eve", "fay"]
        stored = list(threads.map(lambda tenant: admitted(vault, source, root, tenant), tenants))
    assert {item.revision for item in stored} == {adapter_revision(source)}
    assert [owner.tenant for item in vault.list() for owner in item.owners] == tenants
    assert not list((vault.folder / "staging").iterdir())


def test_processes_that_bring_and_remove_at_once_end_with_nothing_or_the_whole(
    vault: Vault, source: Path, root: Path
) -> None:
    command = [sys.executable, "-c", BUSY, str(vault.folder), str(source)]
    workers = [subprocess.Popen([*command, tenant], stderr=subprocess.PIPE) for tenant in ("ann", "bob")]
    for worker in workers:
        _, told = worker.communicate(timeout=60)
        assert worker.returncode == 0, told.decode()
    assert left_over(vault.folder) == []


BUSY = """
import sys
from pathlib import Path
from macaron.registry.check import Report
from macaron.registry.revision import adapter_revision
from macaron.registry.vault import InUse, Vault
vault, source, tenant = Vault(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3]
for _ in range(15):
    with vault.bring(source, [source.parent]) as staged:
        stored = vault.admit(staged, Report((), revision=staged.revision), tenant)
        assert adapter_revision(stored.path) == stored.revision
        vault.tidy()
    while vault.list(tenant):
        try:
            vault.remove(stored.revision, tenant, frozenset)
        except InUse:
            pass
"""


def test_a_stage_cannot_be_used_after_it_was_closed(vault: Vault, source: Path, root: Path) -> None:
    staged: Staged = vault.bring(source, [root])
    report = checked(staged)
    staged.close()
    staged.close()
    with pytest.raises(RuntimeError):
        vault.admit(staged, report, "ann")
    assert vault.list() == ()


def test_steps_come_in_the_order_they_are_named(tmp_path: Path, source: Path, root: Path) -> None:
    seen: list[Step] = []
    vault = Vault(tmp_path / "vault", watch=seen.append)
    vault.remove(admitted(vault, source, root).revision, "ann", frozenset)
    assert list(dict.fromkeys(seen)) == list(STEPS)
