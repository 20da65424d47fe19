"""What a bank of tools is written in: a tool, what users say to have it called, and what follows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from macaron.train.demi.tools.slots import Said, Slot

_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_FIELD = re.compile(r"\{(\w+)\}")


class Ask(NamedTuple):
    """A request that lacks a required value, and the question it deserves."""

    request: str
    question: str


class Done(NamedTuple):
    """What a tool returned and the sentence that tells the user, which may name arguments and returned values."""

    returned: Mapping[str, Slot]
    sentence: str


class Tool(NamedTuple):
    """One function with its requests.

    Attributes:
        description: an imperative sentence.
        parameters: by name, in the order that calls use. Those that every request says outside brackets are required.
        requests: what users say, with `{parameter}` for a value and `[…]` around what is said only sometimes.
    """

    name: str
    description: str
    parameters: Mapping[str, Slot]
    requests: Sequence[str]
    asks: Sequence[Ask] = ()
    done: Done | None = None

    @property
    def required(self) -> list[str]:
        """Parameters that every request says."""
        always = [set(_FIELD.findall(_OPTIONAL.sub("", request))) for request in self.requests]
        return [name for name in self.parameters if all(name in said for said in always)]

    @property
    def schema(self) -> dict[str, Any]:
        properties = {name: dict(slot.schema) for name, slot in self.parameters.items()}
        return {"type": "object", "properties": properties, "required": self.required}


class Spoken(NamedTuple):
    """A request as a user says it, and the values it gives."""

    request: str
    said: Mapping[str, Said]

    @property
    def arguments(self) -> dict[str, Any]:
        return {name: said.value for name, said in self.said.items()}


def speak(tool: Tool, request: str, random: Random) -> Spoken:
    """`request` of `tool` with values drawn for what it says."""
    pattern = _OPTIONAL.sub(lambda found: found[1] if random.random() < 0.5 else "", request)
    named = set(_FIELD.findall(pattern))
    said = {name: slot.draw(random) for name, slot in tool.parameters.items() if name in named}
    return Spoken(_FIELD.sub(lambda found: said[found[1]].text, pattern), said)
