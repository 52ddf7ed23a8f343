"""The net that a configuration describes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from slimrnn import (
    LEM,
    LSTM,
    MGU,
    RNN,
    SLSTM,
    Antisymmetric,
    BlockDiagonal,
    Circulant,
    ComplexDiagonal,
    CoRNN,
    Dense,
    Diagonal,
    FullUnitary,
    Householder,
    IndRNN,
    Kronecker,
    Legendre,
    LowRank,
    MinGRU,
    Permutation,
    Recurrent,
    Shift,
    Shuffle,
    Sparse,
    Structure,
    UnICORNN,
    UnitaryProduct,
)
from slimrnn.layers import RecurrentStack
from slimrnn.layers.parameter_groups import recurrent_parameters
from slimrnn.training import ConfigError, ModelConfig, SequenceModel
from slimrnn.training.cells import LAYERS
from slimrnn.training.models.sequence_model import structure_from

NAMED: list[tuple[dict[str, Any], Structure]] = [
    ({}, Dense()),
    ({"structure": "diagonal"}, Diagonal()),
    ({"structure": "low-rank", "rank": 3}, LowRank(3)),
    ({"structure": "low-rank + diagonal", "rank": 3, "tied": True}, LowRank(3, tied=True) + Diagonal()),
    ({"structure": "block-diagonal", "blocks": 4}, BlockDiagonal(4)),
    ({"structure": "kronecker", "factors": (4, 2)}, Kronecker([4, 2])),
    ({"structure": "kronecker"}, Kronecker([2, 2, 2])),
    ({"structure": "kronecker", "delays": (1, 2)}, Kronecker([2, 2])),
    ({"structure": "full-unitary"}, FullUnitary()),
    ({"structure": "unitary-product"}, UnitaryProduct()),
    ({"structure": "slimrnn.structures:Dense + diagonal"}, Dense() + Diagonal()),  # any module's
    ({"structure": "slimrnn.structures:Dense@shift(-2)"}, Dense() @ Shift(-2)),
    (
        {"structure": "block-diagonal @ shuffle(2) @ block-diagonal + sparse(1e-1, 3)", "blocks": 2},
        BlockDiagonal(2) @ Shuffle(2) @ BlockDiagonal(2) + Sparse(0.1, seed=3),
    ),
    ({"structure": "low-rank(3)@permutation(5)+diagonal"}, LowRank(3) @ Permutation(seed=5) + Diagonal()),
    ({"structure": "(low-rank(3) + diagonal) @ householder(2)"}, (LowRank(3) + Diagonal()) @ Householder(2)),
    ({"structure": "kronecker(2,4)+circulant"}, Kronecker([2, 4]) + Circulant()),
    ({"structure": "antisymmetric(0.5)+legendre(20)"}, Antisymmetric(0.5) + Legendre(20)),
    ({"structure": "complex-diagonal(0.5, 0.9)"}, ComplexDiagonal(0.5, 0.9)),
]


@pytest.mark.parametrize(("options", "structure"), NAMED)
def test_names_stand_for_structures(options: dict[str, Any], structure: Structure) -> None:
    assert structure_from(ModelConfig(hidden=8, **options)) == structure


@pytest.mark.parametrize(
    ("options", "layer", "shown"),
    [
        ({"cell": "mgu", "forget_bias": -1.0}, MGU, "MGU(2, 8, structure=Dense(), forget_bias=-1.0, "),
        ({"cell": "lstm", "forget_bias": "chrono(9)"}, LSTM, "LSTM(2, 8, structure=Dense(), "),
        ({"cell": "mgu", "forget_bias": "chrono(9)"}, MGU, "forget_bias=Chrono(longest=9.0), "),
        ({"cell": "mingru", "update_bias": "uniform"}, MinGRU, "update_bias=UniformGate(), "),
        ({"cell": "cornn", "cell_options": ("dt=0.5", "gamma=1")}, CoRNN, "structure=Dense(), gamma=1, dt=0.5, "),
        ({"cell": "slstm", "cell_options": ("forget=exp",)}, SLSTM, "forget='exp', forget_bias=0.0, "),
        (
            {"cell": "rnn", "nonlinearity": "modrelu", "cell_options": ("modrelu_bias=-0.05",)},
            RNN,
            "RNN(2, 8, structure=Dense(), nonlinearity='modrelu', ",
        ),
        ({"cell": "unicornn"}, UnICORNN, "UnICORNN(2, 8, structure=Diagonal(), "),
        (
            {"cell": "indrnn", "cell_options": ("start=(0.9, 1)",)},
            IndRNN,
            "structure=Diagonal(), nonlinearity='relu', ",
        ),
        ({"cell": "slimrnn.cells:LEMCell", "cell_options": ("dt=0.5",)}, Recurrent, "Recurrent(LEMCell, 2, 8, "),
        ({"cell": "slimrnn:LEM", "layers": 2}, LEM, "LEM(2, 8, structure=Dense(), num_layers=2, "),
    ],
)
def test_names_stand_for_cells(options: dict[str, Any], layer: type[RecurrentStack], shown: str) -> None:
    model = SequenceModel(2, 1, ModelConfig(hidden=8, **options), every_step=True)
    assert type(model.rnn) is layer
    assert shown in repr(model.rnn)
    model(torch.randn(5, 3, 2))


def test_every_layer_of_the_table_can_be_built() -> None:
    for cell in LAYERS:
        assert type(SequenceModel(2, 1, ModelConfig(cell, 8), every_step=True).rnn) is LAYERS[cell]


IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"structure": "low-rnk"}, "got 'low-rnk'; did you mean 'low-rank'"),
    ({"structure": "dense+"}, "expected structure from .* got ''"),
    ({"input_structure": "sparsest"}, "expected input_structure from"),
    ({"structure": "sparse"}, r"expected sparse with a number, such as sparse\(0.05\), got none"),
    ({"structure": "sparse(2)"}, r"expected arguments that suit sparse in structure, got \(2\): expected density"),
    ({"structure": "shift(1.2.3)"}, "expected numbers between the brackets"),
    ({"structure": "(dense+diagonal"}, r"expected every \( of structure to be closed"),
    ({"structure": "dense dense"}, "expected structure to be names with"),
    ({"structure": "dense+low-rank(3)", "blocks": 3}, "expected blocks only with block-diagonal"),
    ({"structure": "no.such.module:Dense"}, "expected structure to be a structure that can be imported, got 'no.such"),
    ({"structure": "slimrnn.structures:LowRank"}, "that needs no arguments, .* missing 1 required .* 'rank'"),
    ({"structure": "os:getcwd"}, "expected structure to be a structure, got builtin_function"),
    ({"structure": "low-rank"}, "expected rank with structure low-rank, got none"),
    ({"structure": "low-rank", "rank": 9}, "expected a rank of at most 8 .* got 9"),
    ({"structure": "block-diagonal"}, "expected blocks with structure block-diagonal"),
    ({"structure": "kronecker", "hidden": 12}, "expected factors for kronecker, or hidden to be a power of two, got"),
    ({"structure": "kronecker", "factors": (3, 2)}, "product is 8 x 8, got 6 x 6"),
    ({"structure": "unitary-product"}, "expected a complex state"),
    ({"rank": 3}, "expected rank only with low-rank, got rank 3 with dense"),
    ({"factors": (4, 2)}, "expected factors only with kronecker"),
    ({"cell": "gru", "peephole": True}, "expected peephole only with lstm, got peephole True with gru"),
    ({"cell": "lstm", "reset": "before"}, "expected reset only with gru"),
    ({"cell": "lstm", "nonlinearity": "relu"}, "expected nonlinearity only with rnn"),
    ({"cell": "grru"}, "expected a cell of rnn, gru, lstm, .* or module:name, got 'grru'; did you mean 'gru'"),
    ({"cell": "lem", "forget_bias": 1.0}, "expected forget_bias only with lstm, mgu, .* got forget_bias 1.0 with lem"),
    (
        {"cell": "lstm", "forget_bias": "chrno(9)"},
        r"expected forget_bias to be numbers, chrono\(longest\) with longest",
    ),
    ({"cell": "lstm", "forget_bias": "chrono(1)"}, r"of at least 2, or uniform, got 'chrono\(1\)'"),
    ({"cell": "gru", "update_bias": "chrono(inf)"}, r"or uniform, got 'chrono\(inf\)'"),
    (
        {"cell": "lem", "update_bias": "uniform"},
        "expected update_bias only with gru, .* got update_bias uniform with lem",
    ),
    ({"cell": "lem", "cell_options": ("dt",)}, "expected cell_options as name=value, such as dt=0.5, got 'dt'"),
    ({"cell": "cornn", "cell_options": ("gama=1",)}, "of gamma, epsilon, dt with cornn, got 'gama'; did you mean 'gam"),
    ({"cell": "mgu", "cell_options": ("forget_bias=1",)}, "expected cell_options none with mgu, got 'forget_bias'"),
    ({"cell": "gru", "cell_options": ("dt=1",)}, "expected cell_options none with gru, got 'dt'"),
    ({"cell": "rnn", "cell_options": ("modrelu_bias=-1",)}, "expected modrelu_bias only with 'modrelu'"),
    ({"cell": "lem", "cell_options": ("dt=0",)}, "expected dt to be positive, got 0"),
    ({"cell": "no.such.module:Cell"}, "expected cell to be a cell that can be imported, got 'no.such"),
    ({"cell": "os:getcwd"}, "expected cell to be a subclass of slimrnn.Cell, got <built-in function getcwd>"),
    ({"cell": "slimrnn.cells:Cell"}, "expected Cell to name its gates"),
    ({"dropout": 0.5}, "expected at least 2 layers for dropout"),
    ({"hidden": 0}, "expected hidden_size to be at least 1"),
]


@pytest.mark.parametrize(("options", "message"), IMPOSSIBLE)
def test_impossible_nets_are_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        SequenceModel(2, 1, ModelConfig(**{"hidden": 8, **options}), every_step=True)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_last_valid_step_is_read(bidirectional: bool) -> None:
    """A sequence in a ragged batch has the output that it has alone."""
    model = SequenceModel(2, 3, ModelConfig("gru", 8, bidirectional=bidirectional), every_step=False)
    x, lengths = torch.randn(6, 4, 2), torch.tensor([6, 2, 1, 4])
    output, _ = model(x, None, lengths)
    assert output.shape == (4, 3)
    for i, length in enumerate(lengths.tolist()):
        alone, _ = model(x[:length, i : i + 1])
        torch.testing.assert_close(output[i : i + 1], alone)


def test_two_halves_with_the_state_are_the_whole() -> None:
    model = SequenceModel(2, 3, ModelConfig("rnn", 8, "kronecker", nonlinearity="modrelu"), every_step=True)
    x = torch.randn(6, 4, 2)
    first, state = model(x[:2])
    second, _ = model(x[2:], state)
    torch.testing.assert_close(torch.cat([first, second]), model(x)[0])


def test_recurrent_parameters_are_those_of_the_recurrent_matrices() -> None:
    model = SequenceModel(2, 3, ModelConfig("lstm", 8, "low-rank+diagonal", rank=2, layers=2), every_step=True)
    assert sum(p.numel() for p in recurrent_parameters(model)) == 2 * 4 * (2 * 8 * 2 + 8)


def test_errors_are_config_errors_where_the_name_is_wrong() -> None:
    with pytest.raises(ConfigError):
        structure_from(ModelConfig(structure="blocks"))


def test_a_read_out_may_have_hidden_units_and_dropout() -> None:
    torch.manual_seed(0)
    net = SequenceModel(3, 2, ModelConfig("gru", 8, readout_hidden=5, readout_dropout=1.0), every_step=True)
    x = torch.randn(4, 6, 3)
    hidden, _ = net.rnn(x)
    dropped = net(x)[0]
    torch.testing.assert_close(dropped, dropped[:1, :1].expand_as(dropped))  # it sees nothing
    first, last = net.readout, net.output.get_submodule("1")
    assert isinstance(last, torch.nn.Linear)
    by_hand = torch.relu(hidden @ first.weight.T + first.bias) @ last.weight.T + last.bias
    torch.testing.assert_close(net.eval()(x)[0], by_hand)


@pytest.mark.parametrize("hidden", [0, 5])
def test_single_steps_are_those_of_the_sequence(hidden: int) -> None:
    net = SequenceModel(3, 2, ModelConfig("gru", 8, readout_hidden=hidden, readout_dropout=0.5), every_step=True)
    with pytest.raises(RuntimeError, match="expected eval"):
        net.step(torch.randn(4, 3))
    net.eval()
    x, state, found = torch.randn(6, 4, 3), None, []
    for x_t in x:
        y, state = net.step(x_t, state)
        found.append(y)
    torch.testing.assert_close(torch.stack(found), net(x)[0])


LAST = {
    "gru": ModelConfig("gru", 8),
    "two layers of an lstm": ModelConfig("lstm", 8, layers=2),
    "complex": ModelConfig("rnn", 8, "kronecker", nonlinearity="modrelu"),
    "complex with delays": ModelConfig("rnn", 8, nonlinearity="modrelu", delays=(1, 2)),
    "skip": ModelConfig("gru", 8, skip=3),
    "residual": ModelConfig("gru", 8, layers=2, residual=True),
    "bidirectional": ModelConfig("gru", 8, bidirectional=True),
    "blocks": ModelConfig("gru", 8, "block-diagonal", blocks=4, context_switching="outputs"),
}


@pytest.mark.parametrize("lengths", [None, torch.tensor([6, 2, 5, 1])], ids=["full", "ragged"])
@pytest.mark.parametrize("name", LAST)
def test_training_reads_the_last_output_as_evaluation_does(name: str, lengths: torch.Tensor | None) -> None:
    """In training from the state, in evaluation from the outputs: the same numbers and gradients."""
    torch.manual_seed(0)
    net = SequenceModel(3, 2, LAST[name], every_step=False).double()
    x = torch.randn(6, 4, 3, dtype=torch.float64)

    def outputs_and_gradients() -> list[torch.Tensor]:
        output, _ = net(x, None, lengths)
        return [output, *torch.autograd.grad(output.square().sum(), list(net.parameters()), allow_unused=True)]

    for trained, evaluated in zip(outputs_and_gradients(), (net.eval(), outputs_and_gradients())[1], strict=True):
        torch.testing.assert_close(trained, evaluated, rtol=1e-12, atol=1e-12)


def test_training_sees_what_hooks_make_of_the_output() -> None:
    net = SequenceModel(3, 2, ModelConfig("gru", 8), every_step=False)
    net.rnn.register_forward_hook(lambda _module, _arguments, result: (torch.zeros_like(result[0]), result[1]))
    torch.testing.assert_close(net(torch.randn(6, 4, 3))[0], net.readout.bias.expand(4, 2))


def test_a_legendre_memory_of_one_input_begins_with_its_input_vector() -> None:
    config = ModelConfig("rnn", 6, "legendre(20)", nonlinearity="identity")
    core: Any = SequenceModel(1, 2, config, every_step=False).rnn.layer(0)
    torch.testing.assert_close(core.input.weight[0, :, 0], core.recurrent.input_vector())
