"""Where an answer or an adapter comes from, and what became of a recorded answer: answer, revision, run, data, turns."""

from __future__ import annotations

from macaron.lineage.base import AdapterUse, AnswerUse, DataLine, Lineage, RunLine, SourceLine, TurnLine
from macaron.lineage.trace import Places, trace

__all__ = ["AdapterUse", "AnswerUse", "DataLine", "Lineage", "Places", "RunLine", "SourceLine", "TurnLine", "trace"]
