"""Limits, and a disk that has no room."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from macaron.registry.vault import STEPS, Step, Unsuitable, Vault, VaultFailure, VaultFull, VaultLimits
from tests.registry.vault import victim
from tests.registry.vault.handling import LIMIT, admitted, another, archive, failing, left_over, member, packed, pieces

WRITING: tuple[Step, ...] = tuple(step for step in STEPS if step not in ("adapter.withdrawn", "adapter.forgotten"))


def full(code: str, act: Callable[[], object]) -> VaultFull:
    with pytest.raises(VaultFull) as caught:
        act()
    assert (caught.value.code, caught.value.status) == (code, 507)
    return caught.value


def test_no_more_adapters_than_the_vault_may_hold(tmp_path: Path, source: Path, root: Path) -> None:
    vault = Vault(tmp_path / "vault", VaultLimits(max_adapters=1))
    first = admitted(vault, source, root)
    full("vault_full", lambda: admitted(vault, another(root, 7), root))
    assert vault.list() == (first,)


def test_no_more_bytes_than_the_vault_may_hold(tmp_path: Path, source: Path, root: Path) -> None:
    size = admitted(Vault(tmp_path / "measured"), source, root).bytes
    vault = Vault(tmp_path / "vault", VaultLimits(max_bytes=2 * size - 100))
    admitted(vault, source, root)
    full("vault_full", lambda: admitted(vault, another(root, 7), root))
    assert vault.used().bytes == size


def test_a_full_vault_still_takes_what_it_has(tmp_path: Path, source: Path, root: Path) -> None:
    vault = Vault(tmp_path / "vault", VaultLimits(max_adapters=1))
    admitted(vault, source, root, "ann")
    admitted(vault, source, root, "ann")
    admitted(vault, source, root, "bob")
    assert vault.used().adapters == 1


def test_one_tenant_cannot_fill_the_vault(tmp_path: Path, source: Path, root: Path) -> None:
    vault = Vault(tmp_path / "vault", VaultLimits(tenant_max_adapters=1))
    admitted(vault, source, root, "ann")
    full("tenant_full", lambda: admitted(vault, another(root, 7), root, "ann"))
    admitted(vault, another(root, 7), root, "bob")
    full("tenant_full", lambda: admitted(vault, source, root, "bob"))


def test_a_tenants_bytes_are_bounded(tmp_path: Path, source: Path, root: Path) -> None:
    vault = Vault(tmp_path / "vault", VaultLimits(tenant_max_bytes=100))
    full("tenant_full", lambda: admitted(vault, source, root))
    assert left_over(vault.folder) == []


def test_what_is_being_brought_in_at_once_is_bounded(tmp_path: Path, source: Path, root: Path) -> None:
    size = admitted(Vault(tmp_path / "measured"), source, root).bytes
    vault = Vault(tmp_path / "vault", VaultLimits(max_bytes=2 * size - 1))
    with vault.bring(source, [root]):
        full("staging_full", lambda: vault.bring(source, [root]))
    vault.bring(source, [root]).close()


async def test_declared_bytes_count_before_they_arrive(tmp_path: Path, source: Path, root: Path) -> None:
    limits, codes = VaultLimits(max_bytes=100_000), []
    beside = Vault(tmp_path / "vault", limits)

    def watch(step: Step) -> None:
        if step == "file.opened":
            codes.append(full("staging_full", lambda: beside.bring(source, [root])).code)

    raw = archive(member("adapter_model.safetensors", declared=99_000))
    with pytest.raises(Unsuitable):
        await Vault(beside.folder, limits, watch).receive(pieces(raw), LIMIT)
    assert codes == ["staging_full"]


def test_the_disks_last_bytes_are_left_alone(
    vault: Vault, source: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("macaron.registry.vault.room.MIN_FREE", 2**62)
    full("disk_full", lambda: vault.bring(source, [root]))
    assert left_over(vault.folder) == []


@pytest.mark.parametrize("step", WRITING)
def test_a_disk_that_fills_at_any_point_leaves_nothing_or_the_whole(
    tmp_path: Path, source: Path, root: Path, step: Step
) -> None:
    fault = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    vault = Vault(tmp_path / "vault", watch=failing(step, fault))
    error = full("disk_full", lambda: admitted(vault, source, root))
    assert error.remedy
    victim.nothing_or_whole(Vault(vault.folder), source, whole=step in ("adapter.moved", "adapter.admitted"))
    assert list((vault.folder / "staging").iterdir()) == []


def test_a_disk_that_fills_in_the_second_file_leaves_nothing(tmp_path: Path, source: Path, root: Path) -> None:
    vault = Vault(tmp_path / "vault", watch=failing("file.written", OSError(errno.EDQUOT, "quota"), after=1))
    full("disk_full", lambda: admitted(vault, source, root))
    assert left_over(vault.folder) == []


async def test_a_disk_that_fills_during_an_upload_leaves_nothing(tmp_path: Path, source: Path) -> None:
    vault = Vault(tmp_path / "vault", watch=failing("file.written", OSError(errno.ENOSPC, "no space")))
    with pytest.raises(VaultFull):
        await vault.receive(pieces(packed(source)), LIMIT)
    assert left_over(vault.folder) == []


def test_a_disk_that_fails_otherwise_is_no_full_one(tmp_path: Path, source: Path, root: Path) -> None:
    vault = Vault(tmp_path / "vault", watch=failing("file.synced", OSError(errno.EIO, "input/output error", "/x")))
    with pytest.raises(VaultFailure) as caught:
        admitted(vault, source, root)
    assert (caught.value.status, caught.value.detail) == (503, "/x")
    assert "/x" not in caught.value.message
    assert left_over(vault.folder) == []


def test_a_real_limit_on_the_files_of_a_process_is_a_full_disk(tmp_path: Path, source: Path, root: Path) -> None:
    code = (
        "import json, resource, sys\n"
        "from pathlib import Path\n"
        "from macaron.registry.vault import Vault, VaultFull\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n"
        "    Vault(Path(sys.argv[1])).bring(Path(sys.argv[2]), [Path(sys.argv[3])])\n"
        "except VaultFull as error:\n"
        "    print(json.dumps([error.code, error.value]))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "vault"), str(source), str(root)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    assert json.loads(done.stdout) == ["disk_full", os.strerror(errno.EFBIG)]
    assert left_over(tmp_path / "vault") == []
