"""Run folders are read back as they are, whole or not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.errors import ConfigError
from macaron.train.runs.read import Point, find_run, list_runs, read_run
from tests.train.runs.folders import CONFIG, RECORD, write_run


def test_a_whole_run_is_read(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "a", losses=[3.0, 2.5]))
    assert (run.state, run.record, run.config, run.problems) == ("finished", RECORD, CONFIG, ())
    assert run.curves == {"loss": (Point(1, 3.0), Point(2, 2.5)), "tokens": (Point(1, 100), Point(2, 200))}


def test_runs_are_listed_oldest_first_with_those_in_folders(tmp_path: Path) -> None:
    write_run(tmp_path / "b", id="second", created="2026-02-01T00:00:00Z")
    write_run(tmp_path / "demi" / "L0", id="first", created="2026-01-01T00:00:00Z")
    (tmp_path / "notes").mkdir()
    (tmp_path / "file").write_text("x")
    assert [run.name for run in list_runs(tmp_path)] == ["first", "second"]


def test_the_folder_of_a_run_lists_itself(tmp_path: Path) -> None:
    assert [run.name for run in list_runs(write_run(tmp_path / "a"))] == [RECORD.id]


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        list_runs(tmp_path / "runs")


@pytest.mark.parametrize("raw", [b"", b'{"id": "x"', b"[]", b"3", b"\xff\xfe", b"[" * 100_000])
@pytest.mark.parametrize("name", ["run.json", "config.json", "data.json"])
def test_a_broken_file_is_told_and_the_rest_is_read(name: str, raw: bytes, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    (folder / name).write_bytes(raw)
    run = read_run(folder)
    assert [problem.split()[0] for problem in run.problems] == [name]
    assert run.state == ("broken" if name == "run.json" else "finished")
    assert run.curves


def test_a_folder_with_nothing_but_a_beginning_is_broken(tmp_path: Path) -> None:
    (tmp_path / "a" / "checkpoints").mkdir(parents=True)
    (run,) = list_runs(tmp_path)
    assert (run.name, run.state) == ("a", "broken")
    assert "run.json cannot be read" in run.problems[0]


def test_half_a_line_at_the_end_of_the_metrics_is_no_problem(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", losses=[3.0])
    with (folder / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 2, "lo')
    run = read_run(folder)
    assert (run.curves["loss"], run.problems) == ((Point(1, 3.0),), ())


@pytest.mark.parametrize(
    "line",
    ["nonsense", "[1]", '{"loss": 1}', '{"step": "1"}', '{"step": true}', '{"step": -1}', '{"step": NaN}', "\x00" * 9],
)
def test_a_line_that_is_no_metric_is_counted_and_left_out(line: str, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", losses=[3.0])
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(line + "\n" + '{"step": 2, "loss": 2, "note": "x", "none": null, "big": 1e99, "on": true}' + "\n")
    run = read_run(folder)
    assert run.problems == ("1 lines of metrics.jsonl are no metrics and were left out",)
    assert run.curves["loss"] == (Point(1, 3.0), Point(2, 2.0))
    assert set(run.curves) == {"loss", "tokens"}


def test_a_run_whose_process_is_there_is_running(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", status="running")
    (folder / "lock").write_text(str(os.getpid()))
    assert read_run(folder).state == "running"


def test_a_run_whose_process_is_gone_was_interrupted(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", status="running")
    with subprocess.Popen(["true"]) as process:
        process.wait(10)
    (folder / "lock").write_text(str(process.pid))
    assert read_run(folder).state == "interrupted"


@pytest.mark.parametrize("text", ["", "x", "0", "-1", "9" * 30])
def test_a_lock_that_names_no_process_is_nobodys(text: str, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", status="running")
    (folder / "lock").write_text(text)
    assert read_run(folder).state == "interrupted"


def test_a_finished_run_without_its_adapter_says_so(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    (folder / "adapter").rmdir()
    assert read_run(folder).problems == ("it is finished, but its adapter is gone",)


def test_a_run_is_found_by_folder_id_and_beginning(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "code")
    for name in (str(folder), "code", RECORD.id, "L2-2026", "co"):
        assert find_run(name, tmp_path) == folder


def test_a_name_that_several_runs_begin_with_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "a", id="L2-1")
    write_run(tmp_path / "b", id="L2-12")
    with pytest.raises(ConfigError, match=r"'L2' is the beginning of several runs; there are: L2-1, L2-12"):
        find_run("L2", tmp_path)
    assert find_run("L2-1", tmp_path) == tmp_path / "a"
    with pytest.raises(ConfigError, match=r"'L9' is no run in .*; there are: L2-1, L2-12"):
        find_run("L9", tmp_path)


@given(raw=st.binary(max_size=200))
def test_no_bytes_in_a_run_folder_raise(raw: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("run")
    for name in ("run.json", "config.json", "data.json", "metrics.jsonl", "lock"):
        (folder / name).write_bytes(raw)
    assert read_run(folder).state == "broken"
