"""A profile with adapters as training leaves them: served without any step between."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from macaron.models import Dimensions
from macaron.registry.revision import adapter_revision
from tests.models.peft_folder import tensors, write_folder
from tests.processes import Home, serving

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PINNED = {"x-macaron-trace": "1", "x-macaron-adapter": "L1"}
SMOLLM2 = Dimensions(layers=30, hidden=576, feed_forward=1536, heads=9, kv_heads=3, head_width=64)


@pytest.fixture
def trained(small: str) -> Path:
    """`demi` whose L1 has an adapter in PEFT's format."""
    folder = Path(small)
    document = folder / "profile.toml"
    text = document.read_text()
    label = 'label = "L1"\n'
    assert label in text
    if 'source = "adapters/L1"' not in text:
        document.write_text(text.replace(label, f'{label}source = "adapters/L1"\n'))
    shutil.rmtree(folder / "adapters" / "L1", ignore_errors=True)
    write_folder(folder / "adapters" / "L1", tensors(SMOLLM2, 2, seed=3))
    return folder


def test_a_peft_folder_in_a_profile_answers_under_its_revision(trained: Path, home: Home) -> None:
    with serving(home, "--profile", str(trained)) as service:
        answer = service.http(seconds=60).chat("What is tea?", "macaron-demi", PINNED, temperature=0, max_tokens=8)
    assert answer.status == 200, answer.text
    assert answer.json["choices"][0]["message"]["content"]
    assert answer.json["metadata"]["macaron_revision"] == adapter_revision(trained / "adapters" / "L1")


def test_a_peft_folder_that_does_not_fit_stops_the_start_with_the_reason(trained: Path, home: Home) -> None:
    write_folder(trained / "adapters" / "L1", tensors())
    ended = home.run("serve", "--port", "0", "--profile", str(trained))
    assert ended.returncode == 1
    assert "mol.adapters.L1.source: " in ended.stderr
    assert "it was trained on another base" in ended.stderr


REQUESTS = {
    "L0": "Why is the sky blue?",
    "L1": "My flight to Lisbon was cancelled and my sister's wedding is on Saturday. Rebook me for under 300 euros.",
    "L2": "Write a Python function that returns the second largest number of a list.",
    "L3": '<surface id="srf-1a2b" kind="inline">Compare the two phone plans side by side</surface>',
}


def test_demi_gives_four_kinds_of_request_to_four_specialists(small: str, home: Home) -> None:
    with serving(home, "--profile", small) as service:
        http = service.http(seconds=60)
        answers = {
            label: http.chat(text, "macaron-demi", {"x-macaron-trace": "1"}, temperature=0, max_tokens=8)
            for label, text in REQUESTS.items()
        }
    assert {label: answer.headers.get("x-macaron-adapter") for label, answer in answers.items()} == {
        label: label for label in REQUESTS
    }
