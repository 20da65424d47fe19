from __future__ import annotations

import re

import pytest

from macaron.engine.link import create_link
from macaron.engine.sglang import SglangEngine
from macaron.engine.special import SpecialTokens
from macaron.errors import ConfigError, EngineError
from tests.doubles.engine_double import EngineDouble
from tests.engine.hops import HELLO, answer_hop, route_hop


async def test_an_adapter_is_a_field_beside_the_bases_name() -> None:
    async with EngineDouble(lambda seen: "ok") as double:
        engine = SglangEngine(create_link("native", double.origin), base_model="base", special=SpecialTokens(()))
        for hop in (answer_hop(adapter="L2", tenant="acme"), answer_hop(adapter=None)):
            async for _ in engine.answer(hop):
                pass
        await engine.close()
    first, second = (seen.body for seen in double.requests)
    assert (first["model"], first["lora_path"], first["cache_salt"]) == ("base", "L2", "acme")
    assert second["model"] == "base"
    assert "lora_path" not in second
    assert "cache_salt" not in second


async def test_a_route_is_a_regular_expression_that_goes_on_after_the_prefill() -> None:
    labels = ("L0", "L1-a", "Odd.Label")
    async with EngineDouble(lambda seen: "L1-a") as double:
        engine = SglangEngine(create_link("native", double.origin), base_model="base", special=SpecialTokens(()))
        choice = await engine.choose(route_hop(choices=labels, prefill="model_id="))
        await engine.choose(route_hop(choices=labels))
        await engine.close()
    body, plain = (seen.body for seen in double.requests)
    assert choice.label == "L1-a"
    assert body["messages"] == [*HELLO, {"role": "assistant", "content": "model_id="}]
    assert body["continue_final_message"] is True
    assert "continue_final_message" not in plain
    assert body["lora_path"] == "L0"
    assert "structured_outputs" not in body
    assert all(re.fullmatch(body["regex"], label) for label in labels)
    assert not re.fullmatch(body["regex"], "OddxLabel")
    assert r"\-" not in body["regex"]


async def test_a_base_whose_name_would_be_read_as_an_adapter_is_refused() -> None:
    link = create_link("native", "http://127.0.0.1:1")
    with pytest.raises(ConfigError, match="served-model-name"):
        SglangEngine(link, base_model="qwen:7b", special=SpecialTokens(()))
    await link.close()


async def test_a_load_that_failed_with_200_is_a_failure() -> None:
    async with EngineDouble(lambda seen: "ok") as double:
        engine = SglangEngine(create_link("native", double.origin), base_model="base", special=SpecialTokens(()))
        await engine.load_adapter("L4@0123456789ab", "/a/folder")
        assert "L4@0123456789ab" in await engine.list_adapters()
        await engine.unload_adapter("L4@0123456789ab")
        double.refusal = "no room"
        with pytest.raises(EngineError, match="/load_lora_adapter failed: no room"):
            await engine.load_adapter("L4@0123456789ab", "/a/folder")
        await engine.close()
