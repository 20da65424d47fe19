"""Other spellings that HCP version 1 allows, brought to one, so that a digest does not depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from macaron.errors import ConfigError


class _Alias(NamedTuple):
    """In the table at `table`, where `*` stands for any name, `alias` means `name`."""

    table: tuple[str, ...]
    alias: str
    name: str


_ALIASES = (
    _Alias((), "prompt_templates", "prompts"),
    _Alias(("model",), "model", "id"),
    _Alias(("model",), "model_env", "id_env"),
    _Alias(("tools",), "names", "allow"),
    _Alias(("mcp",), "mcpServers", "servers"),
    _Alias(("mcp", "servers", "*"), "bearerTokenEnv", "bearer_token_env"),
    _Alias(("session",), "session_path", "path"),
)


def normalise(table: Mapping[str, Any]) -> dict[str, Any]:
    """A document with every listed alias replaced by its name; unknown keys stay as they are.

    Raises:
        ConfigError: an alias and its name are both there.
    """
    return _normalised(table, ())


def _normalised(table: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    names = {item.alias: item.name for item in _ALIASES if _matches(item.table, path)}
    result: dict[str, Any] = {}
    for key, value in table.items():
        name = names.get(key, key)
        if name != key and name in table:
            place = ".".join((*path, key))
            raise ConfigError(f"{place} is another spelling of {name}, which is there too; keep one", param=place)
        result[name] = _normalised(value, (*path, name)) if isinstance(value, Mapping) else value
    return result


def _matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    return len(pattern) == len(path) and all(wanted in ("*", part) for wanted, part in zip(pattern, path, strict=True))
