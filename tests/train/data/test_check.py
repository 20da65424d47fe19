"""What a row must be beyond the types of its fields."""

from __future__ import annotations

from typing import Any

import pytest

from macaron.train.data.check import row_problem
from macaron.train.data.rows import AnyRow
from tests.train.data.making import TOOL, answered, assistant, calling, preference, route, sft, user

LOOP = (user("weather in Rome?"), calling(), answered("sunny"), assistant("It is sunny."))


@pytest.mark.parametrize(
    "row",
    [
        sft("1"),
        sft("1", messages=({"role": "system", "content": "be brief"}, *LOOP), tools=(TOOL,)),
        sft("1", messages=(user("weather?"), calling())),
        route("1", messages=(user("hi"), {**assistant("hello"), "label": "L2"}, user("and now?"))),
        preference("1"),
        preference("1", prompt=LOOP[:1], chosen=LOOP[1:], rejected=(assistant("no idea"),), tools=(TOOL,)),
        preference("1", prompt=LOOP[:3]),
    ],
)
def test_a_sound_row_has_no_problem(row: AnyRow) -> None:
    assert row_problem(row) == ""


def with_message(message: Any) -> AnyRow:
    return sft("1", messages=(user("?"), message, assistant("!")))


def with_call(**fields: Any) -> AnyRow:
    return with_message({**assistant("?"), "tool_calls": [{**calling()["tool_calls"][0], **fields}]})


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (sft(""), "id must have 1 to 256 characters, it has 0"),
        (sft("x" * 257), "id must have 1 to 256 characters, it has 257"),
        (sft("1", source=""), "source must have"),
        (sft("1", group="g" * 257), "group must have at most 256 characters"),
        (sft("1", language="klingon!"), "language 'klingon!' is not a tag"),
        (sft("1", messages=()), "messages is empty"),
        (sft("1", messages=(assistant("hi"), user("?"))), "messages must end with a message of assistant"),
        (with_message({"role": "wizard", "content": ""}), "messages[1].role 'wizard' is not one of"),
        (with_message({"content": ""}), "messages[1].role None"),
        (with_message({**user("?"), "mood": "sad"}), "messages[1] has the unknown key 'mood'"),
        (with_message({**assistant("?"), "label": "L2"}), "messages[1] has the unknown key 'label'"),
        (with_message(user("?") | {"content": None}), "messages[1].content must be text, it is nothing"),
        (with_message(user("?") | {"content": [{"type": "text"}]}), "content must be text, it is a list"),
        (with_message(user("?") | {"content": True}), "content must be text, it is a boolean"),
        (with_message(user("?") | {"content": 7}), "content must be text, it is a number"),
        (with_message({**user("?"), "name": {}}), "messages[1].name must be text, it is an object"),
        (with_message({**calling(), "role": "user"}), "messages[1].content must be text"),
        (with_message({**calling(), **user("?")}), "which only an assistant message may have"),
        (with_message({**assistant("?"), "tool_calls": {}}), "tool_calls must be a list, it is an object"),
        (with_message({**assistant("?"), "tool_calls": [7]}), "must be an object with type"),
        (with_call(type="custom"), "must be an object with type"),
        (with_call(id=""), "tool_calls[0].id must be text"),
        (with_call(function={"name": 7, "arguments": "{}"}), "function.name must be text"),
        (with_message(calling("{")), "function.arguments is not JSON"),
        (with_message(calling("[1]")), "function.arguments must hold an object, it holds a list"),
        (with_call(function={"name": "f", "arguments": {}}), "must be JSON text, it is an object; encode it"),
        (with_message(answered("sunny")), "messages[1].tool_call_id 'c1' is no id of an earlier call"),
        (with_message({**answered(""), "tool_call_id": {}}), "messages[1].tool_call_id {} is no id"),
        (sft("1", tools=({"type": "web_search"},)), "tools[0] must have type"),
        (sft("1", tools=(TOOL, TOOL)), "tools[1].function.name 'weather' is there twice"),
        (
            sft("1", tools=({"type": "function", "function": {"name": "f", "parameters": []}},)),
            "tools[0].function.parameters must be a JSON schema",
        ),
        (route("1", label="chat"), "label 'chat' is not a label"),
        (route("1", messages=(user("?"), assistant("!"))), "messages must end with a message of user"),
        (route("1", messages=({**assistant("!"), "label": "l0"}, user("?"))), "messages[0].label 'l0' is not a label"),
        (route("1", messages=({**user("!"), "label": "L0"}, user("?"))), "messages[0] has the unknown key 'label'"),
        (preference("1", prompt=()), "prompt is empty"),
        (preference("1", chosen=()), "chosen is empty"),
        (preference("1", rejected=(user("?"),)), "rejected must end with a message of assistant"),
        (preference("1", rejected=(assistant("this"),)), "chosen and rejected are the same"),
    ],
)
def test_a_wrong_row_is_told_what_is_wrong_where(row: AnyRow, problem: str) -> None:
    assert problem in row_problem(row)


def test_a_row_has_to_have_something_to_learn() -> None:
    assert "at least one of the 2 messages" in row_problem(sft("1", given=2))
    assert row_problem(sft("1", given=1)) == ""
