"""Output items and events, however an answer is cut into pieces."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.conversation import Answer, CallDelta, Delta, ToolCall
from macaron.errors import BadRequest, EngineError
from macaron.wire.responses import conversation_items, leading_system, responses_request
from macaron.wire.responses_answer import About, ResponseStream
from macaron.wire.responses_custom import InputReader
from macaron.wire.responses_items import input_items, item_id, kept, neutral_items, owner_of
from macaron.wire.responses_output import Output, deltas_of
from macaron.wire.responses_tools import Named

ID = "resp_" + "0" * 32
NAMES = {"patch": Named("patch", "custom"), "box__look": Named("look", "function", "box")}
TEXT = st.text(max_size=12)
CALLS = st.lists(
    st.tuples(st.sampled_from(["look", "patch", "box__look"]), TEXT.map(lambda text: json.dumps({"input": text}))),
    max_size=3,
)


def pieces(data: st.DataObject, text: str) -> list[str]:
    """A text, cut anywhere."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]


def streamed(data: st.DataObject, answer: Answer) -> list[Delta]:
    """An answer as deltas, cut anywhere."""
    deltas = [Delta(reasoning=piece) for piece in pieces(data, answer.reasoning)]
    deltas += [Delta(text=piece) for piece in pieces(data, answer.text)]
    for index, call in enumerate(answer.calls):
        first, *rest = pieces(data, call.arguments)
        deltas.append(Delta(calls=(CallDelta(index, call.call_id, call.name, first),)))
        deltas += [Delta(calls=(CallDelta(index, arguments=piece),)) for piece in rest]
    return deltas


def finished(deltas: list[Delta], sealed: str | None = None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    output = Output(ID, NAMES)
    output.carry(sealed)
    events = [event for delta in deltas for event in output.add(delta)]
    events += output.end("completed")
    return events, output.items


@given(st.data(), TEXT, TEXT, CALLS)
def test_the_items_do_not_depend_on_how_the_answer_is_cut(
    data: st.DataObject, text: str, reasoning: str, calls: list[tuple[str, str]]
) -> None:
    made = tuple(ToolCall(f"c{place}", *call) for place, call in enumerate(calls))
    answer = Answer(0, text, "stop", reasoning, calls=made)
    assert finished(streamed(data, answer))[1] == finished(deltas_of(answer))[1]


@given(st.data(), TEXT, TEXT, CALLS)
def test_the_deltas_of_an_item_add_up_to_what_it_says(
    data: st.DataObject, text: str, reasoning: str, calls: list[tuple[str, str]]
) -> None:
    made = tuple(ToolCall(f"c{place}", *call) for place, call in enumerate(calls))
    events, items = finished(streamed(data, Answer(0, text, "stop", reasoning, calls=made)))
    told: dict[str, str] = {item["id"]: "" for item in items}
    for event in events:
        if event["type"].endswith(".delta"):
            told[event["item_id"]] += event["delta"]
    for item in items:
        match item["type"]:
            case "message" | "reasoning":
                whole = item["content"][0]["text"]
            case "function_call":
                whole = item["arguments"]
            case _:
                whole = item["input"]
        assert told[item["id"]] == whole


@given(st.data(), TEXT, TEXT, CALLS)
def test_items_sent_back_are_what_the_answer_said(
    data: st.DataObject, text: str, reasoning: str, calls: list[tuple[str, str]]
) -> None:
    made = tuple(ToolCall(f"c{place}", *call) for place, call in enumerate(calls))
    answer = Answer(0, text, "stop", reasoning, calls=made)
    _, items = finished(streamed(data, answer))
    returned = [item for item in input_items(items) if isinstance(item, dict)]

    def shape(item: Any) -> Any:
        return (item.name, json.loads(item.arguments)) if isinstance(item, ToolCall) else item

    assert [shape(item) for item in neutral_items(returned)] == [shape(item) for item in answer.items()]


@given(st.data(), st.text(max_size=30))
def test_a_custom_input_is_read_however_its_arguments_are_cut(data: st.DataObject, text: str) -> None:
    ascii_only = data.draw(st.booleans())
    arguments = json.dumps({"input": text}, ensure_ascii=ascii_only)
    reader = InputReader()
    told = "".join(reader.feed(piece) for piece in pieces(data, arguments))
    rest, whole = reader.end(arguments)
    assert told + rest == whole == text


@given(st.data(), st.text(max_size=60))
def test_arguments_of_another_shape_are_the_input_itself(data: st.DataObject, text: str) -> None:
    reader = InputReader()
    told = "".join(reader.feed(piece) for piece in pieces(data, text))
    rest, whole = reader.end(text)
    assert told + rest == whole
    if '"' not in text:
        assert whole == text


def refused(read: Callable[[], object]) -> BadRequest | None:
    """The error with which something is refused; None where it is read."""
    try:
        read()
    except BadRequest as error:
        return error
    return None


@given(st.binary(max_size=200))
def test_any_body_is_refused(body: bytes) -> None:
    assert refused(lambda: responses_request(body)) is not None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    "input",
    "tools",
    "tool_choice",
    "text",
    "reasoning",
    "include",
    "metadata",
    "stream",
    "conversation",
    "prompt",
)


@given(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4))
def test_any_fields_are_read_or_refused_with_a_reason(fields: dict[str, Any]) -> None:
    error = refused(lambda: responses_request(json.dumps({"model": "m", **fields}).encode()))
    assert error is None or error.param or error.code == "invalid_json"


KINDS = ("message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning")
ITEM_FIELDS = ("role", "content", "call_id", "name", "arguments", "input", "output", "summary", "id", "status")


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(ITEM_FIELDS), JSON, max_size=5))
def test_any_item_is_read_or_refused_with_its_path(kind: str, fields: dict[str, Any]) -> None:
    raw = {"type": kind, **fields}
    error = refused(lambda: input_items([raw]))
    if error is not None:
        assert error.param is not None
        assert error.param.startswith("input[0]")
        return
    (item,) = input_items([raw])
    assert isinstance(item, dict)
    listed = kept(item, "x_1")
    assert listed["id"]
    assert neutral_items([listed]) == neutral_items([item])


def test_white_space_beside_calls_is_no_message() -> None:
    deltas = [Delta(text="\n\n"), Delta(calls=(CallDelta(0, "c", "look", "{}"),)), Delta(text="\n")]
    assert [item["type"] for item in finished(deltas)[1]] == ["function_call"]


def test_an_answer_that_said_nothing_is_an_empty_message() -> None:
    (item,) = finished([])[1]
    assert item["content"] == [{"type": "output_text", "text": "", "annotations": [], "logprobs": []}]


def test_text_after_a_call_is_not_lost() -> None:
    deltas = [Delta(text="a"), Delta(calls=(CallDelta(0, "c", "look", "{}"),)), Delta(text="b")]
    assert [item["type"] for item in finished(deltas)[1]] == ["message", "function_call", "message"]


def test_a_refusal_is_a_part_of_the_message() -> None:
    events, (item,) = finished([Delta(text="I "), Delta(refusal="won't")])
    assert [part["type"] for part in item["content"]] == ["output_text", "refusal"]
    assert [event["content_index"] for event in events if event["type"].endswith(".delta")] == [0, 1]


def test_a_name_that_comes_late_opens_the_call() -> None:
    deltas = [Delta(calls=(CallDelta(0, "c", None, '{"a"'),)), Delta(calls=(CallDelta(0, None, "look", ": 1}"),))]
    (item,) = finished(deltas)[1]
    assert (item["name"], item["call_id"], item["arguments"]) == ("look", "c", '{"a": 1}')


def test_a_call_without_a_name_is_told_all_the_same() -> None:
    (item,) = finished([Delta(calls=(CallDelta(0, "c", None, "{}"),))])[1]
    assert (item["type"], item["name"], item["arguments"]) == ("function_call", "", "{}")


def test_numbers_go_up_over_all_events_and_the_id_stays() -> None:
    stream = ResponseStream(About(ID, 1, "m", {}, store=True))
    frames = [*stream.begin(), *stream.chunks([Delta(text="a"), Delta(text="b")])]
    closing, body = stream.finish(Answer(0, "ab", "stop"), {}, 2)
    frames += [*closing, *stream.terminal(body)]
    events = [json.loads(frame.split(b"data: ")[1]) for frame in frames]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert {event["response"]["id"] for event in events if "response" in event} == {ID}


def test_a_failed_response_keeps_what_there_is_of_it() -> None:
    stream = ResponseStream(About(ID, 1, "m", {}, store=True))
    stream.chunks([Delta(text="a")])
    body = stream.failed(EngineError("The engine broke."))
    assert body["error"] == {"code": "server_error", "message": "The engine broke."}
    assert body["output"][0]["content"][0]["text"] == "a"
    assert body["output"][0]["status"] == "incomplete"


def test_an_items_id_says_whose_it_is() -> None:
    name = item_id("message", ID, 3)
    assert owner_of(name) == ID
    assert owner_of("msg_of_somebody_else") is None
    assert owner_of("") is None


def test_instructions_come_first_in_the_system_run() -> None:
    items = conversation_items(
        [{"type": "message", "role": "developer", "content": "b"}, {"type": "message", "role": "user", "content": "c"}],
        "a",
    )
    system, rest = leading_system("a", items)
    assert [message.role for message in system] == ["system", "developer"]
    assert len(rest) == 1


def test_nothing_to_answer_is_refused() -> None:
    with pytest.raises(BadRequest) as caught:
        conversation_items([{"type": "reasoning", "summary": [], "encrypted_content": "x"}], None)
    assert caught.value.param == "input"


@given(st.data(), TEXT, TEXT, CALLS)
def test_what_is_carried_is_in_the_first_item_and_changes_nothing_else(
    data: st.DataObject, text: str, reasoning: str, calls: list[tuple[str, str]]
) -> None:
    made = tuple(ToolCall(f"c{place}", *call) for place, call in enumerate(calls))
    deltas = streamed(data, Answer(0, text, "stop", reasoning, calls=made))
    plain = finished(deltas)[1]
    events, items = finished(deltas, "sealed")
    first, *rest = items
    assert (first["type"], first["encrypted_content"]) == ("reasoning", "sealed")
    assert not any("encrypted_content" in item for item in rest)
    assert [item["type"] for item in rest] == [item["type"] for item in plain if item["type"] != "reasoning"]
    assert first["summary"] == []
    assert first.get("content") == next((item["content"] for item in plain if item["type"] == "reasoning"), None)
    told = [(event["output_index"], event["item"]) for event in events if event["type"].endswith("item.done")]
    assert told == list(enumerate(items))


def test_thoughts_that_come_later_do_not_carry_it_again() -> None:
    deltas = [Delta(text="a"), Delta(reasoning="hm"), Delta(text="b")]
    items = finished(deltas, "sealed")[1]
    assert [item.get("encrypted_content") for item in items] == ["sealed", None, None, None]
