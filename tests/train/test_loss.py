"""The loss with a shared prefix is the plain loss, and so is its gradient."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from macaron.train.base import Base, load_model
from macaron.train.batches import split
from macaron.train.encode import Encoded
from macaron.train.loss import collate, compute


@pytest.fixture
def model(tiny_base: Base) -> Any:
    return load_model(tiny_base)


def made_rows(shared: int, rests: Sequence[int], learned: int, seed: int) -> list[Encoded]:
    choice = random.Random(seed)
    head = [choice.randrange(200) for _ in range(shared)]
    rows = []
    for length in rests:
        ids = head + [choice.randrange(200) for _ in range(length)]
        rows.append(Encoded(ids, sorted(choice.sample(range(shared + 1, len(ids)), learned))))
    return rows


def plain_loss(model: Any, rows: Sequence[Encoded]) -> Any:
    """Every row by itself, with all its logits."""
    import torch

    losses = []
    for row in rows:
        logits = model(torch.tensor([row.ids]), use_cache=False).logits[0]
        losses += [torch.nn.functional.cross_entropy(logits[at - 1], torch.tensor(row.ids[at])) for at in row.learned]
    return torch.stack(losses).mean()


@pytest.mark.parametrize(
    ("shared", "rests", "learned"),
    [(40, (5, 9, 30, 9), 3), (40, (7,), 2), (0, (12, 20, 4), 2), (60, (6, 6), 1)],
)
def test_loss_and_gradient_are_those_of_the_plain_computation(
    model: Any, shared: int, rests: tuple[int, ...], learned: int
) -> None:
    rows = made_rows(shared, rests, learned, seed=shared)
    assert bool(split(rows).prefix) == (shared > 0 and len(rests) > 1)
    found = compute(model, collate(rows)).loss
    found.backward()
    gradients = {name: value.grad.clone() for name, value in model.named_parameters()}
    model.zero_grad()
    wanted = plain_loss(model, rows)
    wanted.backward()
    assert float(found.detach()) == pytest.approx(float(wanted.detach()), abs=1e-5)
    for name, value in model.named_parameters():
        assert float((gradients[name] - value.grad).abs().max()) < 1e-5, name


def test_only_positions_that_predict_a_token_with_loss_are_projected(model: Any) -> None:
    rows = made_rows(40, (5, 9, 30), 2, seed=1)
    assert compute(model, collate(rows)).logits.shape[0] == 6
