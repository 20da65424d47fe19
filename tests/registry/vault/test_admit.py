"""Admitting what was checked, and what the vault then knows of it."""

from __future__ import annotations

import pickle
import stat
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.registry.check import Report
from macaron.registry.revision import adapter_revision
from macaron.registry.vault import NotStored, Unsuitable, Usage, Vault, VaultFailure
from tests.registry.check.adapters import adapter
from tests.registry.vault.handling import CONFIG, WEIGHTS, admitted, another, checked, left_over, packed, pieces


def test_an_admitted_adapter_lies_under_its_revision(vault: Vault, source: Path, root: Path) -> None:
    stored = admitted(vault, source, root)
    assert stored.path == vault.path(stored.revision) == vault.folder / stored.revision.removeprefix("sha256:")
    assert adapter_revision(stored.path) == stored.revision
    assert stat.S_IMODE(stored.path.stat().st_mode) == 0o700
    assert {path.name for path in stored.path.iterdir()} == {CONFIG, WEIGHTS, "README.md"}


def test_closing_the_stage_leaves_only_the_adapter_and_its_record(vault: Vault, source: Path, root: Path) -> None:
    name = admitted(vault, source, root).revision.removeprefix("sha256:")
    assert {entry.split("/")[0] for entry in left_over(vault.folder)} == {name, "owners"}


async def test_an_upload_and_a_folder_of_the_same_bytes_are_one_adapter(vault: Vault, source: Path, root: Path) -> None:
    first = admitted(vault, source, root)
    with await vault.receive(pieces(packed(source)), 1_048_576) as staged:
        assert vault.admit(staged, checked(staged), "ann") == first
    assert vault.list() == (first,)


def test_an_adapter_that_is_there_is_not_written_again(vault: Vault, source: Path, root: Path) -> None:
    path = admitted(vault, source, root).path
    before = (path.stat(), (path / WEIGHTS).stat())
    (source / "README.md").write_text("another card")
    admitted(vault, source, root, "bob")
    assert (path.stat().st_mtime_ns, (path / WEIGHTS).stat().st_ino) == (before[0].st_mtime_ns, before[1].st_ino)
    assert "license: MIT" in (path / "README.md").read_text()


def test_a_report_with_errors_admits_nothing(vault: Vault, root: Path) -> None:
    source = adapter(root / "bad", bias="all")
    with vault.bring(source, [root]) as staged:
        with pytest.raises(Unsuitable) as caught:
            vault.admit(staged, checked(staged), "ann")
    assert caught.value.code == "check_failed"
    assert (vault.list(), left_over(vault.folder)) == ((), [])


@pytest.mark.parametrize("revision", ["", "sha256:" + "0" * 64])
def test_a_report_on_other_bytes_admits_nothing(vault: Vault, source: Path, root: Path, revision: str) -> None:
    with vault.bring(source, [root]) as staged:
        with pytest.raises(Unsuitable) as caught:
            vault.admit(staged, Report((), revision=revision), "ann")
    assert caught.value.code == "other_revision"
    assert vault.list() == ()


def test_admitting_a_stage_twice_changes_nothing(vault: Vault, source: Path, root: Path) -> None:
    with vault.bring(source, [root]) as staged:
        report = checked(staged)
        first = vault.admit(staged, report, "ann")
        assert vault.admit(staged, report, "ann") == first


def test_several_tenants_may_own_a_revision_and_see_only_themselves(vault: Vault, source: Path, root: Path) -> None:
    admitted(vault, source, root, "ann")
    stored = admitted(vault, source, root, "bob")
    assert [owner.tenant for owner in stored.owners] == ["bob"]
    assert [owner.tenant for item in vault.list() for owner in item.owners] == ["ann", "bob"]
    assert [owner.tenant for item in vault.list("ann") for owner in item.owners] == ["ann"]
    assert vault.list("eve") == ()


def test_an_adapter_of_two_tenants_counts_once_in_all_and_in_full_for_each(
    vault: Vault, source: Path, root: Path
) -> None:
    size = admitted(vault, source, root, "ann").bytes
    admitted(vault, source, root, "bob")
    more = admitted(vault, another(root, 7), root, "bob").bytes
    assert vault.used() == Usage(2, size + more)
    assert vault.used("ann") == Usage(1, size)
    assert vault.used("bob") == Usage(2, size + more)
    assert vault.used("eve") == Usage(0, 0)


@pytest.mark.parametrize("revision", ["sha256:" + "0" * 64, "", "../lock", "sha256:../staging", "sha256:" + "A" * 64])
def test_a_revision_that_is_not_there_has_no_path(vault: Vault, revision: str) -> None:
    with pytest.raises(NotStored):
        vault.path(revision)


def test_a_damaged_record_is_an_error_that_names_it(vault: Vault, source: Path, root: Path) -> None:
    stored = admitted(vault, source, root)
    record = vault.folder / "owners" / f"{stored.path.name}.json"
    record.write_bytes(b"{")
    with pytest.raises(VaultFailure) as caught:
        vault.list()
    assert (caught.value.code, caught.value.detail) == ("damaged_record", str(record))


def test_a_folder_open_to_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    with pytest.raises(ConfigError, match="chmod 700"):
        Vault(tmp_path / "open")


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="name one that can be written"):
        Vault(tmp_path / "file" / "vault")


def test_an_error_says_the_same_after_it_crossed_a_process() -> None:
    error = NotStored("revision", "x", "it is not in the vault", "name another")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.value, again.remedy) == (NotStored, str(error), "x", "name another")
