"""The recipe of a data set: a strict TOML document."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import fields

from macaron.conversation import StepStatus
from macaron.errors import ConfigError
from macaron.experience import ReactionKind, Wanted
from macaron.hcp.document import Problem, read_document
from macaron.hcp.lines import KeyPath
from macaron.train.data.packages import canonical

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_BUILDER = re.compile(r"([A-Za-z_]\w*(\.[A-Za-z_]\w*)*|[\w./-]+\.py):[A-Za-z_]\w*", re.ASCII)


class Section(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the document."""


class TurnsSection(Section, frozen=True):
    """`turns` of a source: answers that a service recorded, one row each. An empty list is all of them.

    Attributes:
        file: the service's `.experience` file, relative to the recipe.
        reactions: what followed: `next`, the user's next words; `tools`; `retried`; or `none`.
        statuses: `completed`, `incomplete`, `cancelled` or `failed`.
    """

    file: str
    tenants: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    revisions: tuple[str, ...] = ()
    reactions: tuple[ReactionKind, ...] = ()
    statuses: tuple[StepStatus, ...] = ("completed",)

    @property
    def wanted(self) -> Wanted:
        """Which turns."""
        return Wanted(self.tenants, self.sessions, self.labels, self.revisions, self.reactions, self.statuses)


class SourceSection(Section, frozen=True):
    """`[[source]]`: where rows come from. Exactly one of `builder`, `path` and `turns` is given.

    Attributes:
        name: unique in the recipe; the random numbers of a builder are seeded by it.
        licence: SPDX expression of the rows, or words where there is none.
        builder: `package.module:function`, or `FILE.py:function` relative to the recipe: a `Builder`. It is imported
            and called.
        path: a JSONL file of rows, relative to the recipe.
        turns: recorded turns; personal data in them is always replaced.
        package: `name==version`, one or several, that the builder reads.
        limit: rows taken at most, 0 for all.
        split: where its rows go; `auto` decides by group.
        scrub: whether personal data is replaced; off for code.
        dedup: whether near-duplicates of other rows are dropped; off for rows that share a long wrapper on purpose.
    """

    name: str
    licence: str
    builder: str = ""
    path: str = ""
    package: str | tuple[str, ...] = ()
    note: str = ""
    limit: int = 0
    split: Literal["train", "dev", "test", "auto"] = "auto"
    scrub: bool = True
    dedup: bool = True
    # A recipe without it has the hash that it had before recipes could have it.
    turns: TurnsSection | UnsetType = UNSET

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages as `name==version` with the name in pip's canonical spelling."""
        listed = (self.package,) if isinstance(self.package, str) else self.package
        return tuple(canonical(requirement) for requirement in listed)


class SplitSection(Section, frozen=True):
    """`[split]`: shares of the groups of sources with `split = "auto"` that go to dev and to test."""

    dev: float = 0.05
    test: float = 0.05


class DedupSection(Section, frozen=True):
    """`[dedup]`: near-duplicates. Exact duplicates are always dropped.

    Attributes:
        threshold: Jaccard similarity of the prompts' word triples from which two rows are the same.
    """

    enabled: bool = True
    threshold: float = 0.8


class ScrubSection(Section, frozen=True):
    """`[scrub]`: personal data and secrets are replaced by placeholders."""

    enabled: bool = True


class OverlapSection(Section, frozen=True):
    """`[overlap]`: the audit of dev and test rows against the rows that are trained on.

    Attributes:
        max_containment: share of a held-out row's text that a training row may hold.
        action: what happens to a training row that holds more: the build ends, or the row is dropped.
    """

    max_containment: float = 0.8
    action: Literal["refuse", "drop"] = "refuse"


class RecipeDocument(Section, frozen=True):
    """What the document says, defaults filled in."""

    name: str
    seed: int
    source: tuple[SourceSection, ...]
    split: SplitSection = SplitSection()
    dedup: DedupSection = DedupSection()
    scrub: ScrubSection = ScrubSection()
    overlap: OverlapSection = OverlapSection()


class Recipe(RecipeDocument, frozen=True):
    """A recipe and the folder that its relative paths begin in; the folder is no part of its hash."""

    folder: Path = Path()

    def table(self) -> dict[str, Any]:
        """The document as plain data, defaults filled in, so that its hash says what was really done."""
        values = {info.name: getattr(self, info.name) for info in fields(RecipeDocument)}
        table: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(RecipeDocument(**values)))
        return table

    def sha256(self) -> str:
        """The hash, in hex, of what the recipe says, whatever its layout."""
        return hashlib.sha256(msgspec.json.encode(self.table(), order="sorted")).hexdigest()


def load_recipe(path: Path) -> Recipe:
    """Read and check a recipe.

    Raises:
        ConfigError: with every problem on a line of its own: place, value and remedy.
    """
    document = read_document(path)
    problems = list(_table_problems(RecipeDocument, document.table, ()))
    if not problems:
        found = msgspec.convert(document.table, RecipeDocument)
        problems = list(_value_problems(found))
    if problems:
        raise document.refuse(problems)
    values = {info.name: getattr(found, info.name) for info in fields(RecipeDocument)}
    return Recipe(**values, folder=document.folder)


def shipped_recipes() -> Path:
    """The folder of the recipes that come with the project."""
    return Path(__file__).parent.parent / "recipes"


def recipe_names() -> tuple[str, ...]:
    """The names of the recipes that ship, sorted."""
    paths = shipped_recipes().glob("*.toml")
    # Other documents that recipes' builders read may lie beside them.
    return tuple(sorted(path.stem for path in paths if "[[source]]" in path.read_text("utf-8")))


def find_recipe(name_or_path: str) -> Path:
    """The document of a recipe: a bare word is one that ships, anything with a separator or `.toml` is a file.

    Raises:
        ConfigError: there is none; it names the nearest.
    """
    if "/" in name_or_path or name_or_path.endswith(".toml"):
        return Path(name_or_path).expanduser()
    names = recipe_names()
    if name_or_path in names:
        return shipped_recipes() / f"{name_or_path}.toml"
    close = get_close_matches(name_or_path, names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"recipes that ship: {', '.join(names) or 'none'}"
    raise ConfigError(f"there is no recipe {name_or_path!r}; {hint} A file is named with its suffix .toml.")


def _table_problems(kind: type[Struct], table: Mapping[str, Any], path: KeyPath) -> Iterator[Problem]:
    known = {info.name: info for info in fields(kind)}
    for key, value in table.items():
        here = (*path, key)
        if key not in known:
            close = get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"allowed here: {', '.join(known)}"
            yield Problem(here, f"unknown key; {hint}")
        elif isinstance(value, Mapping) and isinstance(known[key].default, Section):
            yield from _table_problems(type(known[key].default), value, here)
        elif key == "source" and isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
            for index, item in enumerate(value):
                yield from _table_problems(SourceSection, item, (*here, index))
        else:
            yield from _type_problems(known[key].type, value, here)
    for name, info in known.items():
        if info.required and name not in table:
            yield Problem((*path, name), "is missing")


def _type_problems(kind: Any, value: Any, path: KeyPath) -> Iterator[Problem]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        message = str(error)
        yield Problem(path, f"{message[:1].lower()}{message[1:]}, the value is {_shown(value)}")


def _value_problems(recipe: RecipeDocument) -> Iterator[Problem]:
    if not _NAME.fullmatch(recipe.name):
        yield Problem(("name",), f"{_shown(recipe.name)} is not a name of lower-case letters, digits, and . _ -")
    if not recipe.source:
        yield Problem(("source",), "a recipe needs at least one [[source]]")
    for name in ("dev", "test"):
        yield from _share_problems(getattr(recipe.split, name), ("split", name))
    if (held_out := recipe.split.dev + recipe.split.test) >= 1:
        yield Problem(("split",), f"dev and test together are {held_out:g}; nothing is left to train on")
    yield from _share_problems(recipe.dedup.threshold, ("dedup", "threshold"))
    yield from _share_problems(recipe.overlap.max_containment, ("overlap", "max_containment"))
    first: dict[str, int] = {}
    for index, source in enumerate(recipe.source):
        if first.setdefault(source.name, index) != index:
            yield Problem(("source", index, "name"), f"{_shown(source.name)} is the name of an earlier source")
        yield from _source_problems(source, ("source", index))


def _source_problems(source: SourceSection, path: KeyPath) -> Iterator[Problem]:
    if not source.name.strip():
        yield Problem((*path, "name"), "is empty")
    if not source.licence.strip():
        yield Problem((*path, "licence"), "is empty; write an SPDX expression, or in words what is known")
    recorded = isinstance(source.turns, TurnsSection)
    if bool(source.builder) + bool(source.path) + recorded != 1:
        yield Problem(path, "must have either builder or path or turns")
    if recorded and not source.scrub:
        yield Problem((*path, "scrub"), "must be true: personal data in recorded turns is always replaced")
    if source.builder and not _BUILDER.fullmatch(source.builder):
        wanted = "package.module:function or FILE.py:function"
        yield Problem((*path, "builder"), f"{_shown(source.builder)} is not {wanted}")
    if source.path and source.package:
        yield Problem((*path, "package"), "is only for a builder; a file of rows reads no package")
    if isinstance(source.turns, TurnsSection) and not source.turns.file.strip():
        yield Problem((*path, "turns", "file"), "is empty; name a service's .experience file")
    if source.limit < 0:
        yield Problem((*path, "limit"), f"must be 0, for all, or more, the value is {source.limit}")
    yield from _package_problems(source, (*path, "package"))


def _package_problems(source: SourceSection, path: KeyPath) -> Iterator[Problem]:
    try:
        packages = source.packages
    except ConfigError as error:
        yield Problem(path, error.message)
        return
    if len(set(packages)) < len(packages):
        yield Problem(path, "names a package twice")


def _share_problems(value: float, path: KeyPath) -> Iterator[Problem]:
    if not 0 <= value <= 1:
        yield Problem(path, f"must be from 0 to 1, the value is {value:g}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
