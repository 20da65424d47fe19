"""The loss of a batch, computed where it is and nowhere else.

A prefix that all rows share is run once, with its gradient, and its keys and values serve every row; only the positions
from which a token with loss is predicted are projected onto the vocabulary. The value and the gradient are those of the
plain computation. Rows are padded on the right, where causal attention keeps the padding from everything that counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from macaron.train.batches import split
from macaron.train.encode import Encoded
from macaron.train.processes import process_count

if TYPE_CHECKING:
    import torch

IGNORED = -100


class Result(NamedTuple):
    """Mean loss over the batch's tokens with loss; their logits `[n, vocabulary]`, row after row."""

    loss: torch.Tensor
    logits: torch.Tensor


def collate(rows: Sequence[Encoded]) -> dict[str, torch.Tensor]:
    """The tensors of a batch: `prefix` `[1, p]`, which may be empty, `input_ids` and `labels` `[rows, width]`.

    `labels` holds at each position the token to be predicted from it, or -100.
    """
    import torch

    # Processes that train together wait for each other in every pass, so all of them must make as many.
    prefix, rests = split(rows, always=process_count() > 1)
    width = max(map(len, rests))
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    labels = torch.full((len(rows), width), IGNORED, dtype=torch.long)
    for at, (row, rest) in enumerate(zip(rows, rests, strict=True)):
        ids[at, : len(rest)] = torch.tensor(rest)
        places = torch.tensor(row.learned) - 1 - len(prefix)
        labels[at, places] = torch.tensor([row.ids[place] for place in row.learned])
    return {"prefix": torch.tensor([prefix], dtype=torch.long), "input_ids": ids, "labels": labels}


def compute(model: Any, batch: dict[str, torch.Tensor]) -> Result:
    """The loss of a collated batch under `model`, which may be wrapped for distributed training."""
    import torch
    from torch.nn.functional import cross_entropy

    cache = _run_prefix(model, batch["prefix"], batch["input_ids"].shape[0])
    labels = batch["labels"]
    keep = labels != IGNORED
    past = {} if cache is None else {"cache": cache, "position_ids": _positions(batch)}
    logits = model(input_ids=batch["input_ids"], logits_to_keep=keep, use_cache=cache is not None, **past).logits.to(
        torch.float32
    )
    return Result(cross_entropy(logits, labels[keep]), logits)


def _run_prefix(model: Any, prefix: torch.Tensor, rows: int) -> Any:
    """Keys and values of the shared prefix, repeated for every row; None where there is none."""
    import torch
    from transformers import DynamicCache

    if prefix.shape[1] == 0:
        return None
    cache = DynamicCache()
    nothing = torch.zeros_like(prefix, dtype=torch.bool)
    model(input_ids=prefix, cache=cache, use_cache=True, logits_to_keep=nothing)
    cache.batch_repeat_interleave(rows)
    return cache


def _positions(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    import torch

    start, width = batch["prefix"].shape[1], batch["input_ids"].shape[1]
    return torch.arange(start, start + width, device=batch["input_ids"].device).unsqueeze(0)
