"""Notes: the short text that stands for a turn in other specialists' views. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from macaron.conversation import Item, Message, ToolCall, text_of
from macaron.mol.view import Turn

BYTES_PER_TOKEN = 4
"""What a token is worth when a text has to be cut without asking a tokenizer."""

CUT = " […] "


def clip(text: str, limit: int) -> str:
    """A text of at most about `limit` bytes of UTF-8: its head and its tail, the cut marked."""
    if len(text) <= limit // 4 or len(data := text.encode()) <= limit:
        return text
    head = data[: limit * 2 // 3].decode(errors="ignore")
    tail = data[len(data) - limit // 3 :].decode(errors="ignore")
    return head.rstrip() + CUT + tail.lstrip()


def visible_text(items: Sequence[Item]) -> str:
    """What the client could read of some items."""
    texts = (text_of(item.parts) for item in items if isinstance(item, Message))
    return "\n".join(text for text in texts if text)


def clipped_note(turn: Turn, tokens: int) -> str:
    """The note that needs no summary: the visible answer, cut; a turn that was left in a tool loop names its calls."""
    outputs = turn.end.outputs or ()
    text = visible_text(outputs).strip()
    if any(isinstance(item, ToolCall) for item in outputs):
        calls = (item for step in turn.steps for item in step.outputs or () if isinstance(item, ToolCall))
        text = f"called {', '.join(dict.fromkeys(call.name for call in calls))}. {text}".strip()
    return clip(text, tokens * BYTES_PER_TOKEN) or "no text"
