"""Short dialogues that keep the entry specialist's ability to chat while it learns to route.

Mild on purpose: few, whole, and in an assistant's manner. Dialogues between people are not learned from, since in them
the answering side speaks of a life of its own: they measure the perplexity on dialogue never trained on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from macaron.train.data.rows import AnyRow, SftRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.route.phrases import load_table
from macaron.train.demi.route.small_talk import (
    CHATTERBOT,
    CHITCHAT,
    LANGUAGES,
    chatterbot_dialogues,
    chitchat_dialogues,
)

CHARACTERS = 420
MAX_TURNS = 6
TOPICS = frozenset({"food", "history", "literature", "movies", "science", "sports", "trivia"})


def own(context: BuildContext) -> Iterator[AnyRow]:
    """Our own dialogues in English and Chinese, each once."""
    found = [(language, said) for language, dialogues in load_table("dialogues").items() for said in dialogues]
    context.random.shuffle(found)
    for number, (language, said) in enumerate(found[: context.limit or None]):
        yield _dialogue("own-dialogues", number, f"dialogue:{said[0]}", said, language)


def trivia(context: BuildContext) -> Iterator[AnyRow]:
    """Short questions and answers in English and Chinese on a few subjects."""
    folder = context.packages.folder(CHATTERBOT)
    found = {
        said[0]: (LANGUAGES[language], said[:2])
        for language in ("english", "chinese")
        for topic, said in chatterbot_dialogues(folder, language)
        if topic in TOPICS and len(said) > 1 and sum(map(len, said[:2])) <= CHARACTERS
    }
    asked = list(found.values())
    context.random.shuffle(asked)
    for number, (language, said) in enumerate(asked[: context.limit or None]):
        yield _dialogue("trivia", number, f"trivia:{said[0]}", said, language)


def people(context: BuildContext) -> Iterator[AnyRow]:
    """Beginnings of dialogues between people, only for measuring; who begins is the user."""
    dialogues = chitchat_dialogues(context.packages.folder(CHITCHAT))
    found = [(name, said) for name, turns in dialogues if len(said := _within(turns)) > 1]
    context.random.shuffle(found)
    for number, (name, said) in enumerate(found[: context.limit or None]):
        yield _dialogue("people", number, f"people:{name}", said, "en")


def _within(turns: Sequence[str]) -> list[str]:
    """The first turns that fit, so many that the assistant has the last word."""
    said: list[str] = []
    for turn in turns[:MAX_TURNS]:
        if not turn or sum(map(len, said)) + len(turn) > CHARACTERS:
            break
        said.append(turn)
    return said[: len(said) // 2 * 2]


def _dialogue(source: str, number: int, group: str, said: Sequence[str], language: str) -> SftRow:
    roles = ("user", "assistant")
    messages = tuple({"role": roles[place % 2], "content": text} for place, text in enumerate(said))
    return SftRow(id=f"{source}-{number:05d}", source=source, group=group, language=language, messages=messages)
