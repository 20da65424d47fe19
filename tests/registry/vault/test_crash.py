"""Killed at any point, the vault holds nothing or the whole adapter, and tidies what is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from macaron.registry.vault import STEPS, Step, Swept, Vault
from tests.registry.vault.handling import CONFIG, WEIGHTS, admitted, failing, files, left_over
from tests.registry.vault.victim import clean, killed, nothing_or_whole

REMOVING: tuple[Step, ...] = ("adapter.withdrawn", "adapter.forgotten")
COMING: tuple[Step, ...] = tuple(step for step in STEPS if step not in REMOVING)
COMMITTED: tuple[Step, ...] = ("adapter.moved", "adapter.admitted")


@pytest.mark.parametrize("step", COMING)
def test_killed_while_it_comes_in(vault: Vault, source: Path, root: Path, step: Step) -> None:
    killed("bring", step, vault.folder, source)
    nothing_or_whole(vault, source, whole=step in COMMITTED)
    clean(vault)
    nothing_or_whole(vault, source, whole=step in COMMITTED)
    admitted(vault, source, root)
    nothing_or_whole(vault, source, whole=True)


@pytest.mark.parametrize("step", REMOVING)
def test_killed_while_it_is_removed(vault: Vault, source: Path, root: Path, step: Step) -> None:
    admitted(vault, source, root)
    killed("remove", step, vault.folder, source)
    nothing_or_whole(vault, source, whole=False)
    clean(vault)
    assert left_over(vault.folder) == []


def test_what_a_killed_process_left_is_no_hindrance_even_untidied(vault: Vault, source: Path, root: Path) -> None:
    for step in ("file.written", "owners.replaced", "owners.written"):
        killed("bring", step, vault.folder, source)
    admitted(vault, source, root)
    nothing_or_whole(vault, source, whole=True)


@pytest.mark.parametrize("step", COMING)
def test_interrupted_while_it_comes_in(tmp_path: Path, source: Path, root: Path, step: Step) -> None:
    with pytest.raises(KeyboardInterrupt):
        admitted(Vault(tmp_path / "vault", watch=failing(step, KeyboardInterrupt())), source, root)
    vault = Vault(tmp_path / "vault")
    nothing_or_whole(vault, source, whole=step in COMMITTED)
    assert clean(vault) == Swept(0, 0, 0)


def test_an_interrupted_second_owner_leaves_the_first(tmp_path: Path, source: Path, root: Path) -> None:
    admitted(Vault(tmp_path / "vault"), source, root, "ann")
    broken = Vault(tmp_path / "vault", watch=failing("owners.written", KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        admitted(broken, source, root, "bob")
    nothing_or_whole(broken, source, whole=True)
    assert clean(broken) == Swept(0, 0, 0)


def test_the_owner_of_an_attempt_that_was_killed_is_none_of_the_next(vault: Vault, source: Path, root: Path) -> None:
    killed("bring", "owners.replaced", vault.folder, source)
    assert [owner.tenant for owner in admitted(vault, source, root, "bob").owners] == ["bob"]
    assert [owner.tenant for item in vault.list() for owner in item.owners] == ["bob"]


def test_tidy_leaves_a_live_stage_alone(vault: Vault, source: Path, root: Path) -> None:
    killed("bring", "file.synced", vault.folder, source)
    with vault.bring(source, [root]) as staged:
        swept = Vault(vault.folder).tidy()
        assert (swept.stages, swept.bytes) == (1, (source / CONFIG).stat().st_size)
        assert set(files(staged.path)) == {CONFIG, WEIGHTS, "README.md"}


def test_tidy_leaves_a_live_stage_alone_before_its_first_file(tmp_path: Path, source: Path, root: Path) -> None:
    swept, other = [], Vault(tmp_path / "vault")

    def watch(step: Step) -> None:
        if step == "file.opened":
            swept.append(other.tidy())

    vault = Vault(other.folder, watch=watch)
    admitted(vault, source, root)
    assert swept == [Swept(0, 0, 0)] * 3
    nothing_or_whole(vault, source, whole=True)


def test_tidy_keeps_what_was_admitted(vault: Vault, source: Path, root: Path) -> None:
    admitted(vault, source, root)
    assert vault.tidy() == Swept(0, 0, 0)
    nothing_or_whole(vault, source, whole=True)
