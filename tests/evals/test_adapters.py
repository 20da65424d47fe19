"""Which adapters a command line names."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from macaron.errors import ConfigError
from macaron.evals.adapters import named_adapters, profile_adapters
from macaron.hcp import load
from macaron.profiles import find_profile
from macaron.train.record import RunRecord


def peft_folder(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "adapter_config.json").write_text("{}")
    return path


def run_folder(path: Path, label: str, *, finished: bool = True) -> Path:
    path.mkdir()
    record = RunRecord(
        id="r", kind="sft", status="finished", profile="demi", label=label, base="b", base_fingerprint="", created="",
        seed=0,
    )  # fmt: skip
    (path / "run.json").write_bytes(msgspec.json.encode(record))
    if finished:
        peft_folder(path / "adapter")
    return path


def test_a_file_is_named_by_itself_or_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "L1.gguf"
    file.write_bytes(b"GGUF")
    assert named_adapters([str(file)]) == {"L1": file}
    assert named_adapters([f"control={file}"]) == {"control": file}


def test_a_run_is_named_by_its_label(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run", "L2")
    assert named_adapters([str(run)]) == {"L2": run / "adapter"}


def test_a_folder_gives_all_it_holds(tmp_path: Path) -> None:
    run_folder(tmp_path / "one", "L0")
    peft_folder(tmp_path / "L3")
    (tmp_path / "notes.txt").write_text("")
    assert set(named_adapters([str(tmp_path)])) == {"L0", "L3"}


def test_a_run_without_an_adapter_is_refused(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run", "L2", finished=False)
    with pytest.raises(ConfigError, match="no finished adapter"):
        named_adapters([str(run)])


def test_nothing_at_a_path_and_a_name_twice_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no adapter"):
        named_adapters([str(tmp_path / "none")])
    folder = str(peft_folder(tmp_path / "L1"))
    with pytest.raises(ConfigError, match="named twice"):
        named_adapters([folder, folder])


def test_a_record_that_is_none_is_named(tmp_path: Path) -> None:
    folder = peft_folder(tmp_path / "L1")
    (folder / "run.json").write_text("[]")
    with pytest.raises(ConfigError, match=r"run\.json"):
        named_adapters([str(folder)])


def test_the_profile_names_its_own() -> None:
    loaded = load(find_profile("demi"))
    named = {entry.label for entry in loaded.contract.mol.adapters if entry.source}
    assert set(profile_adapters(loaded)) == named
