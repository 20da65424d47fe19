"""Perplexity of the base and of an adapter on dialogues neither was trained on, computed in torch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from macaron.errors import ConfigError
from macaron.evals.routing import Progress
from macaron.evals.stats import Interval, cluster_bootstrap
from macaron.hcp import Loaded
from macaron.train.base import Base, BaseTokenizer, find_base, load_model, load_tokenizer
from macaron.train.data.rows import SftRow
from macaron.train.encode import Encoded
from macaron.train.quiet import quiet_libraries
from macaron.train.studio import Studio

MAX_TOKENS = 1024
"""Of a dialogue; what follows is not read."""


class RowLoss(NamedTuple):
    """One dialogue: tokens the assistant said, and their negative log-probabilities, summed, in nats."""

    group: str
    tokens: int
    base: float
    adapter: float


class PerplexitySummary(NamedTuple):
    """Perplexities over all tokens of the assistants in `n` dialogues, and the adapter's over the base's.

    Attributes:
        interval: of the ratio, by a bootstrap over groups.
        groups: how many there were.
    """

    n: int
    tokens: int
    base: float
    adapter: float
    ratio: float
    interval: Interval
    groups: int


def dialogue_losses(
    loaded: Loaded, label: str, adapter: Path, rows: Sequence[SftRow], progress: Progress
) -> list[RowLoss]:
    """Losses of the base and of the base with an adapter, rendered under the head of the specialist with `label`.

    Args:
        adapter: a folder in PEFT's format.

    Raises:
        ConfigError: the adapter is not such a folder, a row cannot be shown, or no row has an answer to measure.
    """
    if not (adapter / "adapter_config.json").is_file():
        raise ConfigError(
            f"perplexity needs the adapter in PEFT's format, but {adapter} is no such folder; name one with --adapters",
            param="adapters",
        )
    with quiet_libraries():
        base = find_base(loaded)
        studio = Studio(loaded, base, BaseTokenizer(load_tokenizer(base)))
        shown = [(row.group or row.source, part) for row in rows if (part := _cut(studio.sft(row, label))) is not None]
        if not shown:
            raise ConfigError(f"no dialogue has an answer in its first {MAX_TOKENS} tokens; name others", param="data")
        return list(_losses(_model(base, adapter), shown, progress))


def _model(base: Base, adapter: Path) -> Any:
    from peft import PeftModel

    model = PeftModel.from_pretrained(load_model(base), adapter)
    return model.eval()


def _losses(model: Any, shown: Sequence[tuple[str, Encoded]], progress: Progress) -> Iterator[RowLoss]:
    for number, (group, row) in enumerate(shown):
        progress("perplexity", number, len(shown))
        yield RowLoss(group, len(row.learned), _loss(model, row, off=True), _loss(model, row, off=False))
    progress("perplexity", len(shown), len(shown))


def _loss(model: Any, row: Encoded, *, off: bool) -> float:
    import torch

    with torch.inference_mode(), model.disable_adapter() if off else nullcontext():
        logits = model(input_ids=torch.tensor([row.ids])).logits[0]
        places = torch.tensor(row.learned)
        targets = torch.tensor(row.ids)[places]
        loss = torch.nn.functional.cross_entropy(logits[places - 1].float(), targets, reduction="sum")
    return float(loss)


def _cut(row: Encoded) -> Encoded | None:
    learned = [place for place in row.learned if place < MAX_TOKENS]
    return Encoded(row.ids[: learned[-1] + 1], learned) if learned else None


def summarise_losses(losses: Sequence[RowLoss], *, seed: int = 0) -> PerplexitySummary:
    """The summary of at least one dialogue.

    Raises:
        ValueError: there are none.
    """
    groups = [loss.group for loss in losses]

    def ratio(chosen: Iterable[int]) -> float:
        drawn = [losses[place] for place in chosen]
        return math.exp(sum(loss.adapter - loss.base for loss in drawn) / sum(loss.tokens for loss in drawn))

    interval = cluster_bootstrap(len(losses), groups, ratio, seed=seed)
    tokens = sum(loss.tokens for loss in losses)
    return PerplexitySummary(
        n=len(losses),
        tokens=tokens,
        base=math.exp(sum(loss.base for loss in losses) / tokens),
        adapter=math.exp(sum(loss.adapter for loss in losses) / tokens),
        ratio=ratio(range(len(losses))),
        interval=interval,
        groups=len(set(groups)),
    )
