"""A row in the terminal, as a person reads a chat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from macaron.train.data.rows import AnyRow, PreferenceRow, RouteRow, SftRow
from macaron.train.data.show import kind_of

CLIPPED = 1200
INDENT = 6
_STYLES = {"system": "dim", "developer": "dim", "user": "cyan", "assistant": "green", "tool": "yellow"}
_PALETTE = ("magenta", "blue", "green", "yellow", "cyan", "red")
_CONTROL = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"} | {127: "\u2421"}
# Characters that turn the direction of text can hide what a row really says.
_TURNING = {code: f"<U+{code:04X}>" for code in (*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def render_row(row: AnyRow, *, whole: bool = False) -> Iterator[RenderableType]:
    """The parts of a row, from top to bottom.

    Args:
        whole: shows long texts and the tools' schemas in full; else they are clipped, with their length.
    """
    yield Rule(Text.assemble((visible(row.id), "bold"), "  ", *_facts(row)), align="left")
    match row:
        case SftRow():
            yield from _tools(row.tools, whole)
            yield from _messages(row.messages, whole)
        case PreferenceRow():
            yield from _tools(row.tools, whole)
            yield from _messages(row.prompt, whole)
            yield Text("chosen", style="bold green")
            yield from _messages(row.chosen, whole)
            yield Text("rejected", style="bold red")
            yield from _messages(row.rejected, whole)
        case RouteRow():
            yield from _messages(row.messages, whole)
            yield Text.assemble("answered by ", (visible(row.label), f"bold {label_style(row.label)}"))


def label_style(label: str) -> str:
    """The colour of a label, always the same one."""
    return _PALETTE[sum(label.encode()) % len(_PALETTE)]


def visible(text: str) -> str:
    """A text without characters that could steer the terminal."""
    return text.translate(_CONTROL | _TURNING)


def _facts(row: AnyRow) -> Iterator[tuple[str, str]]:
    facts = [kind_of(row), f"source {row.source}", *([f"group {row.group}"] if row.group else []), row.language]
    yield visible(" · ".join(facts)), "dim"


def _tools(tools: Sequence[Mapping[str, Any]], whole: bool) -> Iterator[RenderableType]:
    for tool in tools:
        function = tool["function"]
        properties = function.get("parameters", {}).get("properties")
        names = ", ".join(properties) if isinstance(properties, Mapping) else ""
        yield Text(visible(f"tool {function['name']}({names})"), style="yellow")
        if whole:
            yield Padding(Text(visible(str(function)), style="dim"), (0, 0, 0, 2))


def _messages(messages: Sequence[Mapping[str, Any]], whole: bool) -> Iterator[RenderableType]:
    for message in messages:
        role = message["role"]
        style = _STYLES[role]
        body = Text(_clip(message.get("content") or "", whole))
        for call in message.get("tool_calls") or ():
            function = call["function"]
            body.append("\n" if body else "")
            body.append(_clip(f"→ {function['name']}({function['arguments']})", whole), style="yellow")
        title = Text(role, style=style)
        if label := message.get("label"):
            title.append(f" {visible(label)}", style=label_style(label))
        bubble = Panel(body, title=title, title_align="left", border_style=style, expand=False)
        # The person's side is on the left, as in a chat.
        yield Padding(bubble, (0, 0, 0, INDENT) if role == "assistant" else (0, INDENT, 0, 0))


def _clip(text: str, whole: bool) -> str:
    shown = visible(text)
    if whole or len(shown) <= CLIPPED:
        return shown
    return f"{shown[:CLIPPED]}… ({len(shown) - CLIPPED:,} more characters)"
