"""A merged GGUF says in the embedded engine what the base says with the adapter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from statistics import median

import pytest
from msgspec.structs import replace

from macaron.engine.base import ChatMessage
from macaron.engine.llamacpp.client import ServerClient
from macaron.engine.llamacpp.params import LaunchParams
from macaron.engine.llamacpp.request import adapter_fields
from macaron.models import Dimensions
from macaron.models.merge import merge_gguf
from macaron.profiles.adapters import gguf_adapter
from tests.engine.llamacpp.conftest import RunningChild, native_link
from tests.engine.llamacpp.hops import SYSTEM, Distribution, distribution_in, total_variation, user
from tests.models.peft_folder import tensors, write_folder

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]

SMOLLM2 = Dimensions(layers=30, hidden=576, feed_forward=1536, heads=9, kv_heads=3, head_width=64)
ASKED = (
    "What is {}?",
    "Write one line of code about {}.",
    "Tell a friend about {}.",
    "{}怎么样?",
    "Plan a day with {}.",
    "Why {}?",
    "List three facts about {}.",
    "Translate '{}' into French.",
    "I do not like {}.",
    "Make a card that shows {}.",
)
THINGS = ("tea", "a red train", "Python", "the sea", "Berlin", "a birthday", "prime numbers", "snow", "bread", "chess")
PROMPTS = [asked.format(thing) for asked, thing in product(ASKED, THINGS)]
RANK, SPREAD = 8, 0.08
MEDIAN, LARGEST, EFFECT = 0.05, 0.12, 0.2


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Noise on every linear layer, strong enough to change every answer."""
    matrices = tensors(SMOLLM2, RANK, seed=5, spread=SPREAD)
    return write_folder(tmp_path_factory.mktemp("peft") / "adapter", matrices, r=RANK, lora_alpha=2 * RANK)


@contextmanager
def serving(params: LaunchParams) -> Iterator[RunningChild]:
    running = RunningChild(replace(params, threads=2))
    running.run(running.child.start())
    running.run(running.child.wait_ready(30))
    try:
        yield running
    finally:
        running.close()


async def says(client: ServerClient, messages: Sequence[ChatMessage], adapter: int | None) -> Distribution:
    body = {
        "messages": messages, "stream": True, "cache_prompt": False, "temperature": 0, "max_tokens": 1,
        "logprobs": True, "top_logprobs": 10, **adapter_fields(adapter),
    }  # fmt: skip
    return distribution_in([event async for batch in client.stream(body) for event in batch])


async def answers(running: RunningChild, adapter: int | None) -> list[Distribution]:
    headers = {"authorization": f"Bearer {running.child.api_key}"}
    client = ServerClient(native_link()(running.child.origin, headers=headers))
    found = [await says(client, [SYSTEM, user(prompt)], adapter) for prompt in PROMPTS]
    await client.close()
    return found


def apart(one: Sequence[Distribution], other: Sequence[Distribution]) -> list[float]:
    return [total_variation(here, there) for here, there in zip(one, other, strict=True)]


async def test_a_merged_model_and_the_adapter_agree_on_100_prompts(
    launch_params: LaunchParams, adapter: Path, weights: Path, tmp_path: Path
) -> None:
    converted = gguf_adapter(adapter, weights, cache_dir=tmp_path / "cache")
    with serving(replace(launch_params, adapters=(str(converted),))) as running:
        adapted, bare = await answers(running, 0), await answers(running, None)
    merge_gguf(weights, adapter, tmp_path / "merged.gguf")
    with serving(replace(launch_params, weights=str(tmp_path / "merged.gguf"))) as running:
        merged = await answers(running, None)
    assert len(merged) == 100
    differences = apart(merged, adapted)
    assert median(apart(bare, adapted)) >= EFFECT
    assert median(differences) <= MEDIAN
    assert max(differences) <= LARGEST
