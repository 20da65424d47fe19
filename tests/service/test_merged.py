"""A specialist merged into its base, served without routing."""

from __future__ import annotations

from pathlib import Path

import pytest

from macaron.hcp import load
from macaron.models import Dimensions
from macaron.profiles.merged import BaseWeights, find_specialist, merge_profile
from tests.models.peft_folder import tensors, write_folder
from tests.processes import Home, serving

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SMOLLM2 = Dimensions(layers=30, hidden=576, feed_forward=1536, heads=9, kv_heads=3, head_width=64)


def test_a_merged_specialist_answers_without_a_route_hop(small: str, weights: Path, home: Home, tmp_path: Path) -> None:
    adapter = write_folder(tmp_path / "adapter", tensors(SMOLLM2, 2, seed=3))
    loaded = load(Path(small) / "profile.toml")
    merge_profile(loaded, find_specialist(loaded, str(adapter), "L2"), BaseWeights(weights), tmp_path / "out")
    with serving(home, "--profile", str(tmp_path / "out")) as service:
        http = service.http(seconds=60)
        answer = http.chat("What is tea?", "macaron-demi-L2", {"x-macaron-trace": "1"}, temperature=0, max_tokens=4)
    assert answer.status == 200, answer.text
    assert answer.json["choices"][0]["message"]["content"]
    said = answer.json["metadata"]
    assert (said["macaron_adapter"], said["macaron_reason"]) == ("L2", "single")
    assert "macaron_route_seconds" not in said
    assert said["macaron_revision"].startswith("prompt:")
