"""Scenes of our own tools: requests to one list of tools, whose calls hold what the requests say."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pytest

from macaron.train.data.rows import SftRow
from macaron.train.demi.tools import scenes, slots, values
from macaron.train.demi.tools.bank import families
from macaron.train.demi.tools.phrasing import phrase

from .building import build
from .test_tools import all_tools, calls_of, fits


@pytest.fixture(scope="module")
def rows() -> list[SftRow]:
    return build(scenes.rows, 2200)


@pytest.fixture(scope="module")
def by_scene(rows: list[SftRow]) -> dict[str, list[SftRow]]:
    found: dict[str, list[SftRow]] = {}
    for row in rows:
        found.setdefault(row.group, []).append(row)
    # The last one is cut off by the limit.
    found.popitem()
    return found


def test_the_rows_of_a_scene_show_the_same_two_to_four_tools_and_ask_six_times_or_more(
    by_scene: dict[str, list[SftRow]],
) -> None:
    for found in by_scene.values():
        assert len({json.dumps(row.tools) for row in found}) == 1
        names = [tool["function"]["name"] for tool in found[0].tools]
        assert 2 <= len(set(names)) == len(names) <= 4
        assert 4 <= len(found) <= 9
    assert sum(map(len, by_scene.values())) / len(by_scene) > 6


def test_no_request_comes_twice_in_a_scene(by_scene: dict[str, list[SftRow]]) -> None:
    for found in by_scene.values():
        assert len({row.messages[0]["content"] for row in found}) == len(found)


def test_every_tool_of_a_scene_is_called(by_scene: dict[str, list[SftRow]]) -> None:
    for found in by_scene.values():
        called = {name for row in found for name, _ in calls_of(row)}
        assert called == {tool["function"]["name"] for tool in found[0].tools}


def test_every_call_follows_the_schema_of_its_tool(rows: list[SftRow]) -> None:
    for row in rows:
        shown = {tool["function"]["name"]: tool["function"]["parameters"] for tool in row.tools}
        for name, arguments in calls_of(row):
            assert fits(json.loads(arguments), shown[name]), (row.id, name, arguments)


def strings(schema: dict[str, Any], value: Any) -> list[str]:
    """The strings of a call that must be copied from the request."""
    if "enum" in schema or any(form in schema.get("description", "") for form in ("YYYY-MM-DD", "HH:MM")):
        return []
    match value:
        case str():
            return [value]
        case list():
            return [found for each in value for found in strings(schema["items"], each)]
        case dict():
            return [found for name, each in value.items() for found in strings(schema["properties"][name], each)]
        case _:
            return []


def test_a_request_says_every_string_of_its_call_word_for_word(rows: list[SftRow]) -> None:
    for row in rows:
        shown = {tool["function"]["name"]: tool["function"]["parameters"] for tool in row.tools}
        for name, arguments in calls_of(row):
            for text in strings(shown[name], json.loads(arguments)):
                assert text.lower() in row.messages[0]["content"].lower(), (row.id, text)


def test_what_a_request_leaves_out_is_not_in_the_call(rows: list[SftRow]) -> None:
    optional = Counter(
        parameter in json.loads(arguments)
        for row in rows
        for name, arguments in calls_of(row)
        for tool in row.tools
        if tool["function"]["name"] == name
        for parameter in tool["function"]["parameters"]["properties"]
        if parameter not in tool["function"]["parameters"]["required"]
    )
    assert 0.15 < optional[True] / optional.total() < 0.6


def test_no_placeholder_is_left(rows: list[SftRow]) -> None:
    for row in rows:
        for message in row.messages:
            if message["role"] == "user":
                assert not set("{}") & set(message["content"]), message["content"]


def test_a_question_back_stands_where_a_value_is_missing(rows: list[SftRow]) -> None:
    questions = [row for row in rows if not calls_of(row)]
    assert 0.01 < len(questions) / len(rows) < 0.08
    assert all(row.messages[1]["content"] for row in questions)


def test_some_tools_are_described_at_length_and_some_hardly(by_scene: dict[str, list[SftRow]]) -> None:
    shown = [json.dumps(found[0].tools) for found in by_scene.values()]
    assert 0.2 < sum("Optional." in text or "Default is" in text for text in shown) / len(shown) < 0.5
    assert (
        0.1
        < sum(text.count('"description"') <= 2 * text.count('"type": "function"') for text in shown) / len(shown)
        < 0.5
    )


def test_every_tool_leads_a_scene_before_one_leads_a_second(rows: list[SftRow]) -> None:
    first = build(scenes.rows, 9 * len(all_tools()))
    called = {name.rpartition(".")[2].replace("_", "").lower() for row in first for name, _ in calls_of(row)}
    assert called >= {tool.name.replace("_", "").lower() for tool in all_tools()}


def test_requests_are_plain_polite_terse_chatty_commands_and_now_and_then_chinese(rows: list[SftRow]) -> None:
    requests = [row.messages[0]["content"] for row in rows]
    for share, fits_in in (
        (0.02, lambda text: ": " in text and text[0].islower()),
        (0.03, lambda text: text.startswith(("Could you", "Can you", "Please", "Kindly", "Would you"))),
        (0.05, lambda text: text[-1] not in ".?!" and text[0].islower()),
        (0.01, lambda text: not text.isascii()),
    ):
        assert sum(map(fits_in, requests)) > share * len(requests)
    assert max(map(len, requests)) > 150


def test_names_of_tools_are_no_tool_s_twice() -> None:
    names = [tool.name for tools in families().values() for tool in tools]
    assert len(set(names)) == len(names) >= 220


def test_the_same_seed_gives_the_same_scenes(rows: list[SftRow]) -> None:
    assert build(scenes.rows, 2200) == rows


def test_a_phrase_keeps_the_values_as_they_are() -> None:
    for tool in all_tools():
        for seed in range(20):
            spoken = phrase(tool, Random(seed))
            assert spoken.request.strip() == spoken.request
            assert set(tool.required) <= set(spoken.said)


def test_a_fraction_is_said_in_percent_and_described_as_one() -> None:
    slot = slots.fraction("Interest")
    said = slot.draw(Random(2))
    assert said.text == f"{said.value * 100:g}%"
    assert "0.05 for 5%" in slot.schema["description"]


def test_a_default_is_part_of_the_schema() -> None:
    assert slots.default(slots.whole("Days.", 1, 3), 2).schema["default"] == 2


def test_made_up_addresses_lie_in_names_kept_for_examples() -> None:
    random = Random(1)
    for _ in range(200):
        assert "example" in values.email(random)
        assert "example" in values.url(random)
