"""A diagnosis from probes to the rows behind a regression. Judge and subject are doubles."""

from __future__ import annotations

import asyncio
import io
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from msgspec.structs import replace
from rich.console import Console
from typer.testing import CliRunner

from macaron.cli.evals_diagnose import diagnose
from macaron.errors import ConfigError, EngineError, Unavailable
from macaron.evals.diagnose import DimensionScore, answer_probes, dimension_scores, judge_answers
from macaron.evals.diagnosis_change import changes, comparable, rows_behind
from macaron.evals.diagnosis_report import diagnosis_report, diagnosis_tables, read_scores
from macaron.evals.dimensions import Dimension, load_dimensions
from macaron.evals.judge import Judge, JudgeSettings
from macaron.evals.record import CaseResult
from macaron.evals.results import Results
from macaron.evals.suite import Answer
from macaron.train.data.rows import PreferenceRow, SftRow
from macaron.train.folder import RunFolder
from macaron.train.record import RunRecord
from tests.evals.judge_double import GOOD, JudgeDouble, Said, Script, judge_double

ALL = load_dimensions()
TWO = tuple(replace(dimension, probes=dimension.probes[:3]) for dimension in ALL[:2])


class EchoSubject:
    """A subject double that says the last user message again; after `until` answers its engine is gone."""

    name = "L0"
    revision = "r1"

    def __init__(self, until: int = 1_000) -> None:
        self.asked = 0
        self._until = until

    async def answer(
        self, messages: Sequence[dict[str, Any]], *, tools: Sequence[dict[str, Any]] = (), max_tokens: int = 512
    ) -> Answer:
        self.asked += 1
        if self.asked > self._until:
            raise EngineError("the engine is gone")
        return Answer(f"You said: {messages[-1]['content']}")


def no_progress(subject: str, done: int, total: int) -> None:
    return


async def diagnosed(
    folder: Path, double: JudgeDouble, subject: EchoSubject | None = None, dimensions: Sequence[Dimension] = TWO
) -> list[CaseResult]:
    settings = JudgeSettings(double.url, "big", attempts=1, pause=0.0, timeout=5.0)
    with Results(folder / "answers.jsonl") as answers, Results(folder / "diagnosis.jsonl") as scores:
        answered = await answer_probes(dimensions, subject or EchoSubject(), answers, no_progress)
        async with Judge(settings) as judge:
            return await judge_answers(dimensions, answered, judge, scores, no_progress)


def scripted(scores: dict[str, int]) -> Script:
    """A judge that gives each last user message, by a word in it, a score; 4 to the others."""

    def script(body: dict[str, Any]) -> Said:
        text = body["messages"][-1]["content"]
        score = next((score for word, score in scores.items() if word in text), 4)
        return Said(f'{{"score": {score}, "reason": "because"}}')

    return script


def test_our_dimensions_are_those_that_are_named_with_enough_probes() -> None:
    names = [dimension.name for dimension in ALL]
    assert names == ["task_progress", "emotional_signals", "resists_sycophancy", "timely_closure"]
    for dimension in ALL:
        assert len(dimension.probes) >= 8
        assert {probe.language for probe in dimension.probes} == {"en", "zh"}
        assert all(len(probe.turns) >= 3 and probe.messages()[-1]["role"] == "user" for probe in dimension.probes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dimensions = 3", "does not describe dimensions"),
        ("dimensions = []", "has no dimensions"),
        ("[[dimensions]]\nname = 'x'", "does not describe dimensions"),
        ("[[dimensions]]\nname='x'\ntitle='X'\nquestion='?'\nscores=['a']\nprobes=[{id='p',turns=['a']}]", "1 to 5"),
        ("[[dimensions]]\nname='x'\ntitle='X'\nquestion='?'\nscores=['1','2','3','4','5']\nprobes=[]", "no probes"),
        (
            "[[dimensions]]\nname='x'\ntitle='X'\nquestion='?'\nscores=['1','2','3','4','5']\n"
            "probes=[{id='p',turns=['a','b']}]",
            "must end with the person's",
        ),
        (
            "[[dimensions]]\nname='x'\ntitle='X'\nquestion='?'\nscores=['1','2','3','4','5']\n"
            "probes=[{id='p',turns=['a']},{id='p',turns=['a']}]",
            "there twice",
        ),
        ("\ufffe", "does not describe dimensions"),
    ],
)
def test_a_file_of_dimensions_that_cannot_be_used_says_why(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        load_dimensions(path)


def test_a_file_of_dimensions_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"own\.toml"):
        load_dimensions(tmp_path / "own.toml")


async def test_every_probe_is_answered_and_scored_in_order(tmp_path: Path) -> None:
    async with judge_double(lambda _: Said(GOOD)) as double:
        results = await diagnosed(tmp_path, double)
    assert [result.case for result in results] == [probe.id for each in TWO for probe in each.probes]
    assert [result.source for result in results] == ["task_progress"] * 3 + ["emotional_signals"] * 3
    assert {result.detail["score"] for result in results} == {4}
    assert read_scores(tmp_path / "diagnosis.jsonl") == read_scores(tmp_path)
    kept = {result.case: result for result in read_scores(tmp_path)}
    assert {kept[result.case].detail["verdict"] for result in results} == {GOOD}
    assert kept[results[0].case].detail["judge"]["answered_by"] == "double-1"
    assert len(kept[results[0].case].detail["prompt"]) == 64


async def test_nothing_is_asked_twice(tmp_path: Path) -> None:
    subject = EchoSubject()
    async with judge_double(lambda _: Said(GOOD)) as double:
        first = await diagnosed(tmp_path, double, subject)
        second = await diagnosed(tmp_path, double, subject)
    assert [result.case for result in first] == [result.case for result in second]
    assert (subject.asked, len(double.requests)) == (6, 6)


async def test_invalid_verdicts_are_counted_and_never_scored(tmp_path: Path) -> None:
    replies = iter([Said(GOOD), Said("four"), Said('{"score": 9, "reason": "x"}'), *[Said(GOOD)] * 3])
    async with judge_double(lambda _: next(replies)) as double:
        results = await diagnosed(tmp_path, double)
        again = await diagnosed(tmp_path, double)
    found = dimension_scores(results)
    assert found == dimension_scores(again)
    assert sum(score.n for score in found.values()) == 6
    assert sum(len(score.scores) for score in found.values()) == 4
    problems = sum((Counter(score.invalid) for score in found.values()), Counter())
    assert problems == {"not JSON": 1, "score out of range": 1}
    assert all(score.mean in (None, 4.0) for score in found.values())


async def test_a_judge_that_fails_costs_no_answer_and_no_verdict(tmp_path: Path) -> None:
    subject = EchoSubject()
    replies = iter([Said(GOOD), Said(GOOD)])
    async with judge_double(lambda _: next(replies, Said(status=500, body=b"gone"))) as double:
        with pytest.raises(Unavailable, match="run it again"):
            await diagnosed(tmp_path, double, subject)
        kept = len(read_scores(tmp_path))
        double.script = lambda _: Said(GOOD)
        before = len(double.requests)
        results = await diagnosed(tmp_path, double, subject)
    assert kept == 2
    assert subject.asked == 6
    assert len(double.requests) - before == 4
    assert len(results) == 6


async def test_an_engine_that_fails_costs_no_answer_that_came(tmp_path: Path) -> None:
    async with judge_double(lambda _: Said(GOOD)) as double:
        with pytest.raises(EngineError):
            await diagnosed(tmp_path, double, EchoSubject(until=3))
        again = EchoSubject()
        await diagnosed(tmp_path, double, again)
    assert again.asked == 3


async def test_a_cancelled_diagnosis_leaves_no_task(tmp_path: Path) -> None:
    async with judge_double(lambda _: Said(GOOD)) as double:
        double.hang = True
        running = asyncio.ensure_future(diagnosed(tmp_path, double))
        await asyncio.wait_for(double.asked.wait(), 10)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        double.release()
        ours = [task for task in asyncio.all_tasks() if "judge_answers" in repr(task)]
        assert not ours


def score(name: str, scores: dict[str, int]) -> DimensionScore:
    return DimensionScore(name, len(scores), sum(scores.values()) / len(scores), scores, {})


def test_regressions_come_first_with_their_interval_and_probes() -> None:
    run = {"up": score("up", {"a": 4, "b": 5}), "down": score("down", {"c": 1, "d": 3, "e": 4, "f": 2})}
    parent = {"up": score("up", {"a": 3, "b": 3}), "down": score("down", {"c": 4, "d": 4, "e": 4, "g": 5})}
    worst, best = changes(run, parent)
    assert (worst.name, worst.n, worst.worse) == ("down", 3, {"c": -3, "d": -1})
    assert worst.difference == pytest.approx(-4 / 3)
    # Student's t of -3, -1, 0: mean -1.333, standard error 0.882, t(0.975, 2) = 4.303.
    assert worst.interval == pytest.approx((-5.128, 2.461), abs=0.002)
    assert (best.name, best.difference, best.worse) == ("up", 1.5, {})


def test_one_probe_has_no_interval_and_none_no_change() -> None:
    one, other = {"x": score("x", {"a": 4})}, {"x": score("x", {"a": 5})}
    assert changes(one, other)[0].interval is None
    assert changes(one, {"x": score("x", {"b": 5})}) == []
    assert changes(one, {}) == []


def result(case: str, judge: str, rubric: str = "r") -> CaseResult:
    return CaseResult(case, "d", "L0", True, detail={"score": 4, "rubric": rubric, "judge": {"model": judge}})


def test_scores_of_another_judge_or_rubric_are_not_compared() -> None:
    run = [result("a", "big"), result("b", "big"), result("c", "big")]
    parent = [result("a", "big"), result("b", "small"), result("c", "big", "other"), result("d", "big")]
    assert [each.case for each in comparable(run, parent)] == ["a"]


ROWS = (
    SftRow(
        id="train-times", source="talk", messages=({"role": "user", "content": "When does the train to Ghent go?"},)
    ),
    SftRow(id="bread", source="talk", messages=({"role": "user", "content": "How long must sourdough rest?"},)),
    SftRow(id="考研", source="talk", messages=({"role": "user", "content": "考研成绩差两分,调剂怎么办?"},)),
    PreferenceRow(
        id="prefers",
        source="pairs",
        prompt=({"role": "user", "content": "My dog died on Tuesday."},),
        chosen=({"role": "assistant", "content": "I am sorry about your dog."},),
        rejected=({"role": "assistant", "content": "Next question?"},),
    ),
)


def test_the_rows_most_like_a_case_are_named() -> None:
    cases = {"trip": "A train from Cologne to Ghent", "exam": "考研差两分,没事", "grief": "our dog died"}
    behind = rows_behind(cases, iter(ROWS))
    assert {case: rows[0].row for case, rows in behind.items()} == {
        "trip": "train-times", "exam": "考研", "grief": "prefers",
    }  # fmt: skip
    assert all(rows == sorted(rows, key=lambda row: -row.similarity) for rows in behind.values())


def test_without_rows_or_cases_nothing_is_named() -> None:
    assert rows_behind({"a": "x"}, iter(())) == {}
    assert rows_behind({}, iter(ROWS)) == {}


async def test_a_report_names_what_got_worse_and_the_rows_behind(tmp_path: Path) -> None:
    async with judge_double(lambda _: Said(GOOD)) as double:
        before = await diagnosed(tmp_path / "parent", double)
        double.script = scripted({"museums": 1, "Kolar": 5})
        after = await diagnosed(tmp_path / "run", double)
    report = diagnosis_report(TWO, after, read_scores(tmp_path / "parent"), iter(ROWS))
    assert len(before) == 6
    assert report.not_comparable == 0
    assert report.changes[0].name == "task_progress"
    assert report.changes[0].worse == {"progress-trip": -3}
    assert list(report.behind) == ["progress-trip"]
    assert report.behind["progress-trip"][0].row == "train-times"
    console = Console(width=160, file=io.StringIO(), record=True)
    console.print(diagnosis_tables(report))
    text = console.export_text()
    assert text.index("Change against the parent") < text.index("Scores") < text.index("train-times")


async def test_without_a_parent_only_scores_are_shown(tmp_path: Path) -> None:
    async with judge_double(lambda _: Said(GOOD)) as double:
        results = await diagnosed(tmp_path, double)
    report = diagnosis_report(TWO, results, [], iter(ROWS))
    assert (report.changes, report.behind) == ([], {})
    assert report.judges[0]["model"] == "big"


def test_a_parent_without_a_diagnosis_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no diagnosis"):
        read_scores(tmp_path)
    (tmp_path / "diagnosis.jsonl").write_text("nonsense\n")
    with pytest.raises(ConfigError, match="line 1"):
        read_scores(tmp_path)


SMALL = """
[[dimensions]]
name = "closure"
title = "Closure"
question = "Does it stop?"
scores = ["1", "2", "3", "4", "5"]
probes = [{id = "bye", turns = ["Thanks, bye."]}]
"""


def invoke(*arguments: str) -> str:
    """What the command prints."""
    app = typer.Typer()
    app.command()(diagnose)
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.slow
@pytest.mark.engine
async def test_the_command_diagnoses_the_bare_base_and_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("macaron.evals.diagnose.MAX_TOKENS", 8)
    dimensions = tmp_path / "own.toml"
    dimensions.write_text(SMALL)
    async with judge_double(lambda _: Said(GOOD)) as double:
        judge = ["--judge", double.url, "--judge-model", "big"]
        arguments = [*judge, "--dimensions", str(dimensions), "--out", str(tmp_path), "--json"]
        first = json.loads(await asyncio.to_thread(invoke, *arguments))
        second = json.loads(await asyncio.to_thread(invoke, *arguments, "--parent", str(tmp_path)))
    assert first["dimensions"]["closure"]["scores"] == {"bye": 4}
    assert [change["difference"] for change in second["changes"]] == [0.0]
    assert len(double.requests) == 1
    assert json.loads((tmp_path / "diagnosis.json").read_text()) == second


def test_a_base_without_a_folder_for_results_is_refused() -> None:
    with pytest.raises(ConfigError, match="--out"):
        invoke("--judge", "http://127.0.0.1:1/v1", "--judge-model", "big")


def run_folder(folder: Path, name: str, **changes: Any) -> Path:
    values: dict[str, Any] = {
        "id": name, "kind": "sft", "status": "finished", "profile": "demi", "label": "L0", "base": "b",
        "base_fingerprint": "f", "created": "2026-11-30T00:00:00Z", "seed": 1,
    }  # fmt: skip
    (folder / name).mkdir()
    RunFolder(folder / name).write_record(RunRecord(**{**values, **changes}))
    return folder / name


def test_a_run_that_is_not_finished_is_refused(tmp_path: Path) -> None:
    run = run_folder(tmp_path, "one", status="stopped")
    with pytest.raises(ConfigError, match="is stopped"):
        invoke(str(run), "--judge", "http://127.0.0.1:1/v1", "--judge-model", "big")


def test_a_parent_is_looked_for_beside_the_run(tmp_path: Path) -> None:
    run = run_folder(tmp_path, "two", parent="one")
    command = (str(run), "--judge", "http://127.0.0.1:1/v1", "--judge-model", "big")
    with pytest.raises(ConfigError, match="the parent one is not beside"):
        invoke(*command)
    parent = run_folder(tmp_path, "one")
    with pytest.raises(ConfigError, match=f"there is no diagnosis in {parent}"):
        invoke(*command)
