"""Running a suite over subjects."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from macaron.errors import ConfigError, ContextOverflow, EngineError
from macaron.evals.results import Results
from macaron.evals.run_suite import NO_ROOM, run_suite
from macaron.evals.suites import open_suite
from macaron.train.data.packages import WheelPackages
from tests.evals.small_suite import GreetingSuite, RuledSubject


def silent(subject: str, done: int, total: int) -> None:
    """No progress."""


def polite() -> RuledSubject:
    return RuledSubject("polite", lambda text: "Hello!")


def rude() -> RuledSubject:
    return RuledSubject("rude", lambda text: "Hello" if text.endswith("0") else "No.")


async def test_subjects_are_summarised_and_compared() -> None:
    with Results(None) as results:
        report = await run_suite(GreetingSuite(4), [polite(), rude()], results, silent)
    assert report.subjects["polite"].passed == 4
    assert report.subjects["rude"].reasons == {"no greeting": 3}
    assert report.subjects["rude"].per_source == {"s0": (1, 2), "s1": (0, 2)}
    assert report.subjects["rude"].tokens == 8
    pair = report.pairs["polite", "rude"]
    assert (pair.only_first, pair.only_second, pair.p) == (3, 0, 0.25)
    assert msgspec.json.decode(msgspec.json.encode(report.as_json()))["pairs"][0]["first"] == "polite"


async def test_a_case_that_was_answered_is_not_asked_again(tmp_path: Path) -> None:
    subject = rude()
    for cases in (2, 4):
        with Results(tmp_path / "r.jsonl") as results:
            report = await run_suite(GreetingSuite(cases), [subject], results, silent)
    assert subject.asked == 4
    assert report.subjects["rude"].n == 4


async def test_another_revision_is_asked_again(tmp_path: Path) -> None:
    for revision in "12":
        subject = RuledSubject("x", lambda text: "hello", revision)
        with Results(tmp_path / "r.jsonl") as results:
            await run_suite(GreetingSuite(2), [subject], results, silent)
        assert subject.asked == 2


async def test_what_was_answered_before_the_engine_failed_is_kept(tmp_path: Path) -> None:
    def fail_late(text: str) -> str:
        if text.endswith("3"):
            raise EngineError("the engine is gone")
        return "hello"

    with Results(tmp_path / "r.jsonl") as results:
        with pytest.raises(EngineError, match="gone"):
            await run_suite(GreetingSuite(4), [RuledSubject("x", fail_late)], results, silent, parallel=1)
    healthy = RuledSubject("x", lambda text: "hello")
    with Results(tmp_path / "r.jsonl") as results:
        report = await run_suite(GreetingSuite(4), [healthy], results, silent)
    assert healthy.asked == 1
    assert report.subjects["x"].passed == 4


async def test_a_prompt_that_does_not_fit_is_not_passed() -> None:
    def overflow(text: str) -> str:
        raise ContextOverflow("4,200 tokens, 4,096 fit")

    with Results(None) as results:
        report = await run_suite(GreetingSuite(2), [RuledSubject("x", overflow)], results, silent)
    assert report.subjects["x"].reasons == {NO_ROOM: 2}


async def test_progress_is_told_of_every_case() -> None:
    seen: list[tuple[str, int, int]] = []
    with Results(None) as results:
        await run_suite(GreetingSuite(2), [polite()], results, lambda *told: seen.append(told))
    assert seen == [("polite", 0, 2), ("polite", 1, 2), ("polite", 2, 2)]


async def test_a_limit_takes_the_first_cases() -> None:
    subject = polite()
    with Results(None) as results:
        await run_suite(GreetingSuite(9), [subject], results, silent, limit=2)
    assert subject.asked == 2


def test_suites_are_opened_by_name(tmp_path: Path) -> None:
    packages = WheelPackages(tmp_path)
    assert [open_suite(name, packages).name for name in ("tools", "code", "ui")] == ["tools", "code", "ui"]
    with pytest.raises(ConfigError, match="no suite 'poetry'"):
        open_suite("poetry", packages)
    with pytest.raises(ConfigError, match="briefs are for the suite ui"):
        open_suite("code", packages, tmp_path)
