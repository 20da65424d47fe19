from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.conversation import AnswerEvent, CallDelta, Delta, Finish, Usage
from macaron.engine.dialect import EventParser, encode_body, events_from_completion
from macaron.errors import BadRequest, ContextOverflow, EngineError, Unavailable

DONE = b"data: [DONE]\n\n"


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def piece(delta: dict[str, Any], *, index: int | None = 0, finish: str | None = None, **more: Any) -> bytes:
    return event({"choices": [{"index": index, "delta": delta, "finish_reason": finish, **more}]})


def text(value: str) -> bytes:
    return piece({"content": value})


STOP = piece({}, finish="stop")
WHOLE = (
    text("hé") + text("llo 你好") + STOP + event({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
)
EXPECTED: list[AnswerEvent] = [Delta(text="hé"), Delta(text="llo 你好"), Finish("stop"), Usage(3, 2)]


def parsed(*pieces: bytes, parser: EventParser | None = None) -> list[AnswerEvent]:
    parser = parser or EventParser()
    events: list[AnswerEvent] = []
    for data in pieces:
        events += parser.feed(data)
    return events + parser.finish()


def calls(events: Sequence[AnswerEvent]) -> list[CallDelta]:
    return [call for item in events if isinstance(item, Delta) for call in item.calls]


def test_events_that_arrive_together_come_back_together() -> None:
    assert EventParser().feed(WHOLE + DONE) == EXPECTED


@given(st.data())
def test_any_cut_of_the_bytes_gives_the_same_events(data: st.DataObject) -> None:
    stream = b": hello\r\n\r\nevent: message\r\nid: 7\r\n" + WHOLE.replace(b"\n", b"\r\n") + DONE
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    assert parsed(*(stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True))) == EXPECTED


def test_single_bytes_with_lf_and_crlf_give_the_same_events() -> None:
    stream = WHOLE + DONE
    assert parsed(*(stream[at : at + 1] for at in range(len(stream)))) == EXPECTED
    assert parsed(*(bytes([byte]) for byte in stream.replace(b"\n", b"\r\n"))) == EXPECTED


def test_data_over_several_lines_is_one_event() -> None:
    assert parsed(b'data: {"choices":\ndata: [{"index":0,\ndata:"delta":{"content":"x"}}]}\n\n', STOP) == [
        Delta(text="x"),
        Finish("stop"),
    ]


def test_events_that_arrive_one_by_one_are_given_one_by_one() -> None:
    parser = EventParser()
    assert [parser.feed(alone) for alone in (text("a"), text("b"), STOP)] == [
        [Delta(text="a")],
        [Delta(text="b")],
        [Finish("stop")],
    ]


@pytest.mark.parametrize("begun", [b'data: {"choices":\n', b'data: {"choices":\nda'], ids=["data", "line"])
def test_a_piece_that_looks_like_an_event_ends_the_event_that_was_begun(begun: bytes) -> None:
    whole = b'data: {"choices":\ndata: [{"delta":{"content":"x"}}]}\n\n'
    assert parsed(begun, whole[len(begun) :], STOP) == [Delta(text="x"), Finish("stop")]


@pytest.mark.parametrize(
    "quiet",
    [b": ping\n\n", b"\n\n", b"data:\n\n", b"data: \r\n\r\n", b"retry: 10\n\n", event({"choices": []}), event({}),
     event({"choices": None}), piece({"role": "assistant", "content": None}), piece({"content": ""})],
)  # fmt: skip
def test_heartbeats_and_empty_chunks_say_nothing(quiet: bytes) -> None:
    assert EventParser().feed(quiet) == []
    assert parsed(quiet, text("a"), quiet, STOP, quiet, DONE) == [Delta(text="a"), Finish("stop")]


def test_usage_comes_once_and_last_even_where_every_chunk_carries_it() -> None:
    def counted(data: dict[str, Any], completion: int) -> bytes:
        return event({**data, "usage": {"prompt_tokens": 9, "completion_tokens": completion}})

    first = counted({"choices": [{"index": 0, "delta": {"content": "a"}}]}, 1)
    last = counted({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, 2)
    assert parsed(first, last, DONE) == [Delta(text="a"), Finish("stop"), Usage(9, 2)]


def test_details_of_the_usage_are_kept() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    assert parsed(STOP, event({"choices": [], "usage": usage}), DONE)[-1] == Usage(10, 5, 8, 3)


def test_null_details_of_the_usage_count_as_zero() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": None, "prompt_tokens_details": None, "reasoning_tokens": 4}
    assert parsed(STOP, event({"usage": usage}), DONE)[-1] == Usage(1, 0, 0, 4)


def test_impossible_counts_are_bounded() -> None:
    usage = {"prompt_tokens": -5, "completion_tokens": 10**40}
    assert parsed(STOP, event({"usage": usage}), DONE)[-1] == Usage(0, 2**31)


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_is_read_under_both_names(field: str) -> None:
    assert EventParser().feed(piece({field: "hm"})) == [Delta(reasoning="hm")]


def test_reasoning_sent_under_both_names_counts_once() -> None:
    assert EventParser().feed(piece({"reasoning": "hm", "reasoning_content": "hm"})) == [Delta(reasoning="hm")]


def test_a_refusal_and_logprobs_are_kept() -> None:
    logprobs = {"content": [{"token": "a", "logprob": -0.1, "top_logprobs": []}]}
    data = piece({"content": "a"}, logprobs=logprobs) + piece({"refusal": "no"})
    assert EventParser().feed(data) == [Delta(text="a", logprobs=logprobs), Delta(refusal="no")]


def test_content_as_parts_is_text_and_thinking() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    data = piece({"content": [thinking, {"type": "text", "text": "a"}, "b"]})
    assert EventParser().feed(data) == [Delta(text="ab", reasoning="hm")]


def test_a_content_part_that_is_not_understood_is_an_error() -> None:
    with pytest.raises(EngineError, match="'audio'"):
        EventParser().feed(piece({"content": [{"type": "audio"}]}))


def test_choices_are_kept_apart() -> None:
    stream = piece({"content": "a"}, index=1) + piece({"content": "b"}) + piece({}, index=1, finish="length") + STOP
    assert parsed(stream, parser=EventParser(choices=2)) == [
        Delta(1, "a"), Delta(0, "b"), Finish("length", 1), Finish("stop", 0)
    ]  # fmt: skip


def test_text_beside_the_finish_reason_comes_before_it() -> None:
    assert parsed(piece({"content": "a"}, finish="length")) == [Delta(text="a"), Finish("length")]


def test_a_finish_reason_sent_twice_counts_once() -> None:
    assert parsed(STOP, STOP, DONE) == [Finish("stop")]


def test_text_after_the_end_of_a_choice_is_an_error() -> None:
    with pytest.raises(EngineError, match="after its end"):
        parsed(STOP, text("more"))


def call(index: int | None = None, id: str | None = None, name: str | None = None, arguments: Any = None) -> bytes:
    return piece({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]})


def test_a_call_streams_its_arguments_and_names_itself_once() -> None:
    stream = call(0, "c1", "f", "") + call(0, None, None, '{"a"') + call(0, None, None, ":1}")
    assert calls(EventParser().feed(stream)) == [
        CallDelta(0, "c1", "f"), CallDelta(0, arguments='{"a"'), CallDelta(0, arguments=":1}")
    ]  # fmt: skip


def test_id_and_name_repeated_with_every_piece_are_given_once() -> None:
    stream = call(0, "c1", "f", "{") + call(0, "c1", "f", "}")
    assert calls(EventParser().feed(stream)) == [CallDelta(0, "c1", "f", "{"), CallDelta(0, arguments="}")]


def test_a_new_id_without_a_name_continues_the_call() -> None:
    stream = call(0, "c1", "f", "{") + call(0, "random", None, "}")
    assert calls(EventParser().feed(stream))[1] == CallDelta(0, arguments="}")


def test_calls_without_an_index_are_told_apart_by_their_ids() -> None:
    stream = call(None, "c1", "f", "{") + call(None, None, None, "}") + call(None, "c2", "g", "{}")
    assert calls(EventParser().feed(stream)) == [
        CallDelta(0, "c1", "f", "{"), CallDelta(0, arguments="}"), CallDelta(1, "c2", "g", "{}")
    ]  # fmt: skip


def test_calls_that_all_have_index_zero_are_told_apart_by_id_and_name() -> None:
    stream = call(0, "c1", "f", "{}") + call(0, "c2", "g", "{}")
    assert calls(EventParser().feed(stream)) == [CallDelta(0, "c1", "f", "{}"), CallDelta(1, "c2", "g", "{}")]


def test_a_call_without_an_id_gets_one_and_null_arguments_are_empty() -> None:
    first, second = calls(EventParser().feed(call(0, None, "f", None) + call(1, "", "g", None)))
    assert first.call_id
    assert second.call_id
    assert first.call_id != second.call_id
    assert (first.name, first.arguments, second.index) == ("f", "", 1)


def test_arguments_that_are_an_object_become_json() -> None:
    assert calls(EventParser().feed(call(0, "c", "f", {"a": 1})))[0].arguments == '{"a":1}'


def test_the_calls_of_one_answer_are_bounded() -> None:
    parser = EventParser()
    parser.feed(b"".join(call(index, f"c{index}", "f", "") for index in range(1024)))
    with pytest.raises(EngineError, match="1024 tool calls"):
        parser.feed(call(1024, "one more", "f", ""))


@pytest.mark.parametrize("index", [-1, "0"])
def test_a_choice_with_an_impossible_index_is_an_error(index: Any) -> None:
    with pytest.raises(EngineError):
        EventParser().feed(piece({"content": "a"}, index=index))


def test_the_choices_of_one_answer_are_bounded() -> None:
    parser = EventParser()
    parser.feed(b"".join(piece({"content": "a"}, index=index) for index in range(128)))
    with pytest.raises(EngineError, match="choice 128"):
        parser.feed(piece({"content": "a"}, index=128))


@pytest.mark.parametrize(
    "corrupt",
    [
        b'{"choices":[{"delta":{"content":"a"',
        b"oops",
        b'{"choices":[{"delta":{"content":7}}]}',
        b'{"choices":{}}',
        b'{"choices":[{"delta":{"content":"\xff"}}]}',
        b"[" * 9000,
        b'{"choices":[{"delta":{"content":"a"}}]} x',
    ],
)
def test_a_corrupt_chunk_is_an_error_and_not_skipped(corrupt: bytes) -> None:
    with pytest.raises(EngineError) as caught:
        EventParser().feed(b"data: " + corrupt + b"\n\n")
    assert caught.value.code == "corrupt_engine_answer"


def test_what_came_before_a_corrupt_chunk_is_given_and_then_the_error() -> None:
    parser = EventParser()
    assert parser.feed(text("a") + b"data: oops\n\n" + text("b")) == [Delta(text="a")]
    assert parser.ended
    with pytest.raises(EngineError, match="corrupt"):
        parser.feed(text("c"))
    with pytest.raises(EngineError, match="corrupt"):
        parser.finish()


@pytest.mark.parametrize("stream", [b"", text("a"), text("a") + b"data: {", text("a") + DONE, DONE, STOP[:-20]])
def test_a_stream_that_breaks_off_is_an_error(stream: bytes) -> None:
    with pytest.raises(EngineError):
        parsed(stream)


def test_an_end_without_done_is_complete_once_every_choice_has_ended() -> None:
    assert parsed(text("a"), STOP) == [Delta(text="a"), Finish("stop")]
    with pytest.raises(EngineError, match="1 of 2"):
        parsed(STOP, parser=EventParser(choices=2))


def test_fewer_choices_than_asked_for_are_complete_where_the_engine_says_done() -> None:
    assert parsed(STOP, DONE, parser=EventParser(choices=2)) == [Finish("stop")]


def test_a_last_event_without_its_blank_line_counts() -> None:
    assert parsed(text("a"), STOP.rstrip(b"\n")) == [Delta(text="a"), Finish("stop")]


def test_a_usage_that_broke_off_spoils_nothing() -> None:
    assert parsed(STOP, b'data: {"usage": {"prompt_tok') == [Finish("stop")]


def test_nothing_counts_after_done() -> None:
    parser = EventParser()
    assert parser.feed(STOP + DONE + b"data: oops\n\n") == [Finish("stop")]
    assert parser.ended
    assert parser.feed(text("a")) == []
    assert parser.finish() == []


@pytest.mark.parametrize("reason", ["abort", "error"])
def test_an_engine_that_gives_up_has_not_finished(reason: str) -> None:
    with pytest.raises(EngineError, match=reason):
        parsed(piece({}, finish=reason))


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        ({"error": {"message": "boom", "code": 500}}, EngineError),
        ({"error": "boom"}, EngineError),
        ({"error": {"message": "busy", "code": 503}}, Unavailable),
        ({"error": {"message": "bad tools", "type": "invalid_request_error"}}, BadRequest),
        ({"error": {"message": "bad tools", "code": "400"}}, BadRequest),
        ({"object": "error", "message": "bad tools", "type": "BadRequestError", "code": 400}, BadRequest),
        ({"error": {"message": "no", "type": "exceed_context_size_error", "code": 400}}, ContextOverflow),
    ],
)
def test_an_error_inside_a_stream_is_told_apart_by_its_content(payload: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        EventParser().feed(event(payload))
    assert type(caught.value) is kind


def test_an_event_larger_than_the_limit_is_an_error_before_it_is_complete() -> None:
    parser = EventParser(limit=1000)
    parser.feed(b"data: " + b"x" * 900)
    with pytest.raises(EngineError, match="1000 bytes"):
        parser.feed(b"x" * 100)


def test_an_event_that_comes_whole_may_have_the_size_of_the_limit_and_no_more() -> None:
    data = text("a" * 1000)
    size = len(data) - len(b"data:\n\n")
    assert EventParser(limit=size).feed(data) == [Delta(text="a" * 1000)]
    with pytest.raises(EngineError, match=f"{size - 1} bytes"):
        EventParser(limit=size - 1).feed(data)


def test_many_lines_of_one_event_count_against_the_limit_together() -> None:
    with pytest.raises(EngineError, match="1000 bytes"):
        EventParser(limit=1000).feed(b"data: 0123456789\n" * 100)


def test_a_long_stream_of_small_events_is_within_the_limit() -> None:
    parser, stream = EventParser(limit=1000), text("a") * 100
    events = [event for at in range(0, len(stream), 50) for event in parser.feed(stream[at : at + 50])]
    assert events == [Delta(text="a")] * 100


def completion(*choices: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"object": "chat.completion", "choices": choices, **more}).encode()


def test_a_whole_answer_gives_every_choice_and_the_usage() -> None:
    tool = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = completion(
        {"index": 0, "message": {"role": "assistant", "content": "a", "reasoning": None}, "finish_reason": "stop"},
        {"index": 1, "message": {"content": None, "tool_calls": [tool]}, "finish_reason": "tool_calls"},
        usage={"prompt_tokens": 1, "completion_tokens": 2},
    )
    assert events_from_completion(body) == [
        Delta(0, "a"),
        Finish("stop", 0),
        Delta(1, calls=(CallDelta(0, "c1", "f", "{}"),)),
        Finish("tool_calls", 1),
        Usage(1, 2),
    ]


def test_an_empty_answer_that_has_ended_is_an_answer() -> None:
    assert events_from_completion(completion({"message": {"content": ""}, "finish_reason": "stop"})) == [Finish("stop")]


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", completion(), completion({"message": {"content": "a"}, "finish_reason": None}), b'{"a":1}'],
)
def test_a_whole_answer_that_is_none_is_an_error(body: bytes) -> None:
    with pytest.raises(EngineError):
        events_from_completion(body)


def test_an_error_with_status_200_is_an_error() -> None:
    with pytest.raises(BadRequest, match="bad tools"):
        events_from_completion(json.dumps({"error": {"message": "bad tools", "code": 400}}).encode())


def test_a_body_is_encoded_as_json() -> None:
    assert json.loads(encode_body({"messages": [{"content": "hé"}], "n": 1})) == {
        "messages": [{"content": "hé"}],
        "n": 1,
    }


def test_a_body_json_cannot_express_is_the_clients_fault() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    for value in ("\ud800", deep):
        with pytest.raises(BadRequest):
            encode_body({"a": value})
