"""The body of one request to the engine, made of a hop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from macaron.engine.base import ChatMessage, HopRequest
from macaron.engine.llamacpp.prompt import plain_messages
from macaron.engine.llamacpp.tools import CONSUMED, ToolPlan, plan_tools
from macaron.engine.special import SpecialTokens
from macaron.errors import BadRequest

MAX_CHOICES = 128


class Prepared(NamedTuple):
    """A hop as the engine is sent it: messages and other body fields, with control tokens neutralised; the plan for its
    tools; and whether what was sampled is wanted, and log-probabilities in the deltas."""

    messages: Sequence[ChatMessage]
    fields: dict[str, Any]
    plan: ToolPlan
    sampled: bool = False
    logprobs: bool = True


def prepare(hop: HopRequest, special: SpecialTokens) -> Prepared:
    """Everything of the body that does not depend on where and when the hop runs.

    Raises:
        BadRequest: a message or an option cannot be honoured.
    """
    plan = plan_tools(hop.options, keep_shown=hop.kind == "summary")
    given = hop.options.get("chat_template_kwargs")
    kwargs = dict(given) if isinstance(given, Mapping) else {}
    if plan.shown:
        kwargs["tools"] = plan.shown
    messages, shown = special.neutralise_body(plain_messages(hop.messages), {"chat_template_kwargs": kwargs})
    fields = {name: value for name, value in hop.options.items() if name not in (*CONSUMED, "n") and value is not None}
    fields.update(shown)
    if "max_completion_tokens" in fields:
        fields["max_tokens"] = fields.pop("max_completion_tokens")
    if plan.grammar is not None:
        fields["grammar"] = plan.grammar
    if plan.stop:
        fields["stop"] = [*_stops(fields.get("stop")), *plan.stop]
    if not hop.sampled or fields.get("logprobs"):
        return Prepared(messages, fields, plan, hop.sampled)
    # Without at least one alternative the engine gives none of the sampled token either.
    fields |= {"logprobs": True, "top_logprobs": 1}
    return Prepared(messages, fields, plan, sampled=True, logprobs=False)


def prefilled(messages: Sequence[ChatMessage], given: str, prefill: str) -> list[ChatMessage]:
    """The messages with `prefill` as the beginning of the answer, in place of `given` if they end with that."""
    last = messages[-1] if messages else {}
    before = messages[:-1] if given and last == {"role": "assistant", "content": given} else messages
    return [*before, {"role": "assistant", "content": prefill}] if prefill else list(before)


def choice_count(options: Mapping[str, Any]) -> int:
    """How many answers the client wants.

    Raises:
        BadRequest: `n` is not a number from 1 to 128.
    """
    count = options.get("n")
    if count is None:
        return 1
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MAX_CHOICES:
        raise BadRequest(f"n is {count!r}; it must be a whole number from 1 to {MAX_CHOICES}.", param="n")
    return count


def with_seed(fields: dict[str, Any], choice: int) -> dict[str, Any]:
    """The fields for one of several choices, which must not all draw the same numbers."""
    seed = fields.get("seed")
    return {**fields, "seed": seed + choice} if choice and isinstance(seed, int) else fields


def adapter_fields(adapter: int | None) -> dict[str, Any]:
    """What switches one adapter on and every other off: naming none would leave on what the slot ran last."""
    chosen = {"id": 0, "scale": 0.0} if adapter is None else {"id": adapter, "scale": 1.0}
    return {"lora": [chosen]}


def _stops(stop: Any) -> list[Any]:
    return [stop] if isinstance(stop, str) else list(stop or ())
