"""How people ask for a function, and how the answer is written."""

from __future__ import annotations

import re
from random import Random
from typing import Any

from macaron.train.demi.code import present
from macaron.train.demi.code.function import Function

_COMPLETE = (
    "Complete this function:",
    "Complete the following Python function.",
    "Fill in the body of this function:",
    "Finish this Python function so that its examples work:",
    "Implement this:",
    "Complete this function. Give the whole function in one python block.",
    "Write this Python function. Answer with one fenced block.",
)
_WHOLE = "Answer with the whole function in one fenced python block."
_TASKS = ("Complete this Python function.", "Write this Python function.")
_GAPS = ("\n", "\n\n")
_VERBS = frozenset((
    "add", "append", "apply", "break", "build", "capitalize", "center", "change", "check", "clear", "collect",
    "combine", "compare", "compress", "compute", "convert", "count", "create", "cut", "deal", "decide", "decode",
    "delete", "divide", "draw", "drop", "emit", "encode", "evaluate", "exchange", "execute", "expand", "extract",
    "fill", "filter", "find", "flatten", "format", "generate", "get", "give", "group", "guess", "hide", "index",
    "insert", "interleave", "iterate", "join", "keep", "limit", "list", "look", "make", "map", "measure", "merge",
    "move", "multiply", "order", "pack", "pair", "parse", "partition", "print", "produce", "raise", "read", "reduce",
    "remove", "replace", "restore", "return", "reverse", "rotate", "round", "run", "search", "select", "shift",
    "shorten", "show", "skip", "sort", "split", "strip", "sum", "swap", "take", "tell", "test", "transform",
    "transpose", "trim", "turn", "update", "walk", "wrap", "write", "yield",
))  # fmt: skip
"""First words of a docstring that say what a function does as an order."""
_ENDINGS = re.compile(r"(s|sh|ch|x|z|o)\Z")


def complete(function: Function, random: Random) -> str:
    """The head and docstring in a fence, to be completed; sometimes without any fence and words."""
    shown = present.head(function, random)
    form = random.random()
    if form < 0.1:
        return shown + "\n"
    if form < 0.6:
        return f"{random.choice(_TASKS)} {_WHOLE}\n\n```python\n{shown}\n```"
    return f"{random.choice(_COMPLETE)}{random.choice(_GAPS)}```python\n{shown}\n```"


def placed(function: Function, random: Random) -> str:
    """The head and docstring to be completed where the imports that it needs are said to be there already."""
    there = ", ".join(f"`{line}`" for line in function.imports)
    shown = present.head(function._replace(imports=()), random)
    return f"{random.choice(_TASKS)} These imports are in place: {there}. {_WHOLE}\n\n```python\n{shown}\n```"


def plain(function: Function, random: Random) -> str:
    """A request in words, with the name and sometimes an example."""
    first, rest = _sentences(function.prose)
    if function.is_class:
        opening = f"Write a Python class `{function.name}`: {_lowered(first)}"
        return " ".join(part for part in (opening, rest) if part)
    call = f"`{function.name}({', '.join(function.parameters)})`"
    if not is_order(first):
        return " ".join(
            part for part in (f"Write a function {call}. {first}", rest, _example(function, random)) if part
        )
    openings = (
        f"Write a function {call} that {third_person(first)}",
        f"Write a Python function {call} that {third_person(first)}",
        f"I need a function {call} in Python. It {third_person(first)}",
        f"Please implement {call}: {_lowered(first)}",
        f"{first} Call it as {call}.",
    )
    return " ".join(part for part in (random.choice(openings), rest, _example(function, random)) if part)


def nameless(function: Function, random: Random) -> str:
    """A request that leaves the name to the answer."""
    first, rest = _sentences(function.prose)
    if function.is_class:
        return " ".join(part for part in (f"I need a class in Python: {_lowered(first)}", rest) if part)
    openings = (
        f"Write Python code to {_lowered(first)}",
        f"How do I do this in Python? {first}",
        f"I want a Python function that {third_person(first)}",
        f"python: {_lowered(first)}",
    )
    return " ".join(part for part in (random.choice(openings), rest) if part)


def answer(code: str, remark: str = "", language: str = "python") -> dict[str, Any]:
    """One fenced block, and then at most a sentence."""
    block = f"```{language}\n{code.rstrip()}\n```"
    return {"role": "assistant", "content": f"{block}\n{remark}" if remark else block}


def remark(function: Function) -> str:
    """A sentence about the function that its docstring supports."""
    first, _ = _sentences(function.prose)
    if function.is_class:
        return f"`{function.name}` is {_lowered(first)}"
    if not is_order(first):
        return ""
    return f"`{function.name}` {third_person(first)}"


def is_order(sentence: str) -> bool:
    """Whether the sentence begins with a verb that we know."""
    return sentence.partition(" ")[0].lower() in _VERBS


def third_person(sentence: str) -> str:
    """An imperative sentence as what something does: `Return the sum.` becomes `returns the sum.`"""
    verb, _, rest = sentence.partition(" ")
    verb = verb.lower()
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        verb = verb[:-1] + "ies"
    else:
        verb += "es" if _ENDINGS.search(verb) else "s"
    return f"{verb} {rest.replace('and return ', 'and returns ')}"


def _sentences(prose: str) -> tuple[str, str]:
    """The first sentence and the others."""
    found = re.match(r"(.+?\.)(?:\s+(?=[A-Z])(.*))?\Z", prose, re.DOTALL)
    return (found[1], found[2] or "") if found else (prose.rstrip(".:") + ".", "")


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _example(function: Function, random: Random) -> str:
    """The first example of the docstring as a sentence, in half of the requests."""
    found = re.search(r">>> (.+)\n(?!\s*(?:>>>|\.\.\.))(\S.*)", function.docstring)
    if found is None or random.random() < 0.5:
        return ""
    return f"For example, `{found[1]}` gives `{found[2]}`."
