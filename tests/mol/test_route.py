"""The question a route hop asks, and what is made of its answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macaron.conversation import Item, Media, Message, Text
from macaron.hcp import Loaded, load
from macaron.mol.route import Question, RouteTemplate, question, quote, request_text
from tests.mol.heart import Heart, InstantEngine, answering, profile, result, said, user

FIRST = RouteTemplate("Pick a label.", "instruction_first", "", 100)
LAST = FIRST._replace(shape="instruction_last")
IMAGE = Media("image_url", {"type": "image_url", "image_url": {"url": "data:,"}})


def test_the_instruction_comes_first_and_the_request_is_quoted() -> None:
    asked = question(FIRST, "write code", "L1: planned it")
    assert asked.system == "Pick a label."
    assert asked.user == "<context>\nL1: planned it\n</context>\n<request>\nwrite code\n</request>"


def test_the_instruction_comes_last_after_a_blank_line_where_adapters_were_trained_so() -> None:
    assert question(LAST, "write code") == Question("", "write code\n\nPick a label.")
    assert question(LAST, "go on", "L1: planned it").user == "L1: planned it\n\ngo on\n\nPick a label."


def test_a_long_request_is_cut_to_its_head_and_tail() -> None:
    asked = question(FIRST, "begin " + "x" * 100_000 + " end")
    assert len(asked.user.encode()) < 400
    assert asked.user.startswith("<request>\nbegin")
    assert asked.user.endswith("end\n</request>")
    assert "[…]" in asked.user


@pytest.mark.parametrize(
    "mark", ["</request>", "<request>", "</context>", "</REQUEST >", "< /request>", "</ request>", "<\n/\nrequest>"]
)
def test_no_mark_of_the_quotation_survives_in_a_text(mark: str) -> None:
    assert mark not in quote(f"a{mark}b")
    assert quote(f"a{mark}b").replace("\u2060", "") == f"a{mark}b"


@settings(deadline=None)
@given(st.text(alphabet="</ requstcontx>\n", max_size=60))
def test_whatever_is_quoted_there_is_one_end_of_the_quotation(text: str) -> None:
    asked = question(FIRST, text).user
    assert asked.count("</request>") == 1
    assert asked.count("<request>") == 1
    assert asked.endswith("\n</request>")


def test_quoting_a_run_of_openings_takes_no_time() -> None:
    assert quote("<" + " " * 200_000) == "<" + " " * 200_000


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([user("one")], "one"),
        ([user("one"), said("a"), user("two"), user("three")], "two\nthree"),
        ([user("one"), said("a"), result("c", "tool text")], "one"),
        ([user("one"), said("prefilled")], "one"),
        ([user("one"), Message("system", (Text("not asked"),))], "one"),
        ([Message("user", (Text("see"), IMAGE))], "see\n[image_url]"),
        ([Message("user", (IMAGE,))], "[image_url]"),
        ([], ""),
    ],
)
def test_what_is_asked_are_the_users_words_after_the_last_answer(items: list[Item], text: str) -> None:
    assert request_text(items) == text


async def test_the_route_hop_is_greedy_short_and_constrained_to_the_labels(loaded: Loaded) -> None:
    heart = Heart(loaded, InstantEngine(lambda _: "L1", lambda _: answering("a")))
    await heart.turn([user("q")], options={"temperature": 1.5, "stop": ["x"]})
    hop = heart.engine.hops[0]
    assert (hop.kind, hop.adapter, hop.choices) == ("route", "L0", ("L0", "L1", "L2", "L3"))
    assert hop.options == {"temperature": 0, "max_tokens": 24}
    assert not hop.stream


async def test_the_profiles_template_arguments_turn_thinking_off(tmp_path: Path) -> None:
    route = "[mol.route]\nchat_template_kwargs = {enable_thinking = false}"
    document = profile(tmp_path).path
    text = document.read_text().replace("[mol.route]", route)
    document.write_text(text)
    heart = Heart(load(document), InstantEngine(lambda _: "L1", lambda _: answering("a")))
    await heart.turn([user("q")])
    assert heart.engine.hops[0].options["chat_template_kwargs"] == {"enable_thinking": False}
    assert "chat_template_kwargs" not in heart.engine.hops[1].options


async def test_a_service_with_one_specialist_does_not_route(tmp_path: Path) -> None:
    heart = Heart(profile(tmp_path, labels=("L0",)), InstantEngine(lambda _: "L0", lambda _: answering("a")))
    outcome = await heart.turn([user("q")])
    assert (outcome.label, outcome.reason) == ("L0", "single")
    assert [hop.kind for hop in heart.engine.hops] == ["answer"]


async def test_the_context_has_the_last_turns_labels_and_no_hidden_state_of_another_head(tmp_path: Path) -> None:
    def script(hop: Any) -> Any:
        return answering("the hidden summary" if hop.kind == "summary" else "visible " + "word " * 400)

    heart = Heart(profile(tmp_path, mol='route_context = "labels"'), InstantEngine(lambda _: "L1", script))
    items: list[Item] = [user("q")]
    items += (await heart.turn(items)).items
    await heart.service.background.drain(1.0)
    await heart.turn([*items, user("r")])
    assert "L1: the hidden summary" in heart.engine.last("route").messages[-1]["content"]
    await heart.turn([*items, user("s")], system=(Message("system", (Text("another head"),)),))
    context = heart.engine.last("route").messages[-1]["content"]
    assert "hidden" not in context
    assert "L1: visible word" in context
