"""Causal attention for training on processors, from plain matrix products.

PyTorch's fused kernel for processors spends two fifths of a training step on a tenth of its arithmetic. Products of
whole blocks of scores are faster, since the rows of a step are few and short, and need no copy of the keys and values
for the query heads that share them.
"""

from __future__ import annotations

from typing import Any

NAME = "macaron_blocks"
BLOCK = 256
"""Queries of a block: their scores with keys that come after all of them are never computed."""


def register_attention() -> str:
    """Make it known to `transformers`; returns the name of the implementation there."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, causal_attention)
    return NAME


def causal_attention(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: float, **ignored: Any
) -> tuple[Any, None]:
    """Attention of each query to the keys up to its own, the last queries being those of the last keys.

    Padding must therefore be on the right, where no real token sees it.

    Args:
        query: `[batch, heads, queries, size]`.
        key: `[batch, groups, keys, size]`, each group for `heads / groups` heads; as many keys as queries or
            more.
        value: the same.

    Returns:
        `[batch, queries, heads, size]`, and no weights.
    """
    import torch

    batch, heads, queries, size = query.shape
    groups, before = key.shape[1], key.shape[2] - queries
    scaled = (query * scaling).view(batch, groups, heads // groups, queries, size)
    blocks = []
    for begin in range(0, queries, BLOCK):
        end = min(begin + BLOCK, queries)
        seen = before + end
        asked = scaled[:, :, :, begin:end].reshape(batch, groups, -1, size)
        scores = (asked @ key[:, :, :seen].transpose(-1, -2)).view(batch, groups, -1, end - begin, seen)
        future = torch.ones(end - begin, seen, dtype=torch.bool, device=query.device).triu(before + begin + 1)
        weights = scores.masked_fill_(future, float("-inf")).softmax(-1).view(batch, groups, -1, seen)
        blocks.append((weights @ value[:, :, :seen]).view(batch, heads, end - begin, size))
    return torch.cat(blocks, dim=2).transpose(1, 2).contiguous(), None
