"""The native scan without the dispatcher, whose way through a registered operator takes a fraction of a millisecond."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from slimrnn.ops.operators import Definition, differentiate, run_backward, run_forward, save, traced


def nobody_is_watching(tensors: Sequence[Tensor]) -> bool:
    """Whether the operator may be left out: nothing traces, exports or intercepts what happens to these tensors."""
    if torch.compiler.is_compiling() or traced() or torch._C._len_torch_dispatch_stack():
        return False
    return all(type(t) is Tensor or type(t) is torch.nn.Parameter for t in tensors)


class EagerScan(torch.autograd.Function):
    """`slimrnn::scan` as it is differentiated, with the same functions."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        u: Tensor | None,
        bias: Tensor | None,
        state: Tensor,
        own: Tensor | None,
        mask: Tensor | None,
        lengths: Tensor | None,
        plan: str,
        reverse: bool,
        definition: Definition | None,
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor]:
        inputs = (x, u, bias, state, weights, own, mask, lengths, plan, reverse, True)
        output = run_forward(*inputs)
        save(ctx, inputs, output, definition)
        return output[0], output[1]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
        d_out, d_last = gradients
        d_x, d_u, d_bias, d_state, d_weights, d_own, *_ = differentiate(ctx, run_backward, d_out, d_last)
        return d_x, d_u, d_bias, d_state, d_own, None, None, None, None, None, *d_weights
