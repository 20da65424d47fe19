"""Small talk of L0 from packages: chatterbot's corpus in several languages, and real chit-chat between people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from macaron.train.data.rows import AnyRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.route.requests import Request, mentions, sample, single_turn, squeeze

LABEL = "L0"
CHATTERBOT = "chatterbot-corpus==1.3.3"
CHITCHAT = "chitchat-dataset==0.9.0"
LANGUAGES = {"english": "en", "chinese": "zh", "spanish": "es", "german": "de", "french": "fr", "japanese": "ja"}
LEFT_OUT = frozenset({"coding", "tech_support", "health", "suggestions", "traveling", "money"})
_CODE_WORDS = ("code", "script", "python", "java", "program", "command", "sql")
_MIN_CHARACTERS = 6
_MAX_CHARACTERS = 240


def chatterbot_en(context: BuildContext) -> Iterator[AnyRow]:
    """What people say first, in English."""
    return _chatterbot(context, "chatterbot-en", ("english",))


def chatterbot_zh(context: BuildContext) -> Iterator[AnyRow]:
    """What people say first, in Chinese."""
    return _chatterbot(context, "chatterbot-zh", ("chinese",))


def chatterbot_other(context: BuildContext) -> Iterator[AnyRow]:
    """What people say first, in Spanish, German, French and Japanese."""
    return _chatterbot(context, "chatterbot-other", ("spanish", "german", "french", "japanese"))


def chitchat(context: BuildContext) -> Iterator[AnyRow]:
    """First messages of dialogues between people."""
    asked = (
        Request(turns[0], f"chitchat:{name}")
        for name, turns in chitchat_dialogues(context.packages.folder(CHITCHAT))
        if turns and _plain(turns[0])
    )
    return single_turn("chitchat", LABEL, sample(context.random, asked, context.limit))


def chitchat_dialogues(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """The id of each dialogue and what was said in it, one text a turn."""
    content = json.loads((folder / "chitchat_dataset" / "dataset.json").read_text(encoding="utf-8"))
    for name, dialogue in content.items():
        yield name, [squeeze(" ".join(message["text"] for message in turn)) for turn in dialogue["messages"]]


def chatterbot_dialogues(folder: Path, language: str) -> Iterator[tuple[str, list[str]]]:
    """The category of each conversation and what was said in it, without the categories of other labels."""
    import yaml  # type: ignore[import-untyped]

    for path in sorted((folder / "chatterbot_corpus" / "data" / language).glob("*.yml")):
        if path.stem in LEFT_OUT:
            continue
        content: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        for conversation in content.get("conversations") or []:
            yield path.stem, [squeeze(str(turn)) for turn in conversation]


def _chatterbot(context: BuildContext, source: str, languages: tuple[str, ...]) -> Iterator[AnyRow]:
    folder = context.packages.folder(CHATTERBOT)
    asked = [
        Request(said[0], f"chatterbot:{language}:{category}", LANGUAGES[language])
        for language in languages
        for category, said in chatterbot_dialogues(folder, language)
        if said and _plain(said[0])
    ]
    return single_turn(source, LABEL, sample(context.random, asked, context.limit))


def _plain(text: str) -> bool:
    return _MIN_CHARACTERS <= len(text) <= _MAX_CHARACTERS and not mentions(text, _CODE_WORDS)
