"""One adapter made part of its base: a model that needs no adapters, in the base's own format."""

from __future__ import annotations

from macaron.models.merge.adapter import Adapter, read_adapter
from macaron.models.merge.folder import merge_safetensors
from macaron.models.merge.model_file import GGUF_TYPES, GgufType, merge_gguf
from macaron.models.merge.output import refuse_existing
from macaron.models.merge.record import Merged, MergeRecord, write_record

__all__ = [
    "GGUF_TYPES",
    "Adapter",
    "GgufType",
    "MergeRecord",
    "Merged",
    "merge_gguf",
    "merge_safetensors",
    "read_adapter",
    "refuse_existing",
    "write_record",
]
