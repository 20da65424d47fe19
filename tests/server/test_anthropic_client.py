"""The official Python client of Anthropic's API, unchanged, in front of the service."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import anthropic
import pytest
from anthropic.types import MessageParam, ToolParam, ToolResultBlockParam

from macaron.server.keys import Keys, read_keys
from tests.doubles.engine_double import Call, Reply, Script, Seen, by_words
from tests.server.conftest import Stand, Standing

HI: list[MessageParam] = [{"role": "user", "content": "hi"}]
WEATHER: ToolParam = {
    "name": "weather",
    "description": "The weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
KEY = "secret-key-of-anna"
TRACE = {"x-macaron-trace": "1"}


@pytest.fixture
def keys(key_file: Callable[[str], Path]) -> Keys:
    """One key, of anna's."""
    return read_keys(key_file(f"anna:{KEY}"))


@contextlib.asynccontextmanager
async def client_of(
    stand: Standing, script: Script, keys: Keys | None = None, *, bearer: bool = False, key: str = "any"
) -> AsyncGenerator[tuple[anthropic.AsyncAnthropic, Stand]]:
    async with stand(script, keys=keys) as running:
        async with anthropic.AsyncAnthropic(
            base_url=running.url,
            max_retries=0,
            timeout=10,
            api_key=None if bearer else key,
            auth_token=key if bearer else None,
        ) as client:
            yield client, running


def calling(seen: Seen) -> Reply:
    """Calls a tool once; says what it returned after that."""
    if seen.is_route:
        return Reply("L1")
    last = seen.body["messages"][-1]
    asked = Call("weather", '{"city": "Rome"}', "call_1")
    return Reply(f"it is {last['content']}") if last["role"] == "tool" else Reply("Let me look.", calls=(asked,))


async def test_models(stand: Standing) -> None:
    async with client_of(stand, by_words({})) as (client, _):
        assert [model.id async for model in client.models.list()] == ["test-model"]
        assert (await client.models.retrieve("test-model")).display_name == "test-model"
        with pytest.raises(anthropic.NotFoundError):
            await client.models.retrieve("other")


async def test_a_message(stand: Standing) -> None:
    async with client_of(stand, by_words({}, answer="one two")) as (client, running):
        answer = await client.messages.create(model="test-model", max_tokens=8, messages=HI, system="Be brief.")
        hop = running.double.requests[-1].body
    assert [block.to_dict() for block in answer.content] == [{"type": "text", "text": "one two"}]
    assert (answer.role, answer.type, answer.model) == ("assistant", "message", "test-model")
    assert (answer.stop_reason, answer.stop_sequence) == ("end_turn", None)
    assert (answer.usage.output_tokens, answer.usage.cache_read_input_tokens) == (2, 0)
    assert answer.usage.input_tokens > 0
    assert answer.id.startswith("msg_")
    assert hop["max_tokens"] == 8
    assert hop["messages"][0]["content"].endswith("Be brief.")


async def test_a_stream(stand: Standing) -> None:
    async with client_of(stand, by_words({}, answer="one two three")) as (client, _):
        async with client.messages.stream(model="test-model", max_tokens=8, messages=HI) as stream:
            texts = [text async for text in stream.text_stream]
        final = await stream.get_final_message()
    assert "".join(texts) == "one two three"
    assert final.usage.output_tokens == 3
    assert final.usage.input_tokens > 0
    assert final.stop_reason == "end_turn"


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_tool_loop_stays_with_the_specialist_that_called(stand: Standing, streamed: bool) -> None:
    async def ask(client: anthropic.AsyncAnthropic, messages: list[MessageParam]) -> anthropic.types.Message:
        if not streamed:
            return await client.messages.create(model="test-model", max_tokens=64, messages=messages, tools=[WEATHER])
        async with client.messages.stream(
            model="test-model", max_tokens=64, messages=messages, tools=[WEATHER]
        ) as stream:
            return await stream.get_final_message()

    async with client_of(stand, calling) as (client, running):
        messages: list[MessageParam] = [{"role": "user", "content": "weather in Rome?"}]
        first = await ask(client, messages)
        call = first.content[-1]
        assert isinstance(call, anthropic.types.ToolUseBlock)
        result: ToolResultBlockParam = {"type": "tool_result", "tool_use_id": call.id, "content": "rainy"}
        messages += [
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [result, {"type": "text", "text": "(the user is in a hurry)"}]},
        ]
        second = await ask(client, messages)
        routes = sum(seen.is_route for seen in running.double.requests)
        shown = running.double.requests[-1].body
    assert (first.stop_reason, call.name, call.input) == ("tool_use", "weather", {"city": "Rome"})
    assert [block.type for block in first.content] == ["text", "tool_use"]
    assert [block.type for block in second.content] == ["text", "tool_use"]
    assert routes == 1
    assert [message["role"] for message in shown["messages"]] == ["system", "user", "assistant", "tool", "user"]
    assert shown["tools"][0]["function"]["parameters"] == WEATHER["input_schema"]


async def test_the_second_turn_continues_the_session_of_the_first(stand: Standing) -> None:
    async with client_of(stand, by_words({}, answer="fine")) as (client, _):
        raw = client.messages.with_raw_response
        first = await raw.create(model="test-model", max_tokens=8, messages=HI, extra_headers=TRACE)
        answer = await first.parse()
        history: list[MessageParam] = [
            *HI,
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": "and?"},
        ]
        second = await raw.create(model="test-model", max_tokens=8, messages=history, extra_headers=TRACE)
    assert second.headers["x-macaron-session"] == first.headers["x-macaron-session"]


async def test_thoughts_are_shown_where_they_are_asked_for(stand: Standing) -> None:
    def thinking(seen: Seen) -> Reply:
        return Reply("L1" if seen.is_route else "four", reasoning="" if seen.is_route else "two and two")

    async with client_of(stand, thinking) as (client, _):
        hidden = await client.messages.create(model="test-model", max_tokens=8, messages=HI)
        async with client.messages.stream(
            model="test-model", max_tokens=2048, messages=HI, thinking={"type": "enabled", "budget_tokens": 1024}
        ) as stream:
            shown = await stream.get_final_message()
        again = await client.messages.create(
            model="test-model",
            max_tokens=8,
            messages=[*HI, {"role": "assistant", "content": shown.content}, {"role": "user", "content": "so?"}],
        )
    assert [block.type for block in hidden.content] == ["text"]
    thought = shown.content[0]
    assert isinstance(thought, anthropic.types.ThinkingBlock)
    assert (thought.thinking, thought.signature) == ("two and two", "unsigned")
    assert again.content


async def test_counted_tokens_are_those_of_the_prompt(stand: Standing) -> None:
    async with client_of(stand, by_words({})) as (client, running):
        count = await client.messages.count_tokens(model="test-model", messages=HI, tools=[WEATHER])
        running.double.tokenizes = False
        with pytest.raises(anthropic.APIStatusError) as refused:
            await client.messages.count_tokens(model="test-model", messages=HI)
    assert count.input_tokens > 3
    assert refused.value.status_code == 501


async def test_errors_become_the_clients_own_classes(stand: Standing) -> None:
    def script(seen: Seen) -> Reply:
        if seen.is_route:
            return Reply("L1")
        return Reply(status=429) if "busy" in seen.prompt else Reply("one two three", fault="die", fault_after=3)

    async with client_of(stand, script) as (client, _):
        create = client.messages.create
        with pytest.raises(anthropic.BadRequestError) as bad:
            await create(model="test-model", max_tokens=8, messages=HI, extra_body={"lora": []})
        with pytest.raises(anthropic.NotFoundError):
            await create(model="other", max_tokens=8, messages=HI)
        with pytest.raises(anthropic.InternalServerError):
            await create(model="test-model", max_tokens=8, messages=[{"role": "user", "content": "busy"}])
        with pytest.raises(anthropic.APIStatusError, match="engine"):
            async with client.messages.stream(model="test-model", max_tokens=8, messages=HI) as stream:
                _ = [event async for event in stream]
    assert isinstance(bad.value.body, dict)
    assert bad.value.body["error"]["type"] == "invalid_request_error"
    assert bad.value.request_id


@pytest.mark.parametrize("bearer", [False, True])
async def test_either_header_brings_the_key(stand: Standing, keys: Keys, bearer: bool) -> None:
    async with client_of(stand, by_words({}), keys, bearer=bearer, key=KEY) as (client, _):
        assert (await client.messages.create(model="test-model", max_tokens=8, messages=HI)).content


async def test_a_wrong_key_is_the_clients_authentication_error(stand: Standing, keys: Keys) -> None:
    async with client_of(stand, by_words({}), keys, key="wrong") as (client, _):
        with pytest.raises(anthropic.AuthenticationError):
            await client.messages.create(model="test-model", max_tokens=8, messages=HI)
