"""The named profiles that ship with the project: HCP documents with their prompts."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from macaron.errors import ConfigError

DOCUMENT = "profile.toml"


def profile_names() -> tuple[str, ...]:
    """The names of the profiles that ship, sorted."""
    return tuple(sorted(path.parent.name for path in Path(__file__).parent.glob(f"*/{DOCUMENT}")))


def find_profile(name_or_path: str | Path) -> Path:
    """The document of a profile.

    A bare word is the name of a profile that ships; anything with a separator, a suffix `.toml`, or a leading dot is a
    path to a document or to the folder of one. Nothing is searched for.

    Raises:
        ConfigError: there is no such profile or file; it names the nearest.
    """
    text = str(name_or_path)
    if isinstance(name_or_path, str) and not _is_path(text):
        return _named(text)
    path = Path(text).expanduser()
    document = path / DOCUMENT if path.is_dir() else path
    if not document.is_file():
        raise ConfigError(f"there is no profile at {document}; name a {DOCUMENT} or its folder", param="profile")
    return document


def _is_path(text: str) -> bool:
    return "/" in text or text.endswith(".toml") or text.startswith((".", "~"))


def _named(name: str) -> Path:
    names = profile_names()
    if name in names:
        return Path(__file__).parent / name / DOCUMENT
    close = get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"profiles that ship: {', '.join(names)}"
    if (Path(name) / DOCUMENT).is_file():
        hint = f"for the folder of that name write ./{name}"
    raise ConfigError(f"there is no profile {name!r}; {hint}", param="profile")
