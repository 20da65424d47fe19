"""Uploads: a plain tar archive of known files, and nothing else."""

from __future__ import annotations

import asyncio
import gzip
import shutil
import subprocess
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from macaron.errors import MacaronError
from macaron.registry.revision import adapter_revision
from macaron.registry.vault import Oversize, Staged, Unsuitable, Vault, VaultLimits
from tests.registry.vault.handling import (
    CONFIG,
    LIMIT,
    WEIGHTS,
    archive,
    checked,
    files,
    left_over,
    member,
    packed,
    pieces,
    replaced,
)

RUNS = settings(max_examples=40, deadline=None)
SECONDS = 10
SMALL = member(CONFIG, b"{}"), member(WEIGHTS, b"weights")


async def refused(vault: Vault, raw: bytes) -> Unsuitable:
    with pytest.raises(Unsuitable) as caught:
        await vault.receive(pieces(raw), LIMIT)
    assert left_over(vault.folder) == []
    assert caught.value.message.isprintable()
    assert caught.value.remedy
    return caught.value


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT])
async def test_an_upload_is_staged_byte_for_byte(vault: Vault, source: Path, form: int) -> None:
    raw = packed(source, "README.md", WEIGHTS, CONFIG, form=form)
    with await vault.receive(pieces(raw), LIMIT) as staged:
        assert files(staged.path) == {name: (source / name).read_bytes() for name in ("README.md", WEIGHTS, CONFIG)}
        assert staged.revision == adapter_revision(source) == checked(staged).revision


@pytest.mark.skipif(shutil.which("tar") is None, reason="there is no tar on this machine")
async def test_what_the_remedy_says_works(vault: Vault, source: Path) -> None:
    command = ["tar", "--format=ustar", "-C", str(source), "-cf", "-", CONFIG, WEIGHTS]
    raw = await asyncio.to_thread(subprocess.check_output, command)
    with await vault.receive(pieces(raw), LIMIT) as staged:
        assert staged.revision == adapter_revision(source)


@RUNS
@given(st.integers(1, 3000))
async def test_how_the_body_is_cut_makes_no_difference(size: int) -> None:
    with TemporaryDirectory() as scratch:
        with await Vault(Path(scratch) / "vault").receive(pieces(archive(*SMALL), size), LIMIT) as staged:
            assert files(staged.path) == {CONFIG: b"{}", WEIGHTS: b"weights"}


async def test_the_event_loop_is_never_blocked(vault: Vault, source: Path) -> None:
    raw = packed(source)
    with blockbuster_ctx("macaron"):
        staged = await vault.receive(pieces(raw), LIMIT)
    staged.close()


async def test_bytes_are_written_while_more_arrive(vault: Vault) -> None:
    raw, written = archive(SMALL[0], member(WEIGHTS, bytes(5_000_000))), []

    async def watched() -> AsyncIterator[bytes]:
        async for piece in pieces(raw, 100_000):
            written.append(sum(path.stat().st_size for path in vault.folder.glob(f"staging/*/{WEIGHTS}")))
            yield piece

    with await vault.receive(watched(), 6_000_000) as staged:
        assert (staged.path / WEIGHTS).stat().st_size == 5_000_000
    taken = range(0, len(raw), 100_000)
    assert max(so_far - size for so_far, size in zip(taken, written, strict=True)) < 1_300_000


async def test_a_body_beyond_its_limit_is_refused_when_it_passes_it(vault: Vault) -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        yield member(WEIGHTS, declared=100_000)[:512]
        while True:
            taken += 1000
            yield bytes(1000)

    with pytest.raises(Oversize) as caught:
        await vault.receive(endless(), 20_000)
    assert caught.value.param == "body"
    assert taken <= 20_000
    assert left_over(vault.folder) == []


@pytest.mark.parametrize("size", [2**33, 2**63, 2**80])
async def test_a_huge_declared_size_is_refused_before_its_data(tmp_path: Path, size: int) -> None:
    vault = Vault(tmp_path / "vault", VaultLimits(max_adapter_bytes=1000))
    with pytest.raises(Oversize) as caught:
        await vault.receive(pieces(member(WEIGHTS, declared=size)), LIMIT)
    assert caught.value.param == WEIGHTS
    assert left_over(vault.folder) == []


async def test_files_that_are_too_large_together_are_refused(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault", VaultLimits(max_adapter_bytes=1000))
    raw = archive(member(CONFIG, bytes(600)), member(WEIGHTS, bytes(600)))
    with pytest.raises(Oversize) as caught:
        await vault.receive(pieces(raw), LIMIT)
    assert caught.value.param == "adapter"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("optimizer.pt", "unknown_member"),
        ("../adapter_config.json", "unknown_member"),
        ("/etc/passwd", "unknown_member"),
        ("./adapter_config.json", "unknown_member"),
        ("law/adapter_config.json", "unknown_member"),
        ("ADAPTER_CONFIG.JSON", "unknown_member"),
        ("adapter_config.json ", "unknown_member"),
        ("adapter_model.bin", "unknown_member"),
        ("x\x1b[2J", "unknown_member"),
        ("", "unknown_member"),
        (CONFIG, "duplicate_member"),
        (WEIGHTS, "duplicate_member"),
    ],
)
async def test_a_member_of_another_name_or_a_second_time_is_refused(vault: Vault, name: str, code: str) -> None:
    assert (await refused(vault, archive(*SMALL, member(name, b"x")))).code == code


async def test_a_name_that_is_not_utf8_is_refused(vault: Vault) -> None:
    odd = replaced(member("x"), (0, 2), b"\xff\xfe")
    assert (await refused(vault, archive(*SMALL, odd))).code == "unknown_member"


async def test_a_name_with_a_hidden_end_is_refused(vault: Vault) -> None:
    odd = replaced(member("README.md"), (9, 13), b"\0/..")
    assert (await refused(vault, archive(*SMALL, odd))).code == "unknown_member"


@pytest.mark.parametrize("kind", list(b"1234567SLKxgDMVNAX"))
async def test_whatever_is_no_plain_file_is_refused(vault: Vault, kind: int) -> None:
    odd = member("README.md", b"x", kind=bytes([kind]))
    assert (await refused(vault, archive(*SMALL, odd))).code == "not_a_file"


async def test_a_file_that_names_a_link_is_refused(vault: Vault) -> None:
    odd = member("README.md", b"x", link="/etc/passwd")
    assert (await refused(vault, archive(*SMALL, odd))).code == "bad_archive"


async def test_a_name_in_two_parts_is_refused(vault: Vault) -> None:
    odd = replaced(member("README.md", b"x"), (345, 348), b"../")
    assert (await refused(vault, archive(*SMALL, odd))).code == "bad_archive"


async def test_extended_headers_of_pax_are_refused_with_the_command_that_works(vault: Vault, source: Path) -> None:
    error = await refused(vault, packed(source, form=tarfile.PAX_FORMAT))
    assert error.code == "not_a_file"
    assert "tar --format=ustar" in error.remedy


@pytest.mark.parametrize("size", [b"99999999999\0", b"\xff" * 12, b"-0000000001\0", b" " * 12, b"0_1        \0"])
async def test_a_size_that_is_no_number_is_refused(vault: Vault, size: bytes) -> None:
    odd = replaced(member("README.md"), (124, 136), size)
    assert (await refused(vault, archive(*SMALL, odd))).code == "bad_archive"


async def test_a_wrong_checksum_is_refused(vault: Vault) -> None:
    odd = bytearray(member("README.md"))
    odd[0:1] = b"B"
    assert (await refused(vault, archive(*SMALL, bytes(odd)))).code == "bad_archive"


@pytest.mark.parametrize("raw", [b"PK\x03\x04" * 200, gzip.compress(archive(*SMALL)) + bytes(512), b"{}" * 400])
async def test_other_formats_are_refused(vault: Vault, raw: bytes) -> None:
    assert (await refused(vault, raw)).code == "bad_archive"


async def test_an_empty_body_is_refused(vault: Vault) -> None:
    assert (await refused(vault, b"")).code == "truncated"


async def test_an_archive_without_files_is_refused(vault: Vault) -> None:
    assert (await refused(vault, archive())).code == "missing_file"


async def test_an_archive_without_weights_is_refused(vault: Vault) -> None:
    error = await refused(vault, archive(SMALL[0]))
    assert (error.code, error.param) == ("missing_file", WEIGHTS)


async def test_bytes_after_the_end_are_refused(vault: Vault) -> None:
    assert (await refused(vault, archive(*SMALL) + SMALL[0])).code == "after_end"


async def test_a_flood_of_padding_is_refused(vault: Vault) -> None:
    with pytest.raises(Unsuitable, match="padding"):
        await vault.receive(pieces(archive(*SMALL) + bytes(2_000_000), 100_000), 2**40)


async def test_padding_after_the_end_is_not(vault: Vault) -> None:
    with await vault.receive(pieces(archive(*SMALL) + bytes(10_240)), LIMIT) as staged:
        assert set(files(staged.path)) == {CONFIG, WEIGHTS}


@RUNS
@given(st.integers(0, len(archive(*SMALL)) - 1))
async def test_a_truncated_archive_never_passes(length: int) -> None:
    with TemporaryDirectory() as scratch:
        await refused(Vault(Path(scratch) / "vault"), archive(*SMALL)[:length])


@RUNS
@given(st.integers(0, 511), st.binary(min_size=1, max_size=24))
async def test_a_damaged_header_gives_an_error_of_ours_or_the_files_themselves(at: int, value: bytes) -> None:
    odd = replaced(SMALL[0], (at, min(512, at + len(value))), value[: 512 - at])
    with TemporaryDirectory() as scratch:
        vault = Vault(Path(scratch) / "vault")
        try:
            staged: Staged = await vault.receive(pieces(archive(odd, SMALL[1])), LIMIT)
        except MacaronError:
            assert left_over(vault.folder) == []
        else:
            with staged:
                assert files(staged.path) == {CONFIG: b"{}", WEIGHTS: b"weights"}


async def test_a_client_that_goes_away_leaves_nothing(vault: Vault) -> None:
    async def leaving() -> AsyncIterator[bytes]:
        yield member(WEIGHTS, bytes(2048))[:700]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await vault.receive(leaving(), LIMIT)
    assert left_over(vault.folder) == []


async def test_a_cancelled_upload_leaves_nothing(vault: Vault, source: Path) -> None:
    waiting = asyncio.Event()

    async def stalled() -> AsyncIterator[bytes]:
        yield packed(source)[:3000]
        waiting.set()
        await asyncio.Event().wait()

    upload = asyncio.create_task(vault.receive(stalled(), LIMIT))
    await asyncio.wait_for(waiting.wait(), SECONDS)
    assert left_over(vault.folder) != []
    upload.cancel()
    with pytest.raises(asyncio.CancelledError):
        await upload
    assert left_over(vault.folder) == []


async def test_an_upload_cancelled_while_it_writes_is_ended_before_its_files_go(tmp_path: Path, source: Path) -> None:
    loop, reached, cancelled = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    def watch(step: str) -> None:
        if step == "file.opened":
            loop.call_soon_threadsafe(reached.set)
            asyncio.run_coroutine_threadsafe(cancelled.wait(), loop).result(SECONDS)

    vault = Vault(tmp_path / "vault", watch=watch)
    upload = asyncio.create_task(vault.receive(pieces(packed(source)), LIMIT))
    await asyncio.wait_for(reached.wait(), SECONDS)
    upload.cancel()
    upload.cancel()
    cancelled.set()
    with pytest.raises(asyncio.CancelledError):
        await upload
    assert left_over(vault.folder) == []


async def test_a_pickle_under_the_weights_name_is_staged_and_never_admitted(vault: Vault, source: Path) -> None:
    (source / WEIGHTS).write_bytes(b"\x80\x04\x95" + bytes(600))
    with await vault.receive(pieces(packed(source)), LIMIT) as staged:
        with pytest.raises(Unsuitable, match="pickle"):
            vault.admit(staged, checked(staged), "ann")
    assert left_over(vault.folder) == []
