"""How the tests of the tool and code builders build rows."""

from __future__ import annotations

from pathlib import Path
from random import Random

from macaron.train.data.packages import WheelPackages
from macaron.train.data.rows import SftRow
from macaron.train.data.source import BuildContext, Builder, Packages


class NoPackages:
    def folder(self, requirement: str) -> Path:
        raise AssertionError(f"{requirement} is not needed here")


def build(builder: Builder, limit: int = 0, *, seed: str = "a", packages: Packages | None = None) -> list[SftRow]:
    context = BuildContext(packages=packages or NoPackages(), random=Random(seed), limit=limit)
    built = list(builder(context))
    assert all(isinstance(row, SftRow) for row in built)
    return [row for row in built if isinstance(row, SftRow)]


def real() -> Packages:
    return WheelPackages()
