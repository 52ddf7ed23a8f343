"""Bad arguments and bad input are refused, saying what was expected and what came."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

from slimrnn import (
    GRU,
    LSTM,
    RNN,
    BlockDiagonal,
    ContextSwitching,
    Deep,
    Dense,
    Kronecker,
    LowRank,
    OutputRecurrent,
    ReadOut,
    UnitaryProduct,
    hidden_size_for,
)

X = torch.zeros(4, 2, 3)


def nested(*rows: torch.Tensor) -> torch.Tensor:
    return torch.nested.nested_tensor(list(rows), layout=torch.jagged)


CONSTRUCTORS: dict[str, Callable[[], object]] = {
    "no input": lambda: GRU(0, 4),
    "no units": lambda: LSTM(3, 0),
    "negative units": lambda: LSTM(3, -4),
    "float units": lambda: LSTM(3, 4.0),  # type: ignore[arg-type]
    "no layers": lambda: RNN(3, 4, 0),
    "dropout above one": lambda: LSTM(3, 4, 2, dropout=1.5),
    "dropout of text": lambda: LSTM(3, 4, 2, dropout="0.5"),  # type: ignore[arg-type]
    "negative recurrent dropout": lambda: LSTM(3, 4, recurrent_dropout=-0.1),
    "row norm of text": lambda: LSTM(3, 4, max_row_norm="a"),  # type: ignore[arg-type]
    "nothing for a structure": lambda: LSTM(3, 4, structure=0),  # type: ignore[arg-type]
    "an empty list for a structure": lambda: LSTM(3, 4, input_structure=[]),
    "dtype of text": lambda: LSTM(3, 4, dtype="float32"),  # type: ignore[arg-type]
    "complex state in half precision": lambda: RNN(3, 4, nonlinearity="modrelu", dtype=torch.float16),
    "complex state in bfloat16": lambda: RNN(3, 4, nonlinearity="modrelu", dtype=torch.bfloat16),
    "update bias of text": lambda: GRU(3, 4, update_bias="a"),  # type: ignore[arg-type]
    "update bias that is no number": lambda: GRU(3, 4, update_bias=float("nan")),
    "three update biases of four units": lambda: GRU(3, 4, update_bias=(0.0, 1.0, 2.0)),
    "no update biases": lambda: GRU(3, 4, update_bias=()),
    "a range that does not end": lambda: GRU(3, 4, update_bias=(0.0, float("inf"))),
    "a range of text": lambda: LSTM(3, 4, forget_bias=("0", "6")),  # type: ignore[arg-type]
    "forget biases in a matrix": lambda: LSTM(3, 4, forget_bias=torch.zeros(2, 4)),
    "a range without bias": lambda: GRU(3, 4, bias=False, update_bias=(0.0, 6.0)),
    "forget bias of text": lambda: LSTM(3, 4, forget_bias="a"),  # type: ignore[arg-type]
    "options that torch's layer has": lambda: GRU.from_torch(nn.GRU(3, 4), dtype=torch.float64),
    "budget without input": lambda: hidden_size_for(1000, GRU, 0),
    "text for learn_initial_state": lambda: LSTM(3, 4, learn_initial_state="no"),  # type: ignore[arg-type]
    "text for one_hot": lambda: LSTM(3, 4, one_hot="no"),  # type: ignore[arg-type]
    "text for residual": lambda: LSTM(3, 4, 2, residual="no"),  # type: ignore[arg-type]
    "text for weight_norm": lambda: LSTM(3, 4, weight_norm="no"),  # type: ignore[arg-type]
    "a number for mask_per_gate": lambda: LSTM(3, 4, recurrent_dropout=0.5, mask_per_gate=1),  # type: ignore[arg-type]
    "text for bidirectional": lambda: LSTM(3, 4, bidirectional="x"),  # type: ignore[arg-type]
    "text for bias": lambda: GRU(3, 4, bias="no"),  # type: ignore[arg-type]
    "nothing for batch_first": lambda: RNN(3, 4, batch_first=None),  # type: ignore[arg-type]
    "nothing for zoneout": lambda: LSTM(3, 4, zoneout=None),  # type: ignore[arg-type]
    "nothing for recurrent_dropout": lambda: LSTM(3, 4, recurrent_dropout=None),  # type: ignore[arg-type]
    "text for zoneout": lambda: LSTM(3, 4, zoneout="0.5"),  # type: ignore[arg-type]
    "a perceptron without units": lambda: Deep(3, GRU(4, 5), 2, width=0),
    "zero row norm": lambda: LSTM(3, 4, max_row_norm=0.0),
    "blocks that do not divide": lambda: LSTM(3, 4, structure=BlockDiagonal(3)),
    "input blocks that do not divide": lambda: LSTM(3, 4, input_structure=BlockDiagonal(2)),
    "rank too large": lambda: GRU(3, 4, structure=LowRank(5)),
    "factors of another product": lambda: GRU(3, 4, structure=Kronecker([2, 3])),
    "a complex structure on a real cell": lambda: LSTM(3, 4, structure=UnitaryProduct()),
    "a complex structure on a real modrelu": lambda: RNN(
        3, 4, nonlinearity="modrelu", complex=False, structure=UnitaryProduct()
    ),
    "complex tanh": lambda: RNN(3, 4, complex=True),
    "unknown nonlinearity": lambda: RNN(3, 4, nonlinearity="sin"),
    "unknown reset": lambda: GRU(3, 4, reset="never"),
    "unknown backend": lambda: GRU(3, 4, backend="cuda"),
    "a class for a structure": lambda: GRU(3, 4, structure=Dense),  # type: ignore[arg-type]
    "text for a structure": lambda: GRU(3, 4, structure="dense"),  # type: ignore[arg-type]
    "complex dtype": lambda: GRU(3, 4, dtype=torch.complex64),
    "integer dtype": lambda: GRU(3, 4, dtype=torch.int64),
    "forget bias without bias": lambda: LSTM(3, 4, bias=False, forget_bias=1.0),
    "update bias without bias": lambda: GRU(3, 4, bias=False, update_bias=1.0),
    "budget of nothing": lambda: hidden_size_for(0, GRU, 3),
    "budget too small": lambda: hidden_size_for(5, GRU, 3),
}

CALLS: dict[str, Callable[[], object]] = {
    "input width": lambda: GRU(3, 4)(torch.zeros(4, 2, 5)),
    "input dtype": lambda: GRU(3, 4)(X.double()),
    "integer input": lambda: GRU(3, 4)(X.long()),
    "complex input": lambda: RNN(3, 4, nonlinearity="modrelu")(X.to(torch.complex64)),
    "one axis": lambda: GRU(3, 4)(torch.zeros(3)),
    "four axes": lambda: GRU(3, 4)(torch.zeros(1, 4, 2, 3)),
    "a list": lambda: GRU(3, 4)([1.0, 2.0]),
    "no steps": lambda: GRU(3, 4)(torch.zeros(0, 2, 3)),
    "no steps, unbatched": lambda: GRU(3, 4)(torch.zeros(0, 3)),
    "no steps, batch first": lambda: GRU(3, 4, batch_first=True)(torch.zeros(2, 0, 3)),
    "h_0 of another batch": lambda: GRU(3, 4)(X, torch.zeros(1, 3, 4)),
    "h_0 of another depth": lambda: GRU(3, 4)(X, torch.zeros(2, 2, 4)),
    "h_0 of another width": lambda: GRU(3, 4)(X, torch.zeros(1, 2, 5)),
    "unbatched h_0 for a batch": lambda: GRU(3, 4)(X, torch.zeros(1, 4)),
    "batched h_0 for a single sequence": lambda: GRU(3, 4)(X[:, 0], torch.zeros(1, 1, 4)),
    "h_0 dtype": lambda: GRU(3, 4)(X, torch.zeros(1, 2, 4).double()),
    "real h_0 for a complex state": lambda: RNN(3, 4, nonlinearity="modrelu")(X, torch.zeros(1, 2, 4)),
    "a pair for a GRU": lambda: GRU(3, 4)(X, (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4))),
    "no pair for an LSTM": lambda: LSTM(3, 4)(X, torch.zeros(1, 2, 4)),
    "c_0 of another width": lambda: LSTM(3, 4)(X, (torch.zeros(1, 2, 4), torch.zeros(1, 2, 5))),
    "negative length": lambda: GRU(3, 4)(X, lengths=[-1, 2]),
    "zero length": lambda: GRU(3, 4)(X, lengths=[0, 2]),
    "length too long": lambda: GRU(3, 4)(X, lengths=[5, 2]),
    "too few lengths": lambda: GRU(3, 4)(X, lengths=[2]),
    "too many lengths": lambda: GRU(3, 4)(X, lengths=torch.tensor([2, 2, 2])),
    "float lengths": lambda: GRU(3, 4)(X, lengths=torch.tensor([2.0, 2.0])),
    "float lengths in a list": lambda: GRU(3, 4)(X, lengths=[2.0, 2.0]),
    "a number for lengths": lambda: GRU(3, 4)(X, lengths=3),
    "bool lengths": lambda: GRU(3, 4)(X, lengths=torch.tensor([True, True])),
    "lengths with a packed sequence": lambda: GRU(3, 4)(pack_sequence([X[:, 0]]), lengths=[4]),
    "packed input of another width": lambda: GRU(3, 4)(pack_sequence([torch.zeros(2, 5)])),
    "lengths with a nested tensor": lambda: GRU(3, 4)(nested(torch.zeros(2, 3)), lengths=[2]),
    "nested input of another width": lambda: GRU(3, 4)(nested(torch.zeros(2, 5))),
    "nested input of single steps": lambda: GRU(3, 4)(nested(torch.zeros(3))),
    "nested input with an empty sequence": lambda: GRU(3, 4)(nested(torch.zeros(2, 3), torch.zeros(0, 3))),
    "nested step": lambda: GRU(3, 4).step(nested(torch.zeros(3))),
    "nested input to a net that returns its output": lambda: OutputRecurrent(3, 4, 2)(nested(torch.zeros(2, 3))),
    "step of a whole sequence": lambda: GRU(3, 4).step(X),
    "step width": lambda: GRU(3, 4).step(torch.zeros(2, 5)),
    "step state": lambda: GRU(3, 4).step(X[0], torch.zeros(1, 3, 4)),
    "step in two directions": lambda: GRU(3, 4, bidirectional=True).step(X[0]),
    "step with recurrent dropout in training": lambda: GRU(3, 4, recurrent_dropout=0.5).step(X[0]),
    "step with weight drop in training": lambda: GRU(3, 4, weight_drop=0.5).step(X[0]),
    "negative batch": lambda: GRU(3, 4).initial_state(-1),
}


@pytest.mark.parametrize("case", CONSTRUCTORS)
def test_bad_arguments_are_refused_by_the_constructor(case: str) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError), match=r"expected .*, got "):
        CONSTRUCTORS[case]()


@pytest.mark.parametrize("case", CALLS)
def test_bad_input_is_refused(case: str) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError), match=r"(?s)expected .*, got "):
        CALLS[case]()


@pytest.mark.parametrize("layer", [RNN, GRU, LSTM])
@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("hiden_size", "hidden_size"),
        ("structur", "structure"),
        ("num_layer", "num_layers"),
        ("max_norm", "max_row_norm"),
    ],
)
def test_a_misspelt_option_gets_a_suggestion(layer: Any, given: str, meant: str) -> None:
    told = rf"expected an option of {layer.__name__}, got an unexpected .* '{given}'; did you mean '{meant}'\?"
    with pytest.raises(TypeError, match=told):
        layer(3, **{given: 4})
    with pytest.raises(TypeError, match=told):
        layer.from_torch(layer.torch_type(3, 4), **{given: 4})


def test_a_projection_is_answered_with_what_comes_near() -> None:
    with pytest.raises(TypeError, match=r"got an unexpected .* 'proj_size'; LowRank\(r, tied=True\) .* is near to it"):
        LSTM(3, 4, proj_size=2)  # type: ignore[call-arg]
    assert LSTM(3, 4, proj_size=0).proj_size == 0  # type: ignore[call-arg]


PACKED: dict[str, Callable[[Any], object]] = {
    "deep": lambda x: Deep(3, GRU(4, 5), 2)(x),
    "switching": lambda x: ContextSwitching(GRU(3, 4, structure=BlockDiagonal(2)))(x),
    "contexts": lambda x: ContextSwitching(GRU(3, 4, structure=BlockDiagonal(2))).contexts(x),
    "read-out": lambda x: ReadOut(GRU(2, 3), 2)(x),
    "read-out of the last": lambda x: ReadOut(GRU(2, 3), 2, at="last")(x),
}


@pytest.mark.parametrize("net", PACKED)
def test_what_is_built_on_layers_asks_for_padded_input(net: str) -> None:
    with pytest.raises(TypeError, match=r"expected a padded tensor, .* got a PackedSequence: .*pad_packed_sequence"):
        PACKED[net](pack_sequence([torch.ones(2, 3), torch.ones(1, 3)]))


def test_delays_may_be_a_generator() -> None:
    assert GRU(3, 4, delays=(2**k for k in range(2))).delays == (1, 2)  # type: ignore[arg-type]
    assert LSTM(3, 4, zoneout=iter([0.1, 0.2])).zoneout == (0.1, 0.2)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_context_switching_takes_jagged_tensors_only() -> None:
    switching, rows = ContextSwitching(GRU(3, 4, structure=BlockDiagonal(2))), [torch.ones(2, 3), torch.ones(1, 3)]
    output, _ = switching(nested(*rows))
    torch.testing.assert_close(output.unbind()[1], switching(rows[1])[0])
    with pytest.raises(TypeError, match=r"expected .* nested one of layout torch.jagged, got torch.strided"):
        switching(torch.nested.nested_tensor(rows, layout=torch.strided))


def test_an_option_like_no_other_is_refused_without_a_suggestion() -> None:
    with pytest.raises(TypeError, match=r"got an unexpected keyword argument 'xyz'$"):
        GRU(3, 4, xyz=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("layer", [RNN, GRU, LSTM])
def test_signatures_show_the_options(layer: Any) -> None:
    assert list(inspect.signature(layer).parameters)[:3] == ["input_size", "hidden_size", "num_layers"]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("layer", [RNN, GRU, LSTM])
def test_weights_of_torch_are_refused_with_the_way_to_convert_them(layer: Any, strict: bool) -> None:
    for wrapped in (lambda module: module, lambda module: nn.ModuleDict({"rnn": module})):
        theirs, ours = wrapped(layer.torch_type(3, 4, 2)), wrapped(layer(3, 4, 2, structure=LowRank(2)))
        told = rf"expected the state_dict of a slimrnn .*weight_ih_l0.* {layer.__name__}\.from_torch"
        with pytest.raises(RuntimeError, match=told):
            ours.load_state_dict(theirs.state_dict(), strict=strict)


def test_a_forgotten_complex_state_is_explained() -> None:
    with pytest.raises(ValueError, match="modrelu"):
        GRU(3, 4, structure=UnitaryProduct())


@pytest.mark.parametrize("layer", [RNN, GRU, LSTM])
def test_empty_batch_gives_an_empty_result_as_in_torch(layer: Any) -> None:
    output, _ = layer(3, 4, bidirectional=True)(torch.zeros(5, 0, 3))
    assert output.shape == (5, 0, 8)
    kru = RNN(3, 4, nonlinearity="modrelu", structure=Kronecker([2, 2]))
    assert kru(torch.zeros(5, 0, 3), lengths=[])[0].shape == (5, 0, 8)
