"""Affine: a linear layer for many rows and few outputs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from slimrnn.layers.inputs import in_autocast
from slimrnn.ops.operators import traced, transformed


class Affine(nn.Linear):
    """y = W x + b, as nn.Linear, whose weight gradient is computed as yᵀ x.

    torch takes (xᵀ y)ᵀ, for which MKL needs five times as long where there are many rows and few outputs."""

    def forward(self, x: Tensor) -> Tensor:
        return self.product(x)

    def product(self, x: Tensor) -> Tensor:
        """W x + b"""
        # A gradient written in python cannot be saved, nor seen through by vmap and its kind; autocast is nn.Linear's.
        if traced() or in_autocast(x.device.type) or (not torch.compiler.is_compiling() and transformed(x)):
            return super().forward(x)
        bias = self.bias if self.bias is not None else self.weight.new_zeros(self.out_features)
        y: Tensor = _Product.apply(x.reshape(-1, self.in_features), self.weight, bias)  # type: ignore[no-untyped-call]
        return y.view(*x.shape[:-1], self.out_features)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.addmm(bias, x, weight.t())

    @staticmethod
    def backward(ctx: Any, d_y: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        wants_x, wants_weight, wants_bias = ctx.needs_input_grad
        d_x = d_y @ weight if wants_x else None
        return d_x, d_y.t() @ x if wants_weight else None, d_y.sum(0) if wants_bias else None
