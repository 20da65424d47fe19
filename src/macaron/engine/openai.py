"""The engine that any other compatible server is: hosted, Ollama, a gateway. Only public fields are sent to it."""

from __future__ import annotations

from typing import Any, Final

from macaron.engine.base import Capabilities, Choice, HopRequest
from macaron.engine.http import Deadline, HttpEngine, choice_from
from macaron.engine.link.base import Link
from macaron.engine.refusal import refused_field
from macaron.engine.special import SpecialTokens
from macaron.errors import BadRequest, ContextOverflow

VENDOR_OPTIONS: Final = ("chat_template_kwargs",)


class OpenAIEngine(HttpEngine):
    """A server without adapters: specialists are prompts on one model, or a model each, whose name a hop carries."""

    health_path = None

    def __init__(
        self, link: Link, *, base_model: str, special: SpecialTokens, context_length: int | None = None
    ) -> None:
        super().__init__(link, base_model=base_model, special=special, context_length=context_length)
        self._refused: frozenset[str] = frozenset()

    @property
    def kind(self) -> str:
        """See `Engine.kind`."""
        return "openai"

    @property
    def capabilities(self) -> Capabilities:
        """See `Engine.capabilities`."""
        return Capabilities(adapters=False, context_length=self._context_length)

    async def choose(self, hop: HopRequest) -> Choice:
        """See `Engine.choose`. A field that the server names as unsupported is left out, of this hop and, once it was
        taken without the field, of every later one: an error may quote what a client wrote.
        """
        deadline = Deadline(hop.timeout)
        refused = self._refused
        while True:
            fields = self._route_fields(hop, refused)
            body = self._render(hop, {}, {**fields, **self._address(hop), "stream": False})
            try:
                events = await self._complete(body, deadline.remaining())
            except ContextOverflow:
                raise
            except BadRequest as error:
                field = refused_field(error, fields)
                if field is None:
                    raise
                refused |= {field}
            else:
                self._refused |= refused
                return choice_from(events, hop.choices, "")

    def _address(self, hop: HopRequest) -> dict[str, Any]:
        return {"model": hop.adapter or self._base_model}

    def _constraint(self, hop: HopRequest) -> dict[str, Any]:
        schema = {
            "type": "object",
            "properties": {"label": {"type": "string", "enum": list(hop.choices)}},
            "required": ["label"],
            "additionalProperties": False,
        }
        return {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "route", "strict": True, "schema": schema},
            }
        }

    def _route_fields(self, hop: HopRequest, refused: frozenset[str]) -> dict[str, Any]:
        """No prefill: the public API has no way to go on with an assistant's message."""
        fields: dict[str, Any] = {"temperature": 0, **self._constraint(hop)}
        if (room := hop.options.get("max_tokens")) is not None:
            fields["max_tokens"] = room
        return _without(fields, refused)

    async def _answer_body(self, hop: HopRequest) -> bytes:
        options = {key: value for key, value in hop.options.items() if key not in VENDOR_OPTIONS}
        if hop.kind == "summary":
            # Our own fields, so what the server refused in a route hop is not sent again.
            options = _without(options, self._refused)
        return self._render(hop, options, self._answer_fields(hop))


def _without(fields: dict[str, Any], refused: frozenset[str]) -> dict[str, Any]:
    """Fields of ours without those that a server refuses; `max_tokens` has a newer name."""
    kept = {key: value for key, value in fields.items() if key not in refused}
    if "max_tokens" in fields and "max_tokens" in refused and "max_completion_tokens" not in refused:
        kept["max_completion_tokens"] = fields["max_tokens"]
    return kept
