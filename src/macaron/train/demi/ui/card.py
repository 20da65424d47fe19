"""How a template becomes a card: marks filled, optional lines drawn, imports worked out."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from string import Template
from typing import Final

IMPORTS: Final[Mapping[str, tuple[str, ...]]] = {
    "react": ("useEffect", "useState"),
    "$ui4a/ui": (
        "Badge", "Button", "Card", "Checkbox", "Dialog", "Disclosure", "Field", "Grid", "RadioGroup", "Row", "Select",
        "Slider", "Stack", "Stat", "Switch", "Table", "Tabs", "Textarea", "Toast",
    ),
    "$ui4a/ui/charts": (
        "Area", "AreaChart", "Bar", "BarChart", "CartesianGrid", "ChartContainer", "ComposedChart", "Legend", "Line",
        "LineChart", "Pie", "PieChart", "ReferenceLine", "Tooltip", "XAxis", "YAxis",
    ),
    "$ui4a/ui/katex": ("LaTeX",),
    "$ui4a/chat": ("sendAction", "sendMessage"),
    "$ui4a/state": ("usePersistedState",),
}  # fmt: skip
"""What the cards use, in the order in which they import it: a model this small writes one order better than many."""


OPTIONAL_SHARE: Final = 0.3


class Marks(Template):
    """A template with marks such as `@title`."""

    delimiter = "@"
    idpattern = "(?a:[A-Za-z][A-Za-z0-9_]*)"


def render(random: Random, code: str, values: Mapping[str, str]) -> str:
    """The card of a template, as the answer gives it.

    A line that begins with `%` and a letter, in place of two spaces, is optional; the lines of one letter come and go
    together.

    Raises:
        KeyError: the template has a mark without a value.
    """
    body = Marks(_optional(random, code.strip())).substitute(values)
    return f"```tsx\n{imports(body)}\n\n{body}\n```"


def imports(body: str) -> str:
    """The import lines that a card's body needs."""
    lines = []
    for module, names in IMPORTS.items():
        used = [name for name in names if _uses(body, name)]
        if used:
            lines.append(f'import {{ {", ".join(used)} }} from "{module}";')
    return "\n".join(lines)


def _uses(body: str, name: str) -> bool:
    if name[0].islower():
        return f"{name}(" in body
    return any(f"<{name}{end}" in body for end in (" ", ">", "\n"))


def _optional(random: Random, code: str) -> str:
    lines = code.split("\n")
    letters = sorted({line[1] for line in lines if line.startswith("%")})
    drawn = {letter for letter in letters if random.random() < OPTIONAL_SHARE}
    kept = (line for line in lines if not line.startswith("%") or line[1] in drawn)
    return "\n".join("  " + line[2:] if line.startswith("%") else line for line in kept)
