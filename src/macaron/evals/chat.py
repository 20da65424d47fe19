"""What routing may not cost the entry specialist: its chat ability, and knowing who it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from macaron.errors import ConfigError
from macaron.evals.identity import IdentitySuite
from macaron.evals.perplexity import PerplexitySummary, dialogue_losses, summarise_losses
from macaron.evals.record import CaseResult
from macaron.evals.results import Results
from macaron.evals.routing import Progress
from macaron.evals.run_suite import SuiteReport, evaluate_suite
from macaron.evals.subjects import BASE
from macaron.hcp import Loaded
from macaron.train.data.rows import SftRow


class ChatReport(Struct, frozen=True):
    """How the entry specialist talks.

    Attributes:
        identity: the questions about itself, for it and for the bare base.
        answers: what was answered to them.
        perplexity: None where no dialogues were given.
    """

    identity: SuiteReport
    answers: tuple[CaseResult, ...]
    perplexity: PerplexitySummary | None

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        perplexity = self.perplexity and msgspec.to_builtins(self.perplexity._asdict())
        answers = msgspec.to_builtins(self.answers)
        return {"perplexity": perplexity, "identity": self.identity.as_json(), "answers": answers}


def evaluate_chat(
    loaded: Loaded, rows: Sequence[SftRow], adapters: Mapping[str, Path], results: Results, progress: Progress
) -> ChatReport:
    """Ask the ten questions, and measure perplexity where there are dialogues.

    Raises:
        ConfigError: the entry specialist has no adapter although its perplexity is wanted, or one cannot be used.
        EngineError, Unavailable: the engine failed; what was answered is kept.
    """
    entry, suite = loaded.contract.mol.entry, IdentitySuite(loaded)
    perplexity = None
    if rows:
        if entry not in adapters:
            raise ConfigError(f"{entry} has no adapter to compare with the base; name one with --adapters", param=entry)
        perplexity = summarise_losses(dialogue_losses(loaded, entry, adapters[entry], rows, progress))
    names = [entry, BASE] if entry in adapters else [BASE]
    report = asyncio.run(evaluate_suite(loaded, suite, names, entry, adapters, results, progress))
    found = {result.case: result for result in results if result.subject == names[0]}
    return ChatReport(report, tuple(found[case.id] for case in suite.cases()), perplexity)
