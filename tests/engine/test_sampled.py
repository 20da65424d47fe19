"""The tokens of an answer, as engines tell them beside its text."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from msgspec.structs import replace

from macaron.conversation import Delta, Finish, Sampled, Usage
from macaron.engine.dialect import EventParser, events_from_completion
from macaron.engine.link import create_link
from macaron.engine.llamacpp.request import prepare
from macaron.engine.special import SpecialTokens
from macaron.engine.vllm import VllmEngine
from tests.doubles.engine_double import EngineDouble
from tests.engine.hops import answer_hop


def chunk(text: str, logprobs: Any = None, finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish, "logprobs": logprobs}
    top = {name: more.pop(name) for name in list(more) if name == "prompt_token_ids"}
    return b"data: " + json.dumps({"choices": [{**choice, **more}], **top}).encode() + b"\n\n"


def entry(logprob: float, **more: Any) -> dict[str, Any]:
    return {"content": [{"token": "x", "logprob": logprob, **more}]}


VLLM = chunk("a", entry(-0.5), token_ids=[7], prompt_token_ids=[1, 2]) + chunk("b", entry(-1.0), token_ids=[8, 9])
LLAMACPP = chunk("a", entry(-0.5, id=7)) + chunk("b", entry(-1.0, id=8))
END = chunk("", finish="stop")


def test_tokens_come_once_before_the_end_of_their_choice() -> None:
    events = EventParser(sampled=True, logprobs=False).feed(VLLM + END)
    assert events == [Delta(text="a"), Delta(text="b"), Sampled(0, (7, 8, 9), (-0.5, -1.0), (1, 2)), Finish("stop")]


def test_an_id_in_each_entry_is_read_too() -> None:
    events = EventParser(sampled=True, logprobs=False).feed(LLAMACPP + END)
    assert Sampled(0, (7, 8), (-0.5, -1.0)) in events


def test_who_asked_for_log_probabilities_gets_them_all_the_same() -> None:
    first = EventParser(sampled=True).feed(LLAMACPP)[0]
    assert isinstance(first, Delta)
    assert first.logprobs == entry(-0.5, id=7)


def test_who_does_not_record_sees_no_tokens() -> None:
    assert not [event for event in EventParser().feed(VLLM + END) if isinstance(event, Sampled)]


def test_a_whole_answer_tells_its_tokens_too() -> None:
    choice = {"index": 0, "message": {"content": "ab"}, "finish_reason": "stop", "token_ids": [7, 8]}
    body = {"choices": [choice], "prompt_token_ids": [1], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    events = events_from_completion(json.dumps(body).encode(), sampled=True)
    assert events == [Delta(text="ab"), Sampled(0, (7, 8), (), (1,)), Finish("stop"), Usage(1, 2)]


@pytest.mark.parametrize("ids", ["7", [True], [-1], [2**40], {"a": 1}, [[7]]])
def test_ids_that_are_none_count_for_nothing_and_break_no_answer(ids: Any) -> None:
    events = EventParser(sampled=True, logprobs=False).feed(chunk("a", token_ids=ids, prompt_token_ids=ids) + END)
    assert events == [Delta(text="a"), Sampled(), Finish("stop")]


@pytest.mark.parametrize("content", ["x", [None], [{"logprob": "much"}], [{}]])
def test_entries_that_are_none_break_no_answer(content: Any) -> None:
    events = EventParser(sampled=True, logprobs=False).feed(chunk("a", {"content": content}) + END)
    (sampled,) = (event for event in events if isinstance(event, Sampled))
    assert all(map(math.isnan, sampled.logprobs))


async def test_vllm_is_asked_for_tokens_only_where_they_are_wanted() -> None:
    async with EngineDouble(lambda seen: "yes", context_length=8192, adapters=("L2",)) as double:
        engine = VllmEngine(create_link("native", double.origin), base_model="base", special=SpecialTokens(()))
        for sampled in (True, False):
            hop = answer_hop(stream=False)
            events = [event async for batch in engine.answer(replace(hop, sampled=sampled)) for event in batch]
            assert any(isinstance(event, Delta) for event in events)
        await engine.close()
    wanted, plain = (seen.body for seen in double.requests)
    assert (wanted["return_token_ids"], wanted["logprobs"]) == (True, True)
    assert not {"return_token_ids", "logprobs"} & set(plain)


def test_the_embedded_engine_is_asked_for_one_alternative_that_nobody_sees() -> None:
    hop = answer_hop()
    asked = replace(hop, sampled=True)
    prepared = prepare(asked, SpecialTokens(()))
    assert (prepared.fields["logprobs"], prepared.fields["top_logprobs"]) == (True, 1)
    assert (prepared.sampled, prepared.logprobs) == (True, False)
    both = prepare(replace(asked, options={"logprobs": True, "top_logprobs": 5}), SpecialTokens(()))
    assert both.fields["top_logprobs"] == 5
    assert (both.sampled, both.logprobs) == (True, True)
