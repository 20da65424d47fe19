"""Results that survive a stopped run."""

from __future__ import annotations

from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.evals.record import CaseResult
from macaron.evals.results import OUTPUT_CHARACTERS, Results, asked_digest

RESULT = CaseResult("case", "source", "base", passed=True, output="answer")


def test_a_result_is_found_again_by_the_next_run(tmp_path: Path) -> None:
    with Results(tmp_path / "new" / "a.jsonl") as results:
        results.add(RESULT, "q1")
    with Results(tmp_path / "new" / "a.jsonl") as results:
        found = results.find("base", "case", "q1")
        assert found is not None
        assert found.output == "answer"


def test_a_result_of_another_question_is_not_used(tmp_path: Path) -> None:
    with Results(tmp_path / "a.jsonl") as results:
        results.add(RESULT, "q1")
        assert results.find("base", "case", "q2") is None
        assert results.find("L1", "case", "q1") is None


def test_half_a_line_of_a_killed_run_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with Results(path) as results:
        results.add(RESULT, "q1")
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:20])
    with Results(path) as results:
        results.add(RESULT, "q2")
    assert len(path.read_bytes().splitlines()) == 2
    with Results(path) as results:
        assert results.find("base", "case", "q2") is not None


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"case": 1}\n')
    with pytest.raises(ConfigError, match="line 1 is not a result"), Results(path):
        pass


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with Results(tmp_path / "a.jsonl"), pytest.raises(ConfigError, match="another process"):
        with Results(tmp_path / "a.jsonl"):
            pass


def test_a_place_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be used"), Results(tmp_path / "file" / "a.jsonl"):
        pass


def test_a_long_output_is_clipped() -> None:
    with Results(None) as results:
        long = CaseResult("case", "source", "base", passed=False, output="x" * (OUTPUT_CHARACTERS + 1))
        assert len(results.add(long, "q").output) == OUTPUT_CHARACTERS


def test_the_digest_of_a_question_depends_on_all_its_parts() -> None:
    assert len({asked_digest("a", "b"), asked_digest("a", "c"), asked_digest("ab"), asked_digest("a", ["b"])}) == 4
