"""`adapter_config.json`: every option that is wrong, and what the engine's limits say of the others."""

from __future__ import annotations

from collections.abc import Iterator

from macaron.models.document import DuplicateKeyError, NotAnObjectError, parse_object
from macaron.models.peft import CONFIG_FILE, AdapterConfig, config_of, problems_of
from macaron.registry.check.report import Finding, Limits, Refused, error, sentence, shown, warning


def read_config(raw: bytes, limits: Limits) -> tuple[AdapterConfig, list[Finding]]:
    """The options, and everything that is wrong with them.

    Raises:
        Refused: it is no JSON object, or has a key twice.
    """
    try:
        table = parse_object(raw)
    except DuplicateKeyError as problem:
        reason = "The key is there twice, and two readers would see different values."
        raise Refused(error("duplicate_key", CONFIG_FILE, problem.key, reason, "Keep one of them.")) from None
    except NotAnObjectError as problem:
        reason = f"It is no JSON object: {shown(problem)}."
        raise Refused(error("bad_config", CONFIG_FILE, "", reason, "Save the adapter again with PEFT.")) from None
    config = config_of(table)
    findings = [
        error(wrong.code, f"{CONFIG_FILE}: {wrong.option}", wrong.value, sentence(wrong.reason), sentence(wrong.remedy))
        for wrong in problems_of(table)
    ]
    return config, [*findings, *_limited(config.rank, limits)]


def _limited(rank: int, limits: Limits) -> Iterator[Finding]:
    if limits.max_rank is not None and rank > limits.max_rank:
        reason = f"The engine takes ranks up to {limits.max_rank}."
        remedy = f"Start the engine with a maximum of {rank} or more, or train with a lower rank."
        yield error("rank_too_high", f"{CONFIG_FILE}: r", rank, reason, remedy)
    elif limits.usual_rank is not None and rank > limits.usual_rank:
        reason = f"The engine takes ranks up to {limits.usual_rank} unless it was started with another maximum."
        yield warning("rank_limit", f"{CONFIG_FILE}: r", rank, reason, f"Start vLLM with --max-lora-rank {rank}.")
