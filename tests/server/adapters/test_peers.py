"""What workers know of each other."""

from __future__ import annotations

import asyncio

from macaron.mol.trials import Comparison, Side
from macaron.server.adapters.peers import Findings, Meeting, Report


def meeting(*workers: int) -> Meeting:
    return Meeting(lambda: workers)


async def test_the_first_that_has_spoken_leads_as_long_as_it_runs() -> None:
    workers = [1, 2]
    at = Meeting(lambda: workers)
    assert (await at.meet(Report(2, 5))).leads
    assert not (await at.meet(Report(1, 5))).leads
    assert (await at.meet(Report(2, 5))).leads
    workers.remove(2)
    assert (await at.meet(Report(1, 5))).leads


async def test_the_generation_is_the_oldest_of_all_and_unknown_while_one_is_silent() -> None:
    at = meeting(1, 2)
    assert (await at.meet(Report(1, 7))).generation == 0
    assert (await at.meet(Report(2, 5))).generation == 5
    assert (await at.meet(Report(2, 7))).generation == 7


async def test_what_any_needs_is_in_use_and_the_dead_need_nothing() -> None:
    workers = [1, 2]
    at = Meeting(lambda: workers)
    await at.meet(Report(1, 1, frozenset({"a"})))
    assert (await at.meet(Report(2, 1, frozenset({"b"})))).in_use == {"a", "b"}
    workers.remove(1)
    assert (await at.meet(Report(2, 1, frozenset({"b"})))).in_use == {"b"}


async def test_only_the_leaders_findings_count() -> None:
    at = meeting(1, 2)
    await at.meet(Report(1, 1, findings=Findings(frozenset({"a"}))))
    said = await at.meet(Report(2, 1, findings=Findings(frozenset({"b"}))))
    assert said.findings.proved == {"a"}


async def test_news_of_one_reach_another_that_waits_at_once() -> None:
    at = meeting(1, 2)
    await at.meet(Report(1, 1))
    seen = (await at.meet(Report(2, 1))).news
    waiting = asyncio.create_task(at.meet(Report(2, 1, seen=seen)))
    await asyncio.sleep(0)
    assert not waiting.done()
    await at.meet(Report(1, 2))
    async with asyncio.timeout(0.5):
        assert (await waiting).news > seen


async def test_what_is_in_use_is_no_news() -> None:
    at = meeting(1)
    seen = (await at.meet(Report(1, 1))).news
    assert (await at.meet(Report(1, 1, frozenset({"a"}), seen=seen - 1))).news == seen


async def test_trials_are_summed() -> None:
    at = meeting(1, 2)
    one = {"a": Comparison(live=Side(turns=2), pairs=1, alike=0.5)}
    await at.meet(Report(1, 1, trials=one))
    said = await at.meet(Report(2, 1, trials={**one, "b": Comparison(skipped=1)}))
    assert said.trials == {"a": Comparison(live=Side(turns=4), pairs=2, alike=1.0), "b": Comparison(skipped=1)}
