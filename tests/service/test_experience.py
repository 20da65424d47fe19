"""A service that records: with the real embedded engine, whose numbers can be had back from what was kept."""

from __future__ import annotations

import asyncio
import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from macaron.engine.link import create_link
from macaron.engine.llamacpp.launch import EngineChild
from macaron.engine.llamacpp.params import LaunchParams
from macaron.experience import ExperienceFile, Record, Turn
from macaron.hcp import load
from macaron.profiles.adapters import gguf_adapter
from macaron.registry.cards import registry_from
from tests.processes import Home, Service, serving

SECTION = """
[[experience.tenants]]
tenant = "local"
consent = "a test's own words"
licence = "CC0-1.0"
"""
ALTERNATIVES = 4096
MEAN_WITHIN, MOST_WITHIN = 0.05, 0.6
"""Of logarithms: what a warm prompt and batches of another size change in four-bit weights (see the embedded engine's
tests); another adapter changes the mean by far more."""


def recorded(home: Home, model: str) -> dict[str, Turn]:
    (path,) = home.folder.glob(f".local/share/macaron/{model}.experience")
    with ExperienceFile(path) as file:
        return {turn.record.id: turn for turn in file.turns()}


@pytest.mark.slow
def test_recorded_turns_are_found_exported_traced_and_deleted(home: Home, profile: Callable[..., str]) -> None:
    document = profile(SECTION)
    with serving(home, "--profile", document) as service:
        http = service.http()
        answer = http.chat("I am bob@example.com @L1", headers={"x-session-id": "mine"}).json
        said = {"role": "assistant", "content": answer["choices"][0]["message"]["content"]}
        asked = {"role": "user", "content": "I am bob@example.com @L1"}
        http.post([asked, said, {"role": "user", "content": "thanks @L1"}], headers={"x-session-id": "mine"})
        assert "logprobs" not in answer["choices"][0] or answer["choices"][0]["logprobs"] is None
    turn = recorded(home, "test-model")[answer["id"]]
    assert (turn.record.label, turn.reaction.text) == ("L1", "thanks @L1")
    told = home.run("experience", "show", answer["id"], "--profile", document)
    assert "a test's own words (CC0-1.0)" in told.stdout
    assert "2 answers" in home.run("experience", "list", "--profile", document).stdout
    lines = home.run("experience", "export", "--reaction", "next", "--profile", document).stdout.splitlines()
    assert [json.loads(line)["record"]["id"] for line in lines] == [answer["id"]]
    assert "bob@" not in "".join(lines)
    lineage = json.loads(home.run("lineage", answer["id"], "--json", "--profile", document).stdout)
    assert (lineage["answer"]["label"], lineage["answer"]["recorded"]) == ("L1", True)
    assert (lineage["adapter"]["answers"], lineage["adapter"]["recorded"]) == (2, 2)
    session = turn.record.session
    arguments = ("experience", "delete", "--tenant", "local", "--session", session, "--yes", "--profile", document)
    assert "2 answers deleted" in home.run(*arguments).stdout
    assert recorded(home, "test-model") == {}


@pytest.mark.slow
def test_a_store_in_memory_cannot_record(home: Home, profile: Callable[..., str]) -> None:
    refused = home.run("serve", "--port", "0", "--store", "memory:", "--profile", profile(SECTION))
    assert refused.returncode == 1
    assert "records turns in a file beside the store" in refused.stderr


@pytest.mark.slow
@pytest.mark.engine
def test_a_recorded_turn_scored_again_on_its_revision_has_its_log_probabilities(
    home: Home, small: str, weights: Path
) -> None:
    document = Path(small) / "profile.toml"
    document.write_text(document.read_text() + SECTION)
    with serving(home, "--profile", small) as service:
        answer = _ask(service)
    record = recorded(home, load(document).contract.mol.served_model)[answer["id"]].record
    assert record.label == "L2"
    assert len(record.prompt_ids) == answer["usage"]["prompt_tokens"] == record.usage.prompt
    assert len(record.ids) == len(record.logprobs) >= 20
    loaded = load(document)
    sources = {
        item.revision: loaded.file(entry.source)
        for entry, item in zip(loaded.contract.mol.adapters, registry_from(loaded).specialists, strict=True)
    }
    assert record.revision in sources
    other = next(revision for revision in sources if revision != record.revision)
    files = [str(gguf_adapter(sources[revision], weights)) for revision in (record.revision, other)]
    same, another = asyncio.run(_scored(record, weights, files))
    differences = [abs(a - b) for a, b in zip(same, record.logprobs, strict=True)]
    elsewhere = [abs(a - b) for a, b in zip(another, record.logprobs, strict=True)]
    print(f"mean {statistics.mean(differences):.4f}, most {max(differences):.4f}")  # noqa: T201
    print(f"on another revision: mean {statistics.mean(elsewhere):.4f}")  # noqa: T201
    assert statistics.mean(differences) <= MEAN_WITHIN
    assert max(differences) <= MOST_WITHIN
    assert statistics.mean(elsewhere) > 3 * MEAN_WITHIN


def _ask(service: Service) -> Any:
    """An answer of L2, sampled, of some tokens; who asks is told no log-probabilities."""
    reply = service.http(seconds=120).chat(
        "Explain what a list in Python is.",
        headers={"x-macaron-adapter": "L2"},
        model="macaron-demi",
        temperature=0.8,
        seed=11,
        max_tokens=40,
    )
    assert reply.status == 200, reply.text
    assert not reply.json["choices"][0].get("logprobs")
    return reply.json


async def _scored(record: Record, weights: Path, adapters: list[str]) -> list[list[float]]:
    """The log-probabilities of the recorded tokens after the recorded prompt, on each of some adapters."""
    child = EngineChild(
        LaunchParams(
            weights=str(weights), port=0, api_key="", adapters=tuple(adapters), slots=1, slot_context=1024, threads=1
        )
    )
    await child.start()
    try:
        await child.wait_ready(60)
        link = create_link("native", child.origin, headers={"authorization": f"Bearer {child.api_key}"})
        scores = [await _score(link, record, number) for number in range(len(adapters))]
        await link.close()
        return scores
    finally:
        await child.stop()


async def _score(link: Any, record: Record, adapter: int) -> list[float]:
    found = []
    for at, token in enumerate(record.ids):
        body = {
            "prompt": [*record.prompt_ids, *record.ids[:at]],
            "n_predict": 1,
            "n_probs": ALTERNATIVES,
            "lora": [{"id": adapter, "scale": 1.0}],
            # A cache computed under another adapter would be taken for this one's.
            "cache_prompt": at > 0,
        }
        reply = await link.request(
            "POST", "/completion", json.dumps(body).encode(), {"content-type": "application/json"}, timeout=60.0
        )
        assert reply.status == 200, reply.body
        (chosen,) = json.loads(reply.body)["completion_probabilities"]
        alternatives = {item["id"]: item["logprob"] for item in chosen["top_logprobs"]}
        found.append(alternatives.get(token, min(alternatives.values())))
    assert all(map(math.isfinite, found))
    return found
