"""A step that the native core does not have runs in plain torch, whatever it does, and gives the same numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from registry import needs_library
from slimrnn import Cell, Recurrent
from slimrnn.cells.base import Matvec, State


class Around(Cell):
    """tanh, and then something else."""

    gates = ("n",)
    then: Callable[[Tensor, Tensor], Tensor]

    def step(self, wx: Tensor, matvec: Matvec, state: State) -> State:
        (h,) = state
        return (type(self).then(torch.tanh((wx + matvec(h)).squeeze(-2)), h),)


def _checked(n: Tensor, h: Tensor) -> Tensor:
    if not isinstance(n, Tensor):
        raise TypeError("expected a tensor")
    return n


OUTSIDE: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], str]] = {
    "matmul": (lambda n, h: n @ torch.eye(4), "uses matmul"),
    "not equal": (lambda n, h: torch.where(n != 0, n, h), "uses ne"),
    "and": (lambda n, h: torch.where((n > 0) & (h < 1), n, h), "uses and"),
    "invert": (lambda n, h: torch.where(~(n > 0), n, h), "uses invert"),
    "length": (lambda n, h: n / len(h), "reads the length of a traced value"),
    "modulo": (lambda n, h: n % 0.5, "uses mod"),
    "shape": (lambda n, h: n * h.shape[-1], "reads .shape of a traced value"),
    "branch": (lambda n, h: n if (n > 0).all() else h, "uses all"),
    "sort": (lambda n, h: n.sort(-1).values, "uses sort"),
    "in place": (lambda n, h: n.add_(1), "writes into a tensor in place"),
    "its own check": (_checked, "TypeError: expected a tensor"),
}


@needs_library
@pytest.mark.parametrize("case", OUTSIDE)
def test_what_is_outside_falls_back_and_is_told(case: str) -> None:
    then, told = OUTSIDE[case]
    cell: type[Cell] = type(f"{case.title().replace(' ', '')}Cell", (Around,), {"then": staticmethod(then)})
    torch.manual_seed(0)
    stack, x = Recurrent(cell, 3, 4), torch.randn(5, 2, 3)
    with pytest.warns(RuntimeWarning, match=f"{cell.__name__} runs in plain torch, many times slower: .*{told}"):
        output, _ = stack(x)
    assert stack.runs_as == "reference"
    stack.backend = "reference"
    assert torch.equal(output, stack(x)[0])


@needs_library
def test_equality_is_inside() -> None:
    class EqualCell(Around):
        then = staticmethod(lambda n, h: torch.where(h == 0, 2 * n, n))

    stack, x = Recurrent(EqualCell, 3, 4, dtype=torch.float64), torch.randn(5, 2, 3, dtype=torch.float64)
    output, _ = stack(x)
    assert stack.runs_as == "bytecode"
    stack.backend = "reference"
    assert torch.allclose(output, stack(x)[0], rtol=0, atol=1e-12)
