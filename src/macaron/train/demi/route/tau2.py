"""tau2-bench as inspect-evals packages it: customers of an airline, a shop, a bank and a phone company.

The tasks instruct a simulated user in the second person; a rule turns what that user wants into the first person. Only
the reason for the contact and what the user knows of themselves are taken, never how to play the part. Bank tasks are
free text: the sentence a customer is told to open with, in quotation marks, is taken as it is; tasks without one are
left out.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from macaron.train.data.rows import AnyRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.route.requests import Request, sample, shorten, single_turn, squeeze

PACKAGE = "inspect-evals==0.28.0"
LABEL = "L1"
DOMAINS = Path("inspect_evals/tau2/data/domains")
CHARACTERS = 700
_TELECOM_ROWS = 16
_OPENING_WORDS = 6  # fewer are a name in quotation marks
_PERSONS = {
    "yourself": "myself", "yours": "mine", "your": "my", "you're": "I'm", "you've": "I've", "you'll": "I'll",
    "you'd": "I'd", "you are": "I am", "you were": "I was", "you": "I", "you mobile": "my mobile",
    "you name": "my name",
}  # fmt: skip
_PERSON = re.compile(r"\b(" + "|".join(sorted(_PERSONS, key=len, reverse=True)) + r")\b", re.IGNORECASE)
_OBJECT = re.compile(
    r"\b(to|for|with|give|gives|gave|giving|tell|told|help|helps|let|lets|offer|offers|offered|refund|send|sent|charge|"
    r"charged|allow|allows|allowed|informed|promised|asks|than|of|from|between|owes|cost|costs|refunds) I\b"
)
_STAGE = re.compile(
    r"\b(agent|representative asks|conversation|simulat\w*|abruptly|halfway|tool|roleplay|mention\w*|pretend|reveal|"
    r"refuses|become|brag|carry on)\b",
    re.IGNORECASE,
)
_OPENING = re.compile(r"(?:open|start|begin)[^\"“]{0,120}[\"“]([^\"”]{25,600})[\"”]", re.IGNORECASE)


def rows(context: BuildContext) -> Iterator[AnyRow]:
    """What the customers of the four domains say first."""
    folder = context.packages.folder(PACKAGE) / DOMAINS
    asked = [*_shop(folder, "airline"), *_shop(folder, "retail"), *_bank(folder), *_phone(context, folder)]
    return single_turn("tau2", LABEL, sample(context.random, asked, context.limit))


def first_person(text: str) -> str:
    """Instructions to a user as that user would say it: the person changed, sentences on how to play the part gone."""
    sentences = re.split(r"(?<=[.!?])\s+|\n+", text.strip())
    kept = squeeze(" ".join(sentence for sentence in sentences if sentence and not _STAGE.search(sentence)))
    said = _OBJECT.sub(r"\1 me", _PERSON.sub(lambda match: _PERSONS[match[1].lower()], kept))
    return said[:1].upper() + said[1:]


def _shop(folder: Path, domain: str) -> Iterator[Request]:
    for task in json.loads((folder / domain / "tasks.json").read_text(encoding="utf-8")):
        told = task["user_scenario"]["instructions"]
        said = first_person(told["reason_for_call"])
        known = first_person(told["known_info"] or "")
        if said:
            yield Request(shorten(f"{said} {known}".strip(), CHARACTERS), f"tau2:{domain}:{known}")


def _bank(folder: Path) -> Iterator[Request]:
    for task in json.loads((folder / "banking_knowledge" / "tasks.json").read_text(encoding="utf-8")):
        opening = _OPENING.search(task["user_scenario"]["instructions"])
        if opening and len(opening[1].split()) >= _OPENING_WORDS:
            yield Request(shorten(squeeze(opening[1]), CHARACTERS), f"tau2:banking:{task['id']}")


def _phone(context: BuildContext, folder: Path) -> list[Request]:
    """Its 2,285 tasks are a few complaints of one customer, varied in the fault: few different texts are enough."""
    with gzip.open(folder / "telecom" / "tasks.json.gz", "rt", encoding="utf-8") as file:
        tasks: list[dict[str, Any]] = json.load(file)
    told = [task["user_scenario"]["instructions"] for task in tasks]
    said = (first_person(f"{one['reason_for_call']} {one['known_info']}") for one in told)
    return sample(context.random, (Request(text, "tau2:telecom") for text in said), _TELECOM_ROWS)
