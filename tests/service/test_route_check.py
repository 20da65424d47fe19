"""The route check on the embedded engine: its own router, a card more, and live requests that go first."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.processes import PATIENCE, Home, serving
from tests.service.desk import Desk
from tests.service.test_plug import adapter

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(1800)]

REQUESTS = {
    "L0": ("Why is the sky blue?", "Who wrote Don Quixote?"),
    "L1": (
        "My flight to Lisbon was cancelled, rebook me for under 300 euros.",
        "Book a table for six tonight, two vegans.",
    ),
    "L2": ("Write a Python function that reverses a list.", "git rebase stops with a conflict in main.c, what now"),
    "L3": (
        '<surface id="srf-1a2b" kind="inline">Compare two phone plans</surface>',
        "Make a form that asks for my name.",
    ),
}
POEMS = ("Write a poem about the sea.", "A sonnet on winter, please.", "a haiku for my grandmother")


@contextmanager
def asking(desk: Desk, label: str) -> Iterator[list[int]]:
    """A client that asks all the time; gives the statuses of its answers."""
    statuses: list[int] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            statuses.append(desk.ask(label)[0])

    client = threading.Thread(target=ask)
    client.start()
    try:
        yield statuses
    finally:
        stop.set()
        client.join(PATIENCE)


def test_a_newcomer_is_checked_while_clients_ask_and_none_fails(small: str, tmp_path: Path) -> None:
    rows = [{"text": text, "label": label} for label, texts in REQUESTS.items() for text in texts]
    said = [{"messages": [{"role": "user", "content": row["text"]}], "label": row["label"]} for row in rows]
    (Path(small) / "routing.jsonl").write_text("\n".join(map(json.dumps, said)))
    poems = tmp_path / "poems.jsonl"
    poems.write_text("\n".join(json.dumps({"text": text}) for text in POEMS))
    owner = Home(tmp_path)
    with serving(owner, "--profile", small) as service:
        desk = Desk(service)
        desk.register(adapter(tmp_path / "poet" / "adapter", seed=7))
        with asking(desk, "L1") as statuses:
            asked = ("adapter", "route-check", "L4", "--examples", str(poems), "--json", "--url", service.url)
            checked = owner.run(*asked)
        assert checked.stderr == ""
        verdict = json.loads(checked.stdout)
        promoted = owner.run("adapter", "promote", "L4", "--url", service.url)
    assert {loss["label"]: loss["lost"]["n"] for loss in verdict["losses"]} == dict.fromkeys(REQUESTS, 2)
    assert sum(loss["right"] for loss in verdict["losses"]) >= 6
    assert verdict["won"]["n"] == len(POEMS)
    assert promoted.returncode == checked.returncode == int(not verdict["passed"])
    assert verdict["passed"] or verdict["detail"] in promoted.stderr
    assert set(statuses) == {200}
