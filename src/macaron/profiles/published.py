"""`published.toml` beside a profile: what the makers of a model say of weights that are not on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from macaron.errors import ConfigError

PUBLISHED_FILE = "published.toml"
MAX_BYTES = 65_536

_Values = Annotated[int, Meta(ge=1, le=2**62)]
_Rank = Annotated[int, Meta(ge=1, le=4096)]


class PublishedRelease(Struct, frozen=True, forbid_unknown_fields=True):
    """The size in the model's name, and what it counts."""

    label: str
    counts: str


class Published(Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers that hold for one base and for adapters of one rank on it.

    Attributes:
        source: who says so.
        base_values: of the base, in round numbers.
        adapter_values: stored values of each adapter.
        adapter_dtypes: the type of an adapter's values by its label, where it is published.
    """

    source: str
    base: str
    base_values: _Values
    adapter_rank: _Rank
    adapter_values: _Values
    adapter_dtypes: dict[str, Literal["F32", "F16", "BF16"]] = {}
    release: PublishedRelease | None = None


def read_published(folder: Path) -> Published | None:
    """The published numbers of the profile in `folder`; None where there are none.

    Raises:
        ConfigError: the file cannot be read, or a field of it is wrong.
    """
    path = folder / PUBLISHED_FILE
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ConfigError(f"{path} has more than {MAX_BYTES} bytes; it is no table of published numbers")
        return msgspec.toml.decode(raw, type=Published)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise ConfigError(f"{path}: {error}; correct it, or remove the file") from None
