"""The suite of tool calls: which calls are right, and which cases are asked."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.evals.arguments import arguments_fit
from macaron.evals.suite import Answer, Call, Case
from macaron.evals.tools import ToolsSuite
from macaron.train.data.packages import WheelPackages
from macaron.train.demi.bfcl import load, normalised_question, split_of

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "price": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "options": {"type": "object", "properties": {"sea_view": {"type": "boolean"}, "floor": {"type": "integer"}}},
        "stops": {"type": "array", "items": {"type": "object", "properties": {"at": {"type": "string"}}}},
    },
    "required": ["city"],
}
CASE = Case(
    id="one",
    source="bfcl-multiple",
    messages=({"role": "user", "content": "A room in Porto for three days."},),
    tools=tuple(
        {"type": "function", "function": {"name": name, "description": "", "parameters": PARAMETERS}}
        for name in ("rooms.book", "rooms.cancel")
    ),
    expected={"rooms.book": {"city": ["Porto", "Oporto"], "days": [3], "price": ["", 80.0]}},
)


class NoPackages:
    def folder(self, requirement: str) -> Path:
        raise AssertionError(f"{requirement} is not needed to check an answer")


def reason(*calls: tuple[str, str], text: str = "") -> str:
    answer = Answer(text, tuple(Call(name, arguments) for name, arguments in calls))
    result = ToolsSuite(NoPackages()).check(CASE, answer, "L1")
    assert result.passed == (not result.reason)
    return result.reason


@pytest.mark.parametrize(
    "arguments",
    [
        {"city": "Porto", "days": 3},
        {"city": "oporto", "days": 3},
        {"city": " Por-to. ", "days": 3},
        {"city": "Porto", "days": 3, "price": 80},
        {"city": "Porto", "days": 3, "price": 80.0},
    ],
)
def test_a_right_call_passes(arguments: dict[str, Any]) -> None:
    assert reason(("rooms.book", json.dumps(arguments))) == ""


@pytest.mark.parametrize(
    "arguments",
    [
        {"city": "Lisbon", "days": 3},
        {"city": "Porto"},
        {"days": 3},
        {"city": "Porto", "days": 4},
        {"city": "Porto", "days": "3"},
        {"city": "Porto", "days": 3.0},
        {"city": "Porto", "days": True},
        {"city": "Porto", "days": 3, "price": 90},
        {"city": "Porto", "days": 3, "tags": []},
        {"city": "Porto", "days": 3, "colour": "red"},
        {"city": ["Porto"], "days": 3},
    ],
)
def test_wrong_arguments_do_not_pass(arguments: dict[str, Any]) -> None:
    assert reason(("rooms.book", json.dumps(arguments))) == "wrong arguments"


def test_each_way_to_be_wrong_has_its_reason() -> None:
    right = '{"city": "Porto", "days": 3}'
    assert reason(text="Which hotel?") == "no tool call"
    assert reason(("rooms.book", right), ("rooms.book", right)) == "several calls"
    assert reason(("rooms.find", right)) == "unknown tool"
    assert reason(("rooms.cancel", right)) == "wrong tool"


@pytest.mark.parametrize("arguments", ['{"city": ', "[1]", '"x"', "[" * 100_000, "\ud800", '{"city": NaN}'])
def test_arguments_that_are_no_object_are_broken(arguments: str) -> None:
    assert reason(("rooms.book", arguments)) == "broken arguments"


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ({"sea_view": True, "floor": 2}, True),
        ({"sea_view": True}, True),
        ({"floor": 2}, False),
        ({"sea_view": 1, "floor": 2}, False),
        ({"sea_view": True, "pool": True}, False),
        ([], False),
    ],
)
def test_an_object_is_compared_key_by_key(value: Any, fits: bool) -> None:
    acceptable: dict[str, Any] = {"city": ["Porto"], "options": [{"sea_view": [True], "floor": ["", 2]}]}
    assert arguments_fit({"city": "Porto", "options": value}, acceptable, PARAMETERS) is fits


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ([{"at": "Braga"}, {"at": "Faro"}], True),
        ([{"at": "Faro"}, {"at": "Braga"}], False),
        ([{"at": "Braga"}], False),
        ("Braga", False),
    ],
)
def test_a_list_is_compared_element_by_element(value: Any, fits: bool) -> None:
    acceptable: dict[str, Any] = {"city": ["Porto"], "stops": [[{"at": ["Braga"]}, {"at": ["Faro"]}]]}
    assert arguments_fit({"city": "Porto", "stops": value}, acceptable, PARAMETERS) is fits


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from([*PARAMETERS["properties"], "other"]), JSON))
def test_no_arguments_break_the_check(arguments: dict[str, Any]) -> None:
    acceptable: dict[str, Any] = {
        "city": ["Porto"],
        "options": ["", {"sea_view": [True]}],
        "stops": ["", [{"at": ["Faro"]}]],
        "tags": ["", ["a"]],
    }
    assert isinstance(arguments_fit(arguments, acceptable, PARAMETERS), bool)


def first_acceptable(acceptable: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """Arguments made of the first acceptable values; what may be left out is."""
    found = {}
    for name, values in acceptable.items():
        choices = values if isinstance(values, list) else [values]
        if "" not in choices:
            found[name] = plain(choices[0])
        elif name in required:
            found[name] = ""
    return found


def plain(value: Any) -> Any:
    match value:
        case dict():
            return first_acceptable(value, [])
        case list():
            return [plain(each) for each in value]
        case _:
            return value


@pytest.fixture(scope="module")
def suite() -> ToolsSuite:
    return ToolsSuite(WheelPackages())


@pytest.mark.slow
def test_there_are_enough_cases_and_each_has_a_choice(suite: ToolsSuite) -> None:
    cases = suite.cases()
    assert len(cases) == len({case.id for case in cases}) == 220
    assert min(len(case.tools) for case in cases) >= 2
    assert set(Counter(case.source for case in cases)) == {"bfcl-multiple", "bfcl-live-multiple"}


@pytest.mark.slow
def test_the_leaderboards_own_answers_pass(suite: ToolsSuite) -> None:
    for case in suite.cases():
        ((name, acceptable),) = case.expected.items()
        function = next(tool["function"] for tool in case.tools if tool["function"]["name"] == name)
        arguments = first_acceptable(acceptable, function["parameters"]["required"])
        result = suite.check(case, Answer("", (Call(name, json.dumps(arguments)),)), "reference")
        assert result.passed, (case.id, arguments, acceptable)


@pytest.mark.slow
def test_no_case_shares_a_function_or_a_question_with_the_training_side(suite: ToolsSuite) -> None:
    train = [case for case in load(WheelPackages().folder("bfcl-eval==2026.3.23")) if split_of(case) == "train"]
    functions = {function["name"] for case in train for function in case.functions}
    asked = {normalised_question(case) for case in train}
    held_out = {case.id for case in suite.cases()}
    mine = [case for case in load(WheelPackages().folder("bfcl-eval==2026.3.23")) if case.id in held_out]
    assert not functions & {function["name"] for case in mine for function in case.functions}
    assert not asked & {normalised_question(case) for case in mine}


def test_the_examples_call_the_tools_they_show() -> None:
    examples = ToolsSuite(NoPackages()).examples()
    asked, called = examples[::2], examples[1::2]
    assert len(asked) == len(called) == 3
    for question, answer in zip(asked, called, strict=True):
        shown = json.loads(question["content"].split("<tools>\n")[1].split("\n</tools>")[0])
        call = answer["tool_calls"][0]["function"]
        arguments = json.loads(call["arguments"])
        assert call["name"] == shown["name"]
        assert set(shown["parameters"]["required"]) <= set(arguments) <= set(shown["parameters"]["properties"])
