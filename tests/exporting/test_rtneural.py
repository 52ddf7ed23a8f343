"""RTNeural's JSON holds what its loader reads, and computes what the model does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import slimrnn
from registry import numbers, randomise_
from slimrnn import GRU, LSTM, RNN, BlockDiagonal, Deep, Diagonal, LowRank, ReadOut
from slimrnn.errors import ExportError
from slimrnn.exporting.rtneural_reader import opened

F64: Any = {"dtype": torch.float64}


class Chain(nn.Module):
    """A recurrent layer and what follows it."""

    def __init__(self, rnn: nn.Module, *others: nn.Module) -> None:
        super().__init__()
        self.rnn, self.others = rnn, nn.Sequential(*others)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.others(self.rnn(x)[0])
        return y


class Both(nn.Module):
    """A layer of ours, and one of torch's on top of it."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.second(self.first(x)[0])[0]
        return y


def lstm(**options: Any) -> LSTM:
    built: LSTM = randomise_(LSTM(2, 6, **{**F64, **options}))  # type: ignore[assignment]
    return built


MODELS: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: lstm(num_layers=2, structure=LowRank(2) + Diagonal(), dropout=0.5),
    "gru": lambda: randomise_(GRU(2, 6, 2, batch_first=True, structure=BlockDiagonal(2), **F64)),
    "no bias": lambda: GRU(2, 6, bias=False, **F64),
    "torch": lambda: Both(lstm(), nn.GRU(6, 4, 2, **F64)),
    "chain": lambda: Chain(
        lstm(), nn.Linear(6, 5, **F64), nn.Tanh(), nn.ELU(), nn.Linear(5, 3, bias=False, **F64), nn.Softmax(-1)
    ),
    "first": lambda: Chain(lstm(batch_first=True), nn.Sigmoid(), nn.Dropout(0.5), nn.PReLU(**F64), nn.ReLU()),
    "read-out": lambda: Chain(rnn := lstm(), ReadOut(rnn, 1)),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_file_computes_what_the_model_does(name: str, tmp_path: Path) -> None:
    proof = slimrnn.export(MODELS[name](), numbers(5, 3, 2), tmp_path / "net.json", to="rtneural", quiet=True)
    assert proof.relative < 1e-12
    assert len(proof.cases) > 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.json", "net.json.proof.json"]


def test_one_sequence_without_a_batch(tmp_path: Path) -> None:
    slimrnn.export(lstm(), numbers(5, 2), tmp_path / "net", to="rtneural", quiet=True)
    assert (tmp_path / "net.json").exists()


def test_gates_stand_in_the_order_of_keras(tmp_path: Path) -> None:
    """Update before reset; the bias of the candidate's recurrent product apart."""
    layer = GRU(1, 1, **F64)
    with torch.no_grad():
        layer.layer(0).input.get_parameter("weight").copy_(torch.tensor([1.0, 2.0, 3.0]).view(3, 1, 1))
        layer.layer(0).recurrent.get_parameter("weight").copy_(torch.tensor([4.0, 5.0, 6.0]).view(3, 1, 1))
        layer.cell.get_parameter("bias").copy_(torch.tensor([7.0, 8.0, 9.0]).view(3, 1))
        layer.cell.get_parameter("recurrent_bias").fill_(10.0)
    slimrnn.export(layer, numbers(5, 3, 1), tmp_path / "net", to="rtneural", quiet=True)
    content = json.loads((tmp_path / "net.json").read_text())
    assert content["in_shape"] == [None, None, 1]
    assert content["layers"] == [
        {
            "type": "gru",
            "activation": "",
            "shape": [None, None, 1],
            "weights": [[[2.0, 1.0, 3.0]], [[5.0, 4.0, 6.0]], [[8.0, 7.0, 9.0], [0.0, 0.0, 10.0]]],
        }
    ]


def test_an_activation_is_part_of_the_dense_layer_before_it(tmp_path: Path) -> None:
    model = Chain(lstm(), nn.Tanh(), nn.Linear(6, 2, **F64), nn.ReLU())
    slimrnn.export(model, numbers(5, 3, 2), tmp_path / "net", to="rtneural", quiet=True)
    found = json.loads((tmp_path / "net.json").read_text())["layers"]
    assert [(layer["type"], layer["activation"]) for layer in found] == [
        ("lstm", ""),
        ("activation", "tanh"),
        ("dense", "relu"),
    ]


class Backwards(Chain):
    """Calls what it has in another order."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(-x)


REFUSED: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "elman": (lambda: RNN(2, 6, **F64), "in one direction, got RNN"),
    "before": (lambda: GRU(2, 6, reset="before", **F64), "got reset='before'"),
    "peephole": (lambda: lstm(peephole=True), "got peephole=True"),
    "start": (lambda: lstm(learn_initial_state=True), "got learn_initial_state=True"),
    "two": (lambda: lstm(bidirectional=True), "got LSTM, bidirectional"),
    "deep": (lambda: Deep(2, lstm(), 3), "reads the 2 outputs of the one before, got one of 6|expected a layer"),
    "norm": (lambda: Chain(lstm(), nn.LayerNorm(6, **F64)), "got LayerNorm others.0"),
    "last": (lambda: Chain(rnn := lstm(), ReadOut(rnn, 2, "last")), "at='every' step"),
    "elu": (lambda: Chain(lstm(), nn.ELU(0.5)), "alpha=0.5"),
    "softmax": (lambda: Chain(lstm(), nn.Softmax(0)), "dim=0"),
    "order": (lambda: Backwards(lstm()), "nothing was written"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_rtneural_cannot_compute_is_refused(name: str, tmp_path: Path) -> None:
    make, words = REFUSED[name]
    with pytest.raises(ExportError, match=words):
        slimrnn.export(make(), numbers(5, 3, 2), tmp_path / "net", to="rtneural", quiet=True)
    assert list(tmp_path.iterdir()) == []


def test_steps_and_states_are_refused(tmp_path: Path) -> None:
    x = numbers(5, 3, 2)
    with pytest.raises(ExportError, match="step by step in any case"):
        slimrnn.export(lstm(), x[0], tmp_path / "net", to="rtneural", step=True, quiet=True)
    with pytest.raises(ExportError, match="expected one sequence of vectors"):
        slimrnn.export(lstm(), (x, lstm().initial_state(3)), tmp_path / "net", to="rtneural", quiet=True)


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"layers": [{}]}', '{"layers": [{"type": "conv1d", "shape": [1], "weights": []}]}']
)
def test_other_files_are_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "net.json").write_text(content)
    with pytest.raises(ExportError, match="expected RTNeural's JSON"), opened(tmp_path / "net.json"):
        pass
