"""Building a data set from a recipe: the same recipe gives the same bytes."""

from __future__ import annotations

import platform
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from macaron.errors import ConfigError
from macaron.train.data.audit import Audit, audit
from macaron.train.data.dedup import ExactDuplicates, near_duplicates
from macaron.train.data.gather import Gathered, gather
from macaron.train.data.manifest import FORMAT, AuditResult, ConsentUse, FileUse, Manifest, Overlap, SourceUse
from macaron.train.data.progress import BuildProgress, unwatched
from macaron.train.data.recipe import SPLITS, OverlapSection, Recipe, SourceSection, Split, TurnsSection
from macaron.train.data.rows import AnyRow
from macaron.train.data.source import Packages
from macaron.train.data.split import PRECEDENCE, fixed_splits, group_of, split_of
from macaron.train.data.text import prompt_text
from macaron.train.data.turns import turn_ids
from macaron.train.data.write import claimed, write_data_set

MAX_EXAMPLES = 5
EXAMPLE_TEXT = 160


class _Entry(NamedTuple):
    row: AnyRow
    source: int
    split: Split


@dataclass
class _Draft:
    """The rows that are left at a stage of the build, and why the others are not."""

    entries: list[_Entry]
    dropped: dict[int, Counter[str]]

    def drop(self, reason: str, unwanted: Callable[[int, _Entry], bool]) -> None:
        kept: list[_Entry] = []
        for number, entry in enumerate(self.entries):
            if unwanted(number, entry):
                self.dropped[entry.source][reason] += 1
            else:
                kept.append(entry)
        self.entries = kept

    def of(self, *splits: Split) -> list[_Entry]:
        return [entry for entry in self.entries if entry.split in splits]


def build(
    recipe: Recipe, out: Path, packages: Packages, progress: BuildProgress = unwatched, *, skip_broken: bool = False
) -> Manifest:
    """Gather the rows of a recipe, drop duplicates, split by group, audit the overlap, and write the data set.

    All rows are held in memory.

    Args:
        out: the folder to write; a data set in it is replaced once the new one is complete.
        skip_broken: leave out broken rows and count them, instead of stopping at the first.

    Raises:
        BadRowError: a row is broken.
        ConfigError: a source cannot be read, held-out rows overlap with training rows and the recipe refuses that, or
            the folder cannot be written.
        Unavailable: the network failed while a package was fetched.
    """
    with claimed(out):
        gathered = gather(recipe, packages, progress, skip_broken)
        draft = _split(gathered, recipe)
        _drop_duplicates(draft, recipe, progress)
        result = _audit(draft, recipe.overlap, progress)
        progress("writing", 0, None)
        ordered = sorted(draft.entries, key=lambda entry: entry.source)
        rows = {split: [entry.row for entry in ordered if entry.split == split] for split in SPLITS}
        sources = tuple(_source_use(number, item, draft) for number, item in enumerate(gathered))
        return write_data_set(out, rows, lambda files: _manifest(recipe, sources, files, result))


def _split(gathered: Sequence[Gathered], recipe: Recipe) -> _Draft:
    """Rows in the order in which they win over one another: test, dev, train, and in the recipe's order in each."""
    fixed = fixed_splits(
        (group_of(row), item.section.split) for item in gathered if item.section.split != "auto" for row in item.rows
    )
    dropped: dict[int, Counter[str]] = defaultdict(Counter)
    entries: list[_Entry] = []
    for number, item in enumerate(gathered):
        for row in item.rows:
            group = group_of(row)
            split = fixed.get(group) or split_of(group, recipe.split)
            entries.append(_Entry(row, number, split))
    draft = _Draft(sorted(entries, key=lambda entry: PRECEDENCE.index(entry.split)), dropped)
    draft.drop("group held out", lambda _, entry: gathered[entry.source].section.split not in ("auto", entry.split))
    return draft


def _drop_duplicates(draft: _Draft, recipe: Recipe, progress: BuildProgress) -> None:
    exact = ExactDuplicates()
    draft.drop("exact duplicate", lambda _, entry: exact.repeats(entry.row))
    if not recipe.dedup.enabled:
        return
    compared = [number for number, entry in enumerate(draft.entries) if recipe.source[entry.source].dedup]
    progress("looking for near-duplicates", 0, len(compared))
    rows = [draft.entries[number].row for number in compared]
    near = {compared[number] for number, _ in near_duplicates(rows, recipe.dedup.threshold)}
    draft.drop("near duplicate", lambda number, _: number in near)


def _audit(draft: _Draft, section: OverlapSection, progress: BuildProgress) -> AuditResult:
    held_out, train = draft.of("test", "dev"), draft.of("train")
    progress("comparing the splits", 0, len(train))
    found = audit([entry.row for entry in held_out], [entry.row for entry in train], section.max_containment)
    examples = tuple(_examples(found, held_out, train))
    overlapping = len({hit.held_out for hit in found.hits})
    if found.hits and section.action == "refuse":
        raise _overlap_error(overlapping, len(held_out), section, examples)
    unwanted = {train[hit.train].row.id for hit in found.hits}
    draft.drop("overlap", lambda _, entry: entry.row.id in unwanted)
    return AuditResult(
        max_containment=section.max_containment, action=section.action, checked=len(held_out), overlapping=overlapping,
        dropped=len(unwanted), highest=round(found.highest, 4), examples=examples,
    )  # fmt: skip


def _examples(found: Audit, held_out: Sequence[_Entry], train: Sequence[_Entry]) -> Iterator[Overlap]:
    seen: set[int] = set()
    for hit in sorted(found.hits, key=lambda hit: (-hit.containment, hit.held_out, hit.train)):
        if hit.held_out in seen or len(seen) == MAX_EXAMPLES:
            continue
        seen.add(hit.held_out)
        entry = held_out[hit.held_out]
        text = prompt_text(entry.row)[:EXAMPLE_TEXT]
        yield Overlap(entry.row.id, entry.split, train[hit.train].row.id, round(hit.containment, 4), text)


def _overlap_error(count: int, checked: int, section: OverlapSection, examples: Sequence[Overlap]) -> ConfigError:
    lines = [
        f"{count} of {checked} held-out rows stand in training rows, each to more than {section.max_containment:g}:",
        *(f"  {item.split} {item.held_out} in {item.train}: {item.containment:.2f} {item.text!r}" for item in examples),
        'Correct the sources or their groups, or set [overlap] action = "drop" to leave those training rows out.',
    ]
    return ConfigError("\n".join(lines), code="overlap", param="overlap.action")


def _source_use(number: int, gathered: Gathered, draft: _Draft) -> SourceUse:
    section, report = gathered.section, gathered.report
    kept = Counter(entry.split for entry in draft.entries if entry.source == number)
    broken = {"broken": report.broken} if report.broken else {}
    left_out, recorded = dict(gathered.taken.left_out), isinstance(section.turns, TurnsSection)
    kept_ids = (entry.row.id for entry in draft.entries if recorded and entry.source == number)
    consents = sorted(gathered.taken.consents.items(), key=lambda item: (item[0].tenant, item[0].consent))
    return SourceUse(
        name=section.name, origin=_origin(section), licence=section.licence, note=section.note,
        sha256=gathered.sha256, packages=tuple(gathered.wheels[name] for name in sorted(gathered.wheels)),
        given=len(gathered.rows) + report.broken + sum(left_out.values()),
        kept={split: kept[split] for split in SPLITS}, dropped={**broken, **left_out, **draft.dropped[number]},
        scrubbed={str(kind): n for kind, n in gathered.scrubbed.items()},
        consents=tuple(ConsentUse(item.tenant, item.consent, item.licence, rows) for item, rows in consents),
        turns=tuple(sorted(turn_ids(kept_ids))),
    )  # fmt: skip


def _origin(section: SourceSection) -> str:
    return section.turns.file if isinstance(section.turns, TurnsSection) else section.builder or section.path


def _manifest(
    recipe: Recipe, sources: tuple[SourceUse, ...], files: Mapping[Split, FileUse], result: AuditResult
) -> Manifest:
    return Manifest(
        format=FORMAT, name=recipe.name, seed=recipe.seed, recipe_sha256=recipe.sha256(), sources=sources,
        files=dict(files), audit=result, versions=dict(_versions()), recipe=recipe.table(),
    )  # fmt: skip


def _versions() -> Iterator[tuple[str, str]]:
    yield "python", platform.python_version()
    for name in ("macaron", "msgspec", "datasketch"):
        try:
            yield name, version(name)
        except PackageNotFoundError:  # datasketch, where only serving was installed
            continue
