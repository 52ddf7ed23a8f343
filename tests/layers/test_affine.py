"""The affine layer is nn.Linear, computed in another order."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from slimrnn.layers.affine import Affine


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(7, 3, 5), (3, 5), (5,)])
def test_is_a_linear_layer(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    ours, theirs = (kind(5, 2, bias=bias, dtype=torch.float64) for kind in (Affine, nn.Linear))
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    weighting = torch.randn(*shape[:-1], 2, dtype=torch.float64)
    outputs = [layer(x) for layer in (ours, theirs)]
    torch.testing.assert_close(*outputs)
    found = [
        torch.autograd.grad(output, [x, *layer.parameters()], weighting)
        for output, layer in zip(outputs, (ours, theirs), strict=True)
    ]
    torch.testing.assert_close(*found)


def test_second_derivatives() -> None:
    torch.manual_seed(0)
    layer = Affine(3, 2, dtype=torch.float64)
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(layer, x)
