"""`Recurrent` and `layer_of`: a cell of one's own has all that the layers of torch have."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from typing import Any

import pytest
import torch
from own_cells import Alone, Averaging, ThreeRatesCell, TwoRates, TwoRatesCell
from torch import nn

from registry import numbers
from slimrnn import GRU, Cell, Dense, Diagonal, LowRank, Recurrent, hidden_size_for, layer_of, summary
from slimrnn.cells import ElmanCell, GRUCell
from slimrnn.layers import RecurrentStack

INPUT, SIZE = 3, 6


def build(cell: type[Cell] = TwoRatesCell, *sizes: Any, **options: Any) -> Recurrent:
    return Recurrent(cell, INPUT, SIZE, *sizes, **{"dtype": torch.float64} | options)


def test_the_layers_of_the_package_are_recurrents_of_their_cells() -> None:
    torch.manual_seed(0)
    ours = Recurrent(GRUCell, INPUT, SIZE, 2, structure=LowRank(2), reset="before", update_bias=1.0, batch_first=True)
    theirs = GRU(INPUT, SIZE, 2, structure=LowRank(2), reset="before", update_bias=1.0, batch_first=True)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(4, 5, INPUT)
    torch.testing.assert_close(ours(x), theirs(x), rtol=0, atol=0)


def test_one_state_is_a_tensor_and_several_are_a_tuple() -> None:
    x = numbers(5, 4, INPUT)
    output, last = build(Averaging, 2, bidirectional=True)(x)
    assert output.shape == (5, 4, 2 * SIZE)
    assert last.shape == (4, 4, SIZE)
    output, last = build(TwoRatesCell, 2, bidirectional=True, batch_first=True)(x.transpose(0, 1))
    assert output.shape == (4, 5, 2 * SIZE)
    assert isinstance(last, tuple)
    assert [part.shape for part in last] == [(4, 4, SIZE)] * 2
    _, unbatched = build()(x[:, 0])
    assert [part.shape for part in unbatched] == [(1, SIZE)] * 2


@pytest.mark.parametrize("cell", [Averaging, TwoRatesCell])
def test_steps_give_what_the_sequence_gives(cell: type[Cell]) -> None:
    stack, x = build(cell, 2, structure=LowRank(2) + Diagonal()), numbers(7, 4, INPUT)
    output, last = stack(x)
    state = stack.initial_state(4)
    for x_t, expected in zip(x, output, strict=True):
        y, state = stack.step(x_t, state)
        torch.testing.assert_close(y, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(state, last, rtol=1e-12, atol=1e-12)


def test_ragged_sequences_give_what_each_alone_gives() -> None:
    stack, x, lengths = build(TwoRatesCell, 2, bidirectional=True), numbers(7, 4, INPUT), [7, 2, 5, 1]
    output, last = stack(x, lengths=lengths)
    for b, length in enumerate(lengths):
        alone, end = stack(x[:length, b])
        torch.testing.assert_close(output[:length, b], alone, rtol=1e-12, atol=1e-12)
        assert not output[length:, b].any()
        for part, expected in zip(last, end, strict=True):
            torch.testing.assert_close(part[:, b], expected, rtol=1e-12, atol=1e-12)


def test_options_of_the_layer_work_with_a_cell_of_ones_own() -> None:
    options: dict[str, Any] = {"transition_depth": 2, "leak": 0.3, "delays": (1, 2), "recurrent_dropout": 0.2}
    stack = build(TwoRatesCell, 2, dropout=0.1, residual=True, learn_initial_state=True, weight_norm=True, **options)
    output, _ = stack(numbers(6, 4, INPUT))
    output.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in stack.parameters())
    assert len(summary(stack).layers) == 4  # two groups of units in each of two layers
    assert hidden_size_for(1000, TwoRates, INPUT, structure=Diagonal()) > SIZE


def test_options_reach_the_cell_and_what_it_extends() -> None:
    assert build(TwoRatesCell, rate=0.7).cell.rate == 0.7
    cell: Any = build(ThreeRatesCell, rate=0.7, third=0.1).cell
    assert (cell.rate, cell.third) == (0.7, 0.1)
    assert Recurrent(ElmanCell, 2, 4, nonlinearity="modrelu").cell.complex


@pytest.mark.parametrize("make", [TwoRates, lambda *sizes, **options: Recurrent(TwoRatesCell, *sizes, **options)])
def test_misspelt_options_are_told_with_the_name_that_was_meant(make: Any) -> None:
    for wrong, meant in (("rat", "rate"), ("struture", "structure"), ("batch_frist", "batch_first")):
        message = f"of TwoRatesCell, got an unexpected keyword argument '{wrong}'; did you mean '{meant}'?"
        with pytest.raises(TypeError, match=re.escape(message)):
            make(INPUT, SIZE, **{wrong: 1})


def test_repr_says_which_cell_and_options() -> None:
    shown = repr(build(TwoRatesCell, 2, rate=0.7, structure=LowRank(2), batch_first=True))
    start = "Recurrent(TwoRatesCell, 3, 6, structure=LowRank(2), rate=0.7, num_layers=2, batch_first=True, backend="
    assert shown.startswith(start)
    assert repr(TwoRates(3, 6, rate=0.7)).startswith("TwoRates(3, 6, structure=Dense(), rate=0.7, backend=")


def test_layer_of_gives_a_class_with_torchs_constructor() -> None:
    names = list(inspect.signature(TwoRates).parameters)
    torchs = [name for name in inspect.signature(nn.RNNBase).parameters if name not in ("mode", "proj_size")]
    assert names[:7] == torchs[:7] == ["input_size", "hidden_size", "num_layers", "bias", *names[4:7]]
    assert names[7:] == ["rate", "options"]
    stack = TwoRates(INPUT, SIZE, 2, False, True, 0.5, True, rate=0.3)
    assert isinstance(stack, RecurrentStack)
    assert (stack.num_layers, stack.bias, stack.batch_first, stack.dropout) == (2, False, True, 0.5)
    assert stack.bidirectional
    assert (TwoRates.__name__, TwoRates.__module__, TwoRates.__doc__) == ("TwoRates", "own_cells", TwoRatesCell.__doc__)


def test_layer_of_takes_a_name_and_options_that_differ_from_the_usual_ones() -> None:
    assert Alone(INPUT, SIZE).structure == Diagonal()
    assert Alone(INPUT, SIZE, structure=Dense()).structure == Dense()
    assert Alone.__name__ == "Alone"
    assert layer_of(Averaging).__name__ == "AveragingLayer"
    with pytest.raises(TypeError, match="got 'struture'; did you mean 'structure'"):
        layer_of(Averaging, struture=Dense())


@pytest.mark.parametrize("make", [TwoRates, Alone, lambda *sizes: Recurrent(ThreeRatesCell, *sizes, third=0.2)])
def test_layers_can_be_pickled_and_copied(make: Any) -> None:
    stack, x = make(INPUT, SIZE, 2), torch.randn(5, 4, INPUT)
    for other in (pickle.loads(pickle.dumps(stack)), copy.deepcopy(stack)):
        assert type(other) is type(stack)
        assert repr(other) == repr(stack)
        torch.testing.assert_close(other(x), stack(x), rtol=0, atol=0)


def test_torch_has_no_such_layer() -> None:
    for stack in (TwoRates(INPUT, SIZE), build()):
        with pytest.raises(ValueError, match=f"which torch.nn has too, got {type(stack).__name__}, which it has not"):
            stack.to_torch()
        with pytest.raises(ValueError, match=r"which torch\.nn has too"):
            type(stack).from_torch(nn.GRU(INPUT, SIZE))


class NoGates(Cell):
    def step(self, *_: Any) -> Any: ...


class NoStep(Cell):
    gates = ("n",)


class NoStates(Averaging):
    states = 0


class NoPlace(Averaging):
    def __init__(self, hidden_size: int, bias: bool = True) -> None:
        super().__init__(hidden_size, bias)


class Leaking(Averaging):
    def __init__(self, hidden_size: int, bias: bool = True, *, leak: float = 0.0, **place: Any) -> None:
        super().__init__(hidden_size, bias, **place)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (Averaging(3), "expected a class of cells, a subclass of slimrnn.Cell, got an instance of Averaging"),
        (nn.GRUCell, "expected a class of cells, a subclass of slimrnn.Cell, got <class"),
        (NoGates, r"expected NoGates to name its gates, such as gates = \('f', 'n'\), got none"),
        (NoStep, r"expected NoStep to define step\(self, wx, matvec, state\), got none"),
        (NoStates, "expected NoStates to have states = 1 or more, got 0"),
        (NoPlace, "expected the constructor of NoPlace to take hidden_size, bias, dtype and device, .* got no dtype"),
        (Leaking, "expected options of Leaking that no layer has, got 'leak'"),
    ],
)
def test_what_is_not_a_cell_is_told_in_a_sentence(cell: Any, message: str) -> None:
    for make in (lambda: Recurrent(cell, INPUT, SIZE), lambda: layer_of(cell)):
        with pytest.raises(TypeError, match=message):
            make()


class Scaled(GRUCell):
    """With an attribute of the class that an instance may have as a tensor."""

    scale: Any = 1.0

    def step(self, wx: Any, matvec: Any, state: Any) -> Any:
        return (self.scale * super().step(wx, matvec, state)[0],)


def test_a_tensor_of_the_instance_hides_an_attribute_of_the_class() -> None:
    rnn = Recurrent(Scaled, 3, 4, dtype=torch.float64)
    rnn.cell.scale = torch.tensor(0.5, dtype=torch.float64)
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    found = rnn(x)[0]
    rnn.backend = "reference"
    torch.testing.assert_close(found, rnn(x)[0], rtol=1e-12, atol=1e-12)


def test_numbers_that_wait_to_be_negated() -> None:
    rnn = GRU(1, 4, dtype=torch.float64)
    x = torch.randn(1, 1, 1, dtype=torch.complex128).conj().imag
    assert x.is_neg()
    torch.testing.assert_close(rnn(x)[0], rnn(x.clone().resolve_neg())[0])
