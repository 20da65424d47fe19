from __future__ import annotations

from typing import Any

import pytest

from macaron.engine.base import Choice, HopRequest
from macaron.engine.link import create_link
from macaron.engine.openai import OpenAIEngine
from macaron.engine.special import SpecialTokens
from macaron.errors import BadRequest
from tests.doubles.engine_double import EngineDouble, Reply, Script, Seen
from tests.engine.hops import HELLO, answer_hop, route_hop


def engine_at(double: EngineDouble) -> OpenAIEngine:
    return OpenAIEngine(create_link("native", double.origin), base_model="base", special=SpecialTokens(()))


async def chosen(script: Script, *hops: HopRequest) -> tuple[list[Choice], list[dict[str, Any]]]:
    async with EngineDouble(script) as double:
        engine = engine_at(double)
        choices = [await engine.choose(hop) for hop in hops]
        await engine.close()
    return choices, [seen.body for seen in double.requests]


def refusing(*fields: str, text: str = "L2", by_param: bool = False) -> Script:
    """A server that refuses a field by its name, one at a time."""

    def script(seen: Seen) -> Reply:
        for field in fields:
            if field in seen.body:
                named = (
                    {"message": "Unsupported.", "param": field}
                    if by_param
                    else {"message": f"'{field}' is not supported"}
                )
                return Reply(status=400, error=named)
        return Reply(text)

    return script


def once_refused(message: str, param: str | None = None) -> Script:
    """A server that refuses its first request only."""
    replies = iter([Reply(status=400, error={"message": message, "param": param})])
    return lambda seen: next(replies, Reply("L2"))


async def test_specialists_are_prompts_on_one_model_or_a_model_each() -> None:
    async with EngineDouble(lambda seen: "ok") as double:
        engine = engine_at(double)
        for adapter in (None, "a-model"):
            async for _ in engine.answer(answer_hop(adapter=adapter)):
                pass
        await engine.close()
    assert [seen.body["model"] for seen in double.requests] == ["base", "a-model"]


async def test_only_fields_of_the_public_api_are_sent() -> None:
    vendor = {"chat_template_kwargs": {"enable_thinking": False}, "max_tokens": 24}
    async with EngineDouble(lambda seen: "L1") as double:
        engine = engine_at(double)
        await engine.choose(route_hop(options=vendor, prefill="model_id="))
        async for _ in engine.answer(answer_hop(options=vendor, tenant="acme")):
            pass
        await engine.close()
    route, answer = (seen.body for seen in double.requests)
    assert set(route) == {"model", "messages", "temperature", "response_format", "max_tokens", "stream"}
    assert set(answer) == {"model", "messages", "max_tokens", "stream", "stream_options"}
    assert route["messages"] == list(HELLO)


async def test_a_route_is_a_strict_schema_of_the_labels() -> None:
    (choice,), (body,) = await chosen(lambda seen: '{"label": "L3"}', route_hop())
    wanted = body["response_format"]["json_schema"]
    assert choice.label == "L3"
    assert wanted["strict"] is True
    assert wanted["schema"]["properties"]["label"]["enum"] == ["L0", "L1", "L2", "L3"]


@pytest.mark.parametrize("by_param", [True, False])
@pytest.mark.parametrize("field", ["response_format", "temperature"])
async def test_a_field_the_server_refuses_by_name_is_left_out_from_then_on(field: str, by_param: bool) -> None:
    choices, bodies = await chosen(refusing(field, by_param=by_param), route_hop(), route_hop())
    assert [choice.label for choice in choices] == ["L2", "L2"]
    assert [field in body for body in bodies] == [True, False, False]


async def test_a_server_that_wants_the_newer_name_for_the_answers_room_gets_it() -> None:
    def script(seen: Seen) -> Reply:
        error = {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}
        return Reply(status=400, error=error) if "max_tokens" in seen.body else Reply("L2")

    (choice,), bodies = await chosen(script, route_hop())
    assert choice.label == "L2"
    assert bodies[-1]["max_completion_tokens"] == 24
    assert "max_tokens" not in bodies[-1]


async def test_several_refused_fields_are_found_one_after_another() -> None:
    (choice,), bodies = await chosen(refusing("response_format", "temperature", "max_tokens"), route_hop())
    assert choice.label == "L2"
    assert len(bodies) == 4


async def test_plain_text_is_read_where_nothing_constrains_it() -> None:
    (choice,), _ = await chosen(refusing("response_format", text='I would say "L1".'), route_hop())
    assert choice.label == "L1"


async def test_a_refusal_that_names_no_field_is_raised_at_once() -> None:
    async with EngineDouble(lambda seen: Reply(status=400, error={"message": "no"})) as double:
        engine = engine_at(double)
        with pytest.raises(BadRequest, match="no"):
            await engine.choose(route_hop())
        await engine.close()
    assert len(double.requests) == 1


async def test_a_server_that_refuses_a_field_that_is_not_sent_is_not_asked_for_ever() -> None:
    error = {"message": "'temperature' is not supported"}
    async with EngineDouble(lambda seen: Reply(status=400, error=error)) as double:
        engine = engine_at(double)
        with pytest.raises(BadRequest):
            await engine.choose(route_hop())
        await engine.close()
    assert len(double.requests) == 2


async def test_a_field_whose_name_an_error_only_mentions_is_sent_again() -> None:
    async with EngineDouble(once_refused("The prompt was refused: what is the temperature in Rome?")) as double:
        engine = engine_at(double)
        with pytest.raises(BadRequest, match="Rome"):
            await engine.choose(route_hop())
        await engine.choose(route_hop())
        await engine.close()
    assert ["temperature" in seen.body for seen in double.requests] == [True, True]


async def test_a_field_is_left_out_for_good_only_once_the_server_has_taken_a_hop_without_it() -> None:
    def script(seen: Seen) -> Reply:
        quoting = {"message": "Refused: unknown parameter temperature"}
        return Reply("L1") if "fine" in str(seen.body["messages"]) else Reply(status=400, error=quoting)

    async with EngineDouble(script) as double:
        engine = engine_at(double)
        with pytest.raises(BadRequest):
            await engine.choose(route_hop())
        await engine.choose(route_hop(messages=[{"role": "user", "content": "fine"}]))
        await engine.close()
    assert ["temperature" in seen.body for seen in double.requests] == [True, False, True]


async def test_a_clients_bad_value_reaches_the_client_and_changes_no_later_hop() -> None:
    script = once_refused("temperature must be between 0 and 2", "temperature")
    async with EngineDouble(script) as double:
        engine = engine_at(double)
        with pytest.raises(BadRequest, match="between 0 and 2") as caught:
            await anext(engine.answer(answer_hop(options={"temperature": 5})))
        assert (caught.value.status, caught.value.param) == (400, "temperature")
        await engine.choose(route_hop())
        async for _ in engine.answer(answer_hop(options={"temperature": 1})):
            pass
        await engine.close()
    assert [seen.body["temperature"] for seen in double.requests] == [5, 0, 1]


async def test_a_server_without_log_probabilities_answers_all_the_same() -> None:
    raw = b'{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}'
    async with EngineDouble(lambda seen: Reply(raw=raw)) as double:
        engine = engine_at(double)
        batches = [batch async for batch in engine.answer(answer_hop(options={"logprobs": True}, stream=False))]
        await engine.close()
    assert len(batches[0]) == 2
