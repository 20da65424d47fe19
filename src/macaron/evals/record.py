"""What an evaluation leaves behind: one result a case, and a summary."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class CaseResult(Struct, frozen=True, omit_defaults=True):
    """One case and how a subject did on it.

    Attributes:
        case: id of the case, the same for every subject, so that results can be paired.
        source: of the case; intervals are clustered by it where there are several.
        subject: what answered, such as `base`, `base+examples`, `L1` or `control`.
        passed: whether the answer is right by the suite's own rule.
        output: what was answered, clipped to 8,000 characters.
        reason: why it did not pass, a short fixed phrase that can be counted (`no tool call`, `wrong arguments`).
        seconds, tokens: of the answer.
        detail: what a suite wants to keep besides.
    """

    case: str
    source: str
    subject: str
    passed: bool
    output: str = ""
    reason: str = ""
    seconds: float = 0.0
    tokens: int = 0
    detail: dict[str, Any] = {}
