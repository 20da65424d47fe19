"""The question a route hop asks, as messages. Pure.

The request is quoted as untrusted text. Nothing in it can end the quotation: its closing mark is neutralised inside.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import Literal, NamedTuple

from msgspec import Struct

from macaron.conversation import Item, Media, Message, Step, Text, text_of
from macaron.mol.identity import by_model
from macaron.mol.note import clip, visible_text
from macaron.mol.view import turns

Shape = Literal["instruction_first", "instruction_last"]

BYTES_PER_TOKEN = 3
"""Cautious: a text of 3 bytes a token is rarely more tokens than estimated, and never more than three times as many."""

CONTEXT_TURNS = 6
_QUOTE_MARK = re.compile(r"<(?=[\s/]*(?:request|context)\b)", re.IGNORECASE)


class RouteTemplate(NamedTuple):
    """How a profile asks: its instruction with labels and cards filled in, and the order of things."""

    instruction: str
    shape: Shape
    prefill: str
    input_tokens: int


class Question(Struct, frozen=True):
    """The messages of a route hop, in the neutral form."""

    system: str
    user: str


def request_text(items: Sequence[Item]) -> str:
    """What the user asks now: the user's words after the last answer; media by their kind."""
    recent: list[Message] = []
    last: list[Message] = []
    for item in items:
        if by_model(item):
            recent = []
        elif isinstance(item, Message) and item.role == "user":
            recent.append(item)
            last = [item]
    return "\n".join(map(_words, recent or last))


def context_text(path: Sequence[Step], tokens: int, hidden: Set[str]) -> str:
    """The session's last labels, each with its summary, or with the clipped answer: where there is no summary yet, or
    where the request has no claim on the step's hidden state.
    """
    said = []
    for turn in turns(path)[-CONTEXT_TURNS:]:
        step = turn.end
        made = step.note or step.summary if step.id in hidden else None
        said.append((turn.label, made or visible_text(step.outputs or ())))
    return context_lines(said, tokens)


def context_lines(said: Sequence[tuple[str, str]], tokens: int) -> str:
    """The context of at most about `tokens` from the labels of some turns and what stands for each, oldest first."""
    share = tokens * BYTES_PER_TOKEN // max(len(said), 1)
    return "\n".join(f"{label}: {clip(' '.join(text.split()), share)}" for label, text in said)


def question(template: RouteTemplate, text: str, context: str = "") -> Question:
    """The route hop's prompt for a request and, where the profile shows it, a context of the past."""
    quoted = clip(text, template.input_tokens * BYTES_PER_TOKEN)
    if template.shape == "instruction_last":
        past = f"{context}\n\n" if context else ""
        return Question("", f"{past}{quoted}\n\n{template.instruction}")
    past = f"<context>\n{quote(context)}\n</context>\n" if context else ""
    return Question(template.instruction, f"{past}<request>\n{quote(quoted)}\n</request>")


def quote(text: str) -> str:
    """Text that cannot open or close a quotation: the marks inside are broken by a word joiner."""
    return _QUOTE_MARK.sub("<\u2060", text)


def _words(message: Message) -> str:
    if len(message.parts) == 1 and isinstance(message.parts[0], Text):
        return message.parts[0].text.strip()
    media = [f"[{part.kind}]" for part in message.parts if isinstance(part, Media)]
    return "\n".join([text_of(message.parts), *media]).strip()
