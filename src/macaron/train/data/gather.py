"""Taking the rows of a recipe's sources in: each checked, its id unique, personal data replaced."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import msgspec

from macaron.errors import ConfigError, MacaronError
from macaron.models import sha256_of, silent
from macaron.train.data.check import MAX_ROW, row_problem
from macaron.train.data.packages import Wheel, canonical, wheel_of
from macaron.train.data.pii import PiiKind
from macaron.train.data.progress import BuildProgress
from macaron.train.data.read import ReadReport, read_rows
from macaron.train.data.recipe import Recipe, SourceSection, TurnsSection
from macaron.train.data.rows import AnyRow, PreferenceRow, RouteRow, SftRow
from macaron.train.data.scrub import scrub_row
from macaron.train.data.source import BuildContext, Builder, Packages
from macaron.train.data.turns import Taken, recorded_rows

REPORT_EVERY = 100


@dataclass
class Gathered:
    """A source's rows, and what was met on the way."""

    section: SourceSection
    rows: list[AnyRow] = field(default_factory=list)
    report: ReadReport = field(default_factory=ReadReport)
    scrubbed: Counter[PiiKind] = field(default_factory=Counter)
    wheels: dict[str, Wheel] = field(default_factory=dict)
    sha256: str = ""
    taken: Taken = field(default_factory=Taken)


def gather(recipe: Recipe, packages: Packages, progress: BuildProgress, skip_broken: bool) -> list[Gathered]:
    """The rows of every source, in the recipe's order.

    Raises:
        BadRowError: a row is broken, or its id was there before, and such rows are not to be skipped.
        ConfigError: a package, builder or file is not there, a builder fails, or a source gives no rows.
        Unavailable: the network failed.
    """
    builders = {source.name: load_builder(source, recipe.folder) for source in recipe.source if source.builder}
    for source in recipe.source:  # before hours of work, not in the middle
        for requirement in source.packages:
            packages.folder(requirement)
    ids: dict[str, str] = {}
    found: list[Gathered] = []
    for source in recipe.source:
        gathered = Gathered(source)
        turns = source.turns if isinstance(source.turns, TurnsSection) else None
        if turns is not None:
            rows = _recorded(turns, gathered, recipe.folder)
        elif source.builder:
            rows = _built(builders[source.name], gathered, recipe, packages, skip_broken)
        else:
            rows = _read(recipe.folder / source.path, gathered, skip_broken)
        wanted = islice(_unique(rows, gathered, ids, skip_broken), source.limit or None)
        _take(wanted, gathered, turns is not None or (recipe.scrub.enabled and source.scrub), progress)
        found.append(gathered)
    return found


def load_builder(source: SourceSection, folder: Path) -> Builder:
    """Import the function that a recipe names.

    Args:
        folder: the recipe's, where a builder's file is looked for.

    Raises:
        ConfigError: there is no such module, file or function.
    """
    module_name, _, name = source.builder.partition(":")
    own = builder_file(source, folder)
    try:
        module = _module_of(own) if own else importlib.import_module(module_name)
    except (ImportError, OSError, SyntaxError) as error:
        reason = f"source {source.name}: {module_name} cannot be imported: {error}"
        raise ConfigError(f"{reason}; is it installed, or its folder in PYTHONPATH?", param="builder") from error
    builder = getattr(module, name, None)
    if not callable(builder):
        raise ConfigError(f"source {source.name}: {module_name} has no function {name}", param="builder")
    return builder  # type: ignore[no-any-return]


def builder_file(source: SourceSection, folder: Path) -> Path | None:
    """The file of a builder that is one, relative to the recipe."""
    name = source.builder.partition(":")[0]
    return folder / name if name.endswith(".py") else None


def _module_of(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"macaron_recipe_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Declared:
    """The packages that a source names, noting the wheels that are read."""

    def __init__(self, packages: Packages, gathered: Gathered) -> None:
        self._packages = packages
        self._gathered = gathered

    def folder(self, requirement: str) -> Path:
        section = self._gathered.section
        wanted = canonical(requirement)
        if wanted not in section.packages:
            reason = f"source {section.name}: its builder reads {wanted}, which the recipe does not name"
            raise ConfigError(f'{reason}; add package = "{wanted}" and check the licence', param="package")
        folder = self._packages.folder(wanted)
        self._gathered.wheels[wanted] = wheel_of(folder) or Wheel(wanted, "")
        return folder


def _built(
    builder: Builder, gathered: Gathered, recipe: Recipe, packages: Packages, skip_broken: bool
) -> Iterator[AnyRow]:
    section = gathered.section
    if own := builder_file(section, recipe.folder):
        gathered.sha256 = sha256_of(own, silent)
    random = Random(f"{recipe.seed}:{section.name}")
    context = BuildContext(_Declared(packages, gathered), random, section.limit)
    with _named(section, gathered.report):
        rows = iter(builder(context))
    while True:
        with _named(section, gathered.report):
            made = next(rows, None)
        if made is None:
            return
        number = gathered.report.rows + gathered.report.broken + 1
        checked = _checked(made)
        if isinstance(checked, str):
            gathered.report.refuse(f"{section.builder} row {number}", checked, skip_broken)
        else:
            gathered.report.rows += 1
            yield checked


@contextmanager
def _named(section: SourceSection, report: ReadReport) -> Iterator[None]:
    """Whatever a builder raises becomes an error that says where."""
    try:
        yield
    except MacaronError:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {error} ({frame.filename}:{frame.lineno})"
        reason = f"source {section.name}: {section.builder} failed after {report.rows} rows: {said}"
        raise ConfigError(reason, code="builder_failed", param="builder") from error


def _checked(made: Any) -> AnyRow | str:
    """A builder's row as it will be read back, or why it cannot be used."""
    if not isinstance(made, SftRow | PreferenceRow | RouteRow):
        return f"a {type(made).__name__} is not a row"
    try:
        raw = msgspec.json.encode(made)
        if len(raw) > MAX_ROW:
            return f"the row has {len(raw)} bytes, more than {MAX_ROW}"
        row = msgspec.json.decode(raw, type=AnyRow)
    except (TypeError, ValueError, RecursionError) as error:
        return f"the row is not valid: {error}"
    return row_problem(row) or row


def _read(path: Path, gathered: Gathered, skip_broken: bool) -> Iterator[AnyRow]:
    for row in read_rows(path, skip_broken=skip_broken, report=gathered.report):
        gathered.sha256 = gathered.sha256 or sha256_of(path, silent)
        yield row


def _recorded(section: TurnsSection, gathered: Gathered, folder: Path) -> Iterator[AnyRow]:
    digest = hashlib.sha256()
    for row in recorded_rows(section, gathered.section.name, folder, gathered.taken):
        digest.update(f"{row.id}\n".encode())
        gathered.sha256 = digest.hexdigest()
        gathered.report.rows += 1
        yield row


def _unique(rows: Iterable[AnyRow], gathered: Gathered, ids: dict[str, str], skip_broken: bool) -> Iterator[AnyRow]:
    name = gathered.section.name
    for row in rows:
        if row.id in ids:
            gathered.report.rows -= 1
            reason = f"the id {row.id!r} is already that of a row of source {ids[row.id]}"
            gathered.report.refuse(f"source {name}", reason, skip_broken)
            continue
        ids[row.id] = name
        yield row


def _take(rows: Iterable[AnyRow], gathered: Gathered, scrub: bool, progress: BuildProgress) -> None:
    name, limit = gathered.section.name, gathered.section.limit
    for row in rows:
        kept = row
        if scrub:
            kept, counts = scrub_row(row)
            gathered.scrubbed += counts
        gathered.rows.append(kept)
        if len(gathered.rows) % REPORT_EVERY == 0:
            progress(f"reading {name}", len(gathered.rows), limit or None)
    if not gathered.rows:
        raise ConfigError(f"source {name} gives no rows; correct it or remove it from the recipe", code="no_rows")
    progress(f"reading {name}", len(gathered.rows), len(gathered.rows))
