"""Chat Completions answers: chunks and whole ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macaron.conversation import Answer, AnswerEvent, CallDelta, Delta, Finish, Hop, ToolCall, Usage
from macaron.errors import EngineError
from macaron.mol.collect import Collector
from macaron.wire.chat_answer import ChatStream, coalesce, completion, usage_object


def stream(**options: Any) -> ChatStream:
    return ChatStream("chatcmpl-1", 1_700_000_000, "model", **options)


def decoded(data: bytes) -> list[Any]:
    """The chunks of some bytes of a stream, `[DONE]` left out."""
    blocks = data.decode().split("\n\n")
    assert blocks.pop() == ""
    payloads = [block.removeprefix("data: ") for block in blocks]
    return [json.loads(payload) for payload in payloads if payload != "[DONE]"]


def deltas(data: bytes) -> list[dict[str, Any]]:
    return [chunk["choices"][0]["delta"] for chunk in decoded(data)]


ROLE = {"role": "assistant", "content": ""}


def test_a_choice_begins_with_one_role_delta() -> None:
    chat = stream()
    data = chat.chunks([Delta(text="a")]) + chat.chunks([Delta(text="b")]) + chat.chunks([Delta(1, text="c")])
    assert deltas(data) == [ROLE, {"content": "a"}, {"content": "b"}, ROLE, {"content": "c"}]
    assert [chunk["choices"][0]["index"] for chunk in decoded(data)] == [0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    "options", [{}, {"include_usage": True}, {"metadata": {"a": "b"}}], ids=["", "usage", "metadata"]
)
def test_the_chunks_of_a_choice_differ_only_in_what_they_say(options: dict[str, Any]) -> None:
    chat = stream(**options)
    role, first = decoded(chat.chunks([Delta(2, text="a")]))
    [later] = decoded(chat.chunks([Delta(2, text='"\n\u00e9')]))
    assert (first["choices"][0]["delta"], later["choices"][0]["delta"]) == ({"content": "a"}, {"content": '"\n\u00e9'})
    for chunk in (role, first, later):
        del chunk["choices"][0]["delta"]
    assert role == first == later


def test_every_chunk_has_the_id_the_time_and_the_model_of_its_answer() -> None:
    chat = stream(metadata={"a": "b"})
    for chunk in decoded(chat.chunks([Delta(text="a")]) + chat.finish([Finish("stop")], {})):
        assert (chunk["id"], chunk["created"], chunk["model"]) == ("chatcmpl-1", 1_700_000_000, "model")
        assert (chunk["object"], chunk["metadata"]) == ("chat.completion.chunk", {"a": "b"})
        assert "usage" not in chunk


def test_an_answer_without_a_word_has_a_role_and_a_finish() -> None:
    chunks = decoded(stream().finish([Finish("stop")], {}))
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [ROLE, {}]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, "stop"]


def test_the_stream_ends_with_done() -> None:
    assert stream().finish([Finish("stop")], {}).endswith(b'"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')


def test_usage_comes_last_without_choices_and_only_where_it_is_wanted() -> None:
    usage = usage_object(Usage(3, 2))
    wanted = decoded(stream(include_usage=True).finish([Finish("stop")], usage))
    assert (wanted[-1]["choices"], wanted[-1]["usage"]) == ([], usage)
    assert [chunk["usage"] for chunk in wanted[:-1]] == [None, None]
    assert all("usage" not in chunk for chunk in decoded(stream().finish([Finish("stop")], usage)))


def test_usage_counts_the_answer_and_says_what_each_hop_cost() -> None:
    hops = [
        Hop("route", "L0", "r", 0.0, 0.0, usage=Usage(10, 1)),
        Hop("answer", "L1", "r", 0.0, 0.0, usage=Usage(20, 5, 4, 3)),
    ]
    assert usage_object(Usage(20, 5, 4, 3), hops) == {
        "prompt_tokens": 20,
        "completion_tokens": 5,
        "total_tokens": 25,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3},
        "hops": {
            "route": {"prompt_tokens": 10, "completion_tokens": 1},
            "answer": {"prompt_tokens": 20, "completion_tokens": 5},
        },
    }


def test_texts_that_arrive_together_are_one_chunk() -> None:
    chat = stream()
    assert deltas(chat.chunks([Delta(text="a"), Delta(text="b"), Delta(1, "c"), Delta(1, "d")])) == [
        ROLE, {"content": "ab"}, ROLE, {"content": "cd"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        Delta(1, text="x"),
        Delta(reasoning="x"),
        Delta(refusal="x"),
        Delta(calls=(CallDelta(0, "c", "f"),)),
        Delta(text="x", logprobs={"content": []}),
    ],
)
def test_only_neighbouring_plain_texts_of_one_choice_are_joined(other: Delta) -> None:
    plain = [Delta(text="a"), other, Delta(text="b")]
    assert coalesce(plain) == plain


def test_reasoning_goes_under_both_of_its_names() -> None:
    assert deltas(stream().chunks([Delta(reasoning="hm")]))[1] == {"reasoning_content": "hm", "reasoning": "hm"}
    message = json.loads(whole([Delta(reasoning="hm", text="a"), Finish("stop")]))["choices"][0]["message"]
    assert (message["reasoning_content"], message["reasoning"], message["content"]) == ("hm", "hm", "a")


def test_a_call_has_its_id_type_and_name_once_and_its_arguments_in_pieces() -> None:
    chat = stream()
    first = chat.chunks([Delta(calls=(CallDelta(0, "c1", "look", '{"a"'),))])
    rest = chat.chunks([Delta(calls=(CallDelta(0, arguments=":1}"),))])
    assert deltas(first)[1:] == [
        {
            "tool_calls": [
                {"index": 0, "function": {"arguments": '{"a"', "name": "look"}, "id": "c1", "type": "function"}
            ]
        }
    ]
    assert deltas(rest) == [{"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}]


def test_logprobs_stand_beside_their_delta_and_are_joined_in_the_whole() -> None:
    pieces = [
        Delta(text="a", logprobs={"content": [{"token": "a"}]}),
        Delta(text="b", logprobs={"content": [{"token": "b"}]}),
    ]
    chunks = decoded(stream().chunks(pieces))
    assert [chunk["choices"][0]["logprobs"] for chunk in chunks] == [None, *(piece.logprobs for piece in pieces)]
    body = json.loads(whole([*pieces, Finish("stop")]))
    assert body["choices"][0]["logprobs"] == {"content": [{"token": "a"}, {"token": "b"}]}


def test_logprobs_without_a_token_are_passed_on_as_they_are() -> None:
    chat = stream()
    chat.chunks([Delta(text="a")])
    [chunk] = decoded(chat.chunks([Delta(text="b", logprobs={})]))
    assert chunk["choices"][0]["logprobs"] == {}


def test_a_refusal_takes_the_place_of_the_content() -> None:
    assert deltas(stream().chunks([Delta(refusal="no")]))[1] == {"refusal": "no"}
    message = json.loads(whole([Delta(refusal="no"), Finish("stop")]))["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == (None, "no")


def test_the_content_of_an_answer_that_only_calls_is_null_and_of_an_empty_one_is_empty() -> None:
    calls = json.loads(whole([Delta(calls=(CallDelta(0, "c", "f", "{}"),)), Finish("tool_calls")]))
    empty = json.loads(whole([Finish("stop")]))
    assert calls["choices"][0]["message"]["content"] is None
    assert empty["choices"][0]["message"] == {"role": "assistant", "content": "", "refusal": None}


def test_a_custom_call_keeps_its_kind() -> None:
    answer = Answer(0, "", "tool_calls", calls=(ToolCall("c", "edit", "any text", "custom"),))
    body = json.loads(completion("id", 0, "model", [answer], {}))
    assert body["choices"][0]["message"]["tool_calls"] == [
        {"id": "c", "type": "custom", "custom": {"name": "edit", "input": "any text"}}
    ]


def test_a_whole_answer_has_its_choices_in_order_and_the_metadata_that_was_asked_for() -> None:
    answers = [Answer(0, "a", "stop"), Answer(1, "b", "length")]
    body = json.loads(completion("id", 7, "model", answers, usage_object(Usage(1, 2)), {"k": "v"}))
    assert [(choice["index"], choice["finish_reason"]) for choice in body["choices"]] == [(0, "stop"), (1, "length")]
    assert (body["object"], body["created"], body["metadata"]) == ("chat.completion", 7, {"k": "v"})
    assert "metadata" not in json.loads(completion("id", 7, "model", answers, {}))


def test_an_error_in_a_stream_is_an_event_a_finish_for_every_choice_and_done() -> None:
    chat = stream()
    chat.chunks([Delta(0, "a"), Delta(1, "b")])
    data = chat.error(EngineError("it broke", code="engine_error"))
    error, *finishes = decoded(data)
    assert error == {"error": {"message": "it broke", "type": "server_error", "param": None, "code": "engine_error"}}
    assert [chunk["choices"][0]["index"] for chunk in finishes] == [0, 1]
    assert {chunk["choices"][0]["finish_reason"] for chunk in finishes} == {"error"}
    assert data.endswith(b"data: [DONE]\n\n")


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LOGPROBS = st.none() | st.builds(lambda token: {"content": [{"token": token, "logprob": -1.0}]}, TEXTS)


@st.composite
def answers(draw: st.DrawFn) -> list[list[AnswerEvent]]:
    """Batches of events of up to three choices, as an engine interleaves them; calls begin before they go on."""
    count = draw(st.integers(1, 3))
    begun: dict[int, int] = dict.fromkeys(range(count), 0)
    events: list[AnswerEvent] = []
    for _ in range(draw(st.integers(0, 12))):
        choice = draw(st.integers(0, count - 1))
        calls = []
        if draw(st.booleans()):
            index = draw(st.integers(0, begun[choice]))
            new = index == begun[choice]
            begun[choice] += new
            call_id, name = (f"call_{index}", draw(TEXTS) or "f") if new else (None, None)
            calls.append(CallDelta(index, call_id, name, draw(TEXTS)))
        events.append(Delta(choice, draw(TEXTS), draw(TEXTS), draw(TEXTS), tuple(calls), draw(LOGPROBS)))
    events += [Finish(draw(st.sampled_from(["stop", "length", "tool_calls"])), choice) for choice in range(count)]
    cuts = sorted(draw(st.sets(st.integers(1, len(events)), max_size=6)) | {0, len(events)})
    return [events[a:b] for a, b in pairwise(cuts)]


def collected(events: Sequence[AnswerEvent]) -> list[Answer]:
    collector = Collector()
    collector.add(events)
    return collector.answers()


def whole(events: Sequence[AnswerEvent]) -> bytes:
    return completion("chatcmpl-1", 1_700_000_000, "model", collected(events), usage_object(Usage()))


def put_together(chunks: Sequence[Any]) -> dict[int, dict[str, Any]]:
    """The choices of a stream as a client assembles them."""
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for piece in chunk["choices"]:
            choice = choices.setdefault(
                piece["index"],
                {"content": "", "refusal": "", "reasoning": "", "calls": {}, "logprobs": [], "finish": []},
            )
            delta = piece["delta"]
            for name in ("content", "refusal", "reasoning"):
                choice[name] += delta.get(name) or ""
            for call in delta.get("tool_calls", ()):
                known = choice["calls"].setdefault(call["index"], {"id": "", "name": "", "arguments": ""})
                known["id"] += call.get("id", "")
                known["name"] += call["function"].get("name", "")
                known["arguments"] += call["function"]["arguments"]
            choice["logprobs"] += (piece["logprobs"] or {}).get("content", [])
            choice["finish"] += [piece["finish_reason"]] if piece["finish_reason"] else []
    return choices


def read(body: bytes) -> dict[int, dict[str, Any]]:
    """The choices of a whole answer in the same form."""
    return {
        choice["index"]: {
            "content": choice["message"]["content"] or "",
            "refusal": choice["message"]["refusal"] or "",
            "reasoning": choice["message"].get("reasoning") or "",
            "calls": {
                index: {"id": call["id"], **call["function"]}
                for index, call in enumerate(choice["message"].get("tool_calls", ()))
            },
            "logprobs": (choice["logprobs"] or {}).get("content", []),
            "finish": [choice["finish_reason"]],
        }
        for choice in json.loads(body)["choices"]
    }


@settings(deadline=None)
@given(answers())
def test_the_chunks_of_a_stream_say_what_the_whole_answer_says(batches: list[list[AnswerEvent]]) -> None:
    chat, collector, data = stream(), Collector(), b""
    for batch in batches:
        pieces = collector.add(batch)
        data += chat.chunks(pieces) if pieces else b""
    finishes = [Finish(answer.finish, answer.choice) for answer in collector.answers()]
    data += chat.finish(finishes, usage_object(Usage()))
    assert put_together(decoded(data)) == read(whole([event for batch in batches for event in batch]))


@settings(deadline=None)
@given(st.lists(st.builds(Delta, st.integers(0, 2), TEXTS, TEXTS), max_size=12))
def test_joining_texts_changes_no_choices_text_or_order(pieces: list[Delta]) -> None:
    for choice in range(3):
        for name in ("text", "reasoning"):
            before = "".join(getattr(piece, name) for piece in pieces if piece.choice == choice)
            after = "".join(getattr(piece, name) for piece in coalesce(pieces) if piece.choice == choice)
            assert before == after
