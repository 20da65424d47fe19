"""The page of numbers: made from what the evaluations leave, put where the document wants it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from macaron.errors import ConfigError
from macaron.evals.compare import compared
from macaron.evals.document import BEGIN, END, numbers, write_numbers
from macaron.evals.record import CaseResult
from macaron.evals.routing import route_result
from macaron.evals.routing import summarise as routing_summary
from macaron.evals.run_suite import SuiteReport, summarise
from macaron.train.data.rows import RouteRow


def suite_json(answers: dict[str, list[bool]]) -> dict[str, Any]:
    results = {
        name: [
            CaseResult(f"c{at}", f"source-{at % 2}", name, passed, reason="" if passed else "no card")
            for at, passed in enumerate(passes)
        ]
        for name, passes in answers.items()
    }
    return SuiteReport("ui", {name: summarise(found) for name, found in results.items()}, compared(results)).as_json()


def routing_json(taken: list[str]) -> dict[str, Any]:
    rows = [RouteRow(id=f"r{at}", source="others", label="L1") for at in range(len(taken))]
    return routing_summary([route_result(row, "L0", label) for row, label in zip(rows, taken, strict=True)]).as_json()


def keep(folder: Path, name: str, table: dict[str, Any]) -> None:
    (folder / f"{name}.json").write_text(json.dumps(table))


def test_a_suite_is_shown_with_its_sources_comparisons_and_reasons(tmp_path: Path) -> None:
    keep(tmp_path, "ui", suite_json({"base": [False] * 8, "L3": [True] * 6 + [False] * 2}))
    text = numbers(tmp_path, {})
    assert "| base | 8 | 0 | 0.0 % |" in text
    assert "| L3 | 8 | 6 | 75.0 % |" in text
    assert "3 of 4 | 3 of 4" in text
    assert "| base / L3 | 0 | 6 | -75.0 |" in text
    assert "0.0312" in text
    assert "| no card | 8 | 2 |" in text


def test_routing_is_shown_with_every_source_and_what_was_taken(tmp_path: Path) -> None:
    keep(tmp_path, "routing", routing_json(["L1", "L1", "L1", "L2"]))
    text = numbers(tmp_path, {})
    assert "| L0 | 4 | 75.0 % |" in text
    assert "| others | 4 | 75.0 %" in text
    assert "| L1 | 3 | 1 | 75.0 % |" in text


def test_an_answer_cannot_break_out_of_its_cell(tmp_path: Path) -> None:
    answer = {"case": "who", "passed": True, "output": "I am | <b>`Macaron`</b>\n\n| L9 |"}
    keep(tmp_path, "chat", {"perplexity": None, "answers": [answer]})
    text = numbers(tmp_path, {})
    (row,) = [line for line in text.splitlines() if line.startswith("| who")]
    assert row.replace("\\|", "").count("|") == 4
    assert "<b>" not in text


def test_numbers_replace_only_what_stands_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "demi.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    for _ in range(2):
        write_numbers(page, "new")
    assert page.read_text() == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"


def test_a_page_without_the_marks_is_refused_and_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "demi.md"
    page.write_text("text")
    with pytest.raises(ConfigError, match="no place"):
        write_numbers(page, "new")
    assert page.read_text() == "text"


def test_a_folder_without_summaries_and_a_broken_summary_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no summary"):
        numbers(tmp_path, {})
    (tmp_path / "ui.json").write_text("[")
    with pytest.raises(ConfigError, match=r"ui\.json"):
        numbers(tmp_path, {})
