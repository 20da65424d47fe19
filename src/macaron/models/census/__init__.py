"""What is resident when a model is served: stored values, types and bytes, from the headers of files alone."""

from __future__ import annotations

from macaron.models.census.cache import KvCache
from macaron.models.census.count import Census, Count, Part, Release, Total, Weights
from macaron.models.census.folder import adapter_part, base_part, inspect_path

__all__ = [
    "Census",
    "Count",
    "KvCache",
    "Part",
    "Release",
    "Total",
    "Weights",
    "adapter_part",
    "base_part",
    "inspect_path",
]
