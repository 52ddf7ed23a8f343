"""The native scan without the dispatcher, whose way through a registered operator takes a fraction of a millisecond."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from slimrnn.ops.calls import with_tensors
from slimrnn.ops.operators import Definition, differentiate, run_backward, run_forward, save, traced
from slimrnn.ops.terms import Plan


def can_bypass_dispatcher(tensors: Sequence[Tensor]) -> bool:
    """Whether the operator may be left out: nothing traces, exports or intercepts what happens to these tensors."""
    if torch.compiler.is_compiling() or traced() or torch._C._len_torch_dispatch_stack():
        return False
    return all(type(t) is Tensor or type(t) is torch.nn.Parameter for t in tensors)


class EagerScan(torch.autograd.Function):
    """`slimrnn::scan` as it is differentiated, with the same functions."""

    @staticmethod
    def forward(
        ctx: Any, plan: Plan, reverse: bool, first_step: int, definition: Definition | None, *tensors: Any
    ) -> tuple[Tensor, Tensor]:
        """`tensors` are those of Inputs, the weights last, one by one."""
        inputs = with_tensors(tensors, plan, reverse, first_step)
        output = run_forward(inputs, True)
        save(ctx, inputs, output, definition)
        return output[0], output[1]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
        d_out, d_last = gradients
        return None, None, None, None, *differentiate(ctx, run_backward, d_out, d_last, ctx.needs_input_grad[4])
