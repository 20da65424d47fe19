"""Server-sent events on the wire."""

from __future__ import annotations

DONE = b"data: [DONE]\n\n"
PING = b": ping\n"
"""Keeps a connection open. One line end only and no `id`: some clients crash on a block without data."""


def event(data: bytes) -> bytes:
    """One event whose data is a single line, as JSON without line ends is."""
    return b"data: " + data + b"\n\n"
