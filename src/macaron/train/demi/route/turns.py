"""Requests that follow an answer: short words that lean on it, and new subjects that must not."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from macaron.train.data.rows import AnyRow, RouteRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.route.contrast import LABELS
from macaron.train.demi.route.injections import BANKS
from macaron.train.demi.route.phrases import fill, load_bank, load_table, requests
from macaron.train.demi.route.requests import shorten
from macaron.train.demi.route.surface import wrap

GO_ON = {
    "en": (
        "continue",
        "go on",
        "yes",
        "do it",
        "next",
        "ok",
        "again",
        "the other one",
        "fix it",
        "more",
        "not that one",
    ),
    "zh": ("继续", "好的", "可以", "下一个", "再来", "换一个", "不是这个", "改一下"),
}
_NEW_SUBJECT_CHARACTERS = 300
_LONGER = 0.3


def rows(context: BuildContext) -> Iterator[AnyRow]:
    """A third lean on the last answer with words of its scene, a sixth with words that fit any, half change the
    subject; some have an earlier turn more.
    """
    random, table = context.random, load_table("turns")
    scenes = [*table["scene"], *table["loop"]]
    for number in range(context.limit):
        scene = random.choice(scenes)
        language = scene.get("language", "en")
        label, ask = _next(random, scene, language, number % 6)
        messages = [*_scene(random, scene, table["slots"]), {"role": "user", "content": ask}]
        if random.random() < _LONGER:
            earlier = random.choice([other for other in scenes if other.get("language", "en") == language])
            messages = [*_scene(random, earlier, table["slots"]), *messages]
        yield RouteRow(
            id=f"own-turns-{number:05d}",
            source="own-turns",
            group=f"scene:{scene['ask']}",
            language=language,
            messages=tuple(messages),
            label=label,
        )


def _next(random: Random, scene: dict[str, Any], language: str, kind: int) -> tuple[str, str]:
    """The label and the text of what the user says after a scene."""
    if kind < 2:
        return scene["label"], random.choice(scene["next"])
    if kind == 2:
        return scene["label"], random.choice(GO_ON[language])
    label = random.choice([name for name in LABELS if name != scene["label"]])
    bank = load_bank(BANKS[label], language)
    bank = bank._replace(intents={name: said for name, said in bank.intents.items() if not _leans(name)})
    text = shorten(next(requests(random, bank, 1)).text, _NEW_SUBJECT_CHARACTERS)
    if label == "L3" and random.random() < 0.5:
        text = wrap(random, random.choice(load_table("surfaces")["wrappers"]), text)
    return label, text


def _leans(intent: str) -> bool:
    """Whether the phrases of an intent say nothing without the turn before them."""
    return intent.startswith(("vague", "revise", "smalltalk"))


def _scene(random: Random, scene: dict[str, Any], slots: dict[str, list[str]]) -> list[dict[str, Any]]:
    asked = {"role": "user", "content": fill(random, scene["ask"], slots)}
    answered = {"role": "assistant", "content": scene["answer"], "label": scene["label"]}
    if "call" not in scene:
        return [asked, answered]
    function = {"name": scene["call"], "arguments": scene["arguments"]}
    call = {"id": "call_1", "type": "function", "function": function}
    return [
        asked,
        {"role": "assistant", "content": "", "label": scene["label"], "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": scene["result"]},
        answered,
    ]
