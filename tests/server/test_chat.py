"""Chat Completions over real HTTP, in front of an engine double."""

from __future__ import annotations

import json
from pathlib import Path

from tests.doubles.engine_double import Call, EngineDouble, Reply, Seen, by_words
from tests.harness import serve, write_profile

TRACE = {"x-macaron-trace": "1"}


async def test_the_label_of_the_entry_specialist_decides_who_answers(tmp_path: Path) -> None:
    async with EngineDouble(by_words({"code": "L2"}, answer="done")) as double:
        async with serve(write_profile(tmp_path, double.origin)) as running:
            reply = await running.client.chat([{"role": "user", "content": "write code"}], headers=TRACE)
    assert reply.status == 200
    assert reply.text == "done"
    assert reply.adapter == "L2"
    assert reply.headers["x-macaron-hops"] == "route,answer"
    assert [seen.body["model"] for seen in double.requests] == ["L0", "L2"]


async def test_without_the_trace_header_nothing_names_the_specialist(tmp_path: Path) -> None:
    async with EngineDouble(by_words({}, answer="hello")) as double:
        async with serve(write_profile(tmp_path, double.origin)) as running:
            reply = await running.client.chat([{"role": "user", "content": "hi"}])
    assert not [name for name in reply.headers if name.startswith("x-macaron")]
    assert "metadata" not in reply.body
    assert "L0" not in json.dumps(reply.body)


async def test_a_stream_has_one_role_its_text_a_finish_and_the_usage_that_was_asked_for(tmp_path: Path) -> None:
    async with EngineDouble(by_words({}, answer="one two three")) as double:
        async with serve(write_profile(tmp_path, double.origin)) as running:
            options = {"include_usage": True}
            async with running.client.stream([{"role": "user", "content": "hi"}], stream_options=options) as response:
                lines = (await response.text()).split("\n\n")
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    assert [choice["delta"].get("role") for choice in choices if "role" in choice["delta"]] == ["assistant"]
    assert "".join(choice["delta"].get("content", "") for choice in choices) == "one two three"
    assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == ["stop"]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 3
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert lines[-2:] == ["data: [DONE]", ""]


async def test_a_tool_result_goes_to_the_specialist_that_called_and_is_not_routed(tmp_path: Path) -> None:
    def script(seen: Seen) -> Reply | str:
        if seen.is_route:
            return "L1"
        last = seen.body["messages"][-1]
        return "it rains" if last["role"] == "tool" else Reply(calls=(Call("weather", '{"city":"Rome"}'),))

    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    asked = [{"role": "user", "content": "weather in Rome?"}]
    async with EngineDouble(script) as double, serve(write_profile(tmp_path, double.origin)) as running:
        first = await running.client.chat(asked, tools=tools)
        call = first.body["choices"][0]["message"]
        assert first.body["choices"][0]["finish_reason"] == "tool_calls"
        history = [*asked, call, {"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": "rain"}]
        second = await running.client.chat(history, tools=tools, headers=TRACE)
    assert second.text == "it rains"
    assert second.headers["x-macaron-hops"] == "answer"
    assert second.adapter == "L1"


async def test_another_specialists_turn_is_seen_by_its_summary_only(tmp_path: Path) -> None:
    long = "word " * 400

    def script(seen: Seen) -> str:
        if seen.is_route:
            return "L2" if "code" in seen.body["messages"][-1]["content"] else "L1"
        return "the summary" if seen.prompt.endswith("Summarise what you did.") else long

    async with EngineDouble(script) as double, serve(write_profile(tmp_path, double.origin)) as running:
        history = [{"role": "user", "content": "write code"}]
        first = await running.client.chat(history)
        await double.arrived(3)
        history += [{"role": "assistant", "content": first.text}, {"role": "user", "content": "plan a trip"}]
        second = await running.client.chat(history, headers=TRACE)
    answers = [seen for seen in double.requests if not seen.is_route]
    shown = answers[2].body["messages"]
    assert second.adapter == "L1"
    assert [message["role"] for message in shown] == ["system", "user", "assistant", "user"]
    assert shown[1]["content"] == "write code"
    assert shown[2]["content"] == "[summary of L2's answer: the summary]"


async def test_three_and_nine_specialists_are_routed_by_their_own_labels(tmp_path: Path) -> None:
    for labels in (("Alpha", "Beta", "Gamma"), tuple(f"S{number}" for number in range(9))):
        folder = tmp_path / labels[0]
        folder.mkdir()
        async with EngineDouble(by_words({}, default=labels[-1]), adapters=labels) as double:
            async with serve(write_profile(folder, double.origin, labels=labels)) as running:
                reply = await running.client.chat([{"role": "user", "content": "hi"}], headers=TRACE)
        assert reply.adapter == labels[-1]
        assert double.requests[0].body["structured_outputs"]["choice"] == list(labels)


async def test_a_useless_label_is_asked_for_once_more_and_then_the_default_answers(tmp_path: Path) -> None:
    script = by_words({}, default="nonsense", answer="fine")
    async with EngineDouble(script) as double, serve(write_profile(tmp_path, double.origin)) as running:
        reply = await running.client.chat([{"role": "user", "content": "hi"}], headers=TRACE)
    assert (reply.status, reply.text, reply.adapter) == (200, "fine", "L2")
    assert sum(seen.is_route for seen in double.requests) == 2


async def test_an_unknown_model_is_404_streamed_or_not(tmp_path: Path) -> None:
    async with EngineDouble(by_words({})) as double, serve(write_profile(tmp_path, double.origin)) as running:
        for stream in (False, True):
            reply = await running.client.post(
                {"model": "other", "messages": [], "stream": stream} | {"messages": [{"role": "user", "content": "x"}]}
            )
            assert (reply.status, reply.body["error"]["code"]) == (404, "model_not_found")
