"""Two runs compared case by case."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from macaron.evals.case_blocks import accuracies, changed, outputs
from macaron.evals.cases import Change, changes, read_evaluations
from macaron.evals.stats import mcnemar
from macaron.train.runs.blocks import Block, Fold, Grid, Note
from tests.train.runs.folders import write_results, write_run


@pytest.fixture
def first(tmp_path: Path) -> Path:
    return write_run(tmp_path / "a")


@pytest.fixture
def second(tmp_path: Path) -> Path:
    return write_run(tmp_path / "b")


def compared(first: Path, second: Path, labels: tuple[str, str] = ("L2", "L2")) -> list[Change]:
    return list(changes(read_evaluations(first / "evals"), read_evaluations(second / "evals"), labels))


def grids(blocks: list[Block]) -> list[Grid]:
    return [block for block in blocks if isinstance(block, Grid)]


def test_cases_are_paired_by_their_id(first: Path, second: Path) -> None:
    write_results(first, "tools", "L2", {"one": True, "two": False, "three": True, "only here": True})
    write_results(second, "tools", "L2", {"three": False, "two": True, "one": True, "only there": False})
    (change,) = compared(first, second)
    assert (change.n, change.passed) == (3, (2, 2))
    assert [left.case for left, _ in change.lost] == ["three"]
    assert [right.case for _, right in change.won] == ["two"]
    assert change.statistics.p == mcnemar(1, 1)


def test_specialists_of_other_labels_are_paired_as_each_runs_own(first: Path, second: Path) -> None:
    for run, label in ((first, "L1"), (second, "L2")):
        write_results(run, "tools", label, {"one": True})
        write_results(run, "tools", "base", {"one": False})
    found = compared(first, second, ("L1", "L2"))
    assert [(change.first, change.second) for change in found] == [("L1", "L2"), ("base", "base")]


def test_an_evaluation_of_one_run_alone_is_not_compared(first: Path, second: Path) -> None:
    write_results(first, "tools", "L2", {"one": True})
    write_results(second, "code", "L2", {"one": True})
    assert compared(first, second) == []
    assert list(changed([], cases=10)) == [Note("No case was asked of both runs.")]


def test_of_a_case_that_was_asked_again_the_latest_counts(first: Path) -> None:
    write_results(first, "tools", "L2", {"one": False})
    write_results(first, "tools", "L2", {"one": True})
    (result,) = read_evaluations(first / "evals").results["tools"]["L2"]
    assert result.passed


@pytest.mark.parametrize("line", [b"nonsense", b"[]", b'{"case": 1}', b"\xff", b"[" * 10_000])
def test_a_broken_line_is_told_and_left_out(line: bytes, first: Path) -> None:
    write_results(first, "tools", "L2", {"one": True})
    with (first / "evals" / "tools.jsonl").open("ab") as file:
        file.write(line + b'\n{"case": "half')
    found = read_evaluations(first / "evals")
    assert found.problems == ("1 lines of evals/tools.jsonl are no results and were left out",)
    assert len(found.results["tools"]["L2"]) == 1
    assert next(iter(accuracies(found))) == Note(found.problems[0], warns=True)


def test_a_run_without_evaluations_says_so(tmp_path: Path) -> None:
    assert list(accuracies(read_evaluations(tmp_path / "none"))) == [Note("It has not been evaluated.")]


def test_what_differs_for_certain_is_marked(first: Path, second: Path) -> None:
    write_results(first, "tools", "L2", {str(case): case >= 10 for case in range(40)})
    write_results(second, "tools", "L2", {str(case): True for case in range(40)})
    table, won = grids(list(changed(compared(first, second), cases=4)))
    assert table.marked == {0}
    (row,) = table.rows
    assert list(row[:6]) == ["tools", "L2", "40", "75.0 %", "100.0 %", "+25.0"]
    assert won.title == "tools, L2: only B passes, 4 of 10 cases"
    assert won.rows[0] == ("0", "bfcl", "no tool call")
    assert len(won.rows) == 4


def test_no_difference_is_a_plain_zero(first: Path, second: Path) -> None:
    for run in (first, second):
        write_results(run, "tools", "L2", {"one": True, "two": False})
    (table,) = grids(list(changed(compared(first, second), cases=4)))
    assert table.rows[0][5] == "+0.0"
    assert table.marked == frozenset()


def test_both_answers_are_there_to_be_read(first: Path, second: Path) -> None:
    write_results(first, "tools", "L2", {"one": True})
    write_results(second, "tools", "L2", {"one": False})
    assert list(outputs(compared(first, second), cases=5)) == [
        Fold("tools, L2: one", [("A: passed", "L2 says one"), ("B: failed, no tool call", "L2 says one")])
    ]


def test_a_long_answer_is_clipped(first: Path, second: Path) -> None:
    write_results(first, "tools", "L2", {"one": True})
    line = {"case": "one", "source": "s", "subject": "L2", "passed": False, "output": "x" * 100_000}
    (second / "evals" / "tools.jsonl").write_bytes(msgspec.json.encode(line) + b"\n")
    (fold,) = outputs(compared(first, second), cases=5)
    assert len(fold.texts[1][1]) < 3000
