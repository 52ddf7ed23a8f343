"""UnitaryProduct in the native core: any size, so any factor of the transform, and groups of rows full or not."""

from __future__ import annotations

import pytest
import torch
from native_cases import ISAS, check_native, compare, differentiate, instruction_set, on, start
from torch import Tensor

from registry import needs_library, numbers
from slimrnn import RNN, UnitaryProduct
from slimrnn.layers.recurrent_layer import RecurrentLayer

pytestmark = needs_library


def build(size: int, dtype: torch.dtype = torch.float64) -> RecurrentLayer:
    torch.manual_seed(size)
    return RNN(2, size, nonlinearity="modrelu", structure=UnitaryProduct(), dtype=dtype).layer(0)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("size", [2, 3, 4, 5, 7, 8, 16, 30, 47, 64, 94, 128])
def test_every_size_is_the_reference(size: int, isa: str) -> None:
    layer = build(size, torch.float32)
    with instruction_set(isa):
        for batch in (1, 11):
            check_native(layer, numbers(3, batch, 2).float(), start(layer, batch), single=1e-4)


def test_a_single_unit_is_the_reference() -> None:
    layer = build(1)
    x, state = numbers(3, 2, 2), start(layer, 2)
    actual, expected = (differentiate(on(backend, layer), x, state) for backend in ("native", "reference"))
    compare(actual, expected, 1e-10, together=1.0)  # a vector of one number turns nothing: its own gradient is zero


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["double", "single"])
def test_a_row_does_not_depend_on_those_beside_it(dtype: torch.dtype, isa: str) -> None:
    layer = on("native", build(94, dtype))
    x, state = numbers(3, 20, 2).to(dtype), start(layer, 20)
    weights = numbers(3, 20, 188).to(dtype)

    def run(rows: slice) -> tuple[Tensor, Tensor]:
        (h,) = (s[rows].clone().requires_grad_() for s in state)
        output, _ = layer(x[:, rows], (h,))
        return output.detach(), torch.autograd.grad((output * weights[:, rows]).sum(), h)[0]

    with instruction_set(isa):
        output, gradient = run(slice(None))
        for rows in (slice(0, 1), slice(1, 4), slice(4, 9), slice(9, 20)):
            part, part_gradient = run(rows)
            assert torch.equal(part, output[:, rows])
            assert torch.equal(part_gradient, gradient[rows])


@pytest.mark.parametrize("entry", [-1, 8, 3], ids=["negative", "too large", "twice"])
def test_what_is_no_permutation_is_refused(entry: int) -> None:
    layer = on("native", build(8))
    layer.recurrent.get_buffer("permutation").copy_(torch.tensor([entry, 3, 0, 1, 2, 4, 5, 6]))
    with pytest.raises(RuntimeError, match="bad argument"):
        layer(numbers(3, 2, 2), start(layer, 2))
