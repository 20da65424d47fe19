"""How one label is asked for with as few tokens as possible, and read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from macaron.engine.llamacpp.grammar import labels_grammar
from macaron.errors import EngineError

Tokenize = Callable[[str], Awaitable[Sequence[tuple[int, str]]]]
"""Token ids and texts of a string."""

ROUTE_TOKENS = 24


class ChoicePlan(NamedTuple):
    """How to ask.

    Attributes:
        labels: of which one is wanted.
        prefill: what the answer begins with; its end, `begun`, is the beginning of every label.
        grammar: what may follow.
        one_token: a single token decides.
    """

    labels: tuple[str, ...]
    prefill: str
    begun: str
    grammar: str
    one_token: bool

    def label(self, text: str) -> str | None:
        """The label that `text`, what was written after the prefill, names; None where it fits none or several."""
        said = self.begun + text
        fitting = [label for label in self.labels if label.startswith(said)]
        return said if said in fitting else fitting[0] if len(fitting) == 1 else None


async def plan_choice(labels: tuple[str, ...], given: str, tokenize: Tokenize) -> ChoicePlan:
    """The plan for these labels after the prefill that was `given`.

    Tokens with which all the labels begin are prefilled, so that they are cut where the model would cut the labels
    itself. If every label then goes on with a character of its own, one token decides; else it is decoded to its end.

    Raises:
        EngineError: there are no labels.
    """
    if not labels:
        raise EngineError("A route hop needs labels to choose from.", code="no_labels")
    overlap = _overlap(given, labels)
    begun = _shared([await tokenize(label) for label in labels])
    if not begun.startswith(overlap):
        begun = overlap
    rests = [label[len(begun) :] for label in labels]
    decided = len({rest[:1] for rest in rests} - {""}) == len(labels)
    return ChoicePlan(labels, given.removesuffix(overlap) + begun, begun, labels_grammar(rests), decided)


def _overlap(given: str, labels: Sequence[str]) -> str:
    """The longest end of `given` with which every label begins."""
    ends = (given[at:] for at in range(len(given) + 1))
    return next(end for end in ends if all(label.startswith(end) for label in labels))


def _shared(spelled: Sequence[Sequence[tuple[int, str]]]) -> str:
    """The text of the tokens with which all the labels begin, less the last where nothing would be left to decide."""
    shared: list[str] = []
    for column in zip(*(tokens[:-1] for tokens in spelled), strict=False):
        if len(set(column)) > 1:
            break
        shared.append(column[0][1])
    return "".join(shared)
