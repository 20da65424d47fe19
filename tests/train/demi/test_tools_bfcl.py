"""The leaderboard's cases: how they are read, divided, and made into rows."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.errors import ConfigError
from macaron.train.data.rows import SftRow
from macaron.train.demi import bfcl
from macaron.train.demi.bfcl import MULTI_CANDIDATE, BfclCase, load, normalised_question, split_of
from macaron.train.demi.tools import scenes
from macaron.train.demi.tools.bank import families
from macaron.train.demi.tools.bfcl import REQUIREMENT, chosen
from macaron.train.demi.tools.bfcl import rows as bfcl_rows

from .building import build, real


def function(name: str) -> dict[str, Any]:
    parameters = {"type": "dict", "properties": {"n": {"type": "float"}}, "required": ["n"]}
    return {"name": name, "description": "Does it.", "parameters": parameters}


def leaderboard(root: Path, **categories: list[tuple[str, list[str]]]) -> Path:
    """A folder like the wheel's; each case is a question and its functions' names, the right one first."""
    answers = root / "bfcl_eval" / "data" / "possible_answer"
    answers.mkdir(parents=True)
    for category in (*bfcl.ANSWERED, *bfcl.UNANSWERABLE):
        cases, truths = [], []
        for number, (question, names) in enumerate(categories.get(category, [])):
            case_id = f"{category}_{number}"
            asked = [[{"role": "user", "content": question}]]
            cases.append({"id": case_id, "question": asked, "function": [function(name) for name in names]})
            truths.append({"id": case_id, "ground_truth": [{names[0]: {"n": [1]}}]})
        for folder, lines in ((answers.parent, cases), (answers, truths)):
            (folder / f"BFCL_v4_{category}.json").write_text("\n".join(map(json.dumps, lines)))
    return root


def test_cases_that_share_a_function_or_a_question_are_one_group(tmp_path: Path) -> None:
    folder = leaderboard(
        tmp_path,
        simple_python=[("Add one.", ["add"]), ("Halve it!", ["halve"])],
        multiple=[("add  ONE", ["plus", "minus"]), ("Take two", ["minus"]), ("Other", ["other"])],
    )
    groups = {case.id: case.group for case in load(folder)}
    assert groups["simple_python_0"] == groups["multiple_0"] == groups["multiple_1"] == "simple_python_0"
    assert len(set(groups.values())) == 3


def test_an_unanswerable_case_that_would_join_two_groups_is_left_out(tmp_path: Path) -> None:
    folder = leaderboard(
        tmp_path,
        simple_python=[("a", ["one"]), ("b", ["two"])],
        irrelevance=[("c", ["one", "two"]), ("d", ["one"]), ("e", ["three"])],
    )
    cases = {case.id: case for case in load(folder)}
    assert sorted(cases) == ["irrelevance_1", "irrelevance_2", "simple_python_0", "simple_python_1"]
    assert cases["irrelevance_1"].group == "simple_python_0"
    assert cases["irrelevance_1"].answers == ()


def test_parameters_become_json_schema(tmp_path: Path) -> None:
    (case,) = load(leaderboard(tmp_path, simple_python=[("a", ["one"])]))
    parameters = case.functions[0]["parameters"]
    assert parameters == {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="BFCL_v4_simple_python"):
        load(tmp_path)


@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=3), min_size=1, max_size=20))
def test_no_function_ever_stands_on_both_sides(names: list[list[int]]) -> None:
    groups = bfcl._Groups()
    for number, keys in enumerate(names):
        groups.join(str(number), [f"f:{key}" for key in keys])
    of: dict[int, set[str]] = {}
    for number, keys in enumerate(names):
        for key in keys:
            of.setdefault(key, set()).add(groups.first(str(number)))
    assert all(len(firsts) == 1 for firsts in of.values())
    assert all(int(first) <= min(n for n, keys in enumerate(names) if key in keys) for key, (first,) in of.items())


def test_a_parameter_that_may_be_left_out_is_left_out_unless_it_is_said() -> None:
    acceptable: dict[str, list[Any]] = {"city": ["Rome"], "unit": ["celsius", ""], "days": ["", 3]}
    schema = {"properties": {name: {} for name in acceptable}, "required": ["city"]}
    assert chosen(acceptable, schema, "Weather in Rome in Celsius") == {"city": "Rome", "unit": "celsius"}
    assert chosen(acceptable, schema, "Weather in Rome for 3 days") == {"city": "Rome", "days": 3}
    assert chosen(acceptable, schema, "Weather in Rome for 30 days") == {"city": "Rome"}


def test_values_inside_an_object_are_chosen_one_by_one() -> None:
    acceptable = {"order": [{"size": ["large", "big"], "milk": ["", "oat"]}]}
    assert chosen(acceptable, {"required": ["order"]}, "") == {"order": {"size": "large"}}


@pytest.fixture(scope="module")
def cases() -> list[BfclCase]:
    return load(real().folder(REQUIREMENT))


@pytest.fixture(scope="module")
def rows() -> list[SftRow]:
    return build(bfcl_rows, 330, packages=real())


@pytest.mark.slow
def test_the_sides_share_no_function_and_no_question(cases: list[BfclCase]) -> None:
    names: dict[str, set[str]] = {"train": set(), "test": set()}
    questions: dict[str, set[str]] = {"train": set(), "test": set()}
    for case in cases:
        names[split_of(case)] |= {function["name"] for function in case.functions}
        questions[split_of(case)].add(normalised_question(case))
    assert not names["train"] & names["test"]
    assert not questions["train"] & questions["test"]


@pytest.mark.slow
def test_enough_cases_with_several_candidates_are_held_out(cases: list[BfclCase]) -> None:
    held_out = [case for case in cases if split_of(case) == "test" and case.category in MULTI_CANDIDATE]
    assert sum(len(case.functions) > 1 for case in held_out) >= 250


@pytest.mark.slow
def test_rows_come_from_the_train_side_and_call_what_they_show(cases: list[BfclCase], rows: list[SftRow]) -> None:
    train = {case.id for case in cases if split_of(case) == "train"}
    held_out = {function["name"] for case in cases if split_of(case) == "test" for function in case.functions}
    for row in rows:
        shown = {tool["function"]["name"]: tool["function"]["parameters"] for tool in row.tools}
        assert row.id.partition("~")[0] in train
        assert not held_out & set(shown)
        for call in row.messages[-1]["tool_calls"]:
            arguments = json.loads(call["function"]["arguments"])
            assert set(arguments) <= set(shown[call["function"]["name"]]["properties"]), row.id


@pytest.mark.slow
def test_a_case_comes_up_among_other_tools_each_time_and_rows_share_their_tools() -> None:
    every = build(bfcl_rows, packages=real())
    shown = {row.id: json.dumps(row.tools) for row in every}
    assert len(shown) == len(every)
    again = [row_id for row_id in shown if row_id.endswith("~1")]
    assert len(again) > 300
    assert sum(shown[row_id] != shown.get(row_id.removesuffix("~1")) for row_id in again) > 0.9 * len(again)
    assert len(every) > 2.4 * len(set(shown.values()))


@pytest.mark.slow
def test_most_rows_ask_for_one_call_among_several_tools(rows: list[SftRow]) -> None:
    counts = Counter(len(row.messages[-1]["tool_calls"]) for row in rows)
    assert counts[1] / len(rows) > 0.85
    assert min(len(row.tools) for row in rows) >= 2
    assert build(bfcl_rows, 330, packages=real()) == rows


@pytest.mark.slow
def test_no_tool_of_ours_has_the_name_of_a_held_out_one(cases: list[BfclCase]) -> None:
    def bare(name: str) -> str:
        return re.sub("[^a-z]", "", name.rpartition(".")[2].lower())

    held_out = {bare(function["name"]) for case in cases if split_of(case) == "test" for function in case.functions}
    assert not held_out & {bare(tool.name) for tools in families().values() for tool in tools}


@pytest.mark.slow
def test_no_request_of_ours_has_seven_words_in_a_row_of_a_held_out_question(cases: list[BfclCase]) -> None:
    def runs(text: str) -> set[str]:
        words = re.findall(r"\w+", text.lower())
        return {" ".join(words[at : at + 7]) for at in range(len(words) - 6)}

    held_out = set().union(*(runs(normalised_question(case)) for case in cases if split_of(case) == "test"))
    ours = {row.id: runs(row.messages[0]["content"]) for row in build(scenes.rows, 1500)}
    assert not [row_id for row_id, found in ours.items() if found & held_out]
