"""Messages answers, whole and streamed, and that they come back as what they were."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.conversation import Answer, CallDelta, Delta, Hop, ToolCall, Usage
from macaron.errors import Busy, ContextOverflow, EngineError, NotFound, TooLarge, Unauthorized, Unavailable
from macaron.mol.identity import chain
from macaron.wire.messages import messages_request
from macaron.wire.messages_answer import message, stop_reason, usage_object
from macaron.wire.messages_error import anthropic_error
from macaron.wire.messages_stream import MessagesStream
from tests.wire.messages_events import events_of, message_of

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(), JSON_VALUES, max_size=3).map(json.dumps)
ARGUMENTS = OBJECTS | st.text() | st.sampled_from(["", " ", "{", "[1]", '"x"', '{"a": 1.0}', '{"a": NaN}', "null"])
NAMES = st.text(min_size=1, max_size=8)
CALLS = st.lists(st.builds(ToolCall, NAMES, NAMES, ARGUMENTS), max_size=3).map(tuple)
ANSWERS = st.builds(Answer, st.just(0), st.text(), st.just("stop"), st.text(), st.just(""), CALLS)
SENT = {"model": "m", "max_tokens": 8}


def streamed(deltas: list[list[Delta]], answer: Answer, *, thinking: bool = True) -> dict[str, Any]:
    stream = MessagesStream("msg_1", "m", thinking=thinking)
    data = b"".join(stream.chunks(batch) for batch in deltas)
    return message_of(events_of(data + stream.finish(answer, Usage(), ())))


def answer_of(*calls: ToolCall, text: str = "", finish: str = "stop", **more: Any) -> Answer:
    return Answer(0, text, finish, calls=calls, **more)


@given(ANSWERS)
def test_an_answer_that_is_sent_back_is_the_same_visible_history(answer: Answer) -> None:
    body = json.loads(message("msg_1", "m", answer, {}, thinking=True))
    # A client whose numbers are all of one kind writes whole ones without a fraction.
    back = {"role": "assistant", "content": _rewritten(body["content"])}
    messages = [{"role": "user", "content": "hi"}, back, {"role": "user", "content": "more"}]
    items = messages_request(json.dumps({**SENT, "messages": messages}).encode()).items
    assert chain(items[1:-1])[-1] == chain(answer.items())[-1]


def _rewritten(value: Any) -> Any:
    match value:
        case float() if value.is_integer() and abs(value) <= 2**53:
            return int(value)
        case list():
            return [_rewritten(item) for item in value]
        case dict():
            return {key: _rewritten(item) for key, item in value.items()}
        case _:
            return value


@st.composite
def pieces_of(draw: st.DrawFn) -> tuple[list[list[Delta]], Answer]:
    """An answer, and its deltas in any order that keeps each block's own, in any batches."""
    answer = draw(ANSWERS)
    queues: list[list[Delta]] = [[Delta(text=text) for text in _cut(draw, answer.text)]]
    queues.append([Delta(reasoning=text) for text in _cut(draw, answer.reasoning)])
    for index, call in enumerate(answer.calls):
        begin = Delta(calls=(CallDelta(index, call.call_id, call.name),))
        queues.append(
            [begin, *(Delta(calls=(CallDelta(index, arguments=text),)) for text in _cut(draw, call.arguments))]
        )
    batches: list[list[Delta]] = [[]]
    while any(queues):
        batches[-1].append(draw(st.sampled_from([queue for queue in queues if queue])).pop(0))
        if draw(st.booleans()):
            batches.append([])
    return [batch for batch in batches if batch], answer


def _cut(draw: st.DrawFn, text: str) -> list[str]:
    at = draw(st.integers(0, len(text)))
    return [piece for piece in (text[:at], text[at:]) if piece]


@given(pieces_of())
def test_a_stream_loses_nothing_however_its_pieces_are_mixed(made: tuple[list[list[Delta]], Answer]) -> None:
    deltas, answer = made
    content = streamed(deltas, answer)["content"]
    assert "".join(block["text"] for block in content if block["type"] == "text") == answer.text
    assert "".join(block["thinking"] for block in content if block["type"] == "thinking") == answer.reasoning
    calls = {(block["id"], block["name"], block["input"]) for block in content if block["type"] == "tool_use"}
    assert calls == {(call.call_id, call.name, call.arguments) for call in answer.calls}
    assert sum(block["type"] == "tool_use" for block in content) == len(answer.calls)


def test_a_stream_without_a_delta_is_whole_all_the_same() -> None:
    made = streamed([], answer_of())
    assert (made["content"], made["stop_reason"], made["id"]) == ([], "end_turn", "msg_1")


def test_text_is_streamed_as_it_comes() -> None:
    stream = MessagesStream("msg_1", "m", thinking=False)
    first = events_of(stream.chunks([Delta(text="one")]))
    second = events_of(stream.chunks([Delta(text=" two")]))
    assert [event["type"] for event in first] == [
        "message_start", "ping", "content_block_start", "content_block_delta",
    ]  # fmt: skip
    assert second == [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " two"}}]


def test_arguments_are_streamed_and_a_second_call_follows_when_they_are_whole() -> None:
    stream = MessagesStream("msg_1", "m", thinking=False)
    stream.chunks([Delta(calls=(CallDelta(0, "c0", "a"),))])
    piece = events_of(stream.chunks([Delta(calls=(CallDelta(0, arguments='{"x":1}'),))]))
    second = events_of(stream.chunks([Delta(calls=(CallDelta(1, "c1", "b", '{"y"'),))]))
    assert [event["delta"]["partial_json"] for event in piece] == ['{"x":1}']
    assert [event["type"] for event in second] == ["content_block_stop", "content_block_start", "content_block_delta"]
    assert second[1]["content_block"] == {"type": "tool_use", "id": "c1", "name": "b", "input": {}}


def test_thoughts_are_left_out_where_they_were_not_asked_for() -> None:
    answer = answer_of(text="4", reasoning="2+2")
    deltas = [[Delta(reasoning="2+2")], [Delta(text="4")]]
    assert [block["type"] for block in streamed(deltas, answer, thinking=False)["content"]] == ["text"]
    assert [block["type"] for block in json.loads(message("i", "m", answer, {}, thinking=False))["content"]] == ["text"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (answer_of(text="x"), "end_turn"),
        (answer_of(text="x", finish="length"), "max_tokens"),
        (answer_of(ToolCall("c", "f", "{}"), finish="tool_calls"), "tool_use"),
        (answer_of(ToolCall("c", "f", "{}")), "tool_use"),
        (answer_of(text="x", finish="content_filter"), "refusal"),
        (answer_of(refusal="no"), "refusal"),
        (answer_of(text="x", finish="something_new"), "end_turn"),
    ],
)
def test_stop_reasons(answer: Answer, reason: str) -> None:
    assert stop_reason(answer) == reason


def test_cached_tokens_are_counted_apart() -> None:
    usage = usage_object(Usage(100, 5, 80), [Hop("route", "L0", "r", 0.0, 0.1, usage=Usage(30, 1))])
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]) == (20, 80, 5)
    assert usage["hops"] == {"route": {"input_tokens": 30, "output_tokens": 1}}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ContextOverflow("9000 tokens"), "invalid_request_error"),
        (Unauthorized("no key"), "authentication_error"),
        (NotFound("no model"), "not_found_error"),
        (TooLarge("9 MB"), "request_too_large"),
        (Busy("full"), "rate_limit_error"),
        (Unavailable("full"), "overloaded_error"),
        (EngineError("broken"), "api_error"),
    ],
)
def test_errors_have_the_types_of_their_statuses(error: Any, kind: str) -> None:
    assert anthropic_error(error)["type"] == "error"
    assert anthropic_error(error)["error"]["type"] == kind


def test_an_overflow_is_said_in_the_words_upon_which_clients_compact() -> None:
    assert anthropic_error(ContextOverflow("9000 of 8192"))["error"]["message"] == "prompt is too long: 9000 of 8192"
