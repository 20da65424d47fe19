"""A linear layer and its adapter as one operation, for training on a frozen base.

PEFT computes an adapter's part beside the base's and in the adapter's own precision: for every layer the input is cast,
and arrays of the output's size are scaled, cast and added. In a small model these passes over memory cost more than the
products. Here both parts are accumulated into one array in the precision of the base; only the two small matrices are
cast.
"""

from __future__ import annotations

from typing import Any


def make_lean(model: Any) -> None:
    """Let every plain adapted layer of a PEFT model compute this way; the others stay as they are.

    A layer whose adapter is disabled, merged, dropped out or one of several computes as before.
    """
    import torch
    from peft.tuners.lora.layer import Linear

    operation = _operation()

    def lean(layer: Any) -> Any:
        usual = layer.forward

        def forward(x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
            active = layer.active_adapters
            if args or kwargs or layer.disable_adapters or layer.merged or len(active) != 1:
                result: torch.Tensor = usual(x, *args, **kwargs)
                return result
            name = active[0]
            down, up, scale = layer.lora_A[name].weight, layer.lora_B[name].weight, layer.scaling[name]
            return operation(x, layer.base_layer.weight, down, up, scale)

        return forward

    for layer in model.modules():
        if isinstance(layer, Linear) and _is_plain(layer):
            layer.forward = lean(layer)


def _is_plain(layer: Any) -> bool:
    from torch.nn import Identity
    from torch.nn import Linear as PlainLinear

    return (
        type(layer.base_layer) is PlainLinear
        and layer.base_layer.bias is None
        and not layer.lora_variant
        and all(isinstance(dropout, Identity) for dropout in layer.lora_dropout.values())
        and all(up.bias is None for up in layer.lora_B.values())
    )


def _operation() -> Any:
    import torch

    class LeanLinear(torch.autograd.Function):
        """`x W^T + s (x A^T) B^T` for `x` `[..., in]`, frozen `W` `[out, in]`, `A` `[rank, in]`, `B` `[out, rank]`."""

        @staticmethod
        def forward(
            ctx: Any, x: torch.Tensor, weight: torch.Tensor, down: torch.Tensor, up: torch.Tensor, scale: float
        ) -> torch.Tensor:
            rows = x.reshape(-1, x.shape[-1])
            down, up = down.to(x.dtype), (up * scale).to(x.dtype)
            low = rows @ down.T
            result = (rows @ weight.T).addmm_(low, up.T)
            ctx.save_for_backward(rows, weight, down, up, low)
            ctx.scale = scale
            return result.view(*x.shape[:-1], -1)

        @staticmethod
        def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
            rows, weight, down, up, low = ctx.saved_tensors
            gradient = gradients[0].reshape(-1, weight.shape[0])
            into_low = gradient @ up
            into_x = None
            if ctx.needs_input_grad[0]:
                into_x = (gradient @ weight).addmm_(into_low, down).view(*gradients[0].shape[:-1], -1)
            into_down = (into_low.T @ rows).to(torch.float32)
            into_up = (gradient.T @ low).to(torch.float32).mul_(ctx.scale)
            return into_x, None, into_down, into_up, None

    return LeanLinear.apply
