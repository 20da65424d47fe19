"""The official Python client of Anthropic's API against the embedded engine."""

from __future__ import annotations

import anthropic
import pytest
from anthropic.types import MessageParam, ToolParam

from tests.processes import Home, serving

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(300)]

WEATHER: ToolParam = {
    "name": "weather",
    "description": "The weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
TRACE = {"x-macaron-trace": "1", "x-macaron-adapter": "L0"}
# The client itself has no field for it any more.
GREEDY = {"temperature": 0}


def test_a_stream_a_second_turn_a_count_and_a_tool_loop(home: Home, small: str) -> None:
    with (
        serving(home, "--profile", small) as service,
        anthropic.Anthropic(base_url=service.url, api_key="any", max_retries=0, timeout=120) as client,
    ):
        model = client.models.list().data[0].id

        history: list[MessageParam] = [{"role": "user", "content": "My name is Ann. Say hello to me."}]
        with client.messages.stream(
            model=model, max_tokens=24, messages=history, extra_headers=TRACE, extra_body=GREEDY
        ) as stream:
            text = "".join(stream.text_stream)
            first, session = stream.get_final_message(), stream.response.headers["x-macaron-session"]
        assert text
        assert text == "".join(block.text for block in first.content if block.type == "text")
        assert first.usage.output_tokens > 0

        history += [{"role": "assistant", "content": first.content}, {"role": "user", "content": "What is my name?"}]
        raw = client.messages.with_raw_response.create(
            model=model, max_tokens=24, messages=history, extra_headers=TRACE, extra_body=GREEDY
        )
        second = raw.parse()
        assert raw.headers["x-macaron-session"] == session
        assert second.content
        # The whole first turn is in the prompt of the second, and was computed for the first.
        assert second.usage.cache_read_input_tokens is not None
        assert second.usage.cache_read_input_tokens >= first.usage.input_tokens

        counted = client.messages.count_tokens(model=model, messages=history)
        assert counted.input_tokens == second.usage.input_tokens + second.usage.cache_read_input_tokens

        asked: list[MessageParam] = [{"role": "user", "content": "What is the weather in Rome?"}]
        called = client.messages.create(
            model=model,
            max_tokens=64,
            messages=asked,
            tools=[WEATHER],
            tool_choice={"type": "tool", "name": "weather"},
            extra_headers=TRACE,
            extra_body=GREEDY,
        )
        call = called.content[-1]
        assert isinstance(call, anthropic.types.ToolUseBlock)
        assert called.stop_reason == "tool_use"
        assert isinstance(call.input, dict)
        assert set(call.input) == {"city"}

        asked += [
            {"role": "assistant", "content": called.content},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "It rains."}]},
        ]
        told = client.messages.with_raw_response.create(
            model=model,
            max_tokens=32,
            messages=asked,
            tools=[WEATHER],
            tool_choice={"type": "none"},
            extra_headers=TRACE,
            extra_body=GREEDY,
        )
        assert told.headers["x-macaron-hops"] == "answer"
        assert told.parse().content
