"""The same tool in different clothes: how its functions and parameters are spelt, and how much is described.

Clients name their tools as they like. A specialist that only ever saw one spelling would copy that spelling.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple

from macaron.train.demi.tools.shape import ToolUse, function_tool
from macaron.train.demi.tools.spec import Tool

_NOTES = (
    "Needs a valid session of the account it works on.|Results come in the order of their relevance.|"
    "At most 60 calls a minute are allowed.|Use it only where the user asks for exactly this.|"
    "Fails with an error where nothing is found.|Values are checked before anything is changed.|"
    "The answer may be some minutes old.|Every call is written to the audit log.|Not available in all regions."
)
_DECIDING = ("YYYY-MM-DD", "HH:MM", "(0.05 for 5%)")


class Dress(NamedTuple):
    """Attributes:
    names: `snake`, `camel`, `dotted`, `dotted_camel` or `api`.
    parameters: `snake` or `camel`.
    described: whether parameters carry descriptions.
    long: whether descriptions go on: with a note after a tool's, and with what is left out after a parameter's.
    """

    names: str
    parameters: str
    described: bool
    long: bool = False

    def name(self, family: str, tool: Tool) -> str:
        match self.names:
            case "camel":
                return _camel(tool.name)
            case "dotted":
                return f"{family}.{tool.name}"
            case "dotted_camel":
                return f"{family.capitalize()}.{_camel(tool.name)}"
            case "api":
                return f"{family}_api.{family.capitalize()}Api.{tool.name}"
            case _:
                return tool.name

    def tool(self, family: str, tool: Tool) -> dict[str, Any]:
        """The function tool that a request shows."""
        schema = self._schema(tool.schema)
        notes = _NOTES.split("|")
        note = f" {notes[(len(tool.name) + len(tool.parameters)) % len(notes)]}" if self.long else ""
        return function_tool(self.name(family, tool), tool.description + note, schema)

    def use(self, family: str, tool: Tool, arguments: Mapping[str, Any]) -> ToolUse:
        return ToolUse(self.name(family, tool), {self._spelt(name): value for name, value in arguments.items()})

    def _schema(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        properties = {}
        for name, each in schema["properties"].items():
            shown = self._property(dict(each), top=True)
            if self.long and shown.get("description") and name not in schema["required"]:
                shown["description"] += f" Default is {_told(each['default'])}." if "default" in each else " Optional."
            properties[self._spelt(name)] = shown
        required = [self._spelt(name) for name in schema["required"]]
        return {"type": "object", "properties": properties, "required": required}

    def _property(self, each: dict[str, Any], *, top: bool) -> dict[str, Any]:
        # A format is no decoration: without it the value could not be known.
        if not (self.described and top) and not each.get("description", "").endswith(_DECIDING):
            each.pop("description", None)
        if "properties" in each:
            each["properties"] = {
                name: self._property(dict(part), top=False) for name, part in each["properties"].items()
            }
        return each

    def _spelt(self, name: str) -> str:
        return _camel(name) if self.parameters == "camel" else name


def draw(random: Random, described: float = 0.5, long: float = 0.0) -> Dress:
    """Plain snake case half of the time; `described` is the share of those with described parameters, and `long` of
    these the share of those with long descriptions."""
    names = random.choice(("snake", "snake", "snake", "snake", "camel", "dotted", "dotted_camel", "api"))
    parameters = "camel" if names.endswith("camel") and random.random() < 0.5 else "snake"
    is_described = random.random() < described
    return Dress(names, parameters, is_described, is_described and random.random() < long)


def _told(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
