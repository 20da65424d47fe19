"""What makes a training step fast changes nothing that it computes."""

from __future__ import annotations

from typing import Any

import pytest

from macaron.train.attention import BLOCK, causal_attention
from macaron.train.base import Base, load_model
from macaron.train.lean import make_lean
from macaron.train.loss import collate, compute
from macaron.train.quiet import quiet_libraries
from macaron.train.speed import speed_up
from tests.train.test_loss import made_rows


def adapted(base: Base, dropout: float = 0.0) -> Any:
    """The base with an adapter that does something."""
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(5)
    targets = ["q_proj", "v_proj", "down_proj"]
    config = LoraConfig(r=4, lora_alpha=12, lora_dropout=dropout, target_modules=targets, task_type="CAUSAL_LM")
    with quiet_libraries():
        model = get_peft_model(load_model(base), config)
    for name, value in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(value, std=0.1)
    return model


def loss_and_gradients(model: Any) -> tuple[float, dict[str, Any]]:
    model.zero_grad()
    loss = compute(model, collate(made_rows(40, (5, 9, 30, 9), 3, seed=1))).loss
    loss.backward()
    trained = {name: value.grad.clone() for name, value in model.named_parameters() if value.requires_grad}
    assert len(trained) > 0
    return float(loss.detach()), trained


@pytest.mark.parametrize("change", [make_lean, speed_up])
def test_loss_and_gradients_of_the_adapter_are_those_of_peft(tiny_base: Base, change: Any) -> None:
    model = adapted(tiny_base)
    usual_loss, usual = loss_and_gradients(model)
    change(model)
    loss, trained = loss_and_gradients(model)
    assert loss == pytest.approx(usual_loss, abs=1e-5)
    assert trained.keys() == usual.keys()
    for name, gradient in trained.items():
        assert float(usual[name].abs().max()) > 1e-4, name
        assert float((gradient - usual[name]).abs().max()) < 1e-5, name


def test_the_base_alone_is_computed_where_the_adapter_is_disabled(tiny_base: Base) -> None:
    import torch

    model, ids = adapted(tiny_base), torch.arange(12).unsqueeze(0)
    make_lean(model)
    with torch.no_grad(), model.disable_adapter():
        disabled = model(ids).logits
    assert torch.equal(disabled, load_model(tiny_base)(ids).logits)


def test_a_layer_with_dropout_drops_out_as_before(tiny_base: Base) -> None:
    import torch

    model, ids = adapted(tiny_base, dropout=0.5), torch.arange(12).unsqueeze(0)
    make_lean(model)
    assert not torch.equal(model.train()(ids).logits, model(ids).logits)


@pytest.mark.parametrize(("queries", "before"), [(7, 0), (1, 30), (BLOCK, 0), (2 * BLOCK + 9, 0), (BLOCK + 3, 40)])
def test_attention_and_its_gradient_are_those_of_pytorch(queries: int, before: int) -> None:
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    torch.manual_seed(queries)
    keys = queries + before
    asked = torch.randn(2, 6, queries, 8, requires_grad=True)
    key, value = (torch.randn(2, 2, keys, 8, requires_grad=True) for _ in range(2))
    seen = torch.ones(queries, keys, dtype=torch.bool).tril(before)
    usual = scaled_dot_product_attention(
        asked, key.repeat_interleave(3, 1), value.repeat_interleave(3, 1), attn_mask=seen, scale=0.3
    ).transpose(1, 2)
    found, _ = causal_attention(None, asked, key, value, None, 0.3)
    direction = torch.randn_like(found)
    assert torch.allclose(found, usual, atol=1e-5)
    for inputs in (asked, key, value):
        (wanted,) = torch.autograd.grad(usual, inputs, direction, retain_graph=True)
        (gradient,) = torch.autograd.grad(found, inputs, direction, retain_graph=True)
        assert torch.allclose(gradient, wanted, atol=1e-4)
