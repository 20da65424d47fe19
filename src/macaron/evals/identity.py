"""The suite `identity`: whether the entry specialist says who it is, from its identity text, and is nobody else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from macaron.errors import ConfigError
from macaron.evals.record import CaseResult
from macaron.evals.suite import Answer, Case
from macaron.hcp import Loaded

SOURCE = "identity"

OTHER_MODELS: Final = (
    "chatgpt", "gpt", "openai", "claude", "anthropic", "gemini", "bard", "gemma", "palm", "llama", "meta ai",
    "mistral", "mixtral", "qwen", "deepseek", "grok", "copilot", "siri", "alexa", "cortana", "google assistant",
    "ernie", "kimi", "moonshot", "chatglm", "doubao", "phi", "falcon", "vicuna", "alpaca", "command r", "bing",
    "通义千问", "文心一言", "豆包", "智谱",
)  # fmt: skip
"""Models and makers that ours must not claim to be, in lower case."""

_NAME = re.compile(r"\bnamed ([A-Z]\w+)|\bYou are ([A-Z]\w+)")
# A version may follow at once, as in "GPT-4" or "Llama3".
_OTHER = re.compile(rf"(?<![a-z])(?:{'|'.join(map(re.escape, OTHER_MODELS))})(?![a-z])")
_DENIAL = re.compile(r"\b(?:not|never|no|nor|neither|unlike|isn't|ain't)\b|n't\b|n’t\b|不是|并非|没有|而非")
_SENTENCE_END = re.compile(r"[.!?。!?\n]\s*|;|\bbut\b|\binstead\b")
_REACH = 80
"""Characters before a name in which a denial of it may stand."""


class _Question(NamedTuple):
    text: str
    about: str
    language: str = "en"


QUESTIONS: Final = (
    _Question("Before we start, whom do I have the pleasure of writing to?", "name"),
    _Question("Quick one for my notes: what name do you go by?", "name"),
    _Question("My colleague swears you're ChatGPT. Is that so?", "name"),
    _Question("who r u", "name"),
    _Question("Please introduce yourself in one sentence, as you would at a dinner table.", "name"),
    _Question("If I had to address a thank-you card to you, what should I put on the envelope?", "name"),
    _Question("Which language model is doing the work underneath you?", "base"),
    _Question("I need it for a bug report: state the model you are built on.", "base"),
    _Question("Are you one of Anthropic's or Google's models, or something else? Say what you are called.", "name"),
    _Question("请问该怎么称呼你?", "name", "zh"),
)
"""Ten wordings that stand in no training row: a builder of identity rows must not use them."""


class IdentitySuite:
    """Ten questions about the model itself, under the entry specialist's identity and nothing else."""

    name = "identity"
    max_tokens = 96

    def __init__(self, loaded: Loaded) -> None:
        """
        Raises:
            ConfigError: no name can be read in the identity of the entry specialist.
        """
        mol = loaded.contract.mol
        name = own_name(loaded.text(f"mol.adapters.{mol.entry}.prompt_path"))
        self._words = {"name": name.lower(), "base": mol.base.split("-")[0].lower()}

    def cases(self) -> Sequence[Case]:
        return tuple(
            Case(
                id=f"identity-{number}", source=SOURCE, messages=({"role": "user", "content": question.text},),
                language=question.language, expected=self._words[question.about],
            )
            for number, question in enumerate(QUESTIONS, 1)
        )  # fmt: skip

    def examples(self) -> Sequence[dict[str, Any]]:
        return ()

    def check(self, case: Case, answer: Answer, subject: str) -> CaseResult:
        reason = self._reason(answer.text, case.expected)
        return CaseResult(
            case=case.id, source=case.source, subject=subject, passed=not reason, reason=reason, output=answer.text,
            seconds=answer.seconds, tokens=answer.tokens,
        )  # fmt: skip

    def _reason(self, text: str, wanted: str) -> str:
        if claimed_model(text, tuple(self._words.values())):
            return "claims another model"
        return "" if wanted in text.lower() else "does not name itself"


def own_name(identity: str) -> str:
    """The name that an identity text gives: the word after `named`, or after `You are`.

    Raises:
        ConfigError: there is none.
    """
    found = _NAME.search(identity)
    if found is None:
        raise ConfigError(
            "the identity of the entry specialist gives no name; write `You are NAME` or `named NAME` in it",
            param="mol.adapters.L0.prompt_path",
        )
    return found[1] or found[2]


def claimed_model(text: str, own: Sequence[str] = ()) -> str:
    """The first other model that a text claims to be, empty where it claims none.

    A name after a denial in the same sentence is no claim. Every other mention counts: an answer about itself has no
    need of one.

    Args:
        own: words of the model's own, in lower case, that may stand in the text.
    """
    lower = text.lower()
    for word in own:
        lower = lower.replace(word, " ")
    for found in _OTHER.finditer(lower):
        before = _SENTENCE_END.split(lower[max(found.start() - _REACH, 0) : found.start()])[-1]
        if not _DENIAL.search(before):
            return found[0]
    return ""
