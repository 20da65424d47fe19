"""A service in which L2 answers what is about code, at length, and others then need a note of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.doubles.engine_double import EngineDouble, Reply, Seen
from tests.harness import Running
from tests.mol.talk import LONG, is_summary, said, shown, user

CODE = [user("write code")]
NOTE = "[summary of L2's answer: {}]"


def engine(summary: Callable[[], Reply | str], answer: str = LONG) -> Callable[[Seen], Reply | str]:
    """L2 for code, L3 for pages, else L1; long answers."""

    def script(seen: Seen) -> Reply | str:
        if seen.is_route:
            asked = seen.body["messages"][-1]["content"]
            return "L2" if "code" in asked else "L3" if "page" in asked else "L1"
        return summary() if is_summary(seen) else answer

    return script


def answers(double: EngineDouble) -> list[Seen]:
    return [seen for seen in double.requests if not seen.is_route and not is_summary(seen)]


def note(double: EngineDouble) -> str:
    """The note of the first turn in the newest answer hop."""
    text: str = shown(answers(double)[-1])[1]["content"]
    return text


async def coded(running: Running, **fields: Any) -> list[dict[str, Any]]:
    """A conversation of one turn, answered by L2."""
    return [*CODE, said(await running.client.chat(CODE, **fields))]
