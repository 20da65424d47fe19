"""The model's side for test suites of other people: an engine double that calls what it is asked to call."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

from macaron.hcp import load
from tests.doubles.engine_double import Call, EngineDouble, Reply, Seen
from tests.harness import Running, serve, write_profile

NAME = "gpt-5-double"
"""Suites try some things only on models whose names say that they can do them."""


def obliging(seen: Seen) -> Reply:
    """Calls the first tool where one is offered, and thinks where an effort is asked for."""
    if seen.is_route and seen.body.get("max_tokens") == 24:
        return Reply("L1")
    tools = seen.body.get("tools")
    if tools and seen.body.get("tool_choice") != "none" and seen.body["messages"][-1]["role"] != "tool":
        return Reply(calls=(Call(tools[0]["function"]["name"], '{"location": "San Francisco"}'),))
    return Reply("Hello there, friend", reasoning="a short thought" if seen.body.get("reasoning_effort") else "")


@contextlib.asynccontextmanager
async def serving(folder: Path) -> AsyncGenerator[Running]:
    """A service in front of the double."""
    async with EngineDouble(obliging) as double:
        document = write_profile(folder, double.origin, mol=f'aliases = ["{NAME}"]')
        async with serve(load(document)) as running:
            yield running
