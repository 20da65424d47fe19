"""The official Python client, unchanged, on the Responses and Conversations API of the service."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import openai
import pytest
from pydantic import BaseModel

from tests.doubles.engine_double import Call, Reply, Script, Seen, by_words
from tests.server.conftest import Stand, Standing

WEATHER = Call("weather", '{"city": "Rome"}')


class City(BaseModel):
    """What the model is to answer in."""

    name: str


class weather(BaseModel):  # noqa: N801
    """The weather of a city."""

    city: str


@contextlib.asynccontextmanager
async def client_of(stand: Standing, script: Script) -> AsyncGenerator[tuple[openai.AsyncOpenAI, Stand]]:
    async with stand(script) as running:
        client = openai.AsyncOpenAI(base_url=running.url + "/v1", api_key="any", max_retries=0, timeout=10)
        async with client:
            yield client, running


def calling(seen: Seen) -> Reply:
    if seen.is_route and "response_format" not in seen.body:
        return Reply("L1")
    return Reply("it rains") if seen.body["messages"][-1]["role"] == "tool" else Reply(calls=(WEATHER,))


async def test_create_retrieve_list_and_delete(stand: Standing) -> None:
    async with client_of(stand, by_words({}, answer="one two")) as (client, _):
        made = await client.responses.create(model="test-model", input="hi", metadata={"a": "b"})
        assert made.output_text == "one two"
        again = await client.responses.retrieve(made.id)
        assert (again.output_text, again.metadata) == ("one two", {"a": "b"})
        items = [item async for item in client.responses.input_items.list(made.id)]
        assert [item.type for item in items] == ["message"]
        await client.responses.delete(made.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(made.id)


async def test_the_blocking_client(stand: Standing) -> None:
    async with stand(by_words({}, answer="one two")) as running:

        def talk() -> list[str]:
            with openai.OpenAI(base_url=running.url + "/v1", api_key="any", max_retries=0, timeout=10) as client:
                first = client.responses.create(model="test-model", input="hi")
                second = client.responses.create(model="test-model", input="on", previous_response_id=first.id)
                with client.responses.stream(model="test-model", input="hi") as stream:
                    deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
                return [first.output_text, second.output_text, "".join(deltas)]

        assert await asyncio.to_thread(talk) == ["one two"] * 3


async def test_the_stream_helper_puts_the_response_together(stand: Standing) -> None:
    async with client_of(stand, by_words({}, answer="one two")) as (client, _):
        async with client.responses.stream(model="test-model", input="hi") as stream:
            text = "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])
            final = await stream.get_final_response()
        assert (text, final.output_text) == ("one two", "one two")
        assert final.usage is not None
        assert final.usage.output_tokens == 2


async def test_parse(stand: Standing) -> None:
    def script(seen: Seen) -> Reply:
        return Reply('{"name": "Rome"}') if "response_format" in seen.body else Reply("L1")

    async with client_of(stand, script) as (client, _):
        parsed = await client.responses.parse(model="test-model", input="where?", text_format=City)
        assert parsed.output_parsed == City(name="Rome")
        async with client.responses.stream(model="test-model", input="where?", text_format=City) as stream:
            final = await stream.get_final_response()
        assert final.output_parsed == City(name="Rome")


async def test_a_tool_loop(stand: Standing) -> None:
    async with client_of(stand, calling) as (client, _):
        tools = [openai.pydantic_function_tool(weather)]
        first = await client.responses.parse(model="test-model", input="weather?", tools=tools)
        (call,) = first.output
        assert call.type == "function_call"
        assert call.parsed_arguments == weather(city="Rome")
        second = await client.responses.create(
            model="test-model",
            previous_response_id=first.id,
            input=[{"type": "function_call_output", "call_id": call.call_id, "output": "rain"}],
        )
        assert second.output_text == "it rains"


async def test_a_stream_in_the_background_is_taken_up_again(stand: Standing) -> None:
    async with client_of(stand, by_words({}, answer="one two three")) as (client, _):
        stream = await client.responses.create(model="test-model", input="hi", background=True, stream=True)
        async for event in stream:
            if event.type == "response.in_progress":
                name, place = event.response.id, event.sequence_number
                break
        await stream.close()
        rest = await client.responses.retrieve(name, stream=True, starting_after=place)
        events = [event async for event in rest]
        assert events[-1].type == "response.completed"
        assert events[-1].response.output_text == "one two three"
        assert [event.sequence_number for event in events] == list(range(place + 1, place + 1 + len(events)))
        assert (await client.responses.cancel(name)).status == "completed"


async def test_conversations(stand: Standing) -> None:
    async with client_of(stand, by_words({}, answer="one two")) as (client, _):
        conversation = await client.conversations.create(metadata={"topic": "a"})
        made = await client.responses.create(model="test-model", input="hi", conversation=conversation.id)
        assert made.conversation is not None
        items = [item async for item in client.conversations.items.list(conversation.id, order="asc", limit=1)]
        assert [item.type for item in items] == ["message", "message"]
        added = await client.conversations.items.create(
            conversation.id, items=[{"type": "message", "role": "user", "content": "more"}]
        )
        (item,) = added.data
        assert item.id is not None
        assert await client.conversations.items.retrieve(item.id, conversation_id=conversation.id) == item
        await client.conversations.items.delete(item.id, conversation_id=conversation.id)
        assert (await client.conversations.update(conversation.id, metadata={"topic": "b"})).metadata == {"topic": "b"}
        assert (await client.conversations.delete(conversation.id)).deleted


async def test_errors_have_their_types(stand: Standing) -> None:
    async with client_of(stand, by_words({})) as (client, _):
        with pytest.raises(openai.NotFoundError):
            await client.responses.create(model="other", input="hi")
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(model="test-model", input="hi", previous_response_id="resp_1")
        assert caught.value.code == "previous_response_not_found"
