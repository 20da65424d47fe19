"""How people type: openings, closings, lower case, slips of the finger, a story around the point. None of it tells a
label, so that a router learns to look past it.
"""

from __future__ import annotations

from random import Random

from macaron.train.demi.route.phrases import fill, load_table

_ROUGH = 0.35
_STORY = 0.05
_MIN_SLIP = 4
_LATIN = frozenset({"en", "es", "de", "fr"})


class Noise:
    """Noise of one language from the bank `noise`; a language without one is left as it is."""

    def __init__(self, random: Random, language: str) -> None:
        self._random = random
        self._latin = language in _LATIN
        self._parts: dict[str, list[str]] = load_table("noise").get(language, {})

    def __call__(self, text: str) -> str:
        """The text, sometimes roughened."""
        if not self._parts or "\n" in text:
            return text
        if self._random.random() < _STORY:
            return self._story(text)
        if self._random.random() >= _ROUGH:
            return text
        change = self._random.choice((self._open, self._close, self._lower, self._slip, self._bare))
        return change(text)

    def _open(self, text: str) -> str:
        return f"{self._random.choice(self._parts['openings'])}{text}"

    def _close(self, text: str) -> str:
        return f"{text}{self._random.choice(self._parts['closings'])}"

    def _story(self, text: str) -> str:
        sentences = self._random.sample(self._parts["story"], k=3)
        said = [fill(self._random, sentence, {}) for sentence in sentences]
        return "\n\n".join([" ".join(said[:2]), text, said[2]])

    def _lower(self, text: str) -> str:
        return text.lower() if self._latin else text

    def _bare(self, text: str) -> str:
        return text.rstrip(".?!。？！")

    def _slip(self, text: str) -> str:
        """One word of a Latin text with two neighbouring letters exchanged or one lost."""
        words = text.split(" ")
        long = [index for index, word in enumerate(words) if len(word) > _MIN_SLIP and word.isalpha()]
        if not long or not self._latin:
            return text
        index = self._random.choice(long)
        word, at = words[index], self._random.randrange(1, len(words[index]) - 2)
        swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        words[index] = self._random.choice((swapped, word[:at] + word[at + 1 :]))
        return " ".join(words)
