"""`runs_as` says what the time loop is: C++ of the cell's own, bytecode or plain torch; asking does not warn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from registry import CELLS, STRUCTURES, needs_library, numbers
from slimrnn import (
    GRU,
    LSTM,
    RNN,
    Cell,
    Deep,
    Diagonal,
    Householder,
    Kronecker,
    LowRank,
    Recurrent,
    Structure,
    UnitaryProduct,
)
from slimrnn.cells.base import Matvec, State
from slimrnn.ops import native
from slimrnn.structures import Dense
from slimrnn.structures.dense import DenseMap

pytestmark = needs_library


class Sine(Cell):
    """Outside of the vocabulary."""

    gates = ("n",)

    def step(self, wx: Tensor, matvec: Matvec, state: State) -> State:
        return (torch.sin((wx + matvec(state[0])).squeeze(-2)),)


class Mine(Sine):
    def step(self, wx: Tensor, matvec: Matvec, state: State) -> State:
        return (0.3 * state[0] + torch.tanh((wx + matvec(state[0])).squeeze(-2)),)


class WithoutKernel(DenseMap):
    native = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Own(Dense):
    map_type = WithoutKernel


CASES: dict[str, tuple[str, type[Any], dict[str, Any]]] = {
    "GRU": ("compiled", GRU, {}),
    "sum": ("compiled", GRU, {"structure": LowRank(2) + Diagonal()}),
    "product": ("compiled", LSTM, {"structure": LowRank(2) @ Householder(2)}),
    "modReLU": ("compiled", RNN, {"nonlinearity": "modrelu"}),
    "deep transition": ("compiled", GRU, {"transition_depth": 2}),
    "weight drop": ("compiled", LSTM, {"weight_drop": 0.5}),
    "leak": ("bytecode", GRU, {"leak": 0.5}),
    "zoneout": ("bytecode", LSTM, {"zoneout": (0.1, 0.5)}),
    "no library": ("reference", GRU, {"backend": "reference"}),
    "half precision": ("reference", GRU, {"dtype": torch.bfloat16}),
    "other device": ("reference", GRU, {"device": "meta"}),
    "no kernel": ("reference", GRU, {"structure": Own()}),
    "no kernel in a sum": ("reference", GRU, {"structure": Own() + Diagonal()}),
    "no kernel in a product": ("reference", GRU, {"structure": Diagonal() @ Own()}),
}


@pytest.mark.parametrize("case", CASES)
def test_layers_say_how_they_run(case: str) -> None:
    expected, make, options = CASES[case]
    stack = make(3, 4, **options)
    assert stack.runs_as == stack.layer(0).runs_as == expected
    shown = f"backend={stack.backend!r}, "
    if stack.backend != expected:
        shown += f"runs_as={expected!r}, "
    assert f"{shown}parameters=" in repr(stack)


@pytest.mark.parametrize("name", CELLS)
def test_every_cell_is_native(name: str) -> None:
    assert CELLS[name].build(3, 4).runs_as in ("compiled", "bytecode")


@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=repr)
def test_terms_are_counted_without_their_numbers(structure: Structure) -> None:
    built = structure.build(12, gates=1, complex=True)
    terms = built.terms(built.prepare())
    assert terms is not None
    assert built.term_count == len(terms)


@pytest.mark.parametrize("cell", [Mine, Sine])
def test_cells_of_ones_own_run_as_they_say(cell: type[Cell], monkeypatch: pytest.MonkeyPatch) -> None:
    stack, calls, run = Recurrent(cell, 3, 4), [], native.scan

    def counted(*given: Any) -> Any:
        calls.append(given)
        return run(*given)

    monkeypatch.setattr(native, "scan", counted)
    assert stack.runs_as == ("bytecode" if cell is Mine else "reference")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stack(numbers(5, 2, 3).float())
    assert bool(calls) == (cell is Mine)


class Turned(Cell):
    """A complex state, and two matrices."""

    gates = ("a", "b")

    def __init__(self, hidden_size: int, bias: bool = True, **place: Any) -> None:
        super().__init__(hidden_size, bias, complex=True, **place)

    def step(self, wx: Tensor, matvec: Matvec, state: State) -> State:
        return (0.5 * (wx + matvec(state[0])).sum(-2),)


class ManyRows(Cell):
    """More parameters than the core has room for."""

    gates = ("n",)

    def __init__(self, hidden_size: int, bias: bool = True, **place: Any) -> None:
        super().__init__(hidden_size, bias, **place)
        self.rows = nn.Parameter(torch.rand(1025, hidden_size, dtype=place.get("dtype")) / 1025)

    def step(self, wx: Tensor, matvec: Matvec, state: State) -> State:
        z = (wx + matvec(state[0])).squeeze(-2)
        for k in range(1025):
            z = z * self.rows[k] + z
        return (torch.tanh(z),)


LIMITED: dict[str, tuple[type[Cell], Structure]] = {
    "gates": (Turned, UnitaryProduct()),
    "gates in a sum": (Turned, UnitaryProduct() + Diagonal()),
    "gates in a product": (Turned, Diagonal() @ UnitaryProduct()),
    "factors": (Mine, Kronecker([2, 2, *[1] * 63])),
    "rows": (ManyRows, Diagonal()),
}


@pytest.mark.parametrize("name", LIMITED)
def test_what_the_core_has_no_room_for_runs_in_plain_torch(name: str) -> None:
    cell, structure = LIMITED[name]
    stack, x = Recurrent(cell, 3, 4, structure=structure, dtype=torch.float64), numbers(3, 2, 3)
    assert stack.runs_as == "reference"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        output = stack(x)[0]
        stack.backend = "reference"
        assert torch.equal(stack(x)[0], output)


def test_the_most_that_the_core_has_room_for_is_native() -> None:
    stack, x = Recurrent(Mine, 3, 4, structure=Kronecker([2, 2, *[1] * 62]), dtype=torch.float64), numbers(3, 2, 3)
    assert stack.runs_as == "bytecode"
    output = stack(x)[0]
    stack.backend = "reference"
    torch.testing.assert_close(stack(x)[0], output)


def test_asking_does_not_use_up_the_warning() -> None:
    class Unheard(Sine):
        pass

    stack, x = Recurrent(Unheard, 3, 4), torch.zeros(5, 2, 3)
    assert "runs_as='reference'" in repr(stack)
    with pytest.warns(RuntimeWarning, match=r"Unheard runs in plain torch.* uses sin.* in line \d+ of .*test_runs_as"):
        stack(x)
    stack(x)  # once


def test_asking_changes_no_parametrization() -> None:
    stack = GRU(3, 4, structure=Dense() + Diagonal())
    for part in stack.layer(0).recurrent.modules():
        if isinstance(part, DenseMap):
            nn.utils.parametrizations.spectral_norm(part, next(name for name, _ in part.named_parameters()))
    before = {name: buffer.clone() for name, buffer in stack.named_buffers()}
    assert before
    assert stack.runs_as == "compiled"
    assert all(torch.equal(buffer, before[name]) for name, buffer in stack.named_buffers())


def test_layers_that_differ_are_mixed() -> None:
    stack = GRU(3, 4, 2)
    stack.layer(1).backend = "reference"
    assert stack.runs_as == "mixed"
    assert Deep(3, GRU(3, 4), 2).runs_as == "compiled"
