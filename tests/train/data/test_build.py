"""Building data sets from recipes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macaron.errors import ConfigError, Unavailable
from macaron.models import sha256_of, silent
from macaron.train.data.build import build
from macaron.train.data.manifest import Manifest, load_manifest, open_data_set
from macaron.train.data.packages import Wheel, WheelPackages
from macaron.train.data.read import BadRowError
from macaron.train.data.recipe import SPLITS, Recipe, load_recipe
from macaron.train.data.rows import AnyRow, SftRow
from macaron.train.data.source import BuildContext
from tests.train.data.making import NoPackages, calling, recipe_of, route, sft, user
from tests.train.data.test_packages import house as house
from tests.train.data.wheels import REQUIREMENT

FILES = ("dev.jsonl", "manifest.json", "test.jsonl", "train.jsonl")
HELD_OUT = "[split]\ndev = 0.2\ntest = 0.2"


def made(recipe: Recipe, out: Path, **options: Any) -> Manifest:
    return build(recipe, out, NoPackages(), **options)


def ids(out: Path) -> dict[str, list[str]]:
    data = open_data_set(out)
    return {split: [row.id for row in data.rows(split)] for split in SPLITS}


def of_builder(tmp_path: Path, function: str, keys: str = "") -> Recipe:
    path = tmp_path / "built.toml"
    head = 'name = "built"\nseed = 3\n[[source]]\nname = "gen"\nlicence = "MIT"'
    path.write_text(f'{head}\nbuilder = "{__name__}:{function}"\n{keys}')
    return load_recipe(path)


def numbered(count: int, prefix: str = "r", **fields: Any) -> list[AnyRow]:
    return [
        sft(f"{prefix}{number}", " ".join(f"{prefix}{number}w{word}" for word in range(12)), **fields)
        for number in range(count)
    ]


# Builders that recipes name.


def dice(context: BuildContext) -> Iterator[AnyRow]:
    for number in range(context.limit or 20):
        yield sft(str(number), f"throw {number} gave {context.random.random()}", group=f"g{number}")


def from_package(context: BuildContext) -> Iterator[AnyRow]:
    text = (context.packages.folder(REQUIREMENT) / "tiny_rows/data/rows.json").read_text()
    yield from (sft(f"p{number}", f"row {number}") for number in msgspec.json.decode(text))


def failing(context: BuildContext) -> Iterator[AnyRow]:
    yield sft("1")
    raise KeyError("no such column")


def failing_at_once(context: BuildContext) -> Iterator[AnyRow]:
    raise ValueError("cannot begin")


def without_network(context: BuildContext) -> Iterator[AnyRow]:
    raise Unavailable("no network")


def empty(context: BuildContext) -> list[AnyRow]:
    return []


def broken(context: BuildContext) -> list[Any]:
    huge = sft("huge", answer="x" * 2_000_000)
    odd = SftRow(id="odd", source="s", messages=({"role": "user", "content": object()},))
    wrong = SftRow(id="wrong", source="s", messages=("text",))  # type: ignore[arg-type]
    return [sft("good"), {"id": "1"}, huge, odd, wrong, sft("ends", messages=(user("?"),)), sft("also good")]


NOT_CALLABLE = 7


def test_a_recipe_gives_the_files_and_a_manifest(tmp_path: Path) -> None:
    rows = [sft(str(number), group=f"g{number}") for number in range(40)]
    manifest = made(recipe_of(tmp_path, f"{HELD_OUT}\na: note = 'from us'", a=rows), tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == list(FILES)
    found = ids(tmp_path / "out")
    assert sorted(name for names in found.values() for name in names) == sorted(row.id for row in rows)
    assert all(found.values())
    assert load_manifest(tmp_path / "out") == manifest
    source = manifest.sources[0]
    assert (source.name, source.origin, source.licence, source.note) == ("a", "a.jsonl", "MIT", "from us")
    assert source.sha256 == hashlib.sha256((tmp_path / "a.jsonl").read_bytes()).hexdigest()
    assert source.given == sum(source.kept.values()) == 40
    assert source.kept == {split: len(found[split]) for split in SPLITS}
    for split in SPLITS:
        raw = (tmp_path / "out" / f"{split}.jsonl").read_bytes()
        use = manifest.files[split]
        assert (use.rows, use.bytes, use.sha256) == (raw.count(b"\n"), len(raw), hashlib.sha256(raw).hexdigest())
    assert set(manifest.versions) == {"python", "macaron", "msgspec", "datasketch"}


def test_the_same_recipe_gives_the_same_bytes(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from macaron.train.data.build import build\n"
        "from macaron.train.data.recipe import load_recipe; from tests.train.data.making import NoPackages\n"
        "build(load_recipe(Path(sys.argv[1])), Path(sys.argv[2]), NoPackages())"
    )
    recipe = of_builder(tmp_path, "dice", HELD_OUT)
    made(recipe, tmp_path / "first")
    # Another process has another hash seed, and so another order of sets.
    command = [sys.executable, "-c", script, str(tmp_path / "built.toml"), str(tmp_path / "second")]
    root = Path(__file__).parents[3]
    subprocess.run(command, cwd=root, env={"PYTHONHASHSEED": "77", "PYTHONPATH": str(root)}, timeout=60, check=True)
    assert [(tmp_path / "first" / name).read_bytes() for name in FILES] == [
        (tmp_path / "second" / name).read_bytes() for name in FILES
    ]


def test_another_source_changes_no_random_numbers_of_a_builder(tmp_path: Path) -> None:
    made(of_builder(tmp_path, "dice"), tmp_path / "one")
    other = '[[source]]\nname = "more"\nlicence = "MIT"\npath = "more.jsonl"'
    (tmp_path / "more.jsonl").write_bytes(msgspec.json.encode(sft("more")))
    made(of_builder(tmp_path, "dice", other), tmp_path / "two")
    one, two = (list(open_data_set(tmp_path / name).rows("train")) for name in ("one", "two"))
    assert [row for row in two if row.id != "more"] == one


def test_a_limit_bounds_builders_and_files(tmp_path: Path) -> None:
    built = made(of_builder(tmp_path, "dice", "limit = 7"), tmp_path / "built")
    read = made(recipe_of(tmp_path, "a: limit = 3", a=[sft(str(number)) for number in range(9)]), tmp_path / "read")
    assert (built.sources[0].given, read.sources[0].given) == (7, 3)


GROUPS = st.lists(st.sampled_from([f"g{number}" for number in range(12)]), min_size=1, max_size=25)


@settings(max_examples=25, deadline=None)
@given(GROUPS, GROUPS, st.sampled_from(["auto", "train", "dev", "test"]))
def test_no_group_is_divided_and_more_rows_move_none(first: list[str], more: list[str], split: str) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        rows = [sft(f"a{number}", f"a {number}", group=group) for number, group in enumerate(first)]
        added = [sft(f"b{number}", f"b {number}", group=group) for number, group in enumerate(more)]
        made(recipe_of(folder, HELD_OUT, a=rows), folder / "one")
        made(recipe_of(folder, f"{HELD_OUT}\nb: split = '{split}'", a=rows, b=added), folder / "two")
        before, after = _splits_of_groups(folder / "one"), _splits_of_groups(folder / "two")
    assert all(len(splits) == 1 for splits in after.values())
    assert all(after[group] == before[group] for group in before if split == "auto" or group not in more)


def _splits_of_groups(out: Path) -> dict[str, set[str]]:
    data = open_data_set(out)
    found: dict[str, set[str]] = defaultdict(set)
    for split in SPLITS:
        for row in data.rows(split):
            found[row.group].add(split)
    return found


def test_a_group_that_a_source_holds_out_is_taken_from_every_other(tmp_path: Path) -> None:
    sources: dict[str, list[AnyRow]] = {
        "learned": [sft("l1", group="f"), sft("l2", group="g")],
        "free": [sft("a1", group="f")],
        "held": [sft("h1", group="f")],
    }
    text = 'learned: split = "train"\nheld: split = "test"'
    manifest = made(recipe_of(tmp_path, text, **sources), tmp_path / "out")
    assert ids(tmp_path / "out") == {"train": ["l2"], "dev": [], "test": ["a1", "h1"]}
    assert manifest.sources[0].dropped == {"group held out": 1}


def test_of_duplicates_in_two_splits_the_held_out_one_stays(tmp_path: Path) -> None:
    text = " ".join(f"word{number}" for number in range(30))
    sources: dict[str, list[AnyRow]] = {
        "learned": [sft("l1", "same"), sft("l2", f"{text} more", source="x"), *numbered(2)],
        "watched": [sft("d1", "same", source="d")],
        "held": [sft("t1", "same", source="t"), sft("t2", text, answer="no", source="t")],
    }
    keys = 'learned: split = "train"\nwatched: split = "dev"\nheld: split = "test"'
    manifest = made(recipe_of(tmp_path, keys, **sources), tmp_path / "out")
    assert ids(tmp_path / "out") == {"train": ["r0", "r1"], "dev": [], "test": ["t1", "t2"]}
    assert manifest.sources[0].dropped == {"exact duplicate": 1, "near duplicate": 1}
    assert manifest.sources[1].dropped == {"exact duplicate": 1}


def test_near_duplicates_stay_where_the_recipe_or_the_source_says_so(tmp_path: Path) -> None:
    rows = [sft("1", "the same"), sft("2", "The same!"), sft("3", "the same")]
    off = made(recipe_of(tmp_path, "[dedup]\nenabled = false", a=rows), tmp_path / "off")
    source = made(recipe_of(tmp_path, "a: dedup = false", a=rows), tmp_path / "source")
    on = made(recipe_of(tmp_path, "", a=rows), tmp_path / "on")
    assert [manifest.files["train"].rows for manifest in (off, source, on)] == [2, 2, 1]


def test_personal_data_is_replaced_and_counted_unless_the_source_opts_out(tmp_path: Path) -> None:
    sources: dict[str, list[AnyRow]] = {
        "people": [sft("1", "I am bob@example.com")],
        "code": [sft("2", "mail alice@example.com")],
    }
    manifest = made(recipe_of(tmp_path, "code: scrub = false", **sources), tmp_path / "out")
    text = (tmp_path / "out" / "train.jsonl").read_text()
    assert "I am [EMAIL_1]" in text
    assert "alice@example.com" in text
    assert [source.scrubbed for source in manifest.sources] == [{"email": 1}, {}]
    made(recipe_of(tmp_path, "[scrub]\nenabled = false", **sources), tmp_path / "off")
    assert "bob@example.com" in (tmp_path / "off" / "train.jsonl").read_text()


def overlapping(tmp_path: Path, action: str) -> Recipe:
    text = " ".join(f"word{number}" for number in range(20))
    sources: dict[str, list[AnyRow]] = {
        "learned": [sft("l1", f"{text} {' '.join(map(str, range(90)))}"), *numbered(3)],
        "held": [route("t1", text, source="t"), route("t2", "something else", source="t")],
    }
    keys = f'learned: split = "train"\nheld: split = "test"\n[overlap]\naction = "{action}"'
    return recipe_of(tmp_path, keys, **sources)


def test_an_overlap_ends_the_build_and_is_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        made(overlapping(tmp_path, "refuse"), tmp_path / "out")
    assert caught.value.code == "overlap"
    assert "1 of 2 held-out rows stand in training rows" in caught.value.message
    assert "test t1 in l1: 1.00 'word0 word1" in caught.value.message
    assert 'action = "drop"' in caught.value.message
    assert list((tmp_path / "out").iterdir()) == []


def test_training_rows_that_overlap_are_dropped_when_asked(tmp_path: Path) -> None:
    manifest = made(overlapping(tmp_path, "drop"), tmp_path / "out")
    assert ids(tmp_path / "out") == {"train": ["r0", "r1", "r2"], "dev": [], "test": ["t1", "t2"]}
    assert manifest.sources[0].dropped == {"overlap": 1}
    audit = manifest.audit
    assert (audit.checked, audit.overlapping, audit.dropped, audit.highest) == (2, 1, 1, 0.0)
    assert [(item.held_out, item.train, item.containment) for item in audit.examples] == [("t1", "l1", 1.0)]


def test_only_a_few_examples_are_kept_of_many_overlaps(tmp_path: Path) -> None:
    held: list[AnyRow] = [route(f"t{row.id}", row.messages[0]["content"], source="t") for row in numbered(30)]  # type: ignore[union-attr]
    keys = 'a: split = "train"\nb: split = "test"\n[overlap]\naction = "drop"\n[dedup]\nenabled = false'
    manifest = made(recipe_of(tmp_path, keys, a=[*numbered(30), sft("left")], b=held), tmp_path / "out")
    assert (manifest.audit.overlapping, len(manifest.audit.examples)) == (30, 5)
    assert ids(tmp_path / "out")["train"] == ["left"]


def test_a_broken_row_ends_the_build_or_is_counted(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, "", a=[sft("1"), sft("2")])
    with (tmp_path / "a.jsonl").open("ab") as file:
        file.write(b"{half a row")
    with pytest.raises(BadRowError, match=r"a\.jsonl:3: the row is not valid"):
        made(recipe, tmp_path / "out")
    manifest = made(recipe, tmp_path / "out", skip_broken=True)
    assert (manifest.sources[0].given, manifest.sources[0].dropped) == (3, {"broken": 1})


def test_an_id_of_another_source_ends_the_build_or_is_counted(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, "", a=[sft("1")], b=[sft("1", "other"), sft("2")])
    with pytest.raises(BadRowError, match="source b: the id '1' is already that of a row of source a"):
        made(recipe, tmp_path / "out")
    manifest = made(recipe, tmp_path / "out", skip_broken=True)
    assert (manifest.sources[1].given, manifest.sources[1].dropped) == (2, {"broken": 1})


def test_broken_rows_of_a_builder_are_named_or_counted(tmp_path: Path) -> None:
    recipe = of_builder(tmp_path, "broken")
    with pytest.raises(BadRowError, match="broken row 2: a dict is not a row"):
        made(recipe, tmp_path / "out")
    manifest = made(recipe, tmp_path / "out", skip_broken=True)
    assert manifest.sources[0].dropped == {"broken": 5}
    assert ids(tmp_path / "out")["train"] == ["good", "also good"]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("failing", r"failing failed after 1 rows: KeyError: 'no such column' \(.*test_build\.py:\d+\)"),
        ("failing_at_once", "failed after 0 rows: ValueError: cannot begin"),
        ("empty", "source gen gives no rows"),
        ("nothing_here", "has no function nothing_here"),
        ("NOT_CALLABLE", "has no function NOT_CALLABLE"),
    ],
)
def test_a_builder_that_fails_is_named(tmp_path: Path, function: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        made(of_builder(tmp_path, function), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_builder_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text('name = "r"\nseed = 1\n[[source]]\nname = "s"\nlicence = "MIT"\nbuilder = "no_such_module:rows"')
    with pytest.raises(ConfigError, match=r"source s: no_such_module cannot be imported.*PYTHONPATH"):
        made(load_recipe(path), tmp_path / "out")


def test_a_builder_may_be_a_file_beside_the_recipe(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from macaron.train.data.rows import SftRow\n"
        "def rows(context):\n"
        "    said = ({'role': 'user', 'content': 'hello'}, {'role': 'assistant', 'content': 'good day'})\n"
        "    yield SftRow(id='a', source='mine', messages=said)\n"
    )
    path = tmp_path / "recipe.toml"
    path.write_text('name = "r"\nseed = 1\n[[source]]\nname = "s"\nlicence = "MIT"\nbuilder = "mine.py:rows"')
    manifest = made(load_recipe(path), tmp_path / "out")
    assert manifest.sources[0].sha256 == sha256_of(tmp_path / "mine.py", silent)
    assert manifest.sources[0].given == 1


def test_errors_of_ours_pass_through_a_builder(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no network"):
        made(of_builder(tmp_path, "without_network"), tmp_path / "out")


def test_the_wheels_that_a_builder_reads_are_recorded(house: Path, tmp_path: Path) -> None:
    recipe = of_builder(tmp_path, "from_package", f'package = "{REQUIREMENT}"')
    manifest = build(recipe, tmp_path / "out", WheelPackages(tmp_path / "cache"))
    sha256 = hashlib.sha256(next(house.glob("*.whl")).read_bytes()).hexdigest()
    assert manifest.sources[0].packages == (Wheel(REQUIREMENT, sha256),)
    assert ids(tmp_path / "out")["train"] == ["p1", "p2", "p3"]


def test_a_builder_may_read_only_packages_that_the_recipe_names(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'add package = "tiny-rows==1\.0" and check the licence'):
        made(of_builder(tmp_path, "from_package"), tmp_path / "out")


def test_a_build_tells_what_it_is_doing(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    recipe = recipe_of(tmp_path, "", a=[sft(str(number), answer=str(number)) for number in range(250)])
    made(recipe, tmp_path / "out", progress=lambda step, done, total: seen.append((step, done, total)))
    assert seen[:3] == [("reading a", 100, None), ("reading a", 200, None), ("reading a", 250, 250)]
    steps = [step for step, _, _ in seen]
    assert steps[3:] == ["looking for near-duplicates", "comparing the splits", "writing"]


def test_tool_calls_and_schemas_survive_as_they_were(tmp_path: Path) -> None:
    row = sft("1", messages=(user("?"), calling('{"city" : "Rome", "when": null}')))
    made(recipe_of(tmp_path, "", a=[row]), tmp_path / "out")
    assert list(open_data_set(tmp_path / "out").rows("train")) == [row]


def test_thousands_of_rows_take_seconds(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, HELD_OUT, a=[*numbered(2000)])
    started = time.process_time()
    made(recipe, tmp_path / "out")
    assert time.process_time() - started < 20
