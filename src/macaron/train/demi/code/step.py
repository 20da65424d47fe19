"""One step of a chained task: what it takes and gives, its words, and its code in several styles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Literal

import msgspec
from msgspec import Struct

FILES = ("numbers", "words", "texts", "others")
Style = Literal["loop", "index", "skip", "helper", "short"]
_ELEMENTS = {"numbers": "number", "words": "word", "text": "char", "grid": "row"}


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """What is done with the value `IN` to get the value `OUT`.

    Attributes:
        takes, gives: kinds of values, the keys of `values.KINDS`.
        words: an order, if more steps may follow.
        noun: what is returned, if it may be the last step.
        keep: a condition on the element; or
        each: what every element becomes; or
        loop, short: statements and an expression.
        var: the name that `OUT` likes to have.
        parameter, second: name, type and examples of what the caller gives besides.
        order: it only changes the order, which
        free: does not matter to the step.
    """

    name: str
    takes: str
    gives: str
    var: str
    words: str = ""
    noun: str = ""
    keep: str = ""
    each: str = ""
    loop: str = ""
    short: str = ""
    parameter: tuple[str | int, ...] = ()
    second: tuple[str | int, ...] = ()
    order: bool = False
    free: bool = False

    @property
    def parameters(self) -> tuple[tuple[str | int, ...], ...]:
        return tuple(each for each in (self.parameter, self.second) if each)

    @property
    def _element(self) -> str:
        return _ELEMENTS[self.takes]

    def expression(self, given: str) -> str:
        """The step as one expression of the variable `given`, empty if it has none."""
        return re.sub(r"\bIN\b", given, self.short or self._comprehension())

    def statements(self, given: str, result: str, style: Style) -> list[str]:
        """Lines after which the variable `result` holds what the step gives."""
        text = self.loop.strip() or self._written(style) or f"OUT = {self.short}"
        if style == "short" and (short := self.short or self._comprehension()):
            text = f"OUT = {short}"
        return re.sub(r"\bOUT\b", result, re.sub(r"\bIN\b", given, text)).split("\n")

    def _comprehension(self) -> str:
        if not (self.keep or self.each):
            return ""
        items = f"{self.each or self._element} for {self._element} in IN{f' if {self.keep}' if self.keep else ''}"
        return f"''.join({items})" if self.gives == "text" else f"[{items}]"

    def _written(self, style: Style) -> str:
        """A condition or an element's value as a loop."""
        if not (self.keep or self.each):
            return ""
        element, start = self._element, "''" if self.gives == "text" else "[]"
        index = "index" if self.takes == "text" else "i"
        if style == "index":
            element = f"IN[{index}]"
        value = re.sub(rf"\b{self._element}\b", element, self.each) if self.each else element
        add = f"OUT += {value}" if self.gives == "text" else f"OUT.append({value})"
        head = f"for {index} in range(len(IN)):" if style == "index" else f"for {element} in IN:"
        condition = re.sub(rf"\b{self._element}\b", element, self.keep)
        match style:
            case _ if not self.keep:
                lines = [f"    {add}"]
            case "skip":
                opposite = condition.removeprefix("not ") if condition.startswith("not ") else f"not ({condition})"
                lines = [f"    if {opposite}:", "        continue", f"    {add}"]
            case "helper" if not self.parameter and "IN" not in condition:
                helper = [f"def fits_{self.name}({element}):", f"    return {condition}", ""]
                return "\n".join(
                    [*helper, f"OUT = {start}", head, f"    if fits_{self.name}({element}):", f"        {add}"]
                )
            case _:
                lines = [f"    if {condition}:", f"        {add}"]
        return "\n".join([f"OUT = {start}", head, *lines])


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    step: tuple[Step, ...]


def steps() -> Iterator[Step]:
    """Every step, in a fixed order."""
    folder = files("macaron.train.demi.code.steps")
    for name in FILES:
        yield from msgspec.toml.decode(folder.joinpath(f"{name}.toml").read_bytes(), type=_Document).step
