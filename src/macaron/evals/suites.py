"""The task suites by name, and the specialist whose kind each one is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from macaron.errors import ConfigError
from macaron.evals.suite import Suite
from macaron.train.data.source import Packages

HEADS: Final[Mapping[str, str]] = MappingProxyType({"tools": "L1", "code": "L2", "ui": "L3"})
"""Under whose identity a suite is put to every subject, so that subjects differ by their adapter only."""


def open_suite(name: str, packages: Packages, briefs: Path | None = None) -> Suite:
    """A task suite; its cases are read when they are asked for.

    Args:
        packages: where `tools` and `code` read other people's cases.
        briefs: briefs that others have written, for `ui`.

    Raises:
        ConfigError: there is no such suite, or it takes no briefs.
    """
    if briefs is not None and name != "ui":
        raise ConfigError(f"briefs are for the suite ui, not for {name!r}; leave them out", param="briefs")
    match name:
        case "tools":
            from macaron.evals.tools import ToolsSuite

            return ToolsSuite(packages)
        case "code":
            from macaron.evals.code import CodeSuite

            return CodeSuite(packages)
        case "ui":
            from macaron.evals.ui import UiSuite

            return UiSuite(briefs)
        case _:
            raise ConfigError(f"there is no suite {name!r}; there are {', '.join(HEADS)}", param="suite")
