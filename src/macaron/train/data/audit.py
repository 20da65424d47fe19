"""Whether rows that are held out stand in the rows that are trained on, by content. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from macaron.train.data.rows import AnyRow
from macaron.train.data.text import prompt_text, shingles, whole_text

SHINGLE = 5
COMMON_ROWS = 10
COMMON_SHARE = 0.01


class Hit(NamedTuple):
    """A training row that contains a share, over the limit, of a held-out row; both by index."""

    held_out: int
    train: int
    containment: float


class Audit(NamedTuple):
    """Every hit, in the order of training rows, and the highest containment that is within the limit."""

    hits: Sequence[Hit]
    highest: float


def audit(held_out: Sequence[AnyRow], train: Sequence[AnyRow], limit: float) -> Audit:
    """Find the training rows that hold more than `limit` of a held-out row's prompt, or all of it.

    The measure is the share of the prompt's runs of five words that stand anywhere in one training row. Runs that more
    than a hundredth of the training rows share (and more than ten) are phrases that everybody uses, such as those of a
    wrapper, and count only if the whole prompt is there.
    """
    prompts = [shingles(prompt_text(row), SHINGLE) for row in held_out]
    # All the rest of a training row cannot be contained and need not be kept.
    wanted = frozenset[str]().union(*prompts)
    texts = [shingles(whole_text(row), SHINGLE) & wanted for row in train]
    search = _Search(prompts, _common(texts))
    hits: list[Hit] = []
    highest = 0.0
    for number, text in enumerate(texts):
        for other, containment in search.containments(text):
            if containment > limit or containment == 1:
                hits.append(Hit(other, number, containment))
            else:
                highest = max(highest, containment)
    return Audit(hits, highest)


def _common(texts: Sequence[frozenset[str]]) -> frozenset[str]:
    counts = Counter(shingle for text in texts for shingle in text)
    most = max(COMMON_ROWS, COMMON_SHARE * len(texts))
    return frozenset(shingle for shingle, count in counts.items() if count > most)


class _Search:
    """The held-out prompts, by what is telling about them; some have nothing of their own."""

    def __init__(self, prompts: Sequence[frozenset[str]], common: frozenset[str]) -> None:
        self._telling = [prompt - common for prompt in prompts]
        self._ordinary = [(number, prompt) for number, prompt in enumerate(prompts) if prompt and prompt <= common]
        self._places: dict[str, list[int]] = defaultdict(list)
        for number, telling in enumerate(self._telling):
            for shingle in telling:
                self._places[shingle].append(number)

    def containments(self, text: frozenset[str]) -> Iterator[tuple[int, float]]:
        """The held-out rows that a text shares something with, and the share of each that it contains."""
        shared = Counter(place for shingle in text for place in self._places.get(shingle, ()))
        for number in sorted(shared):
            yield number, shared[number] / len(self._telling[number])
        yield from ((number, 1.0) for number, prompt in self._ordinary if prompt <= text)
