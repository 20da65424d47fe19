"""Following a line from an answer or an adapter to the turns it was trained on, and back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, TypeVar

from macaron.conversation import Step
from macaron.errors import NotFound
from macaron.experience import ExperienceFile, Turn, experience_path
from macaron.hcp import Loaded
from macaron.lineage.base import AdapterUse, AnswerUse, Lineage, TurnLine
from macaron.lineage.runs import (
    KnownRun,
    data_sets,
    known_runs,
    line_of,
    manifests_of,
    run_beside,
    turns_in,
    with_parents,
)
from macaron.registry.cards import Registry
from macaron.registry.desired import Desired, decode
from macaron.registry.revision import ADAPTER_FILES, adapter_revision
from macaron.store.offline import StoreFile

SHORTEST = 12

Item = TypeVar("Item")
_HEX = re.compile(rf"[0-9a-f]{{{SHORTEST},64}}")


class Places(NamedTuple):
    """Where to look.

    Attributes:
        loaded, registry: the profile that is served.
        store: file of the service's store, None for one in memory; recorded turns and adapters are beside it.
        runs, data: folders of training runs and of data sets.
    """

    loaded: Loaded
    registry: Registry
    store: Path | None
    runs: Path
    data: Path


class _Found(NamedTuple):
    """An adapter as it is known here."""

    revision: str
    labels: tuple[str, ...]
    folders: tuple[Path, ...]


class _Adapters:
    """The adapters of a profile, and those registered in its store."""

    def __init__(self, places: Places, desired: Desired | None) -> None:
        self._known: list[tuple[str, str, Path | None]] = []
        self._live: dict[str, str] = {}
        for entry, item in zip(places.loaded.contract.mol.adapters, places.registry.specialists, strict=True):
            source = places.loaded.file(entry.source) if entry.source else None
            self._known.append((item.label, item.revision, source))
            self._live[item.label] = item.revision
        vault = places.store.with_suffix(".adapters") if places.store is not None else None
        for registered in desired.entries if desired is not None else ():
            for revision in registered.revisions:
                folder = vault / revision.folder if vault is not None else None
                self._known.append((registered.label, revision.revision, folder))
            self._live[registered.label] = registered.live or registered.revisions[-1].revision

    def named(self, name: str) -> str | None:
        """The revision of a label, of `label@digits`, of a beginning of a revision, or of an adapter's folder."""
        if name in self._live:
            return self._live[name]
        digits = name.partition("@")[2] or name.removeprefix("sha256:")
        if _HEX.fullmatch(digits):
            known = (revision for _, revision, _ in self._known if revision.startswith(f"sha256:{digits}"))
            return next(known, f"sha256:{digits}" if len(digits) == 64 else None)
        folder = Path(name).expanduser()
        whole = all((folder / file).is_file() for file in ADAPTER_FILES)
        return adapter_revision(folder) if whole or (folder.suffix == ".gguf" and folder.is_file()) else None

    def found(self, revision: str) -> _Found:
        """What is known of a revision."""
        mine = [(label, folder) for label, known, folder in self._known if known == revision]
        folders = (folder for _, folder in mine if folder is not None and folder.exists())
        return _Found(revision, _unique(label for label, _ in mine), _unique(folders))


def trace(name: str, places: Places) -> Lineage:
    """The lineage of a response id, or of an adapter: its label, `label@digits`, revision or folder.

    Raises:
        NotFound: it is neither.
        ConfigError: a file cannot be read.
    """
    with ExitStack() as stack:
        store = stack.enter_context(StoreFile(places.store)) if places.store and places.store.is_file() else None
        path = experience_path(places.store) if places.store else None
        experience = stack.enter_context(ExperienceFile(path)) if path is not None and path.is_file() else None
        document = store.document() if store is not None else b""
        adapters = _Adapters(places, decode(document) if document else None)
        turn = experience.find(name) if experience is not None else None
        step = store.step(name) if store is not None else None
        answer = _answer(name, step, turn)
        revision = answer.revision if answer is not None else adapters.named(name)
        if revision is None:
            raise NotFound(
                f"{name!r} is no answer and no adapter that is known here; name a response id, a label, a revision or "
                "an adapter's folder, and the service's --profile or --store",
                param="name",
            )
        found = adapters.found(revision)
        if answer is None and Path(name).is_dir():
            found = found._replace(folders=_unique((*found.folders, Path(name))))
        runs = known_runs(places.runs)
        line, problems = _line(found, runs)
        kept = experience.ids() if experience is not None else frozenset()
        return Lineage(
            asked=name,
            answer=answer,
            adapter=AdapterUse(
                revision=revision,
                labels=found.labels or ((answer.label,) if answer is not None else ()),
                places=tuple(map(str, found.folders)),
                answers=store.answers(revision) if store is not None else None,
                recorded=experience.count(revision) if experience is not None else None,
            ),
            runs=tuple(map(line_of, line)),
            turns=tuple(_turns(line, kept)),
            fed=tuple(line_of(run) for run in runs if answer is not None and _learned(run, answer.id)),
            sets=tuple(str(folder) for folder, manifest in data_sets(places.data) if answer is not None
                       and answer.id in turns_in(manifest)),
            problems=tuple(problems),
        )  # fmt: skip


def _line(found: _Found, runs: list[KnownRun]) -> tuple[list[KnownRun], list[str]]:
    """The run that made an adapter and those before it, and what is missing."""
    beside = [run for folder in found.folders if (run := run_beside(folder)) is not None]
    made = next((run for run in runs if run.record.adapter and run.record.adapter.revision == found.revision), None)
    if made is None and beside:
        # A copy that ships has a revision of its own; the run it came from has the same id.
        same = next((run for run in runs if run.record.id == beside[0].record.id), None)
        made = beside[0] if same is None else same
    if made is None:
        if found.revision.startswith("sha256:"):
            return [], [f"no run is known that made {found.revision[:19]}; name the folder that holds it with --runs"]
        return [], [f"{found.revision} is not an adapter whose bytes are known here, so no run can be found"]
    line = list(with_parents(made, runs))
    problems = []
    if line[-1].record.parent:
        problems.append(f"run {line[-1].record.parent}, from which {line[-1].record.id} went on, is not here")
    for run in line:
        gone = [path for path, _, manifest in manifests_of(run) if manifest is None]
        problems += [f"the data set {path} of run {run.record.id} is gone or was changed since" for path in gone]
    return line, problems


def _turns(line: list[KnownRun], kept: frozenset[str]) -> Iterator[TurnLine]:
    seen: set[str] = set()
    for run in line:
        for path, _, manifest in manifests_of(run):
            for turn in turns_in(manifest) if manifest is not None else ():
                if turn not in seen:
                    seen.add(turn)
                    yield TurnLine(turn, path, turn in kept)


def _learned(run: KnownRun, turn: str) -> bool:
    return any(manifest is not None and turn in turns_in(manifest) for _, _, manifest in manifests_of(run))


def _answer(name: str, step: Step | None, turn: Turn | None) -> AnswerUse | None:
    if step is not None:
        tenant = step.scope.partition("\x1f")[0]
        return AnswerUse(
            name, tenant, step.session, step.turn, step.label, step.revision, step.status, step.created, step.contract,
            step.generation, turn is not None,
        )  # fmt: skip
    if turn is None:
        return None
    kept = turn.record
    return AnswerUse(
        name, kept.tenant, kept.session, kept.turn, kept.label, kept.revision, kept.status, kept.created, kept.contract,
        kept.generation, True,
    )  # fmt: skip


def _unique(items: Iterable[Item]) -> tuple[Item, ...]:
    return tuple(dict.fromkeys(items))
