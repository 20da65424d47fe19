"""Subjects on a real engine, with real weights and adapters."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from macaron.conversation import Message, Text
from macaron.errors import ConfigError
from macaron.evals.results import Results
from macaron.evals.router import Questions, RouteAsker
from macaron.evals.rows import read_route_rows
from macaron.evals.run_routing import evaluate_routing, routing_json
from macaron.evals.run_suite import evaluate_suite
from macaron.evals.subjects import open_subjects
from macaron.hcp import Loaded, load
from macaron.mol.prompt import view_messages
from macaron.mol.view import Head, view
from macaron.profiles import find_profile
from macaron.registry.cards import registry_from
from tests.engine.llamacpp.lora_fixture import write_lora
from tests.evals.rows import plain_rows, write_lines
from tests.evals.small_suite import GreetingSuite

pytestmark = [pytest.mark.engine, pytest.mark.slow]
QUESTION = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is a cat?"}]
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}}


def silent(subject: str, done: int, total: int) -> None:
    """No progress."""


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return load(find_profile("demi"))


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lora(tmp_path_factory.mktemp("adapter") / "L1.gguf", 1)


async def test_base_and_adapter_answer_apart_and_alike_each_time(loaded: Loaded, adapter: Path) -> None:
    async with open_subjects(loaded, {"L1": adapter}, parallel=2, slot_context=512) as subjects:
        base, trained = subjects.named("base", head="L1"), subjects.named("L1", head="L1")
        assert base.revision != trained.revision
        first = await base.answer(QUESTION, max_tokens=8)
        others = await asyncio.gather(*(trained.answer(QUESTION, max_tokens=8) for _ in range(2)))
        again = await base.answer(QUESTION, max_tokens=8)
        assert first.text == again.text
        assert others[0].text == others[1].text != first.text
        assert first.status == "incomplete"
        assert first.tokens == 8
        with pytest.raises(ConfigError, match="no adapter 'L2'"):
            subjects.named("L2", head="L2")
        with pytest.raises(ConfigError, match="no label 'L9'"):
            subjects.named("base", head="L9")


async def test_a_hop_is_what_the_service_would_send(loaded: Loaded) -> None:
    async with open_subjects(loaded, parallel=1, slot_context=512) as subjects:
        hop = subjects.named("base", head="L2").hop(QUESTION, tools=[TOOL])
        shown = subjects.subject("shown", head="L2", examples=[{"role": "user", "content": "example"}]).hop(QUESTION)
        specialist = subjects.registry.get("L2")
    assert specialist is not None
    system = (Message("system", (Text("Be brief."),)),)
    served = view(Head(specialist.identity, system, ()), (), "L2", (Message("user", (Text("What is a cat?"),)),), {})
    assert hop.messages == view_messages(served)
    assert hop.options == {"temperature": 0, "max_tokens": 512, "tools": [TOOL]}
    assert [message["content"] for message in shown.messages[1:]] == ["example", "What is a cat?"]


async def test_a_route_is_a_label_and_its_free_text_is_kept(loaded: Loaded) -> None:
    async with open_subjects(loaded, routes=True) as subjects:
        asker = RouteAsker(Questions(loaded, registry_from(loaded)), subjects.engine, None)
        answer = await asker.ask([{"role": "user", "content": "hello"}])
    assert answer.label in ("L0", "L1", "L2", "L3")
    assert answer.decided
    assert answer.text
    assert answer.canonical == (answer.text in ("L0", "L1", "L2", "L3"))
    assert answer.seconds > 0
    assert answer.tokens > 50


async def test_routing_is_evaluated_with_the_trained_the_base_and_the_baseline(
    loaded: Loaded, adapter: Path, tmp_path: Path
) -> None:
    rows = read_route_rows([write_lines(tmp_path / "a.jsonl", plain_rows("L0", "L2"))], ("L0", "L2"), "L0")
    found = []
    for _ in range(2):
        with Results(tmp_path / "routing.jsonl") as results:
            report = await evaluate_routing(loaded, rows, {"L0": adapter}, results, silent, base=True, training=rows)
            found.append(routing_json(report))
    assert set(found[0]["subjects"]) == {"L0", "base", "tfidf"}
    assert found[0]["n"] == 2
    assert found[0] == {**found[0]["subjects"]["L0"], "subjects": found[0]["subjects"]}
    assert found[1]["subjects"]["base"] == found[0]["subjects"]["base"]
    assert len((tmp_path / "routing.jsonl").read_text().splitlines()) == 4


async def test_a_suite_is_run_over_named_subjects(loaded: Loaded, adapter: Path) -> None:
    with Results(None) as results:
        report = await evaluate_suite(
            loaded, GreetingSuite(2), ["base", "base+examples", "L1"], "L0", {"L1": adapter}, results, silent
        )
    assert list(report.subjects) == ["base", "base+examples", "L1"]
    assert len(report.pairs) == 3


async def test_no_rows_and_another_engine_are_errors(loaded: Loaded) -> None:
    with Results(None) as results, pytest.raises(ConfigError, match="there are no rows"):
        await evaluate_routing(loaded, [], {}, results, silent)
    with pytest.raises(ConfigError, match="embedded engine"):
        async with open_subjects(load(find_profile("tall"))):
            pass
