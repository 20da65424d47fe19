"""Answers put together from the pieces an engine streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from macaron.conversation import Answer, CallDelta, Delta, Finish, Sampled, ToolCall, Usage
from macaron.engine.base import EngineEvent, Queued


class _Call:
    def __init__(self) -> None:
        self.call_id = ""
        self.name = ""
        self.arguments: list[str] = []

    def add(self, delta: CallDelta) -> None:
        self.call_id = self.call_id or delta.call_id or ""
        self.name = self.name or delta.name or ""
        self.arguments.append(delta.arguments)


class _Choice:
    def __init__(self) -> None:
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.refusal: list[str] = []
        self.calls: dict[int, _Call] = {}
        self.logprobs: dict[str, list[Any]] = {}
        self.finish = ""


class Collector:
    """Takes events in, gives whole answers out.

    Attributes:
        usage: the engine's count, zero where it does not count.
        queued: seconds the hop waited before the engine began.
        sampled: the tokens of each choice, where they were asked for and the choice has ended.
    """

    def __init__(self) -> None:
        self.usage = Usage()
        self.queued = 0.0
        self.sampled: dict[int, Sampled] = {}
        self._choices: dict[int, _Choice] = {}

    def add(self, events: Sequence[EngineEvent]) -> list[Delta]:
        """Record events; returns those that are pieces of the answer."""
        deltas: list[Delta] = []
        for event in events:
            match event:
                case Delta():
                    self._add_delta(event)
                    deltas.append(event)
                case Finish(reason, choice):
                    self._choice(choice).finish = reason
                case Usage():
                    self.usage = event
                case Queued(seconds):
                    self.queued += seconds
                case Sampled():
                    self.sampled[event.choice] = event
        return deltas

    @property
    def finished(self) -> bool:
        """Whether every choice seen has ended."""
        return bool(self._choices) and all(choice.finish for choice in self._choices.values())

    @property
    def calling(self) -> bool:
        """Whether a tool was called."""
        return any(choice.calls for choice in self._choices.values())

    def answers(self, unfinished: str = "") -> list[Answer]:
        """The answers so far; a choice that has not ended gets `unfinished` as its reason."""
        return [self._answer(index, self._choices[index], unfinished) for index in sorted(self._choices)]

    def _choice(self, index: int) -> _Choice:
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = _Choice()
        return choice

    def _add_delta(self, delta: Delta) -> None:
        choice = self._choice(delta.choice)
        if delta.text:
            choice.text.append(delta.text)
        if delta.reasoning:
            choice.reasoning.append(delta.reasoning)
        if delta.refusal:
            choice.refusal.append(delta.refusal)
        for call in delta.calls:
            choice.calls.setdefault(call.index, _Call()).add(call)
        if delta.logprobs:
            for name, values in delta.logprobs.items():
                if isinstance(values, list):
                    choice.logprobs.setdefault(name, []).extend(values)

    def _answer(self, index: int, choice: _Choice, unfinished: str) -> Answer:
        calls = tuple(
            ToolCall(call.call_id, call.name, "".join(call.arguments)) for _, call in sorted(choice.calls.items())
        )
        return Answer(
            choice=index,
            text="".join(choice.text),
            finish=choice.finish or unfinished,
            reasoning="".join(choice.reasoning),
            refusal="".join(choice.refusal),
            calls=calls,
            logprobs=dict(choice.logprobs) or None,
        )
