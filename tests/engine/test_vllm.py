from __future__ import annotations

from typing import Any

import pytest

from macaron.engine.base import HopRequest
from macaron.engine.link import create_link
from macaron.engine.special import SpecialTokens
from macaron.engine.vllm import VllmEngine
from macaron.errors import ContextOverflow, EngineError
from tests.doubles.engine_double import EngineDouble, Script
from tests.engine.hops import HELLO, answer_hop, route_hop

SPECIAL = SpecialTokens(("<|im_end|>",))
IMAGE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}


async def bodies(*hops: HopRequest, script: Script = lambda seen: "L1", context: int = 8192) -> list[dict[str, Any]]:
    """The chat requests that vLLM would get for some hops, after the engine has started."""
    async with EngineDouble(script, context_length=context, adapters=("L0", "L1", "L2@0123456789ab")) as double:
        engine = VllmEngine(create_link("native", double.origin), base_model="base", special=SPECIAL)
        await engine.start()
        for hop in hops:
            if hop.kind == "route":
                await engine.choose(hop)
            else:
                async for _ in engine.answer(hop):
                    pass
        await engine.close()
    return [seen.body for seen in double.requests]


async def test_an_adapter_is_a_model_and_the_base_has_its_own_name() -> None:
    with_adapter, without = await bodies(answer_hop(adapter="L2@0123456789ab"), answer_hop(adapter=None))
    assert with_adapter["model"] == "L2@0123456789ab"
    assert without["model"] == "base"


async def test_prefix_caches_are_salted_with_the_tenant() -> None:
    salted, unsalted, route = await bodies(answer_hop(tenant="acme"), answer_hop(), route_hop())
    assert salted["cache_salt"] == "acme"
    assert "cache_salt" not in unsalted
    assert "cache_salt" not in route


async def test_a_route_is_a_choice_that_goes_on_after_the_prefill() -> None:
    options = {"max_tokens": 24, "chat_template_kwargs": {"enable_thinking": False}, "temperature": 0.7}
    (body,) = await bodies(route_hop(options=options, prefill="model_id="))
    assert body == {
        "model": "L0",
        "messages": [*HELLO, {"role": "assistant", "content": "model_id="}],
        "structured_outputs": {"choice": ["L0", "L1", "L2", "L3"]},
        "continue_final_message": True,
        "add_generation_prompt": False,
        "chat_template_kwargs": {"enable_thinking": False},
        "max_tokens": 24,
        "temperature": 0,
        "stream": False,
    }


@pytest.mark.parametrize("prefill", ["L", "model_id=L"])
async def test_what_the_prefill_has_of_a_label_is_not_asked_for_again(prefill: str) -> None:
    async with EngineDouble(lambda seen: "2") as double:
        engine = VllmEngine(create_link("native", double.origin), base_model="base", special=SPECIAL)
        choice = await engine.choose(route_hop(prefill=prefill))
        await engine.close()
    assert double.requests[0].body["structured_outputs"] == {"choice": ["0", "1", "2", "3"]}
    assert choice.label == "L2"


async def test_a_prefill_that_is_a_label_leaves_the_labels_whole() -> None:
    (body,) = await bodies(route_hop(prefill="L1"))
    assert body["structured_outputs"] == {"choice": ["L0", "L1", "L2", "L3"]}


async def test_a_route_without_a_prefill_leaves_the_template_alone() -> None:
    (body,) = await bodies(route_hop())
    assert body["messages"] == list(HELLO)
    assert "continue_final_message" not in body
    assert "add_generation_prompt" not in body


@pytest.mark.parametrize("text", ["L2", "model_id=L2"])
async def test_the_answer_to_a_route_may_repeat_the_prefill(text: str) -> None:
    async with EngineDouble(lambda seen: text) as double:
        engine = VllmEngine(create_link("native", double.origin), base_model="base", special=SPECIAL)
        assert (await engine.choose(route_hop(prefill="model_id="))).label == "L2"
        await engine.close()


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
async def test_room_for_more_than_the_context_leaves_is_clamped(field: str) -> None:
    (body,) = await bodies(answer_hop(options={field: 32_000}), context=8192)
    assert body[field] == 8192 - 1


async def test_the_rest_of_a_clamped_request_is_as_it_was() -> None:
    hop = answer_hop(
        messages=[{"role": "user", "content": "a <|im_end|>"}],
        options={"max_tokens": 32_000, "top_p": 0.5},
        tenant="acme",
    )
    (body,) = await bodies(hop)
    assert (body["model"], body["top_p"], body["cache_salt"], body["stream"]) == ("L2", 0.5, "acme", True)
    assert "<|im_end|>" not in body["messages"][0]["content"]


async def test_no_room_asked_for_is_left_to_the_engine() -> None:
    (body,) = await bodies(answer_hop(options={"max_tokens": None}))
    assert body["max_tokens"] is None


async def counted(hop: HopRequest, *, context: int = 8192) -> int:
    async with EngineDouble(lambda seen: "ok", context_length=context) as double:
        engine = VllmEngine(create_link("native", double.origin), base_model="base", special=SPECIAL)
        await engine.start()
        async for _ in engine.answer(hop):
            pass
        await engine.close()
    return sum(seen.path == "/tokenize" for seen in double.others)


async def test_tokens_are_counted_only_where_the_bytes_leave_a_doubt() -> None:
    assert await counted(answer_hop(options={"max_tokens": 100})) == 0
    assert await counted(answer_hop(options={"max_tokens": 8000})) == 1
    assert (
        await counted(answer_hop(messages=[{"role": "user", "content": "x" * 7000}], options={"max_tokens": 100})) == 1
    )
    assert await counted(answer_hop()) == 0


async def test_media_are_always_counted_because_an_address_says_nothing_of_their_size() -> None:
    assert await counted(answer_hop(messages=[IMAGE], options={"max_tokens": 100})) == 1


async def test_a_prompt_that_fills_the_context_is_an_overflow_before_it_is_sent() -> None:
    long = [{"role": "user", "content": "word " * 300}]
    async with EngineDouble(lambda seen: "ok", context_length=200) as double:
        engine = VllmEngine(create_link("native", double.origin), base_model="base", special=SPECIAL)
        await engine.start()
        with pytest.raises(ContextOverflow, match="200 tokens; it needs 300"):
            async for _ in engine.answer(answer_hop(messages=long, options={"max_tokens": 10})):
                pass
        await engine.close()
    assert double.requests == []


async def test_an_engine_that_cannot_count_decides_itself() -> None:
    async with EngineDouble(lambda seen: "ok") as double:
        link = create_link("native", double.origin)
        engine = VllmEngine(link, base_model="base", special=SPECIAL, context_length=100)
        double.tokenizes = False
        async for _ in engine.answer(answer_hop(options={"max_tokens": 32_000})):
            pass
        assert await engine.count_tokens(HELLO, {}) is None
        await engine.close()
    assert double.requests[0].body["max_tokens"] == 32_000


async def test_tokens_are_counted_with_tools_and_without_special_tokens() -> None:
    tools = [{"type": "function", "function": {"name": "f", "description": "<|im_end|>"}}]
    async with EngineDouble(lambda seen: "ok") as double:
        engine = VllmEngine(create_link("native", double.origin), base_model="base", special=SPECIAL)
        count = await engine.count_tokens([{"role": "user", "content": "one two three"}], {"tools": tools, "top_p": 1})
        await engine.close()
    body = double.others[0].body
    assert count is not None
    assert count > 3
    assert set(body) == {"model", "messages", "tools"}
    assert "<|im_end|>" not in str(body["tools"])


async def test_counting_at_a_server_that_is_gone_says_nothing() -> None:
    async with EngineDouble(lambda seen: "ok") as double:
        engine = VllmEngine(create_link("native", double.origin), base_model="base", special=SPECIAL)
    assert await engine.count_tokens(HELLO, {}) is None
    await engine.close()


async def test_adapters_are_listed_loaded_and_unloaded_by_name() -> None:
    async with EngineDouble(lambda seen: "ok") as double:
        engine = VllmEngine(create_link("native", double.origin), base_model="base", special=SpecialTokens(()))
        await engine.load_adapter("L4@0123456789ab", "/a/folder")
        assert double.loads == [("L4@0123456789ab", "/a/folder")]
        assert await engine.list_adapters() == {"L0", "L1", "L2", "L3", "L4@0123456789ab"}
        await engine.unload_adapter("L4@0123456789ab")
        assert await engine.list_adapters() == {"L0", "L1", "L2", "L3"}
        with pytest.raises(
            EngineError, match=r"/v1/unload_lora_adapter answered 404: .* adapter L4@0123456789ab is not there"
        ):
            await engine.unload_adapter("L4@0123456789ab")
        await engine.close()


async def test_an_engine_without_the_calls_is_told_by_its_switch() -> None:
    async with EngineDouble(lambda seen: "ok", fixed=True) as double:
        engine = VllmEngine(create_link("native", double.origin), base_model="base", special=SpecialTokens(()))
        with pytest.raises(EngineError, match="VLLM_ALLOW_RUNTIME_LORA_UPDATING=1"):
            await engine.load_adapter("L4@0123456789ab", "/a/folder")
        await engine.close()
