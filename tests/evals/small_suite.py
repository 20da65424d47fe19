"""The smallest suite, and a subject that answers by a rule, for tests of what runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from macaron.evals.record import CaseResult
from macaron.evals.suite import Answer, Case


class GreetingSuite:
    """Passes what says `hello`."""

    name = "greeting"
    max_tokens = 8

    def __init__(self, count: int = 3) -> None:
        self._count = count

    def cases(self) -> Sequence[Case]:
        return [
            Case(f"c{number}", f"s{number % 2}", ({"role": "user", "content": f"Say hello, {number}"},))
            for number in range(self._count)
        ]

    def examples(self) -> Sequence[dict[str, Any]]:
        return ({"role": "user", "content": "Say hello, you"}, {"role": "assistant", "content": "hello"})

    def check(self, case: Case, answer: Answer, subject: str) -> CaseResult:
        passed = "hello" in answer.text.lower()
        reason = "" if passed else "no greeting"
        return CaseResult(
            case=case.id, source=case.source, subject=subject, passed=passed, reason=reason, output=answer.text,
            seconds=answer.seconds, tokens=answer.tokens,
        )  # fmt: skip


class RuledSubject:
    """Answers with what `rule` makes of the last message, and counts how often it was asked."""

    def __init__(self, name: str, rule: Callable[[str], str], revision: str = "1") -> None:
        self.name = name
        self.revision = revision
        self.asked = 0
        self._rule = rule

    async def answer(
        self, messages: Sequence[dict[str, Any]], *, tools: Sequence[dict[str, Any]] = (), max_tokens: int = 512
    ) -> Answer:
        self.asked += 1
        return Answer(self._rule(messages[-1]["content"]), seconds=0.5, tokens=2)
