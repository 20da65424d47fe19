"""The official Python client, unchanged, in front of the service."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator

import openai
import pytest
from pydantic import BaseModel

from macaron.server.keys import Keys
from tests.doubles.engine_double import Call, Reply, Script, Seen, by_words
from tests.server.conftest import Stand, Standing

WEATHER = Call("weather", '{"city": "Rome"}')
WIRED = {"name": WEATHER.name, "arguments": WEATHER.arguments}


class City(BaseModel):
    """What the model is to answer in."""

    name: str


class weather(BaseModel):  # noqa: N801
    """The weather of a city."""

    city: str


@contextlib.asynccontextmanager
async def client_of(
    stand: Standing, script: Script, keys: Keys | None = None
) -> AsyncGenerator[tuple[openai.AsyncOpenAI, Stand]]:
    async with stand(script, keys=keys) as running:
        client = openai.AsyncOpenAI(base_url=running.url + "/v1", api_key="any", max_retries=0, timeout=10)
        async with client:
            yield client, running


def calling(seen: Seen) -> Reply:
    if seen.is_route and "response_format" not in seen.body:
        return Reply("L1")
    return Reply("it rains") if seen.body["messages"][-1]["role"] == "tool" else Reply(calls=(WEATHER,))


async def test_models(stand: Standing) -> None:
    async with client_of(stand, by_words({})) as (client, _):
        assert [model.id async for model in client.models.list()] == ["test-model"]
        assert (await client.models.retrieve("test-model")).id == "test-model"
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("other")


async def test_chat(stand: Standing) -> None:
    async with client_of(stand, by_words({}, answer="one two")) as (client, _):
        answer = await client.chat.completions.create(
            model="test-model", messages=[{"role": "user", "content": "hi"}], temperature=0.5, max_completion_tokens=8
        )
    assert answer.choices[0].message.content == "one two"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 2
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 2
    assert answer.object == "chat.completion"


async def test_a_stream(stand: Standing) -> None:
    async with client_of(stand, by_words({}, answer="one two three")) as (client, _):
        stream = await client.chat.completions.create(
            model="test-model",
            messages=[{"role": "user", "content": "hi"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "one two three"
    assert [chunk.usage.completion_tokens for chunk in chunks if chunk.usage] == [3]
    assert len({chunk.id for chunk in chunks}) == 1


async def test_a_stream_of_tool_calls_comes_in_pieces_and_the_loop_ends(stand: Standing) -> None:
    async with client_of(stand, calling) as (client, running):
        asked = [{"role": "user", "content": "weather in Rome?"}]
        tools = [openai.pydantic_function_tool(weather)]
        pieces = []
        async with client.chat.completions.stream(model="test-model", messages=asked, tools=tools) as stream:  # type: ignore[arg-type]
            async for event in stream:
                if event.type == "tool_calls.function.arguments.delta":
                    pieces.append(event.arguments_delta)
            final = await stream.get_final_completion()
        call = (final.choices[0].message.tool_calls or [])[0]
        assert len([piece for piece in pieces if piece]) > 1
        assert "".join(pieces) == call.function.arguments == WEATHER.arguments
        assert call.function.parsed_arguments == weather(city="Rome")
        message = final.choices[0].message.to_dict(exclude_none=True)
        message.pop("parsed", None)
        message["tool_calls"] = [{"id": call.id, "type": "function", "function": WIRED}]
        history = [*asked, message, {"role": "tool", "tool_call_id": call.id, "content": "rain"}]
        answer = await client.chat.completions.create(model="test-model", messages=history, tools=tools)  # type: ignore[arg-type]
        hops = [seen.is_route for seen in running.double.requests]
    assert answer.choices[0].message.content == "it rains"
    assert hops == [True, False, False]


async def test_structured_output_is_parsed(stand: Standing) -> None:
    def script(seen: Seen) -> str:
        return '{"name": "Rome"}' if "response_format" in seen.body else "L1"

    async with client_of(stand, script) as (client, running):
        answer = await client.chat.completions.parse(
            model="test-model", messages=[{"role": "user", "content": "a city"}], response_format=City
        )
        asked = running.double.requests[-1].body["response_format"]
    assert answer.choices[0].message.parsed == City(name="Rome")
    assert asked["json_schema"]["schema"]["required"] == ["name"]


async def test_several_choices_with_logprobs(stand: Standing) -> None:
    async with client_of(stand, by_words({}, answer="one two")) as (client, running):
        answer = await client.chat.completions.create(
            model="test-model", messages=[{"role": "user", "content": "hi"}], n=3, logprobs=True, top_logprobs=2
        )
        stream = await client.chat.completions.create(
            model="test-model", messages=[{"role": "user", "content": "hi"}], n=2, logprobs=True, stream=True
        )
        texts = {0: "", 1: ""}
        tokens = 0
        async for chunk in stream:
            for choice in chunk.choices:
                texts[choice.index] += choice.delta.content or ""
                tokens += len((choice.logprobs and choice.logprobs.content) or [])
        asked = next(seen.body for seen in running.double.requests if not seen.is_route)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert all(choice.logprobs and choice.logprobs.content for choice in answer.choices)
    assert (asked["n"], asked["logprobs"], asked["top_logprobs"]) == (3, True, 2)
    assert texts == {0: "one two", 1: "one two"}
    assert tokens >= 4


async def test_errors_become_the_clients_own_classes(stand: Standing) -> None:
    def script(seen: Seen) -> Reply:
        if seen.is_route:
            return Reply("L1")
        return Reply(status=429) if "busy" in seen.prompt else Reply("one two three", fault="die", fault_after=3)

    async with client_of(stand, script) as (client, _):
        create = client.chat.completions.create
        with pytest.raises(openai.BadRequestError) as bad:
            await create(model="test-model", messages=[{"role": "user", "content": "hi"}], extra_body={"lora": []})
        with pytest.raises(openai.NotFoundError):
            await create(model="other", messages=[{"role": "user", "content": "hi"}])
        with pytest.raises(openai.InternalServerError):
            await create(model="test-model", messages=[{"role": "user", "content": "busy"}])
        stream = await create(model="test-model", messages=[{"role": "user", "content": "hi"}], stream=True)
        with pytest.raises(openai.APIError):
            _ = [chunk async for chunk in stream]
    assert (bad.value.param, bad.value.code) == ("lora", "unknown_parameter")
    assert bad.value.request_id


async def test_a_wrong_key_is_the_clients_authentication_error(stand: Standing) -> None:
    async with client_of(stand, by_words({}), Keys({})) as (client, _):
        with pytest.raises(openai.AuthenticationError):
            await client.models.list()


async def test_an_answer_can_be_sent_back_as_the_client_holds_it(stand: Standing) -> None:
    async with client_of(stand, lambda seen: Reply("L1" if seen.is_route else "fine", reasoning="hm")) as (client, _):
        history = [{"role": "user", "content": "hi"}]
        answer = await client.chat.completions.create(model="test-model", messages=history)  # type: ignore[arg-type]
        dumped = json.loads(answer.choices[0].message.model_dump_json())
        again = await client.chat.completions.create(
            model="test-model",
            messages=[*history, dumped, {"role": "user", "content": "and?"}],  # type: ignore[list-item]
        )
    assert dumped["reasoning_content"] == "hm"
    assert again.choices[0].message.content == "fine"
