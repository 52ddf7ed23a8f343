"""Cells that the native core cannot run: one sentence that names the operation and the line, and plain torch runs."""

from __future__ import annotations

import inspect
import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from both_backends import BATCH, INPUT, TIME, WIDTH, cell_of
from torch import Tensor, nn
from torch.nn import functional as F

from registry import needs_library, numbers
from slimrnn import Cell, Recurrent
from slimrnn.cells.base import Matvec, State
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.tracing import find, native_cells

pytestmark = needs_library
CONSTANT = torch.ones(WIDTH, dtype=torch.float64)


@pytest.fixture(autouse=True)
def _tell_again() -> None:
    native_cells._explain.cache_clear()


def tanh(wx: Any, matvec: Any, state: Any) -> Any:
    return torch.tanh((wx + matvec(state[0])).squeeze(-2))


def in_place(c: Any, wx: Any, m: Any, s: Any) -> Any:
    h = tanh(wx, m, s)
    h += 1.0
    return (h,)


def in_place_method(c: Any, wx: Any, m: Any, s: Any) -> Any:
    return (tanh(wx, m, s).mul_(0.5),)


def in_place_option(c: Any, wx: Any, m: Any, s: Any) -> Any:
    return (F.relu(tanh(wx, m, s), inplace=True),)


def into_an_element(c: Any, wx: Any, m: Any, s: Any) -> Any:
    h = tanh(wx, m, s)
    h[:, 0] = 0.0
    return (h,)


def branch(c: Any, wx: Any, m: Any, s: Any) -> Any:
    return (tanh(wx, m, s) if s[0].sum() > 0 else s[0],)


def branch_on_a_comparison(c: Any, wx: Any, m: Any, s: Any) -> Any:
    h = tanh(wx, m, s)
    return (h if (h > 5).any() else s[0] + h,)


def branch_on_an_attribute(c: Any, wx: Any, m: Any, s: Any) -> Any:
    return (tanh(wx, m, s) * (2 if wx.is_sparse else 1),)


def several_lines(c: Any, wx: Any, m: Any, s: Any) -> Any:
    h = tanh(wx, m, s)
    h = torch.cos(h)  # the line
    return (0.5 * h,)


# The step, and what the sentence says. All of these run in plain torch.
CELLS: dict[str, tuple[Callable[..., Any], str]] = {
    "unknown function": (lambda c, wx, m, s: (torch.sin(tanh(wx, m, s)),), r"uses sin, which is not among"),
    "unknown method": (lambda c, wx, m, s: (tanh(wx, m, s).cumsum(-1),), r"uses cumsum, which is not among"),
    "unknown function of nn": (lambda c, wx, m, s: (F.gelu(tanh(wx, m, s)),), r"uses gelu, which is not among"),
    "matrix product": (lambda c, wx, m, s: (tanh(wx, m, s) @ torch.eye(WIDTH).double(),), r"uses matmul, which"),
    "remainder": (lambda c, wx, m, s: (tanh(wx, m, s) % 0.5,), r"uses mod, which"),
    "a number to the power of a vector": (lambda c, wx, m, s: (2 ** tanh(wx, m, s),), r"uses rpow, which"),
    "unequal": (lambda c, wx, m, s: (torch.where(s[0] != 0.0, tanh(wx, m, s), s[0]),), r"uses ne, which"),
    "and": (lambda c, wx, m, s: (torch.where((s[0] > 0) & (s[0] < 1), tanh(wx, m, s), 0.5),), r"uses and, which"),
    "a comparison as a number": (
        lambda c, wx, m, s: ((s[0] > 0) + tanh(wx, m, s),),
        r"uses r?add .*a comparison is for",
    ),
    "odd power": (
        lambda c, wx, m, s: (abs(tanh(wx, m, s)) ** 0.3,),
        r"uses pow .*whole or half numbers up to 16, got 0.3",
    ),
    "sum over all": (
        lambda c, wx, m, s: (tanh(wx, m, s) / (1 + s[0].square().sum()),),
        r"uses sum .*over the units of a row",
    ),
    "norm over gates too": (
        lambda c, wx, m, s: (F.layer_norm(wx + m(s[0]), (1, WIDTH)).squeeze(-2),),
        r"uses layer_norm .*units alone, got \(1, 5\)",
    ),
    "shape": (lambda c, wx, m, s: (tanh(wx, m, s) * wx.shape[-1],), r"reads \.shape"),
    "size": (lambda c, wx, m, s: (tanh(wx, m, s) * s[0].size(-1),), r"reads \.size"),
    "length": (lambda c, wx, m, s: (tanh(wx, m, s) * len(wx),), r"reads the length"),
    "iteration": (lambda c, wx, m, s: (torch.stack([2 * row for row in tanh(wx, m, s)]),), r"iterates over a tensor"),
    "item": (lambda c, wx, m, s: (tanh(wx, m, s) * s[0][0, 0].item(),), r"uses getitem .*a gate is wx"),
    "float": (lambda c, wx, m, s: (tanh(wx, m, s) * float(c.number),), r"takes a number out of a tensor"),
    "math": (lambda c, wx, m, s: (tanh(wx, m, s) * math.exp(c.number),), r"takes a number out of a tensor"),
    "NaN": (lambda c, wx, m, s: (torch.where(s[0] > 5, math.nan, tanh(wx, m, s)),), r"has a constant that is NaN"),
    "NaN by name": (lambda c, wx, m, s: (tanh(wx, m, s).clamp(max=math.nan),), r"has a constant that is NaN"),
    "complex constant": (
        lambda c, wx, m, s: ((tanh(wx, m, s) * 1j).imag,),
        r"uses r?mul .*expected tensors and numbers, got 1j",
    ),
    "tensor of its own": (
        lambda c, wx, m, s: (tanh(wx, m, s) * CONSTANT,),
        r"uses a tensor that is neither a parameter nor",
    ),
    "tensor made in the step": (
        lambda c, wx, m, s: (torch.ones(WIDTH) + tanh(wx, m, s),),
        r"uses a tensor that is neither",
    ),
    "shape of a parameter": (lambda c, wx, m, s: (tanh(wx, m, s) * c.cube[0, 0],), r"uses cube, of shape \(2, 3, 5\)"),
    "length of a parameter": (lambda c, wx, m, s: (tanh(wx, m, s) * c.three.mean(),), r"uses three, of shape \(3,\)"),
    "gate by an index": (
        lambda c, wx, m, s: (torch.tanh((wx + m(s[0]))[:, 0]),),
        r"uses getitem .*a gate is wx\[\.\.\., k, :\]",
    ),
    "axis": (
        lambda c, wx, m, s: (torch.tanh((wx + m(s[0])).unbind(1)[0]),),
        r"uses unbind .*the axis of the gates, -2",
    ),
    "mixed shapes": (lambda c, wx, m, s: ((wx * s[0])[:, 0, :],), r"uses mul .*shapes \(B, H\) and \(B, G, H\)"),
    "another axis": (lambda c, wx, m, s: ((wx * s[0].unsqueeze(-2) + m(s[0])).squeeze(-2),), r"uses unsqueeze, which"),
    "in place": (in_place, r"writes into a tensor in place \(iadd\)"),
    "in place by a method": (in_place_method, r"writes into a tensor in place \(mul\)"),
    "in place by an option": (in_place_option, r"writes into a tensor in place \(relu\)"),
    "in place into an element": (into_an_element, r"writes into a tensor in place"),
    "branch": (branch, r"uses sum .*over the units of a row"),
    "branch on a comparison": (branch_on_a_comparison, r"uses any, which"),
    "branch on an attribute": (branch_on_an_attribute, r"reads \.is_sparse"),
    "branch on a parameter": (
        lambda c, wx, m, s: (tanh(wx, m, s) if c.number > 0 else s[0],),
        r"branches on a value \(use torch.where\)",
    ),
    "branch on equality": (lambda c, wx, m, s: (tanh(wx, m, s) if c.number == 1 else s[0],), r"branches on a value"),
    "several lines": (several_lines, r"uses cos, which"),
}


def parameters(cell: Any, hidden: int) -> None:
    cell.register_buffer("number", torch.ones(()))
    cell.three = nn.Parameter(torch.ones(3))
    cell.cube = nn.Parameter(torch.ones(2, 3, hidden))


def layer_of_step(step: Any, build: Any = parameters, backend: str = "native", **sizes: Any) -> RecurrentLayer:
    torch.manual_seed(0)
    options: Any = {"dtype": torch.float64, "backend": backend}
    return Recurrent(cell_of(step, build=build, **sizes), INPUT, WIDTH, **options).layer(0)


def run(layer: RecurrentLayer) -> Any:
    torch.manual_seed(1)
    return layer(numbers(TIME, BATCH, INPUT), layer.initial_state(BATCH))[0]


def told(layer: RecurrentLayer) -> tuple[Any, str]:
    """The output, and the one warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        output = run(layer)
        run(layer)  # told once
    assert len(caught) == 1
    assert caught[0].category is RuntimeWarning
    return output, str(caught[0].message)


@pytest.mark.parametrize("name", CELLS)
def test_one_sentence_and_plain_torch(name: str) -> None:
    step, says = CELLS[name]
    output, sentence = told(layer_of_step(step))
    assert torch.equal(output.nan_to_num(), run(layer_of_step(step, backend="reference")).nan_to_num())
    lines, first = inspect.getsourcelines(step)
    head, _, where = sentence.rpartition(" in line ")
    number, _, file = where.partition(" of ")
    assert file == __file__
    assert first <= int(number) < first + len(lines)
    assert head.startswith("OneLine runs in plain torch, many times slower: its step ")
    assert re.search(says, head), head
    assert "\n" not in sentence


# --- without a line: the step as a whole ----------------------------------------------------------------------------


def many_states(c: Any, wx: Any, m: Any, s: Any) -> Any:
    return tuple(tanh(wx, m, s) + old for old in s)


def many_products(c: Any, wx: Any, m: Any, s: Any) -> Any:
    h = s[0]
    for _ in range(9):
        h = torch.tanh(wx + m(h)).squeeze(-2)
    return (h,)


def many_values(c: Any, wx: Any, m: Any, s: Any) -> Any:
    """All of them are needed again in the end."""
    h = tanh(wx, m, s)
    some = [torch.tanh(h * (k + 0.5)) for k in range(80)]
    return (sum(a * b for a, b in zip(some, some[::-1], strict=True)) / 80,)


def many_operations(c: Any, wx: Any, m: Any, s: Any) -> Any:
    z = tanh(wx, m, s)
    for _ in range(2000):
        z = z * 0.999 + 0.001
    return (z,)


WHOLE: dict[str, tuple[Callable[..., Any], dict[str, Any], str]] = {
    "many states": (many_states, {"states": 9}, "has 9 states, more than the 8 of native cells"),
    "many products": (many_products, {}, "has 9 products of different vectors or ranges of gates, more than the 8"),
    "many gates": (
        lambda c, wx, m, s: (torch.tanh(wx + m(s[0]))[..., 32, :],),
        {"gates": 33},
        "has 33 gates, more than",
    ),
    "many values": (many_values, {}, r"needs \d+ values at once, more than the 64"),
    "many operations": (many_operations, {}, "is too long for native cells"),
    "a constant state": (lambda c, wx, m, s: (tanh(wx, m, s), s[1] * 0), {"states": 2}, "does not depend on the input"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_too_much_runs_in_plain_torch(name: str) -> None:
    step, sizes, says = WHOLE[name]
    output, sentence = told(layer_of_step(step, **sizes))
    assert re.search(f"OneLine runs in plain torch, many times slower: its step .*{says}", sentence), sentence
    assert torch.equal(output, run(layer_of_step(step, backend="reference", **sizes)))


def count_calls(c: Any, wx: Any, m: Any, s: Any) -> Any:
    c.calls += 1
    return (tanh(wx, m, s) / c.calls,)


def append(c: Any, wx: Any, m: Any, s: Any) -> Any:
    c.seen["all"].append(1)
    return (tanh(wx, m, s),)


def remember(c: Any, wx: Any, m: Any, s: Any) -> Any:
    c.gate = tanh(wx, m, s)
    return (c.gate,)


def count_inside(c: Any, wx: Any, m: Any, s: Any) -> Any:
    c.inner.beta = c.inner.beta + 0.5
    return (c.inner(tanh(wx, m, s)),)


@pytest.mark.parametrize(
    ("step", "changed"),
    [(count_calls, "self.calls"), (append, "self.seen"), (remember, "self.gate"), (count_inside, "self.inner.beta")],
)
def test_a_cell_that_changes_itself_runs_in_plain_torch(step: Any, changed: str) -> None:
    def build(cell: Any, hidden: int) -> None:
        cell.calls, cell.seen, cell.inner = 0, {"all": []}, nn.Softplus()

    layer = layer_of_step(step, build)
    assert find(layer.cell) == f"changes {changed}, which native cells cannot: they trace a step once"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        output = run(layer)
    assert torch.equal(output, run(layer_of_step(step, build, backend="reference")))


def test_an_attribute_set_to_what_it_is_changes_nothing() -> None:
    def build(cell: Any, hidden: int) -> None:
        cell.sizes = [hidden, 0.5]

    def step(c: Any, wx: Any, m: Any, s: Any) -> Any:
        c.sizes = [c.hidden_size, 1 / 2]
        return (tanh(wx, m, s),)

    assert not isinstance(find(layer_of_step(step, build).cell), str)


def test_complex_cells_with_functions_of_real_numbers() -> None:
    class Square(Cell):
        gates = ("h",)

        def __init__(self, hidden_size: int, bias: bool = True, **place: Any) -> None:
            super().__init__(hidden_size, False, complex=True, **place)

        def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
            return (torch.tanh(wx_BGH + matvec(state[0])).squeeze(-2),)

    with pytest.warns(RuntimeWarning, match="Square runs in plain torch.* computes tanh of complex numbers"):
        Recurrent(Square, INPUT, WIDTH)(torch.randn(TIME, BATCH, INPUT))


# --- cells that are wrong -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "states", "got"),
    [
        (lambda c, wx, m, s: tanh(wx, m, s), 1, "a tuple of 1, the states after it, got a tensor"),
        (lambda c, wx, m, s: [tanh(wx, m, s)], 1, "a tuple of 1, the states after it, got a list"),
        (lambda c, wx, m, s: (tanh(wx, m, s), s[0]), 1, "a tuple of 1, the states after it, got a tuple of 2"),
        (lambda c, wx, m, s: (tanh(wx, m, s),), 2, "a tuple of 2, the states after it, got a tuple of 1"),
        (lambda c, wx, m, s: None, 1, "a tuple of 1, the states after it, got a NoneType"),
        (lambda c, wx, m, s: (torch.tanh(wx + m(s[0])),), 1, r"states of shape \(B, H\), got one of \(B, 1, H\)"),
        (lambda c, wx, m, s: (s[0].mean(-1, keepdim=True),), 1, r"states of shape \(B, H\), got one of \(B, 1\)"),
    ],
)
def test_other_states_are_refused(step: Any, states: int, got: str) -> None:
    with pytest.raises(TypeError, match=rf"^expected OneLine\.step to give {got}$"):
        run(layer_of_step(step, states=states))


WRONG: dict[str, tuple[Callable[..., Any], type[Exception], str]] = {  # as torch itself says it
    "matrices that do not exist": (
        lambda c, wx, m, s: (m(s[0], slice(2, 3))[..., 0, :],),
        IndexError,
        "asks for matrices",
    ),
    "matrices by number": (lambda c, wx, m, s: (m(s[0], 7).squeeze(-2),), IndexError, "asks for matrices 7 of 1"),
    "unfit parameter": (lambda c, wx, m, s: (tanh(wx, m, s) * c.three,), RuntimeError, r"uses three, of shape \(3,\)"),
    "unknown name": (lambda c, wx, m, s: (tanh(wx, m, s) * c.missing,), AttributeError, "cannot be traced .*missing"),
    "unknown attribute": (
        lambda c, wx, m, s: (tanh(wx, m, s).sigmoids(),),
        AttributeError,
        "cannot be traced .*sigmoids",
    ),
    "its own error": (lambda c, wx, m, s: (1 / 0,), ZeroDivisionError, "cannot be traced .*division by zero"),
    "product of a mean": (
        lambda c, wx, m, s: (tanh(wx, m, s) + m(s[0].mean(-1, True))[..., 0, :],),
        RuntimeError,
        "is no vector",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_where_torch_fails_so_does_the_layer(name: str) -> None:
    step, error, says = WRONG[name]
    with pytest.warns(RuntimeWarning, match=f"its step .*({says}).* in line") as caught, pytest.raises(error):
        run(layer_of_step(step))
    assert len(caught) == 1
