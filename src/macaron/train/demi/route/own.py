"""Routing rows from our own banks of phrases, one builder a label and language."""

from __future__ import annotations

from collections.abc import Iterator

from macaron.train.data.rows import AnyRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.route.noise import Noise
from macaron.train.demi.route.phrases import fill, load_bank, load_table, requests
from macaron.train.demi.route.requests import Request, row, single_turn

OTHER_LANGUAGES = ("es", "de", "fr", "ja")
BANKS = {"L0": ("chat",), "L1": ("chat", "life"), "L2": ("chat", "code"), "L3": ("chat", "interface")}


def chat_en(context: BuildContext) -> Iterator[AnyRow]:
    """Talk, knowledge, writing, one direct step, in English."""
    return _rows(context, "chat", "L0", "en")


def chat_zh(context: BuildContext) -> Iterator[AnyRow]:
    """The same in Chinese."""
    return _rows(context, "chat", "L0", "zh")


def writing_en(context: BuildContext) -> Iterator[AnyRow]:
    """Texts to write, whatever they are about, in English."""
    return _rows(context, "writing", "L0", "en")


def writing_zh(context: BuildContext) -> Iterator[AnyRow]:
    """The same in Chinese."""
    return _rows(context, "writing", "L0", "zh")


def life_en(context: BuildContext) -> Iterator[AnyRow]:
    """Coordination in someone's life and service domains, in English."""
    return _rows(context, "life", "L1", "en")


def life_zh(context: BuildContext) -> Iterator[AnyRow]:
    """The same in Chinese."""
    return _rows(context, "life", "L1", "zh")


def workspace_en(context: BuildContext) -> Iterator[AnyRow]:
    """Terse instructions on someone's own mail, calendar, chat, bank, files and bookings, in English."""
    return _rows(context, "workspace", "L1", "en")


def code_en(context: BuildContext) -> Iterator[AnyRow]:
    """Code, terminal, repositories, and what is vague, in English."""
    return _rows(context, "code", "L2", "en")


def code_zh(context: BuildContext) -> Iterator[AnyRow]:
    """The same in Chinese."""
    return _rows(context, "code", "L2", "zh")


def interface_en(context: BuildContext) -> Iterator[AnyRow]:
    """Interactive surfaces asked for in words, in English."""
    return _rows(context, "interface", "L3", "en")


def interface_zh(context: BuildContext) -> Iterator[AnyRow]:
    """The same in Chinese."""
    return _rows(context, "interface", "L3", "zh")


def other_languages(context: BuildContext) -> Iterator[AnyRow]:
    """All labels in Spanish, German, French and Japanese; each phrase once."""
    said = [
        (label, Request(phrase, f"other:{language}:{label}", language))
        for language in OTHER_LANGUAGES
        for label, phrases in load_table(f"other.{language}")["labels"].items()
        for phrase in phrases
    ]
    context.random.shuffle(said)
    for number, (label, request) in enumerate(said[: context.limit or None]):
        yield row("own-other", number, label, request)


def long_requests(context: BuildContext) -> Iterator[AnyRow]:
    """Requests of several paragraphs of all labels, with the slots of the label's bank; one in four is Chinese."""
    for number in range(context.limit):
        language = "zh" if number % 4 == 0 else "en"
        label, banks = context.random.choice(list(BANKS.items()))
        slots = {name: said for bank in banks for name, said in load_bank(bank, language).slots.items()}
        phrases = load_table(f"long.{language}")["labels"][label]["intents"]
        place = context.random.randrange(len(phrases))
        text = fill(context.random, phrases[place], slots)
        yield row("own-long", number, label, Request(text, f"long.{language}:{label}:{place}", language))


def _rows(context: BuildContext, name: str, label: str, language: str) -> Iterator[AnyRow]:
    bank = load_bank(name, language)
    noise = Noise(context.random, language)
    said = (
        Request(noise(request.text), request.group, request.language)
        for request in requests(context.random, bank, context.limit)
    )
    return single_turn(f"own-{name}-{language}", label, said)
