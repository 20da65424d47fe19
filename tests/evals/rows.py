"""Files of rows, for tests of evaluations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ASKED = {"L0": "hello, how are you?", "L2": "write a python function that sorts a list", "L3": "给我做个 log viewer"}


def plain_rows(*labels: str) -> list[dict[str, Any]]:
    """Rows as other people write them: no id and no kind; two sources in turn."""
    return [
        {"messages": [{"role": "user", "content": ASKED[label]}], "label": label, "source": f"source-{number % 2}"}
        for number, label in enumerate(labels)
    ]


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path
