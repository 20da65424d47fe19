"""Rows as the very text that serving would show to the model: same prompts, same template, same neutralised tokens.

Nothing here decides anything about a prompt: messages are made by the renderers of the heart and of the embedded
engine, and this module only runs the profile's template over them. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from macaron.conversation import Message, Part, Text
from macaron.engine.base import ChatMessage, HopRequest
from macaron.engine.llamacpp.request import prepare
from macaron.engine.special import SpecialTokens
from macaron.errors import ConfigError
from macaron.mol.identity import canonical_tools
from macaron.mol.prompt import view_messages
from macaron.mol.view import Head, View

LEADING = ("system", "developer")


class Segment(NamedTuple):
    """A piece of a rendered conversation; `learned` is what the model itself would have written there."""

    text: str
    learned: bool


class ChatTemplate:
    """A chat template, run as the embedded engine runs it.

    Args:
        source: Jinja.
        special: the control tokens that messages must not contain.

    Raises:
        ConfigError: it is not a Jinja template.
    """

    def __init__(self, source: str, special: SpecialTokens, *, bos: str = "", eos: str = "") -> None:
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.filters["tojson"] = _tojson
        environment.globals.update(raise_exception=_refuse, bos_token=bos, eos_token=eos)
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise ConfigError(f"the chat template cannot be read: {error}", param="engine.llamacpp") from None
        self._special = special

    def render(self, messages: Sequence[ChatMessage], shown: Mapping[str, Any], *, generate: bool) -> str:
        """The text of prepared messages, with the beginning of an answer where `generate`.

        Raises:
            ConfigError: the template refuses the messages.
        """
        from jinja2 import TemplateError

        try:
            return self._template.render(messages=messages, add_generation_prompt=generate, **shown)
        except TemplateError as error:
            raise ConfigError(f"the chat template refuses the messages: {error}", param="messages") from None

    def prompt(self, messages: Sequence[ChatMessage]) -> str:
        """The prompt of an answer to some messages."""
        prepared = prepare(HopRequest("answer", None, messages, {}), self._special)
        return self.render(prepared.messages, prepared.fields["chat_template_kwargs"], generate=True)

    def segments(self, messages: Sequence[ChatMessage], tools: Sequence[dict[str, Any]]) -> list[Segment]:
        """A conversation cut where the model begins and ends to speak, up to the end of its last message.

        Raises:
            BadRequest: a message or a tool has no shape that can be shown.
            ConfigError: what was shown before a message does not begin what is shown after it, so that no mask can say
                which tokens are the model's.
        """
        prepared = prepare(HopRequest("answer", None, messages, {"tools": list(tools)}), self._special)
        shown = prepared.fields["chat_template_kwargs"]
        found: list[Segment] = []
        done = ""
        for at, message in enumerate(prepared.messages):
            if message["role"] == "assistant":
                before = self.render(prepared.messages[:at], shown, generate=True)
                after = self.render(prepared.messages[: at + 1], shown, generate=False)
                if not before.startswith(done) or not after.startswith(before):
                    raise _lost_mask(at)
                found += Segment(before[len(done) :], False), Segment(after[len(before) :], True)
                done = after
        return found


def chat_messages(identity: str, messages: Sequence[ChatMessage], *, merge_system: bool = True) -> list[ChatMessage]:
    """The messages of an answer hop: the specialist's identity and the client's leading system run, then the rest."""
    run = list(takewhile(lambda message: message.get("role") in LEADING, messages))
    system = tuple(Message("system", _parts(message.get("content"))) for message in run)
    head = view_messages(View(Head(identity, system, ()), ()), merge_system=merge_system)
    rest = [{**message, "role": _role(message)} for message in messages[len(run) :]]
    return [*head, *rest]


def shown_tools(tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tools in the order in which serving shows them."""
    return list(canonical_tools(tools))


def _parts(content: Any) -> tuple[Part, ...]:
    """The content of a row's message, which is text or nothing."""
    return (Text(content),) if isinstance(content, str) else ()


def _role(message: ChatMessage) -> Any:
    return "system" if message.get("role") == "developer" else message.get("role")


def _tojson(value: Any, indent: int | None = None) -> str:
    """JSON as the engine's own template writes it, which keeps six digits of a number that is not whole. (Indented, a
    number is written in full.)"""
    if indent is not None:
        return json.dumps(value, ensure_ascii=False, indent=indent)
    match value:
        case dict():
            pairs = (f"{_tojson(str(key))}: {_tojson(held)}" for key, held in value.items())
            return f"{{{', '.join(pairs)}}}"
        case list() | tuple():
            return f"[{', '.join(map(_tojson, value))}]"
        case float():
            return format(value, ".6g")
        case _:
            return json.dumps(value, ensure_ascii=False)


def _refuse(message: str) -> str:
    from jinja2 import TemplateError

    raise TemplateError(message)


def _lost_mask(at: int) -> ConfigError:
    return ConfigError(
        f"the template loses the assistant mask: it shows what precedes messages.{at} in another way once that message "
        "is there; use a template that only ever appends",
        param="engine.llamacpp.chat_template_path",
        code="mask_lost",
    )
