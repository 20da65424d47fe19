"""Views and items as the messages engines read."""

from __future__ import annotations

from typing import Any

import pytest

from macaron.conversation import Item, Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from macaron.engine.messages import messages_from_items
from macaron.hcp import Loaded
from macaron.mol.prompt import question_messages, view_messages
from macaron.mol.route import Question
from macaron.mol.view import Head, View
from tests.mol.heart import Heart, InstantEngine, answering, result, said, user

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
CALL = ToolCall("c1", "look", '{"a": 1}')
WIRE_CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}


def head(*system: Message, identity: str = "You are L1.") -> View:
    return View(Head(identity, system, ()), ((user("hi"),),))


def system(text: str, role: Any = "system") -> Message:
    return Message(role, (Text(text),))


def test_identity_and_system_run_are_one_message_or_one_each() -> None:
    view = head(system("Be brief."), system("Be kind.", "developer"))
    assert view_messages(view)[:-1] == [{"role": "system", "content": "You are L1.\n\nBe brief.\n\nBe kind."}]
    assert view_messages(view, merge_system=False)[:-1] == [
        {"role": "system", "content": "You are L1."},
        {"role": "system", "content": "Be brief."},
        {"role": "system", "content": "Be kind."},
    ]


def test_a_system_message_with_an_image_is_left_as_it_is() -> None:
    picture = Message("system", (Text("like this"), Media("image_url", IMAGE)))
    assert view_messages(head(picture))[1]["content"] == [{"type": "text", "text": "like this"}, IMAGE]


def test_without_identity_and_system_run_there_is_no_system_message() -> None:
    assert view_messages(head(identity="")) == [{"role": "user", "content": "hi"}]
    assert view_messages(head(identity=""), merge_system=False) == [{"role": "user", "content": "hi"}]


def test_white_space_goes_to_the_engine_as_it_was_sent() -> None:
    assert messages_from_items([user(" a \n\n b ")]) == [{"role": "user", "content": " a \n\n b "}]


def test_text_and_calls_of_one_answer_are_one_message() -> None:
    assert messages_from_items([said("let me see"), CALL, ToolCall("c2", "go", "{}")]) == [
        {
            "role": "assistant",
            "content": "let me see",
            "tool_calls": [WIRE_CALL, {"id": "c2", "type": "function", "function": {"name": "go", "arguments": "{}"}}],
        }
    ]


def test_a_call_without_text_has_no_content() -> None:
    assert messages_from_items([user("q"), CALL]) == [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [WIRE_CALL]},
    ]


def test_a_custom_call_keeps_its_input() -> None:
    (message,) = messages_from_items([ToolCall("c", "edit", "any text", "custom")])
    assert message["tool_calls"] == [{"id": "c", "type": "custom", "custom": {"name": "edit", "input": "any text"}}]


def test_results_name_their_calls() -> None:
    items = [result("c1", "rain"), ToolResult("c2", (Text("see"), Media("image_url", IMAGE)))]
    assert messages_from_items(items) == [
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "see"}, IMAGE]},
    ]


def test_fields_for_the_engine_are_passed_on() -> None:
    assert messages_from_items([Message("user", (Text("a"),), {"name": "ann"})]) == [
        {"role": "user", "content": "a", "name": "ann"}
    ]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        pytest.param([said("a")], {"content": "a"}, id="text"),
        pytest.param([said("a"), CALL], {"content": "a", "tool_calls": [WIRE_CALL]}, id="text and call"),
        pytest.param([CALL], {"content": None, "tool_calls": [WIRE_CALL]}, id="call"),
    ],
)
def test_reasoning_is_a_field_of_what_it_led_to_or_left_out(items: list[Item], message: dict[str, Any]) -> None:
    thought = [Reasoning("hm"), *items]
    assert messages_from_items(thought) == [{"role": "assistant", **message}]
    assert messages_from_items(thought, reasoning=True) == [{"role": "assistant", **message, "reasoning_content": "hm"}]


def test_reasoning_alone_stays_a_message_before_what_somebody_else_says() -> None:
    assert messages_from_items([Reasoning("hm"), user("q")], reasoning=True) == [
        {"role": "assistant", "content": None, "reasoning_content": "hm"},
        {"role": "user", "content": "q"},
    ]


def test_no_thought_is_lost_where_two_follow_each_other() -> None:
    (message,) = messages_from_items([Reasoning("one"), Reasoning("two"), said("a")], reasoning=True)
    assert message == {"role": "assistant", "content": "a", "reasoning_content": "one\ntwo"}


def test_items_of_unknown_kinds_are_not_shown() -> None:
    assert messages_from_items([user("a"), Opaque("web_search_call", {"x": 1})]) == [{"role": "user", "content": "a"}]


def test_a_question_has_a_system_message_only_where_it_has_an_instruction_first() -> None:
    assert question_messages(Question("pick", "q")) == [
        {"role": "system", "content": "pick"},
        {"role": "user", "content": "q"},
    ]
    assert question_messages(Question("", "q")) == [{"role": "user", "content": "q"}]


async def test_a_specialist_sees_its_own_thoughts_where_the_profile_says_so(loaded: Loaded, thinking: Loaded) -> None:
    for profile, seen in ((loaded, None), (thinking, "hm")):
        heart = Heart(profile, InstantEngine(lambda _: "L1", lambda _: answering("a", reasoning="hm")))
        await heart.turn([user("q")])
        await heart.turn([user("q"), said("a"), user("r")])
        assert heart.engine.last("answer").messages[2].get("reasoning_content") == seen


async def test_another_head_sees_no_stored_thoughts(thinking: Loaded) -> None:
    heart = Heart(thinking, InstantEngine(lambda _: "L1", lambda _: answering("a", reasoning="hm")))
    await heart.turn([user("q")])
    await heart.turn([user("q"), said("a"), user("r")], system=(system("another head"),))
    shown = heart.engine.last("answer").messages
    assert shown[2] == {"role": "assistant", "content": "a"}
