"""A converted adapter in the embedded engine says what PEFT says on the same base in torch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from msgspec.structs import replace

from macaron.engine.base import ChatMessage
from macaron.engine.llamacpp.client import ServerClient
from macaron.engine.llamacpp.params import LaunchParams
from macaron.engine.llamacpp.request import adapter_fields
from macaron.hcp import load
from macaron.profiles import find_profile
from macaron.profiles.adapters import gguf_adapter
from macaron.train.base import find_base, load_model
from tests.engine.llamacpp.conftest import RunningChild, native_link
from tests.engine.llamacpp.hops import SYSTEM, Distribution, distribution_in, total_variation, user

pytestmark = [
    pytest.mark.engine,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("default::FutureWarning"),
]

ASKED = (
    "What is {}?",
    "Write one line of code about {}.",
    "Tell a friend about {}.",
    "{}怎么样?",
    "Plan a day with {}.",
)
THINGS = ("tea", "a red train", "Python", "the sea", "Berlin", "a birthday", "prime numbers", "snow", "bread", "chess")
PROMPTS = [asked.format(thing) for asked, thing in product(ASKED, THINGS)]
SPREAD = 0.08
MEDIAN, LARGEST, EFFECT = 0.05, 0.12, 0.2


@pytest.fixture(scope="module")
def adapter(torch_base: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """Noise on every linear layer, in torch and as PEFT's folder."""
    import peft
    import torch

    torch.manual_seed(5)
    options = peft.LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM")
    adapted = peft.get_peft_model(torch_base, options)
    for name, parameter in adapted.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, std=SPREAD if "lora_B" in name else parameter.shape[1] ** -0.5)
    folder = tmp_path_factory.mktemp("peft") / "adapter"
    adapted.save_pretrained(folder)
    return adapted.eval(), folder


@pytest.fixture(scope="module")
def torch_base() -> Any:
    return load_model(find_base(load(find_profile("demi"))))


@pytest.fixture(scope="module")
def child(
    launch_params: LaunchParams, adapter: tuple[Any, Path], weights: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningChild]:
    converted = gguf_adapter(adapter[1], weights, cache_dir=tmp_path_factory.mktemp("cache"))
    running = RunningChild(replace(launch_params, adapters=(str(converted),), threads=2))
    running.run(running.child.start())
    running.run(running.child.wait_ready(30))
    yield running
    running.close()


async def engine_says(client: ServerClient, messages: Sequence[ChatMessage], adapter: int | None) -> Distribution:
    body = {
        "messages": messages, "stream": True, "cache_prompt": False, "temperature": 0, "max_tokens": 1,
        "logprobs": True, "top_logprobs": 10, **adapter_fields(adapter),
    }  # fmt: skip
    return distribution_in([event async for batch in client.stream(body) for event in batch])


def torch_says(model: Any, tokens: Sequence[int]) -> Distribution:
    import torch

    with torch.inference_mode():
        logits = model(torch.tensor([tokens])).logits[0, -1]
    top = torch.softmax(logits.float(), -1).topk(10)
    return dict(zip(top.indices.tolist(), top.values.tolist(), strict=True))


async def test_the_engine_and_torch_agree_on_base_and_adapter(child: RunningChild, adapter: tuple[Any, Path]) -> None:
    model = adapter[0]
    headers = {"authorization": f"Bearer {child.child.api_key}"}
    client = ServerClient(native_link()(child.child.origin, headers=headers))
    adapted, effect = [], []
    for prompt in PROMPTS:
        messages = [SYSTEM, user(prompt)]
        tokens = [token for token, _ in await client.tokenize(await client.render(messages, {}))]
        here = await engine_says(client, messages, 0)
        there = await asyncio.to_thread(torch_says, model, tokens)
        with model.disable_adapter():
            bare = await asyncio.to_thread(torch_says, model, tokens)
        adapted.append(total_variation(here, there))
        effect.append(total_variation(bare, there))
    await client.close()
    assert median(effect) >= EFFECT
    assert median(adapted) <= MEDIAN
    assert max(adapted) <= LARGEST
