"""One folder in PEFT's format gives the same model in torch, in vLLM and, converted, in the embedded engine."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import pytest

from macaron.engine.llamacpp.client import ServerClient
from macaron.engine.llamacpp.params import LaunchParams
from macaron.profiles import find_profile
from macaron.profiles.adapters import gguf_adapter
from tests.engine.llamacpp.conftest import RunningChild, native_link
from tests.engine.llamacpp.hops import Distribution, total_variation, user
from tests.engine.llamacpp.test_adapter_equality import LARGEST, MEDIAN, engine_says, torch_says
from tests.vllm.server import ADAPTERS, built_models
from tests.vllm.talk import head

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.engine,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("default::FutureWarning"),
]

PROMPTS = (
    "What is tea?", "Write a line of code that adds.", "Tell a friend about snow.", "你好，今天怎么样?",
    "Plan a day in Rome.", "Name a bird.", "Why is the sky blue?", "Translate bread into German.", "A joke, please.",
    "Was ist ein Zug?",
)  # fmt: skip
EXACT = 0.001
"""Of vLLM against torch, which both compute in 32 bits; measured was 0.000005."""
EFFECT = 0.08
"""Of these adapters against none: far from all that rounding does."""


@pytest.fixture(scope="module")
def models(weights: Path) -> Path:
    return built_models(weights)


@pytest.fixture(scope="module")
def child(models: Path, weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningChild]:
    cache = tmp_path_factory.mktemp("cache")
    files = tuple(str(gguf_adapter(models / name, weights, cache_dir=cache)) for name in ADAPTERS)
    template = find_profile("demi").with_name("chat_template.jinja").read_text()
    params = LaunchParams(str(weights), 0, "", adapters=files, slot_context=512, chat_template=template)
    running = RunningChild(params)
    running.run(running.child.start())
    running.run(running.child.wait_ready(30))
    yield running
    running.close()


@pytest.fixture
async def client(child: RunningChild) -> AsyncGenerator[ServerClient, None]:
    headers = {"authorization": f"Bearer {child.child.api_key}"}
    client = ServerClient(native_link()(child.child.origin, headers=headers))
    yield client
    await client.close()


@pytest.fixture(scope="module")
def adapted(models: Path) -> Any:
    """The base in torch with both adapters on it, of which one at a time is on."""
    import peft
    import transformers

    base = transformers.AutoModelForCausalLM.from_pretrained(models / "base", local_files_only=True)
    model = peft.PeftModel.from_pretrained(base, models / ADAPTERS[0], adapter_name=ADAPTERS[0])
    for name in ADAPTERS[1:]:
        model.load_adapter(models / name, adapter_name=name)
    return model.eval()


async def vllm_says(session: aiohttp.ClientSession, adapter: str, tokens: Sequence[int]) -> Distribution:
    body = {
        "model": adapter, "prompt": tokens, "max_tokens": 1, "temperature": 0, "logprobs": 10,
        "return_tokens_as_token_ids": True,
    }  # fmt: skip
    async with session.post("/v1/completions", json=body) as reply:
        (top,) = (await reply.json())["choices"][0]["logprobs"]["top_logprobs"]
    return {int(token.removeprefix("token_id:")): math.exp(logprob) for token, logprob in top.items()}


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_torch_vllm_and_the_embedded_engine_agree(
    adapter: str, origin: str, client: ServerClient, adapted: Any
) -> None:
    exact, embedded, effect = [], [], []
    adapted.set_adapter(adapter)
    async with aiohttp.ClientSession(origin) as session:
        for prompt in PROMPTS:
            messages = head(adapter, user(prompt))
            tokens = [token for token, _ in await client.tokenize(await client.render(messages, {}))]
            torchs = await asyncio.to_thread(torch_says, adapted, tokens)
            with adapted.disable_adapter():
                bare = await asyncio.to_thread(torch_says, adapted, tokens)
            exact.append(total_variation(torchs, await vllm_says(session, adapter, tokens)))
            embedded.append(total_variation(torchs, await engine_says(client, messages, ADAPTERS.index(adapter))))
            effect.append(total_variation(torchs, bare))
    assert median(effect) >= EFFECT
    assert max(exact) <= EXACT
    assert median(embedded) <= MEDIAN
    assert max(embedded) <= LARGEST
