"""What a task suite is: cases, a rule that decides each, and examples for a few-shot subject."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from macaron.evals.record import CaseResult


class Case(Struct, frozen=True, omit_defaults=True):
    """One question with what its suite needs to decide the answer.

    Attributes:
        id: stable across versions of the suite, so that results can be paired.
        messages: in the Chat Completions shape, without the specialist's identity.
        tools: function tools in the Chat Completions shape.
        expected: read only by the suite's own rule.
    """

    id: str
    source: str
    messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...] = ()
    language: str = "en"
    expected: Any = None


class Call(Struct, frozen=True):
    """A tool call as the subject wrote it; `arguments` is JSON text, perhaps broken."""

    name: str
    arguments: str


class Answer(Struct, frozen=True):
    """What a subject answered. `status` is `completed` or `incomplete` (it ran out of tokens)."""

    text: str
    calls: tuple[Call, ...] = ()
    status: str = "completed"
    seconds: float = 0.0
    tokens: int = 0


class Subject(Protocol):
    """Something that answers: the bare base, the base with examples, one adapter."""

    @property
    def name(self) -> str:
        """Such as `base`, `base+examples`, `L1` or `control`."""
        ...

    async def answer(
        self, messages: Sequence[dict[str, Any]], *, tools: Sequence[dict[str, Any]] = (), max_tokens: int = 512
    ) -> Answer:
        """Answer greedily, through the same engine code that serves.

        Raises:
            EngineError, Unavailable: the engine failed; that is a crash of the run, never a wrong answer.
        """
        ...


class Suite(Protocol):
    """A named set of cases of one kind."""

    @property
    def name(self) -> str:
        """Such as `tools`, `code` or `ui`."""
        ...

    @property
    def max_tokens(self) -> int:
        """Tokens an answer may have."""
        ...

    def cases(self) -> Sequence[Case]:
        """Every case, in a fixed order."""
        ...

    def examples(self) -> Sequence[dict[str, Any]]:
        """Messages that show a few solved cases, put before the question for the few-shot subject. None of them is one
        of the cases."""
        ...

    def check(self, case: Case, answer: Answer, subject: str) -> CaseResult:
        """Decide one answer. Never raises for anything an answer holds."""
        ...
