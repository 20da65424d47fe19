"""Tools of the Responses API: functions, custom tools, namespaces; and the streams of their calls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.doubles.engine_double import Call, Reply, Script, Seen
from tests.server.conftest import Standing
from tests.server.responses.asking import create, kinds, stream

LOOK = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
PATCH = {"type": "custom", "name": "patch", "description": "Apply a patch."}
BOX = {"type": "namespace", "name": "box", "description": "A box.", "tools": [LOOK, PATCH]}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /x+/"}


def calling(*calls: Call, text: str = "", reasoning: str = "") -> Script:
    """Routes to L1, calls tools, and answers `done` to their results."""

    def script(seen: Seen) -> Reply:
        if seen.is_route:
            return Reply("L1")
        if seen.body["messages"][-1]["role"] == "tool":
            return Reply("done")
        return Reply(text, calls=calls, reasoning=reasoning)

    return script


async def test_a_function_call_is_streamed_piece_by_piece(stand: Standing) -> None:
    async with stand(calling(Call("look", '{"a": 1}'))) as running:
        events = await stream(running, input="a", tools=[LOOK])
        assert kinds(events) == [
            "created",
            "in_progress",
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
            "completed",
        ]
        pieces = [event["delta"] for event in events if event["type"].endswith("arguments.delta")]
        assert "".join(pieces) == '{"a": 1}'
        item = events[-1]["response"]["output"][0]
        assert (item["type"], item["name"], item["call_id"], item["arguments"]) == (
            "function_call",
            "look",
            "call_double",
            '{"a": 1}',
        )
        assert {event["item_id"] for event in events if "item_id" in event} == {item["id"]}


async def test_text_thoughts_and_calls_are_items_of_their_own(stand: Standing) -> None:
    async with stand(
        calling(Call("look", id="c1"), Call("look", id="c2"), text="I look", reasoning="hm ok")
    ) as running:
        events = await stream(running, input="a", tools=[LOOK])
        assert kinds(events) == [
            "created",
            "in_progress",
            "output_item.added",
            "content_part.added",
            "reasoning_text.delta",
            "reasoning_text.done",
            "content_part.done",
            "output_item.done",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
            "completed",
        ]
        output = events[-1]["response"]["output"]
        assert [item["type"] for item in output] == ["reasoning", "message", "function_call", "function_call"]
        assert [event["item"] for event in events if event["type"].endswith("item.done")] == output
        assert len({item["id"] for item in output}) == 4


async def test_thoughts_are_a_summary_where_one_is_wanted(stand: Standing) -> None:
    async with stand(calling(text="fine", reasoning="hm ok")) as running:
        events = await stream(running, input="a", reasoning={"effort": "low", "summary": "auto"})
        assert kinds(events)[2:7] == [
            "output_item.added",
            "reasoning_summary_part.added",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.done",
            "reasoning_summary_part.done",
        ]
        assert events[-1]["response"]["output"][0]["summary"] == [{"type": "summary_text", "text": "hm ok"}]
        assert running.double.requests[-1].body["reasoning_effort"] == "low"


async def test_a_custom_tool_is_a_function_of_one_string_to_the_engine(stand: Standing) -> None:
    written = '*** Begin\n+ "quoted" \u00e9 \U0001f600\n'
    async with stand(calling(Call("patch", json.dumps({"input": written})))) as running:
        events = await stream(running, input="a", tools=[{**PATCH, "format": GRAMMAR}])
        assert kinds(events)[2:6] == [
            "output_item.added",
            "custom_tool_call_input.delta",
            "custom_tool_call_input.done",
            "output_item.done",
        ]
        deltas = [event["delta"] for event in events if event["type"].endswith("input.delta")]
        assert len(deltas) > 1
        assert "".join(deltas) == written
        item = events[-1]["response"]["output"][0]
        assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "patch", written)
        (tool,) = running.double.requests[-1].body["tools"]
        assert tool["function"]["parameters"]["required"] == ["input"]
        assert "start: /x+/" in tool["function"]["description"]


async def test_a_custom_tools_output_continues_the_turn(stand: Standing) -> None:
    async with stand(calling(Call("patch", '{"input": "x"}'))) as running:
        first = (await create(running, input="a", tools=[PATCH])).body
        hops = len(running.double.requests)
        result = {"type": "custom_tool_call_output", "call_id": "call_double", "output": "ok"}
        second = await create(running, input=[result], tools=[PATCH], previous_response_id=first["id"])
        assert second.body["output"][0]["content"][0]["text"] == "done"
        assert len(running.double.requests) == hops + 1


@pytest.mark.parametrize(("name", "kind"), [("box__look", "function_call"), ("box__patch", "custom_tool_call")])
async def test_names_in_a_namespace_are_restored(stand: Standing, name: str, kind: str) -> None:
    async with stand(calling(Call(name, '{"input": "x"}'))) as running:
        first = (await create(running, input="a", tools=[BOX], store=False)).body
        (call,) = first["output"]
        assert (call["type"], call["namespace"], call["name"]) == (kind, "box", name.removeprefix("box__"))
        assert first["tools"] == [BOX]
        names = [tool["function"]["name"] for tool in running.double.requests[-1].body["tools"]]
        assert names == ["box__look", "box__patch"]
        output = {
            "type": f"{kind}_output",
            "call_id": call["call_id"],
            "output": [{"type": "input_text", "text": "ok"}],
        }
        hops = len(running.double.requests)
        second = await create(running, input=[{"role": "user", "content": "a"}, call, output], tools=[BOX])
        assert second.body["output"][0]["content"][0]["text"] == "done"
        assert len(running.double.requests) == hops + 1


@pytest.mark.parametrize(
    ("choice", "sent", "offered"),
    [
        ("auto", "auto", ["look", "patch"]),
        ("none", "none", ["look", "patch"]),
        ("required", "required", ["look", "patch"]),
        ({"type": "function", "name": "look"}, {"type": "function", "function": {"name": "look"}}, ["look", "patch"]),
        ({"type": "custom", "name": "patch"}, {"type": "function", "function": {"name": "patch"}}, ["look", "patch"]),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "look"}]},
            "required",
            ["look"],
        ),
    ],
)
async def test_a_tool_choice_of_every_form_reaches_the_engine(
    stand: Standing, choice: Any, sent: Any, offered: list[str]
) -> None:
    async with stand(calling(text="fine")) as running:
        reply = await create(running, input="a", tools=[LOOK, PATCH], tool_choice=choice)
        assert reply.status == 200, reply.body
        assert reply.body["tool_choice"] == choice
        body = running.double.requests[-1].body
        assert body["tool_choice"] == sent
        assert [tool["function"]["name"] for tool in body["tools"]] == offered


@pytest.mark.parametrize("kind", ["web_search", "web_search_2025_08_26", "file_search", "mcp", "local_shell"])
async def test_a_hosted_tool_is_refused_by_its_name(stand: Standing, kind: str) -> None:
    async with stand(calling(text="fine")) as running:
        reply = await create(running, input="a", tools=[LOOK, {"type": kind}])
        assert (reply.status, reply.body["error"]["param"]) == (400, "tools[1].type")
        assert reply.body["error"]["code"] == "unsupported_tool"
        assert kind in reply.body["error"]["message"]


async def test_a_hosted_tool_is_left_out_where_the_operator_says_so(stand: Standing) -> None:
    async with stand(calling(text="fine"), service={"leave_out_tools": ("web_search",)}) as running:
        reply = await create(running, input="a", tools=[LOOK, {"type": "web_search"}])
        assert reply.status == 200
        assert [tool["type"] for tool in reply.body["tools"]] == ["function"]


async def test_structured_output_reaches_the_engine(stand: Standing) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

    def script(seen: Seen) -> Reply:
        return Reply('{"a": 1}') if "response_format" in seen.body else Reply("L1")

    async with stand(script) as running:
        form = {"type": "json_schema", "name": "thing", "schema": schema, "strict": True}
        reply = await create(running, input="a", text={"format": form})
        assert reply.body["output"][0]["content"][0]["text"] == '{"a": 1}'
        sent = running.double.requests[-1].body["response_format"]
        assert sent == {"type": "json_schema", "json_schema": {"name": "thing", "schema": schema, "strict": True}}
        assert reply.body["text"] == {"format": {**form, "description": None}}


async def test_what_codex_sends_is_served(stand: Standing) -> None:
    async with stand(
        calling(Call("exec_command", '{"cmd": "ls"}')), service={"leave_out_tools": ("web_search",)}
    ) as running:
        execute = {"type": "function", "name": "exec_command", "strict": False, "parameters": {"type": "object"}}
        ask = [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You are careful."}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "say hi"}]},
        ]
        fields: dict[str, Any] = {
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "thread",
            "client_metadata": {"x-codex-installation-id": "0"},
            "tools": [execute, BOX, {"type": "web_search", "external_web_access": False}],
            "tool_choice": "auto",
            "parallel_tool_calls": True,
            "reasoning": {"effort": "medium", "summary": "auto"},
            "text": {"verbosity": "medium"},
        }
        headers = {"session-id": "abc", "thread-id": "abc"}
        events = await stream(running, input=ask, headers=headers, **fields)
        done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        sealed: dict[str, Any] = {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [],
            "content": None,
            "encrypted_content": "opaque",
        }
        result = {"type": "function_call_output", "call_id": "call_double", "output": "file"}
        later = await stream(running, input=[*ask, sealed, *done, result], headers=headers, **fields)
        assert later[-1]["response"]["output"][-1]["content"][0]["text"] == "done"
        assert "You are careful." in running.double.requests[-1].body["messages"][0]["content"]
