"""Loading a contract: a document becomes a checked `Contract`, or one error that lists everything wrong with it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from macaron.errors import ConfigError
from macaron.hcp import checks
from macaron.hcp.digest import digest_of
from macaron.hcp.document import Document, Problem, read_document
from macaron.hcp.files import Reference, inside, read_reference, references
from macaron.hcp.lines import KeyPath
from macaron.hcp.ranges import range_problems
from macaron.hcp.schema import (
    AdapterEntry,
    Contract,
    EngineSection,
    MolSection,
    RegistrySection,
    ServiceSection,
    StoreSection,
)
from macaron.hcp.strict import structure_problems

SectionT = TypeVar("SectionT", bound=Struct)


class Loaded(Struct, frozen=True):
    """A contract that was found to be in order.

    Attributes:
        contract: its values, defaults filled in.
        digest: `hcp1:<hex>`; every step, evaluation and training run records it.
        path: the document, absolute.
        texts: contents of the prompts and templates it refers to, by key path, such as `mol.route.prompt_path` or
            `mol.adapters.L2.prompt_path`.
    """

    contract: Contract
    digest: str
    path: Path
    texts: Mapping[str, str]

    @property
    def folder(self) -> Path:
        """Where the document's relative paths begin."""
        return self.path.parent

    def text(self, key: str, default: str | None = None) -> str:
        """The content of a referenced file by its key path; `default` where the document names none.

        Raises:
            KeyError: the document names no such file and there is no default.
        """
        if default is None:
            return self.texts[key]
        return self.texts.get(key, default)

    def file(self, value: str) -> Path:
        """The absolute path of a file that the document names by a relative one, such as an adapter's `source`.

        Raises:
            ConfigError: it is not there any more, or leads out of the folder.
        """
        return inside(self.folder, value)


def load(path: str | os.PathLike[str], *, env: Mapping[str, str] | None = None) -> Loaded:
    """Read, check and digest a contract. No default is guessed from the machine and nothing is started.

    Args:
        path: the document, a TOML file. Files it refers to lie in its folder.
        env: where the environment variables named in it must exist; None leaves that unchecked.

    Raises:
        ConfigError: with every problem on a line of its own: place, value and remedy.
    """
    document = read_document(path)
    draft = _Draft(document)
    problems = list(draft.problems(env))
    files, unreadable = _read_all(document.folder, draft.references())
    problems += unreadable
    if problems:
        raise document.refuse(problems)
    return Loaded(
        contract=msgspec.convert(document.table, Contract),
        digest=digest_of(document.table, {item.place: raw for item, raw in files.items()}),
        path=document.path,
        texts=MappingProxyType({item.name: raw.decode("utf-8") for item, raw in files.items()}),
    )


class _Draft:
    """A document under examination. A section whose structure is wrong is not looked into any further."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._structure = list(structure_problems(document.table))
        self._mol = self._section("mol", MolSection)
        self._engine = self._section("engine", EngineSection)

    def references(self) -> Iterator[Reference]:
        return references(self._mol, self._engine)

    def problems(self, env: Mapping[str, str] | None) -> Iterator[Problem]:
        table, mol, engine = self._document.table, self._mol, self._engine
        yield from self._structure
        if table.get("version", 1) != 1:
            yield Problem(("version",), f"{table['version']!r} is not known; this Macaron reads version 1")
        if mol is not None:
            yield from range_problems(mol, ("mol",))
            yield from checks.mol_problems(mol)
            for index, entry in enumerate(mol.adapters):
                yield from self._source_problems(("mol", "adapters", index, "source"), entry)
        if engine is not None:
            yield from range_problems(engine, ("engine",))
            yield from checks.engine_problems(engine, table["engine"])
            yield from _environment_problems(engine, env)
            if engine.weights is not None and not engine.weights.path.startswith("/"):
                yield from self._file_problems(("engine", "weights", "path"), engine.weights.path)
        if mol is not None and engine is not None:
            yield from checks.joint_problems(Contract(mol=mol, engine=engine))
        if (store := self._section("store", StoreSection)) is not None:
            yield from range_problems(store, ("store",))
            yield from checks.store_problems(store)
        if (service := self._section("service", ServiceSection)) is not None:
            yield from range_problems(service, ("service",))
            yield from checks.service_problems(service)
        if (registry := self._section("registry", RegistrySection)) is not None:
            yield from checks.registry_problems(registry)

    def _section(self, name: str, kind: type[SectionT]) -> SectionT | None:
        table: Any = self._document.table.get(name)
        if table is None or any(problem.path[0] == name for problem in self._structure):
            return None
        return msgspec.convert(table, kind)

    def _source_problems(self, place: KeyPath, entry: AdapterEntry) -> Iterator[Problem]:
        problems = list(self._file_problems(place, entry.source))
        yield from problems
        embedded = self._engine is not None and self._engine.kind == "llamacpp"
        if entry.source and embedded and not problems and not _is_loadable(self._document.folder, entry):
            wanted = "a GGUF file, or the folder with adapter_config.json and adapter_model.safetensors"
            yield Problem(place, f"must be {wanted} for the embedded engine, the value is {entry.source!r}")

    def _file_problems(self, place: KeyPath, value: str) -> Iterator[Problem]:
        if value:
            try:
                inside(self._document.folder, value)
            except ConfigError as error:
                yield Problem(place, error.message)


def _is_loadable(folder: Path, entry: AdapterEntry) -> bool:
    named = entry.format == "gguf" or entry.source.endswith(".gguf")
    return named or inside(folder, entry.source).is_dir()


def _environment_problems(engine: EngineSection, env: Mapping[str, str] | None) -> Iterator[Problem]:
    name = engine.api_key_env
    if name and env is not None and not env.get(name):
        yield Problem(("engine", "api_key_env"), f"names the environment variable {name}, which is not set")


def _read_all(folder: Path, wanted: Iterator[Reference]) -> tuple[dict[Reference, bytes], list[Problem]]:
    files: dict[Reference, bytes] = {}
    problems: list[Problem] = []
    for reference in wanted:
        try:
            files[reference] = read_reference(folder, reference)
        except ConfigError as error:
            problems.append(Problem(reference.place, error.message))
    return files, problems
