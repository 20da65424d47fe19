"""Where an answer or an adapter comes from, to the recorded turns behind it; and what a recorded answer went into."""

from __future__ import annotations

from macaron.lineage.base import AdapterUse, AnswerUse, DataLine, Lineage, RunLine, SourceLine, TurnLine
from macaron.lineage.trace import Places, trace

__all__ = ["AdapterUse", "AnswerUse", "DataLine", "Lineage", "Places", "RunLine", "SourceLine", "TurnLine", "trace"]
