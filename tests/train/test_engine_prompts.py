"""What is trained on is, token by token, what the real engine evaluates."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from macaron.engine.base import HopRequest
from macaron.engine.link import create_link
from macaron.engine.llamacpp.client import ServerClient
from macaron.engine.llamacpp.launch import EngineChild
from macaron.engine.llamacpp.params import LaunchParams
from macaron.engine.llamacpp.request import prefilled, prepare
from macaron.engine.special import SpecialTokens
from macaron.hcp import Loaded, load
from macaron.profiles import find_profile
from macaron.train.base import Base, BaseTokenizer, find_base, load_tokenizer
from macaron.train.data.rows import RouteRow, SftRow
from macaron.train.render import chat_messages, shown_tools
from macaron.train.studio import Studio

pytestmark = [pytest.mark.engine, pytest.mark.slow]

TEXTS = (
    "plain words, and a number 12345 with 3.14",
    "x  3\n\n    42\t7",
    "你好，1999年 café ½ ² ١٢ 🙂 don't I'll",
    "def f(x):\n        return x  # <|im_end|> \u2060",
    "  leading and trailing  \n",
)


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return load(find_profile("demi"))


@pytest.fixture(scope="module")
def base(loaded: Loaded, weights: Path) -> Base:
    return find_base(loaded)


@pytest.fixture(scope="module")
def real_tokenizer(base: Base) -> BaseTokenizer:
    return BaseTokenizer(load_tokenizer(base))


@pytest.fixture
async def server(loaded: Loaded, weights: Path) -> AsyncIterator[ServerClient]:
    template = loaded.text("engine.llamacpp.chat_template_path")
    child = EngineChild(
        LaunchParams(str(weights), port=0, api_key="", slots=1, slot_context=256, threads=1, chat_template=template)
    )
    await child.start()
    try:
        await child.wait_ready(30)
        client = ServerClient(create_link("native", child.origin, headers={"authorization": f"Bearer {child.api_key}"}))
        yield client
        await client.close()
    finally:
        await child.stop()


async def evaluated(server: ServerClient, loaded: Loaded, messages: list[dict[str, Any]], **options: Any) -> list[int]:
    """The tokens that the engine evaluates before it answers."""
    special = SpecialTokens(loaded.contract.engine.special_tokens)
    prepared = prepare(HopRequest("answer", None, messages, options), special)
    prefill = options.get("prefill", "")
    shown = prefilled(prepared.messages, "", prefill)
    prompt = await server.render(shown, prepared.fields["chat_template_kwargs"])
    return [token for token, _ in await server.tokenize(prompt)]


@pytest.mark.parametrize("text", TEXTS)
async def test_a_text_has_the_tokens_that_the_engine_gives_it(
    server: ServerClient, real_tokenizer: BaseTokenizer, text: str
) -> None:
    assert real_tokenizer.ids(text) == [token for token, _ in await server.tokenize(text)]


async def test_a_conversation_is_encoded_as_the_engine_evaluates_it(
    server: ServerClient, loaded: Loaded, base: Base, real_tokenizer: BaseTokenizer
) -> None:
    studio = Studio(loaded, base, real_tokenizer)
    function = {"name": "find", "description": "找 “a” <place>", "parameters": {"type": "object", "properties": {}}}
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"q":  "café"}'}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": TEXTS[1] + TEXTS[3]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": TEXTS[2]},
        {"role": "assistant", "content": "Done."},
    ]
    tools = ({"type": "function", "function": function},)
    row = studio.sft(SftRow("a", "s", messages=tuple(messages), tools=tools), "L1")
    identity = loaded.text("mol.adapters.L1.prompt_path").strip()
    shown = chat_messages(identity, messages[:-1])
    prompt = await evaluated(server, loaded, shown, tools=shown_tools(tools))
    assert row.ids[: len(prompt)] == prompt
    assert "".join(map(real_tokenizer.text, row.ids[len(prompt) :])) == "Done.<|im_end|>"


async def test_a_route_is_encoded_as_the_engine_evaluates_it(
    server: ServerClient, loaded: Loaded, base: Base, real_tokenizer: BaseTokenizer
) -> None:
    studio = Studio(loaded, base, real_tokenizer)
    row = studio.route(RouteRow("a", "s", messages=({"role": "user", "content": TEXTS[0]},), label="L3"))
    system, _, user = "".join(map(real_tokenizer.text, row.ids)).partition("<|im_end|>\n<|im_start|>user\n")
    messages = [
        {"role": "system", "content": system.removeprefix("<|im_start|>system\n")},
        {"role": "user", "content": user.partition("<|im_end|>")[0]},
    ]
    deciding = row.learned[row.decides]
    assert row.ids[:deciding] == await evaluated(server, loaded, messages, prefill="L")
    assert row.ids[deciding] in row.choices
