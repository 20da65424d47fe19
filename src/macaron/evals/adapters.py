"""Which adapters an evaluation runs: the profile's own, or those that are named on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from macaron.errors import ConfigError
from macaron.hcp import Loaded
from macaron.train.record import RunRecord

ADAPTER_CONFIG = "adapter_config.json"
RUN_FILE = "run.json"
SUFFIX = ".gguf"


def profile_adapters(loaded: Loaded) -> dict[str, Path]:
    """The adapters that a contract names with `source`, by label.

    Raises:
        ConfigError: one is not there any more.
    """
    return {entry.label: loaded.file(entry.source) for entry in loaded.contract.mol.adapters if entry.source}


def named_adapters(values: Iterable[str]) -> dict[str, Path]:
    """Adapters by name, from `[NAME=]PATH` each.

    A path is a GGUF file, a folder in PEFT's format, a finished run, or a folder that holds such things. Without a
    name, a run's label names it, else the file or folder.

    Raises:
        ConfigError: there is no adapter at a path, a run has none yet, or a name is there twice.
    """
    found: dict[str, Path] = {}
    for value in values:
        name, equals, text = value.partition("=")
        path = Path(text if equals else value).expanduser()
        for own, adapter in _found(path):
            chosen = name if equals else own
            if chosen in found:
                raise ConfigError(f"adapter {chosen!r} is named twice; write NAME=PATH", param="adapters")
            found[chosen] = adapter
    return found


def _found(path: Path) -> list[tuple[str, Path]]:
    one = _single(path)
    several = [one] if one else sorted(_inside(path))
    if not several:
        wanted = f"a {SUFFIX} file, a folder with {ADAPTER_CONFIG}, a finished run, or a folder of these"
        raise ConfigError(f"there is no adapter at {path}; name {wanted}", param="adapters")
    return several


def _inside(path: Path) -> Iterator[tuple[str, Path]]:
    for entry in path.iterdir() if path.is_dir() else ():
        if (one := _single(entry)) is not None:
            yield one


def _single(path: Path) -> tuple[str, Path] | None:
    if path.suffix == SUFFIX and path.is_file():
        return path.stem, path
    if (path / ADAPTER_CONFIG).is_file():
        return _label(path) or path.name, path
    if (path / RUN_FILE).is_file():
        adapter = path / "adapter"
        if not (adapter / ADAPTER_CONFIG).is_file():
            raise ConfigError(f"run {path} has no finished adapter; resume it first", param="adapters")
        return _label(path) or path.name, adapter
    return None


def _label(folder: Path) -> str:
    """The label that `run.json` names, empty where there is no such file."""
    path = folder / RUN_FILE
    if not path.is_file():
        return ""
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunRecord).label
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(f"{path} cannot be read as a run: {error}", param="adapters") from None
