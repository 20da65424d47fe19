"""Hops with plain defaults, for tests of engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from macaron.engine.base import ChatMessage, HopRequest

LABELS = ("L0", "L1", "L2", "L3")
HELLO: tuple[ChatMessage, ...] = ({"role": "user", "content": "hello"},)


def answer_hop(
    *,
    messages: Sequence[ChatMessage] = HELLO,
    options: Mapping[str, Any] | None = None,
    adapter: str | None = "L2",
    stream: bool = True,
    tenant: str = "",
    timeout: float = 10.0,
) -> HopRequest:
    """An answer hop on adapter L2."""
    return HopRequest(
        kind="answer",
        adapter=adapter,
        messages=messages,
        options=options or {},
        stream=stream,
        tenant=tenant,
        timeout=timeout,
    )


def route_hop(
    *,
    messages: Sequence[ChatMessage] = HELLO,
    options: Mapping[str, Any] | None = None,
    adapter: str | None = "L0",
    choices: tuple[str, ...] = LABELS,
    prefill: str = "",
) -> HopRequest:
    """A route hop on L0, with the options a profile gives it."""
    return HopRequest(
        kind="route",
        adapter=adapter,
        messages=messages,
        options={"max_tokens": 24} if options is None else options,
        stream=False,
        choices=choices,
        prefill=prefill,
        timeout=10.0,
    )
