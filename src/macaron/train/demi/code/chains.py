"""Programming tasks of two to four steps, each of which works on what the one before it gave.

Every task is written in two ways, and both are run on the same inputs: a task whose two forms differ is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any, NamedTuple

from macaron.train.data.rows import AnyRow, SftRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.code import present, wording
from macaron.train.demi.code.function import Function
from macaron.train.demi.code.own import untyped
from macaron.train.demi.code.step import Step, Style, steps
from macaron.train.demi.code.values import KINDS

DEFAULT_ROWS = 300
INPUTS = 12
MAX_CHARACTERS = 1_300
_STARTS = (
    ("numbers", 30), ("text", 20), ("words", 15), ("number", 13), ("small", 3), ("grid", 8), ("square", 2),
    ("table", 7), ("pairs", 6), ("fields", 2), ("number_line", 3), ("entry_line", 3), ("brackets", 3),
)  # fmt: skip
_STYLES: tuple[Style, ...] = ("loop", "loop", "loop", "index", "skip", "helper", "short", "short")
_IMPORTS = (("math.prod(", "import math"), ("groupby(", "from itertools import groupby"))
_TOO_CLOSE = (
    ("lower", "alphabet"), ("no_spaces", "palindrome"), ("positive", "total"), ("squared", "total"),
    ("digits", "total"), ("digits", "odd"), ("digits_from_right", "total"), ("odd", "squared"),
    ("positive", "squared"), ("every_other", "odd"), ("two_digit", "total"), ("first_few", "two_digit"),
    ("even", "smallest"), ("prime_factors", "largest"), ("primes", "largest"), ("up_to", "total"),
    ("up_to", "primes"), ("up_to", "dashed"), ("distinct", "ascending"), ("ascending", "distinct"),
    ("distinct", "alphabetical"), ("depth", "largest"), ("depth", "ends"),
)  # fmt: skip
"""Pairs of steps that a HumanEval task asks for, or nearly so; no task holds both, one right after the other."""
_SENSELESS = (
    ("reversed", "palindrome"), ("vowel_places", "commonest"), ("vowel_places", "all_different"),
    ("lower", "lower_words"), ("vowel_places", "ascending"), ("vowel_places", "distinct"), ("letters", "no_digits"),
    ("letters", "no_spaces"), ("letters", "masked_digits"), ("distinct", "all_different"), ("distinct", "tally"),
    ("distinct", "commonest"), ("distinct", "repeated"), ("distinct", "first_repeat"), ("distinct", "distinct"),
    ("even", "odd"), ("odd", "even"), ("odd", "halved"), ("positive", "absolute"), ("positive", "floored"),
    ("floored", "absolute"), ("absolute", "floored"), ("squared", "absolute"), ("squared", "floored"),
    ("no_digits", "digits"), ("letters", "digits"), ("no_spaces", "words"), ("up_to", "distinct"),
    ("up_to", "ascending"), ("up_to", "positive"), ("digits", "floored"), ("digits", "absolute"),
    ("digits", "digit_sums"), ("upper", "starting"), ("squeezed", "repeats"), ("squeezed", "run_lengths"),
)  # fmt: skip
"""Pairs of steps of which one takes the sense out of the other."""


class Chain(NamedTuple):
    """A task: its steps, the kind it starts from, and the name of the parameter that holds it."""

    start: str
    steps: tuple[Step, ...]
    given: str
    name: str

    @property
    def key(self) -> str:
        return "-".join((self.start, *(step.name for step in self.steps)))

    @property
    def parameters(self) -> tuple[str, ...]:
        return (self.given, *(str(each[0]) for step in self.steps for each in step.parameters))

    @property
    def signature(self) -> str:
        more = [f"{each[0]}: {each[1]}" for step in self.steps for each in step.parameters]
        given = f"{self.given}: {KINDS[self.start].type}"
        return f"def {self.name}({', '.join([given, *more])}) -> {KINDS[self.steps[-1].gives].type}:"

    def body(self, style: Style, *, ends_short: bool = False) -> str:
        """Every step in this style; the last as `return` and an expression where asked for."""
        used, given, lines = set(self.parameters), self.given, list[str]()
        for number, step in enumerate(self.steps, 1):
            last = number == len(self.steps)
            expression = step.expression(given)
            if last and expression and (ends_short or style == "short" or not (step.loop or step.keep or step.each)):
                lines.append(f"return {expression}")
                break
            result = next(name for name in (step.var, f"new_{step.var}", f"final_{step.var}") if name not in used)
            used.add(result)
            written = step.statements(given, result, style)
            if last:
                written = _returning(written, result)
            lines += written
            given = result
        return "\n".join(f"    {line}" if line else "" for line in lines)


def rows(context: BuildContext) -> Iterable[AnyRow]:
    """`limit` rows, or 300, each of another chain of steps."""
    made = (_row(chain, examples, context.random) for chain, examples in _chains(context.random))
    short = (row for row in made if sum(len(message["content"]) for message in row.messages) <= MAX_CHARACTERS)
    return islice(short, context.limit or DEFAULT_ROWS)


def _row(chain: Chain, examples: Sequence[tuple[str, Any]], random: Random) -> SftRow:
    """Four of five tasks are completed, the others asked for in words."""
    function = _function(chain, examples, random)
    if random.random() < 0.8:
        function = present.restyled(function, random)
        request = wording.complete(function, random)
    else:
        request = _spoken(function, random)
    return SftRow(
        id=f"chain-{chain.key}",
        source="macaron-code-chains",
        group=f"{chain.steps[0].name}-{chain.steps[-1].name}",
        messages=({"role": "user", "content": request}, wording.answer(function.code)),
    )


def _chains(random: Random) -> Iterator[tuple[Chain, Sequence[tuple[str, Any]]]]:
    """Tasks without end, each another, with their examples."""
    every, seen = list(steps()), set[str]()
    while True:
        chain = _chain(every, random)
        # Only the first try of a task counts, so that what was cut off as too long does not come back.
        if chain is None or chain.key in seen:
            continue
        examples = _examples(chain, random)
        if examples:
            seen.add(chain.key)
            yield chain, examples


def _chain(every: Sequence[Step], random: Random) -> Chain | None:
    """A random walk from kind to kind, or None where it came to a dead end or to something senseless."""
    start = random.choices([kind for kind, _ in _STARTS], [weight for _, weight in _STARTS])[0]
    length = random.choices((2, 3, 4), (45, 38, 17))[0]
    kind, taken = start, list[Step]()
    for number in range(1, length + 1):
        last = number == length
        after = taken[-1] if taken else None
        fit = [
            step
            for step in every
            if step.takes == kind
            and (step.noun or (step.words and random.random() < 0.2) if last else step.words)
            and not (after and after.order and (step.order or step.free))
            and not (after and (after.name, step.name) in (*_TOO_CLOSE, *_SENSELESS))
        ]
        if not fit:
            return None
        taken.append(random.choice(fit))
        kind = taken[-1].gives
    parameters = [each[0] for step in taken for each in step.parameters]
    names = [(step.takes, step.name) for step in taken]
    given = random.choice(KINDS[start].names)
    if len(set(parameters)) < len(parameters) or len(set(names)) < len(names) or given in parameters:
        return None
    return Chain(start, tuple(taken), given, _name(taken, start, random))


def _name(taken: Sequence[Step], start: str, random: Random) -> str:
    """A name that says it all, or only a part, or nearly nothing, as people name functions."""
    parts = [step.name for step in taken]
    return random.choice((
        "_".join([parts[-1], "of", *parts[:-1]][:4]),
        "_".join([parts[-1], parts[0]]),
        "_".join(parts[:3]),
        f"{random.choice(('compute', 'find', 'make', 'work_out', 'report', 'derive'))}_{parts[-1]}",
        f"{random.choice(('process', 'handle', 'treat', 'convert', 'evaluate', 'inspect'))}_{start}",
        f"{start}_{random.choice(('task', 'result', 'answer', 'report', 'summary', 'score'))}",
    ))  # fmt: skip


def _returning(written: list[str], result: str) -> list[str]:
    """The lines with `return` at their end, in the place of a last assignment."""
    head, _, value = written[-1].partition(f"{result} = ")
    return [*written[:-1], f"return {value}"] if not head and value else [*written, f"return {result}"]


def _examples(chain: Chain, random: Random) -> list[tuple[str, Any]]:
    """Two to four calls and what they give, if they show what the task is about."""
    forms = [_run(chain, chain.body("loop")), _run(chain, chain.body("short")), _run(chain, chain.body("index"))]
    found: dict[str, Any] = {}
    for _ in range(INPUTS):
        made = KINDS[chain.start].example
        assert made is not None
        more = [random.choice(each[2:]) for step in chain.steps for each in step.parameters]
        arguments = repr([made(random), *more])
        values = [form(*eval(arguments)) for form in forms]  # every form gets its own objects
        if any(repr(value) != repr(values[0]) for value in values):
            raise AssertionError(f"The forms of {chain.key} differ on {arguments}: {values}")
        found[f"{chain.name}({arguments[1:-1]})"] = values[0]
    by_value = {repr(value): call for call, value in reversed(found.items())}
    flag = isinstance(next(iter(found.values())), bool)
    if len(by_value) < (2 if flag else 3):
        return []
    calls = random.sample(list(by_value.values()), min(random.choice((2, 2, 3, 4)), len(by_value)))
    shown = [(call, found[call]) for call in calls if len(call) + len(repr(found[call])) < 110]
    # An example whose value is None would print nothing.
    shown = [(call, value) if value is not None else (f"{call} is None", True) for call, value in shown]
    return shown if len(shown) > 1 else []


def _run(chain: Chain, body: str) -> Any:
    scope: dict[str, Any] = {}
    # Only code of this folder's own making is run.
    exec("\n".join([*_imports(body), chain.signature, body]), scope)
    return scope[chain.name]


def _imports(body: str) -> tuple[str, ...]:
    return tuple(line for mark, line in _IMPORTS if mark in body)


def _function(chain: Chain, examples: Sequence[tuple[str, Any]], random: Random) -> Function:
    body = chain.body(random.choice(_STYLES), ends_short=random.random() < 0.4)
    shown = "\n".join(f">>> {call}\n{value!r}" for call, value in examples)
    docstring = f"{_told(chain, random)}\n\n{shown}"
    function = Function(chain.name, chain.parameters, chain.signature, docstring, body, _imports(body), frozenset())
    return function if random.random() < 0.5 else untyped(function)


def _told(chain: Chain, random: Random) -> str:
    """The steps in words."""
    orders = _orders(chain)
    first, last = orders[:-1], orders[-1]
    kind = KINDS[chain.start]
    match random.randrange(6):
        case 0:
            return _sentence(f"{', '.join(first)}, and {last}")
        case 1:
            return " ".join(_sentence(order) for order in orders)
        case 2:
            return _sentence(f"given {kind.given}, {', '.join(first)} and {last}")
        case 3:
            return _sentence(f"first {', then '.join(first)}; finally {last}")
        case 4:
            listed = "\n".join(f"{number}. {_sentence(order)}" for number, order in enumerate(orders, 1))
            return f"Work through {chain.given}, {kind.given}, in this order:\n{listed}"
        case _:
            listed = "\n".join(f"- {order}" for order in orders)
            return f"You are given {kind.given}.\n{listed}"


def _orders(chain: Chain) -> list[str]:
    orders = []
    for number, step in enumerate(chain.steps, 1):
        thing = chain.given if number == 1 else KINDS[step.takes].thing
        last = number == len(chain.steps)
        order = f"return {step.noun}" if last and step.noun else f"{step.words}{' and return the result' * last}"
        orders.append(order.replace("IN", thing))
    return orders


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _spoken(function: Function, random: Random) -> str:
    """A request in words alone."""
    prose = function.docstring.partition("\n\n>>>")[0]
    call = f"`{function.name}({', '.join(function.parameters)})`"
    opening = random.choice((
        f"Write a function {call}. {prose}",
        f"Write a Python function {call}.\n\n{prose}",
        f"Implement {call} in Python. {prose}",
        f"{prose}\n\nThe function should be called as {call}.",
        f"I need {call} in Python, as follows. {prose}",
    ))  # fmt: skip
    return f"{opening}{present.spoken_examples(function, random)}"
