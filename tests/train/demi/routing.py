"""What the tests of routing rows share: packages in a folder of the test, packages that are already here, rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from macaron.train.data.packages import default_package_cache, requirement_parts
from macaron.train.data.rows import AnyRow, RouteRow, SftRow
from macaron.train.data.source import BuildContext, Builder, Packages


class FolderPackages:
    """Every package is the same folder, written by the test in the packages' formats."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def folder(self, requirement: str) -> Path:
        requirement_parts(requirement)
        return self._folder


class CachedPackages:
    """The packages that were fetched before; a test that needs another one is skipped."""

    def folder(self, requirement: str) -> Path:
        name, version = requirement_parts(requirement)
        found = [path for path in default_package_cache().glob(f"{name}-{version}-*") if path.is_dir()]
        if not found:
            pytest.skip(f"{requirement} has not been fetched; macaron data build demi-l0 fetches it")
        return found[0]


def context(packages: Packages, *, limit: int = 0, seed: int = 1) -> BuildContext:
    return BuildContext(packages, Random(seed), limit)


def made(builder: Builder, limit: int, *, seed: int = 1) -> list[AnyRow]:
    """Rows of a builder that reads no package."""
    return list(builder(context(FolderPackages(Path("/nonexistent")), limit=limit, seed=seed)))


def routes(rows: Iterable[AnyRow]) -> list[RouteRow]:
    found = list(rows)
    assert all(isinstance(row, RouteRow) for row in found)
    return [row for row in found if isinstance(row, RouteRow)]


def dialogues(rows: Iterable[AnyRow]) -> list[SftRow]:
    found = list(rows)
    assert all(isinstance(row, SftRow) for row in found)
    return [row for row in found if isinstance(row, SftRow)]


def asked(row: RouteRow) -> str:
    return str(row.messages[-1]["content"])


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def write_lines(path: Path, content: Iterable[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(item) for item in content), encoding="utf-8")
