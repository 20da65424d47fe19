"""Recorded turns become rows: the answer is learned, the rest is shown, and who agreed stands in the manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from macaron.conversation import Answer, ToolCall
from macaron.errors import ConfigError
from macaron.experience import ExperienceFile
from macaron.train.data.build import build
from macaron.train.data.export import exported
from macaron.train.data.manifest import Manifest, open_data_set
from macaron.train.data.recipe import Recipe, load_recipe
from macaron.train.data.rows import SftRow
from macaron.train.data.turns import row_of
from tests.experience.made import made, write
from tests.train.data.making import NoPackages

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def asked(number: int, text: str = "") -> tuple[dict[str, Any], ...]:
    """A prompt like no other."""
    words = " ".join(LETTERS[(number + at) % 26] * (2 + number % 7 + at) for at in range(8))
    return ({"role": "system", "content": "You are L2."}, {"role": "user", "content": text or f"{number} {words}"})


def recipe(folder: Path, turns: str, more: str = "") -> Recipe:
    path = folder / "mine.toml"
    path.write_text(
        'name = "mine"\nseed = 1\n[dedup]\nenabled = false\n[split]\ndev = 0.2\ntest = 0.2\n'
        f'[[source]]\nname = "recorded"\nlicence = "CC-BY-4.0"\n{more}\n'
        f'[source.turns]\nfile = "s.experience"\n{turns}\n'
    )
    return load_recipe(path)


def built(folder: Path, turns: str = "") -> tuple[Manifest, list[SftRow]]:
    manifest = build(recipe(folder, turns), folder / "out", NoPackages())
    data = open_data_set(folder / "out")
    rows = [row for split in ("train", "dev", "test") for row in data.rows(split)]
    return manifest, [row for row in rows if isinstance(row, SftRow)]


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    records = [
        made(f"r{number}", session=f"s{number // 3}", messages=asked(number), label=f"L{1 + number % 2}")
        for number in range(30)
    ]
    theirs = made("theirs", tenant="other", session="s99", messages=asked(50))
    write(tmp_path / "s.experience", [*records, theirs, made("cut", status="cancelled", messages=asked(60))])
    return tmp_path


def test_a_row_has_the_answer_to_learn_after_what_is_only_shown() -> None:
    record = made(
        "r1",
        given=1,
        system=("Be kind.",),
        messages=({"role": "system", "content": "You are L2.\n\nBe kind."}, {"role": "user", "content": "hi"}),
    )
    row = row_of(record, "recorded")
    assert isinstance(row, SftRow)
    assert row.messages == (
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "a fine answer"},
    )
    assert (row.id, row.source, row.given, row.language) == ("turn:r1", "recorded", 2, "und")


def test_calls_and_tools_are_kept() -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {}}}
    answer = Answer(0, "", "tool_calls", calls=(ToolCall("c1", "look", '{"at":"sky"}'),))
    row = row_of(made("r1", answer=answer, options={"tools": [tool]}), "recorded")
    assert isinstance(row, SftRow)
    assert row.tools == (tool,)
    assert row.messages[-1]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at":"sky"}'}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"text": ""}, "empty answer"),
        ({"given": 0, "messages": ({"role": "user", "content": [{"type": "image_url"}]},)}, "not only text"),
        ({"answer": Answer(0, "", "tool_calls", calls=(ToolCall("c", "f", "not json"),))}, "not a valid row"),
    ],
)
def test_what_is_no_row_is_left_out_with_the_reason(fields: dict[str, Any], reason: str) -> None:
    assert row_of(made("r1", **fields), "recorded") == reason


def test_a_session_is_never_divided_and_its_name_is_not_told(recorded: Path) -> None:
    _, rows = built(recorded)
    data = open_data_set(recorded / "out")
    groups = [{row.group for row in data.rows(split)} for split in ("train", "dev", "test")]
    assert sum(map(len, groups)) == len(set().union(*groups)) == 11
    assert not any("s9" in row.group or "acme" in row.group for row in rows)


def test_only_completed_answers_are_taken_unless_others_are_named(recorded: Path) -> None:
    assert "turn:cut" not in {row.id for row in built(recorded)[1]}
    assert {row.id for row in built(recorded, 'statuses = ["cancelled"]')[1]} == {"turn:cut"}


def test_turns_are_chosen_by_label_and_tenant(recorded: Path) -> None:
    manifest, rows = built(recorded, 'labels = ["L1"]\ntenants = ["acme"]')
    assert {row.id for row in rows} == {f"turn:r{number}" for number in range(0, 30, 2)}
    assert set(manifest.sources[0].turns) == {f"r{number}" for number in range(0, 30, 2)}


def test_consent_and_licence_stand_in_the_manifest(recorded: Path) -> None:
    manifest, _ = built(recorded)
    source = manifest.sources[0]
    assert [(item.tenant, item.consent, item.licence, item.rows) for item in source.consents] == [
        ("acme", "contract of today, section 4", "CC-BY-4.0", 30),
        ("other", "said so", "", 1),
    ]
    assert (source.origin, source.licence, len(source.turns)) == ("s.experience", "CC-BY-4.0", 31)
    raw = msgspec.json.decode((recorded / "out" / "manifest.json").read_bytes())
    assert raw["recipe"]["source"][0]["turns"]["file"] == "s.experience"


def test_the_same_turns_give_the_same_bytes(recorded: Path) -> None:
    first, _ = built(recorded)
    again, _ = built(recorded)
    assert first.files == again.files
    write(recorded / "s.experience", [made("more", session="s0", messages=asked(70))])
    later, _ = built(recorded)
    assert later.sources[0].sha256 != first.sources[0].sha256


def test_personal_data_is_replaced_whatever_the_recipe_says(tmp_path: Path) -> None:
    write(tmp_path / "s.experience", [made("r1", messages=asked(1, "I am bob@example.com"), text="Hi bob@example.com")])
    with pytest.raises(ConfigError, match="personal data in recorded turns is always replaced"):
        recipe(tmp_path, "", "scrub = false")
    manifest, (row,) = built(tmp_path)
    assert [message["content"] for message in row.messages] == ["I am [EMAIL_1]", "Hi [EMAIL_1]"]
    assert manifest.sources[0].scrubbed == {"email": 2}


def test_a_recipe_without_recorded_turns_keeps_its_hash(tmp_path: Path) -> None:
    (tmp_path / "old.toml").write_text(
        'name = "old"\nseed = 1\n[[source]]\nname = "a"\npath = "a.jsonl"\nlicence = "MIT"\n'
    )
    assert "turns" not in load_recipe(tmp_path / "old.toml").table()["source"][0]


def test_an_export_has_no_personal_data_and_no_tokens_that_spell_it(tmp_path: Path) -> None:
    path = tmp_path / "s.experience"
    tokens = {"prompt_ids": (1, 2), "ids": (3,), "logprobs": (-0.5,)}
    write(
        path,
        [
            made("plain", **tokens),
            made("private", messages=asked(1, "I am bob@example.com"), user="bob@example.com", **tokens),
            made("reply", parent="private", asked="write to bob@example.com"),
        ],
    )
    with ExperienceFile(path) as file:
        plain, private, _ = (exported(turn) for turn in file.turns())
    assert plain["record"]["ids"] == [3]
    assert plain["redacted"] == {}
    assert "ids" not in private["record"]
    assert "prompt_ids" not in private["record"]
    assert b"bob@" not in msgspec.json.encode(private)
    assert private["reaction"] == {"kind": "next", "text": "write to [EMAIL_1]"}
    assert private["record"]["id"] == "private"
