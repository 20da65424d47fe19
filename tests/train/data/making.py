"""Rows and recipes for tests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from macaron.errors import ConfigError
from macaron.train.data.recipe import Recipe, load_recipe
from macaron.train.data.rows import AnyRow, PreferenceRow, RouteRow, SftRow

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"properties": {"city": {"type": "string"}}}}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def calling(arguments: str = '{"city":"Rome"}', call_id: str = "c1") -> dict[str, Any]:
    function = {"name": "weather", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def answered(text: str, call_id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "content": text, "tool_call_id": call_id}


def sft(row_id: str, question: str = "", answer: str = "yes", **fields: Any) -> SftRow:
    fields.setdefault("messages", (user(question or f"question number {row_id}"), assistant(answer)))
    return SftRow(**{"id": row_id, "source": "made", **fields})


def route(row_id: str, question: str = "", label: str = "L1", **fields: Any) -> RouteRow:
    fields.setdefault("messages", (user(question or f"request number {row_id}"),))
    return RouteRow(**{"id": row_id, "source": "made", "label": label, **fields})


def preference(row_id: str, **fields: Any) -> PreferenceRow:
    given = {"prompt": (user("which?"),), "chosen": (assistant("this"),), "rejected": (assistant("that"),), **fields}
    return PreferenceRow(**{"id": row_id, "source": "made", **given})


def write_rows(path: Path, rows: Iterable[AnyRow]) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return path


def recipe_of(folder: Path, text: str, **sources: Iterable[AnyRow]) -> Recipe:
    """A recipe of files of rows; `text` may hold other tables, and keys of sources in lines `name: key = value`."""
    extra: dict[str, list[str]] = {}
    tables: list[str] = []
    for line in text.strip().splitlines():
        name, colon, key = line.strip().partition(": ")
        if colon and name in sources:
            extra.setdefault(name, []).append(key)
        else:
            tables.append(line.strip())
    lines = ['name = "made"', "seed = 1", *tables]
    for name, rows in sources.items():
        write_rows(folder / f"{name}.jsonl", rows)
        lines += ["[[source]]", f'name = "{name}"', f'path = "{name}.jsonl"', 'licence = "MIT"', *extra.get(name, [])]
    path = folder / "made.toml"
    path.write_text("\n".join(lines))
    return load_recipe(path)


class NoPackages:
    """Packages where there are none."""

    def folder(self, requirement: str) -> Path:
        raise ConfigError(f"there is no {requirement}")
