"""Bringing an adapter from under one of the operator's roots."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from macaron.registry.revision import adapter_revision
from macaron.registry.vault import Oversize, Step, Unsuitable, Vault, VaultLimits
from tests.registry.vault.handling import CONFIG, WEIGHTS, checked, files, left_over


def refused(vault: Vault, source: Path, *roots: Path) -> Unsuitable:
    with pytest.raises(Unsuitable) as caught:
        vault.bring(source, roots)
    assert left_over(vault.folder) == []
    assert caught.value.remedy
    return caught.value


def test_what_is_staged_is_what_the_folder_holds_but_for_unknown_files(vault: Vault, source: Path, root: Path) -> None:
    with vault.bring(source, [root]) as staged:
        assert files(staged.path) == {name: raw for name, raw in files(source).items() if name != "optimizer.pt"}
        assert staged.revision == adapter_revision(source) == checked(staged).revision


def test_copies_are_for_the_service_alone(vault: Vault, source: Path, root: Path) -> None:
    with vault.bring(source, [root]) as staged:
        assert stat.S_IMODE(staged.path.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in staged.path.iterdir()} == {0o600}


def test_a_licence_file_comes_along(vault: Vault, source: Path, root: Path) -> None:
    (source / "LICENSE").write_text("MIT")
    with vault.bring(source, [root]) as staged:
        assert (staged.path / "LICENSE").read_text() == "MIT"


def test_a_closed_stage_leaves_nothing(vault: Vault, source: Path, root: Path) -> None:
    vault.bring(source, [root]).close()
    assert left_over(vault.folder) == []


def test_a_root_may_itself_be_reached_by_a_link(vault: Vault, source: Path, root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    for given in (tmp_path / "alias" / "team" / "law", source):
        with vault.bring(given, [tmp_path / "alias"]) as staged:
            assert staged.revision == adapter_revision(source)


def test_a_folder_outside_every_root_is_not_even_looked_at(vault: Vault, source: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    there, not_there = refused(vault, source, other), refused(vault, tmp_path / "nothing", other)
    assert there.code == not_there.code == "outside_roots"


def test_a_sibling_whose_name_begins_like_a_root_is_outside(vault: Vault, source: Path, root: Path) -> None:
    assert refused(vault, source, root / "te").code == "outside_roots"


def test_a_root_itself_is_no_adapter(vault: Vault, source: Path) -> None:
    assert refused(vault, source, source).code == "outside_roots"


@pytest.mark.parametrize("written", ["{root}/team/../team/law", "team/law", "{root}/team/law\0"])
def test_a_path_that_can_escape_is_refused(vault: Vault, source: Path, root: Path, written: str) -> None:
    assert refused(vault, Path(written.format(root=root)), root).code == "escape"


def test_a_link_on_the_way_is_refused(vault: Vault, source: Path, root: Path) -> None:
    (root / "way").symlink_to(root / "team")
    assert refused(vault, root / "way" / "law", root).code == "link"
    assert refused(vault, root / "way", root).code == "link"


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, "README.md"])
def test_a_link_in_place_of_a_file_is_refused(vault: Vault, source: Path, root: Path, name: str) -> None:
    (source / name).rename(source / "kept")
    (source / name).symlink_to("kept")
    error = refused(vault, source, root)
    assert (error.code, error.param) == ("link", name)


def test_a_pipe_in_place_of_a_file_is_refused_without_waiting(vault: Vault, source: Path, root: Path) -> None:
    (source / WEIGHTS).unlink()
    os.mkfifo(source / WEIGHTS)
    assert refused(vault, source, root).code == "special_file"


def test_a_device_in_place_of_a_file_is_refused(vault: Vault, source: Path, root: Path) -> None:
    (source / WEIGHTS).unlink()
    try:
        os.mknod(source / WEIGHTS, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root can make a device")
    assert refused(vault, source, root).code == "special_file"


def test_a_folder_in_place_of_a_file_is_refused(vault: Vault, source: Path, root: Path) -> None:
    (source / "README.md").unlink()
    (source / "README.md").mkdir()
    assert refused(vault, source, root).code == "special_file"


def test_an_adapter_without_its_configuration_is_refused(vault: Vault, source: Path, root: Path) -> None:
    (source / CONFIG).unlink()
    error = refused(vault, source, root)
    assert (error.code, error.param) == ("missing_file", CONFIG)


def test_a_folder_that_is_not_there_is_refused(vault: Vault, root: Path) -> None:
    assert refused(vault, root / "nothing", root).code == "unreadable"


def test_a_file_in_place_of_the_folder_is_refused(vault: Vault, source: Path, root: Path) -> None:
    assert refused(vault, source / CONFIG, root).code == "unreadable"


def test_sizes_are_bounded_before_anything_is_written(tmp_path: Path, source: Path, root: Path) -> None:
    seen: list[Step] = []
    vault = Vault(tmp_path / "vault", VaultLimits(max_adapter_bytes=1000), seen.append)
    os.truncate(source / WEIGHTS, 2**40)
    with pytest.raises(Oversize) as caught:
        vault.bring(source, [root])
    assert (caught.value.code, seen) == ("request_too_large", [])


def test_a_configuration_of_megabytes_is_refused(vault: Vault, source: Path, root: Path) -> None:
    os.truncate(source / CONFIG, 2_000_000)
    with pytest.raises(Oversize) as caught:
        vault.bring(source, [root])
    assert caught.value.param == CONFIG
    assert left_over(vault.folder) == []


def once(at: Step, act: Callable[[], None], turn: int = 1) -> Callable[[Step], None]:
    """A watch that acts when a point is reached for the given time."""
    seen: list[Step] = []

    def watch(step: Step) -> None:
        seen.append(step)
        if step == at and seen.count(at) == turn:
            act()

    return watch


def swapped_by_link(source: Path, secret: Path) -> None:
    (source / WEIGHTS).unlink()
    (source / WEIGHTS).symlink_to(secret)


def test_a_file_swapped_for_a_link_after_the_look_is_not_followed(tmp_path: Path, source: Path, root: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes((source / WEIGHTS).stat().st_size))
    vault = Vault(tmp_path / "vault", watch=once("stage.opened", lambda: swapped_by_link(source, tmp_path / "secret")))
    error = refused(vault, source, root)
    assert (error.code, error.param) == ("changed", WEIGHTS)


def test_a_file_swapped_for_a_link_while_it_is_copied_is_copied_as_it_was_opened(
    tmp_path: Path, source: Path, root: Path
) -> None:
    before = adapter_revision(source)

    watch = once("file.opened", lambda: swapped_by_link(source, tmp_path / "secret"), turn=2)
    with Vault(tmp_path / "vault", watch=watch).bring(source, [root]) as staged:
        assert (source / WEIGHTS).is_symlink()
        assert adapter_revision(staged.path) == staged.revision == before


def test_a_folder_swapped_for_a_link_while_it_is_copied_changes_nothing(
    tmp_path: Path, source: Path, root: Path
) -> None:
    before = adapter_revision(source)

    def swap() -> None:
        source.rename(tmp_path / "moved")
        source.symlink_to(tmp_path)

    with Vault(tmp_path / "vault", watch=once("stage.opened", swap)).bring(source, [root]) as staged:
        assert staged.revision == before


@pytest.mark.parametrize("change", [+100, -100])
def test_a_file_that_grows_or_shrinks_while_it_is_copied_is_refused(
    tmp_path: Path, source: Path, root: Path, change: int
) -> None:
    size = (source / CONFIG).stat().st_size + change
    vault = Vault(tmp_path / "vault", watch=once("file.opened", lambda: os.truncate(source / CONFIG, size)))
    assert refused(vault, source, root).code == "changed"


def test_a_file_replaced_by_a_pipe_after_the_look_is_refused_without_waiting(
    tmp_path: Path, source: Path, root: Path
) -> None:
    def swap() -> None:
        (source / WEIGHTS).unlink()
        os.mkfifo(source / WEIGHTS)

    assert refused(Vault(tmp_path / "vault", watch=once("stage.opened", swap)), source, root).code == "changed"


def test_a_file_of_another_size_than_at_the_look_is_refused(tmp_path: Path, source: Path, root: Path) -> None:
    vault = Vault(tmp_path / "vault", watch=once("stage.opened", lambda: os.truncate(source / WEIGHTS, 2**40)))
    assert refused(vault, source, root).code == "changed"


def test_a_file_of_many_pieces_is_copied_whole(vault: Vault, source: Path, root: Path) -> None:
    (source / WEIGHTS).write_bytes(os.urandom(2_500_000))
    with vault.bring(source, [root]) as staged:
        assert adapter_revision(staged.path) == staged.revision == adapter_revision(source)
