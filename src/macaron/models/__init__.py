"""Model files: fetching weights once, checked, and reading what a GGUF file says about itself."""

from __future__ import annotations

from macaron.models.download import Patience
from macaron.models.fetch import cached_path, default_cache, fetch_weights, is_cached
from macaron.models.files import sha256_of
from macaron.models.gguf import Dimensions, GgufInfo, read_gguf
from macaron.models.progress import Progress, Stage, silent

__all__ = [
    "Dimensions",
    "GgufInfo",
    "Patience",
    "Progress",
    "Stage",
    "cached_path",
    "default_cache",
    "fetch_weights",
    "is_cached",
    "read_gguf",
    "sha256_of",
    "silent",
]
