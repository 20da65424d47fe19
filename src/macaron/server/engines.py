"""Makes the engine a contract asks for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial

from msgspec import Struct

from macaron.engine.base import Engine
from macaron.engine.link import create_link
from macaron.engine.link.base import Limits, Link
from macaron.engine.special import SpecialTokens
from macaron.hcp.schema import Contract, EngineSection
from macaron.registry.cards import Registry


class Embedded(Struct, frozen=True):
    """How a worker reaches the embedded engine that its supervisor runs.

    Attributes:
        weights: the base's file.
        registered: engine names of the adapters beside the profile's that it was started with.
    """

    origin: str
    api_key: str
    weights: str
    registered: tuple[str, ...] = ()


def create_engine(
    contract: Contract,
    registry: Registry,
    *,
    embedded: Embedded | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Engine:
    """The engine of a contract; nothing is connected yet.

    Raises:
        ConfigError: its address or options cannot be used.
    """
    engine = contract.engine
    if engine.kind == "llamacpp":
        assert embedded is not None
        return _llamacpp(contract, registry, embedded)
    link, special = _link(engine, environment), SpecialTokens(engine.special_tokens)
    base, length = engine.base_model or contract.mol.base, engine.context_length
    match engine.kind:
        case "vllm":
            from macaron.engine.vllm import VllmEngine

            return VllmEngine(link, base_model=base, special=special, context_length=length)
        case "sglang":
            from macaron.engine.sglang import SglangEngine

            return SglangEngine(link, base_model=base, special=special, context_length=length)
        case "openai":
            from macaron.engine.openai import OpenAIEngine

            return OpenAIEngine(link, base_model=base, special=special, context_length=length)


def _link(engine: EngineSection, environment: Mapping[str, str]) -> Link:
    key = environment.get(engine.api_key_env, "") if engine.api_key_env else ""
    limits = Limits(connections=engine.connections, idle=engine.timeouts.idle, first_byte=engine.timeouts.answer)
    headers = {"authorization": f"Bearer {key}"} if key else None
    return create_link(engine.link, engine.address, headers=headers, limits=limits)


def _llamacpp(contract: Contract, registry: Registry, embedded: Embedded) -> Engine:
    from macaron.engine.llamacpp.config import EngineConfig
    from macaron.engine.llamacpp.engine import LlamaCppEngine

    engine = contract.engine
    adapters = tuple(item.engine_name for item in registry.specialists if item.engine_name)
    config = EngineConfig(
        origin=embedded.origin,
        api_key=embedded.api_key,
        adapters=adapters,
        registered=embedded.registered,
        specialists=tuple(item.engine_name for item in registry.specialists),
        entry=registry.entry_specialist.engine_name,
        entry_label=registry.entry,
        slots_per_adapter=engine.llamacpp.slots_per_adapter,
        slot_context=engine.llamacpp.slot_context,
        batch_requests=engine.llamacpp.batch_requests,
        batch_tokens=engine.llamacpp.batch_tokens,
        special_tokens=engine.special_tokens,
    )
    return LlamaCppEngine(config, partial(create_link, engine.link))
