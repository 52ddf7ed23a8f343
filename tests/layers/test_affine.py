"""The affine layer is nn.Linear, computed in another order."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from slimrnn import GRU, ReadOut
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


def test_autocast_is_that_of_a_linear_layer() -> None:
    torch.manual_seed(0)
    rnn = GRU(3, 4)
    ours, theirs = ReadOut(rnn, 2), nn.Linear(4, 2)
    theirs.load_state_dict(ours.state_dict())
    h = torch.randn(5, 2, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = [layer(h) for layer in (ours, theirs)]
    for output in outputs:
        output.float().sum().backward()
    assert outputs[0].dtype == torch.bfloat16
    for a, b in ((outputs[0], outputs[1]), (ours.weight.grad, theirs.weight.grad), (ours.bias.grad, theirs.bias.grad)):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def test_functional_transforms() -> None:
    torch.manual_seed(0)
    readout = ReadOut(GRU(3, 4, dtype=torch.float64), 2)
    plain, h = nn.Linear(4, 2, dtype=torch.float64), torch.randn(5, 3, 4, dtype=torch.float64)
    plain.load_state_dict(readout.state_dict())
    torch.testing.assert_close(torch.func.vmap(readout)(h.unsqueeze(2)), plain(h).unsqueeze(2))
    gradients = [torch.func.grad(lambda x, layer=layer: layer(x).square().sum())(h) for layer in (readout, plain)]
    torch.testing.assert_close(*gradients)
    products = [torch.func.jvp(layer, (h,), (torch.ones_like(h),)) for layer in (readout, plain)]
    torch.testing.assert_close(*products)


def test_compiled_with_gradients() -> None:
    torch.manual_seed(0)
    layer, x = Affine(3, 2, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    expected = torch.autograd.grad(layer(x).square().sum(), layer.weight)
    torch.testing.assert_close(torch.autograd.grad(compiled(x).square().sum(), layer.weight), expected)
