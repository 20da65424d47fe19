"""Which of several processes of one run this is, as `accelerate launch` and `torchrun` say it."""

from __future__ import annotations

import os


def process_count() -> int:
    """How many processes work on the run together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main() -> bool:
    """Whether this process is the one that writes."""
    return os.environ.get("RANK", "0") == "0"
