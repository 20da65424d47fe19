"""Ask a running service for the entries of held-out references: who answers, and how often every field is right.

    python examples/cite/measure.py build/cite/data/test.jsonl

Each reference is asked as anybody would, and once more of the specialist that would have answered without the newcomer.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from rich.console import Console
from rich.progress import track
from rich.table import Table

from macaron.cli.connect import DEFAULT_URL, client
from macaron.evals.stats import mcnemar, wilson
from macaron.train.data.read import read_rows
from macaron.train.data.rows import SftRow

FIELD = re.compile(r"(\w+) = \{([^{}]*)\}")
AT_ONCE = 4


class Asked(NamedTuple):
    """An answer: who gave it, and whether it is right."""

    label: str
    right: bool


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path, help="held-out rows, as `macaron data build` wrote them")
    parser.add_argument("--url", default=DEFAULT_URL)
    parser.add_argument("--newcomer", default="L4")
    parser.add_argument("--instead", default="L2", help="who would have answered before")
    parser.add_argument("--limit", type=int, default=0)
    given = parser.parse_args()
    rows = [row for row in read_rows(given.rows) if isinstance(row, SftRow)][: given.limit or None]
    async with client(given.url) as session:
        routed = await ask_all(session, rows, {}, "as routed")
        pinned = await ask_all(session, rows, {"x-macaron-adapter": given.instead}, f"asked of {given.instead}")
    report(given.newcomer, given.instead, routed, pinned)


async def ask_all(
    session: aiohttp.ClientSession, rows: list[SftRow], headers: dict[str, str], what: str
) -> list[Asked]:
    """All answers, in the rows' order."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(row: SftRow) -> Asked:
        async with places:
            return await ask(session, row, headers)

    tasks = [asyncio.create_task(one(row)) for row in rows]
    return [await task for task in track(tasks, what)]


async def ask(session: aiohttp.ClientSession, row: SftRow, headers: dict[str, str]) -> Asked:
    """One answer."""
    body = {"model": "macaron-demi", "messages": [row.messages[0]], "temperature": 0, "max_tokens": 300}
    async with session.post("/v1/chat/completions", json=body, headers={"x-macaron-trace": "1", **headers}) as response:
        response.raise_for_status()
        answer: dict[str, Any] = await response.json()
    said = answer["choices"][0]["message"]["content"] or ""
    right = entry(said) == entry(row.messages[1]["content"])
    return Asked(response.headers["x-macaron-adapter"], right)


def entry(text: str) -> tuple[str, dict[str, str]]:
    """Kind and fields of the entry in a text; the key is anybody's choice."""
    kind = re.search(r"@(\w+)\{", text)
    return (kind[1].lower() if kind else ""), dict(FIELD.findall(text))


def report(newcomer: str, instead: str, routed: list[Asked], pinned: list[Asked]) -> None:
    """Print the counts with their 95 % intervals."""
    n = len(routed)
    table = Table("", "of", "share", "95 %")
    rows = {
        f"routed to {newcomer}": sum(asked.label == newcomer for asked in routed),
        "every field right, as routed": sum(asked.right for asked in routed),
        f"every field right, {instead}": sum(asked.right for asked in pinned),
    }
    for what, count in rows.items():
        interval = wilson(count, n)
        table.add_row(what, f"{count}/{n}", f"{count / n:.1%}", f"{interval.low:.1%} to {interval.high:.1%}")
    Console().print(table)
    gained = sum(a.right and not b.right for a, b in zip(routed, pinned, strict=True))
    lost = sum(b.right and not a.right for a, b in zip(routed, pinned, strict=True))
    Console().print(f"only as routed {gained}, only {instead} {lost}; McNemar p = {mcnemar(gained, lost):.2g}")


if __name__ == "__main__":
    asyncio.run(main())
