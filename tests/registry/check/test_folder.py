"""What may not lie in an adapter's folder: pickles, links, special files, names that collide or lead elsewhere."""

from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path

import pytest

from macaron.registry.check import Limits, check_adapter
from tests.registry.check.adapters import adapter, errors, found, tiny_base

WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return adapter(tmp_path / "a")


def test_a_pickle_in_place_of_the_weights_is_refused_and_never_opened(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    (folder / "adapter_model.bin").write_bytes(pickle.dumps({"a": 1}))
    assert set(errors(folder)) == {"pickle", "missing_file"}
    assert errors(folder)["pickle"].value == "adapter_model.bin"


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_under_the_name_of_the_weights_is_refused(protocol: int, folder: Path) -> None:
    (folder / WEIGHTS).write_bytes(pickle.dumps(list(range(99)), protocol))
    report = check_adapter(folder, tiny_base())
    assert {item.code for item in report.findings if item.severity == "error"} == {"pickle"}


def test_a_pickle_under_a_harmless_name_is_refused(folder: Path) -> None:
    (folder / "notes.txt").write_bytes(pickle.dumps("x"))
    assert errors(folder)["pickle"].value == "notes.txt"


def test_a_zip_as_torch_writes_it_is_refused(folder: Path) -> None:
    with zipfile.ZipFile(folder / "weights", "w") as file:
        file.writestr("data.pkl", b"x")
    assert errors(folder)["pickle"].value == "weights"


@pytest.mark.parametrize("name", [WEIGHTS, CONFIG, "run.json", "README.md"])
def test_a_link_is_refused_and_not_followed(name: str, folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (folder / name).touch()
    (folder / name).replace(elsewhere)
    (folder / name).symlink_to(elsewhere)
    report = check_adapter(folder, tiny_base())
    assert "link" in {item.code for item in report.findings if item.severity == "error"}
    assert report.revision == "" or name in ("run.json", "README.md")


def test_a_folder_that_is_a_link_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "b").symlink_to(folder)
    assert set(errors(tmp_path / "b")) == {"link"}


def test_a_path_that_leads_out_is_refused(folder: Path) -> None:
    assert set(errors(folder / ".." / folder.name)) == {"escape"}


def test_a_pipe_is_refused_without_waiting_for_it(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    os.mkfifo(folder / WEIGHTS)
    report = check_adapter(folder, tiny_base())
    assert {item.code for item in report.findings if item.severity == "error"} == {"special_file"}


def test_a_folder_in_place_of_the_weights_is_refused(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    (folder / WEIGHTS).mkdir()
    assert set(errors(folder)) == {"unreadable"}


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31m", "..\\x", "C:x"])
def test_a_name_that_steers_a_terminal_or_leads_out_elsewhere_is_refused(name: str, folder: Path) -> None:
    (folder / name).touch()
    finding = errors(folder)["unsafe_name"]
    assert finding.value.isprintable()


def test_names_that_collide_are_refused(folder: Path) -> None:
    (folder / "ADAPTER_CONFIG.json").write_text("{}")
    assert "ADAPTER_CONFIG.json" in errors(folder)["name_collision"].value


def test_missing_files_are_each_named(tmp_path: Path) -> None:
    empty = tmp_path / "a"
    empty.mkdir()
    report = check_adapter(empty, tiny_base())
    assert [item.field for item in report.findings if item.code == "missing_file"] == [CONFIG, WEIGHTS]


@pytest.mark.parametrize("name", ["missing", WEIGHTS])
def test_what_is_no_folder_is_refused(name: str, folder: Path) -> None:
    assert set(errors(folder / name)) == {"unreadable"}


def test_a_path_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    assert set(errors(tmp_path / "a\0b")) == {"unreadable"}


def test_other_files_are_a_note(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")
    (folder / "checkpoints").mkdir()
    report = check_adapter(folder, tiny_base())
    assert report.ok
    assert [item.value for item in report.findings if item.code == "extra_file"] == ["checkpoints", "tokenizer.json"]


def test_a_folder_of_very_many_files_is_no_adapter(folder: Path) -> None:
    for number in range(300):
        (folder / f"{number}").touch()
    assert set(errors(folder)) == {"too_many_files"}


def test_weights_larger_than_the_limit_are_refused_unread(folder: Path) -> None:
    assert "too_large" in errors(folder, Limits(max_bytes=1000))


def test_a_configuration_without_end_is_refused(folder: Path) -> None:
    (folder / CONFIG).write_bytes(b" " * 1_048_577)
    assert found(folder)["too_large"].field == CONFIG


def test_a_file_that_may_not_be_read_is_an_error(folder: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("the superuser may read everything")
    (folder / WEIGHTS).chmod(0)
    assert "unreadable" in errors(folder)
