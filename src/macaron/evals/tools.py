"""The suite `tools`: one call among several tools, on cases of the Berkeley Function-Calling Leaderboard that share no
function and no question with any training row."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec

from macaron.evals.arguments import arguments_fit
from macaron.evals.record import CaseResult
from macaron.evals.suite import Answer, Call, Case
from macaron.train.data.source import Packages
from macaron.train.demi.bfcl import MULTI_CANDIDATE, BfclCase, load, split_of

REQUIREMENT = "bfcl-eval==2026.3.23"
OUTPUT_LIMIT = 8_000
MAX_BYTES = 8_000
"""Of a case's question and tools: about 2,700 tokens of the smallest base."""


class ToolsSuite:
    """Cases of one right call among at least two tools: all of the smaller category, the rest from the larger one in
    the order of a hash. Left out are the few that would not fit a small context beside solved examples, and those whose
    tool lacks a parameter of the answer."""

    name = "tools"
    max_tokens = 256

    def __init__(self, packages: Packages, *, limit: int = 220) -> None:
        self._packages = packages
        self._limit = limit

    def cases(self) -> Sequence[Case]:
        return self._cases

    def examples(self) -> Sequence[dict[str, Any]]:
        return EXAMPLES

    def check(self, case: Case, answer: Answer, subject: str) -> CaseResult:
        reason = self._reason(case, answer.calls)
        written = "\n".join([answer.text, *(f"{call.name} {call.arguments}" for call in answer.calls)])
        return CaseResult(
            case=case.id, source=case.source, subject=subject, passed=not reason, reason=reason,
            output=written.strip()[:OUTPUT_LIMIT], seconds=answer.seconds, tokens=answer.tokens,
        )  # fmt: skip

    @cached_property
    def _cases(self) -> tuple[Case, ...]:
        held_out = [
            case
            for case in load(self._packages.folder(REQUIREMENT))
            if case.category in MULTI_CANDIDATE
            and split_of(case) == "test"
            and len(case.answers) == 1
            and len(case.functions) > 1
            and _solvable(case)
            and len(msgspec.json.encode((case.messages, case.functions))) <= MAX_BYTES
        ]
        chosen = sorted(held_out, key=lambda case: (case.category != "multiple", _order(case)))[: self._limit]
        return tuple(_case(case) for case in sorted(chosen, key=lambda case: case.id))

    def _reason(self, case: Case, calls: Sequence[Call]) -> str:
        if not calls:
            return "no tool call"
        if len(calls) > 1:
            return "several calls"
        call = calls[0]
        functions = {tool["function"]["name"]: tool["function"] for tool in case.tools}
        if call.name not in functions:
            return "unknown tool"
        if call.name not in case.expected:
            return "wrong tool"
        try:
            arguments = msgspec.json.decode(call.arguments or "{}")
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return "broken arguments"
        if not isinstance(arguments, dict):
            return "broken arguments"
        fit = arguments_fit(arguments, case.expected[call.name], functions[call.name]["parameters"])
        return "" if fit else "wrong arguments"


def _solvable(case: BfclCase) -> bool:
    """Whether the tool has every parameter that the answer cannot do without; a few cases are wrong in this."""
    properties = {function["name"]: function["parameters"]["properties"] for function in case.functions}
    return all(
        parameter in properties.get(name, ()) or "" in values
        for name, acceptable in case.answers[0].items()
        for parameter, values in acceptable.items()
    )


def _order(case: BfclCase) -> str:
    return hashlib.sha256(case.id.encode()).hexdigest()


def _case(case: BfclCase) -> Case:
    return Case(
        id=case.id,
        source=f"bfcl-{case.category.replace('_', '-')}",
        messages=case.messages,
        tools=tuple({"type": "function", "function": function} for function in case.functions),
        expected=case.answers[0],
    )


def _asked(text: str, tool: str) -> dict[str, Any]:
    return {"role": "user", "content": f"For this request there is this tool:\n<tools>\n{tool}\n</tools>\n{text}"}


def _called(name: str, arguments: str) -> dict[str, Any]:
    call = {"id": f"example_{name}", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


EXAMPLES: tuple[dict[str, Any], ...] = (
    _asked(
        "Water the ferns in the hall for 40 seconds, please.",
        '{"name": "irrigation.start", "description": "Water one zone.", "parameters": {"type": "object", "properties": '
        '{"zone": {"type": "string"}, "seconds": {"type": "integer"}}, "required": ["zone", "seconds"]}}',
    ),
    _called("irrigation.start", '{"zone": "hall ferns", "seconds": 40}'),
    _asked(
        "Is platform 9 at Harbour Gate step-free? I only need to know about lifts, not stairs.",
        '{"name": "station_access", "description": "Step-free access of a platform.", "parameters": {"type": "object", '
        '"properties": {"station": {"type": "string"}, "platform": {"type": "integer"}, "features": {"type": "array", '
        '"items": {"type": "string", "enum": ["lift", "stairs", "ramp"]}}}, "required": ["station", "platform"]}}',
    ),
    _called("station_access", '{"station": "Harbour Gate", "platform": 9, "features": ["lift"]}'),
    _asked(
        "把“周五聚餐”这条备忘改成晚上七点,别提醒我。",
        '{"name": "memo_update", "description": "Change a memo.", "parameters": {"type": "object", "properties": '
        '{"title": {"type": "string"}, "changes": {"type": "object", "properties": {"time": {"type": "string", '
        '"description": "24-hour time"}}}, "remind": {"type": "boolean"}}, "required": ["title", "changes"]}}',
    ),
    _called("memo_update", '{"title": "周五聚餐", "changes": {"time": "19:00"}, "remind": false}'),
)
"""Solved cases of our own. Their tools stand in the request: those of the hop belong to its last question."""
