"""Bounds of a contract's numbers. Outside them a service would not start, or would start and not be usable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from macaron.hcp import schema
from macaron.hcp.document import Problem
from macaron.hcp.lines import KeyPath

_DAY = 86_400.0
_PETABYTE = 2**50

_RANGES: Mapping[type[Struct], Mapping[str, tuple[float, float]]] = {
    schema.MolSection: {
        "route_tokens": (1, 1024),
        "summary_tokens": (1, 65_536),
        "route_input_tokens": (16, 1_000_000),
        "summary_wait": (0, 600),
    },
    schema.AdapterEntry: {"rank": (1, 4096)},
    schema.EngineSection: {
        "connections": (1, 65_536),
        "context_length": (256, 100_000_000),
        "adapter_limit": (1, 4096),
    },
    schema.WeightsSection: {"size": (0, _PETABYTE)},
    schema.LlamaCppSection: {
        "slot_context": (256, 16_777_216),
        "slots_per_adapter": (1, 64),
        "threads": (0, 1024),
        "batch": (1, 65_536),
        "batch_requests": (1, 10_000),
        "batch_tokens": (1, 10_000_000),
    },
    schema.HopTimeouts: dict.fromkeys(("route", "answer", "summary", "idle"), (0.1, _DAY)),
    schema.StoreSection: {
        "max_bytes": (1_048_576, _PETABYTE),
        "max_sessions": (1, 1_000_000_000),
        "max_age": (1, 36_500 * _DAY),
    },
    schema.ExperienceSection: {
        "max_bytes": (1_048_576, _PETABYTE),
        "max_age": (1, 36_500 * _DAY),
    },
    schema.ServiceSection: {
        "max_active": (1, 100_000),
        "max_queue": (0, 1_000_000),
        "queue_timeout": (0, 3600),
        "tenant_share": (0.01, 1),
        "max_body_bytes": (1024, 2**31),
        "header_timeout": (0.1, 3600),
        "body_timeout": (0.1, 3600),
        "drain_timeout": (0, 3600),
    },
}


def range_problems(section: Struct, path: KeyPath) -> Iterator[Problem]:
    """Numbers of a section, and of the sections in it, that are out of range."""
    bounds = _RANGES.get(type(section), {})
    for name in section.__struct_fields__:
        value = getattr(section, name)
        if isinstance(value, Struct):
            yield from range_problems(value, (*path, name))
        elif isinstance(value, tuple):
            for index, item in enumerate(value):
                if isinstance(item, Struct):
                    yield from range_problems(item, (*path, name, index))
        elif name in bounds and value is not None and not bounds[name][0] <= value <= bounds[name][1]:
            low, high = bounds[name]
            yield Problem((*path, name), f"must be between {low:g} and {high:g}, the value is {value:g}")
