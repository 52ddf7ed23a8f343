"""What is saved and loaded again is the same: outputs bit for bit, weights, repr, modes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from own_parts import Scaled, SlowCell, SlowLayer, Tagger, halved
from torch import Tensor, nn
from torch.nn.utils import prune

import slimrnn
from registry import CELLS, SIZE, STRUCTURES, fits, numbers, randomise_
from slimrnn import (
    GRU,
    LEM,
    LSTM,
    MGU,
    RNN,
    SLSTM,
    BlockDiagonal,
    Chrono,
    ContextSwitching,
    Deep,
    Diagonal,
    Highway,
    IndRNN,
    Kronecker,
    Leaky,
    Legendre,
    LowRank,
    OutputRecurrent,
    Permutation,
    ReadOut,
    Recurrent,
    Sparse,
    UniformGate,
)
from slimrnn.cells import LEMCell
from slimrnn.errors import SavedModelError
from slimrnn.layers import RecurrentStack

F64: Any = {"dtype": torch.float64}
# Every cell with one structure, and every structure with a cell that it suits.
LAYERS = [(cell, "low-rank+diagonal") for cell in CELLS] + [
    ("gru-before" if fits(STRUCTURES[name], complex=False) else "modrelu", name) for name in STRUCTURES
]


def kept(model: nn.Module, directory: Path, **options: Any) -> nn.Module:
    """Saved and loaded; the same weights, buffers and words, and torch's generator as it was."""
    slimrnn.save(model, directory)
    generator = torch.get_rng_state()
    found = slimrnn.load(directory, **options)
    assert torch.equal(torch.get_rng_state(), generator)
    assert type(found) is type(model)
    assert repr(found) == repr(model)
    for ours, theirs in ((model.state_dict(), found.state_dict()), (buffers(model), buffers(found))):
        assert list(ours) == list(theirs)
        for name, tensor in ours.items():
            assert theirs[name].dtype == tensor.dtype
            assert torch.equal(theirs[name], tensor), name
    for (_, one), (_, other) in zip(model.named_parameters(), found.named_parameters(), strict=True):
        assert one.requires_grad == other.requires_grad
    assert [m.training for m in model.modules()] == [m.training for m in found.modules()]
    return found


def buffers(model: nn.Module) -> dict[str, Tensor]:
    return dict(model.named_buffers())


def tensors(result: Any) -> list[Tensor]:
    return [result] if isinstance(result, Tensor) else [t for part in result for t in tensors(part)]


def same_results(model: nn.Module, found: nn.Module, *inputs: Any) -> None:
    with torch.no_grad():
        for ours, theirs in zip(tensors(model(*inputs)), tensors(found(*inputs)), strict=True):
            assert torch.equal(ours, theirs)


@pytest.mark.parametrize(("cell", "structure"), LAYERS)
def test_every_cell_and_structure_comes_back(cell: str, structure: str, tmp_path: Path) -> None:
    layer = randomise_(CELLS[cell].build(3, SIZE, structure=STRUCTURES[structure])).eval()
    same_results(layer, kept(layer, tmp_path), numbers(4, 2, 3))


OPTIONS: dict[str, Callable[[], RecurrentStack]] = {
    "stack": lambda: LSTM(3, 6, 2, bias=False, bidirectional=True, dropout=0.3, batch_first=True, **F64),
    "residual": lambda: GRU(3, 6, 3, residual=True, input_structure=LowRank(2), **F64),
    "input-structure": lambda: MGU(6, 6, input_structure=Permutation(seed=2), **F64),
    "leak": lambda: GRU(3, 6, leak=Leaky(time_constants=(1, 9)), delays=(1, 3), **F64),
    "leak-each": lambda: RNN(3, 3, leak=Leaky((0.1, 0.2, 0.3), learned=True, most=0.9), **F64),
    "skip": lambda: LSTM(3, 6, skip=3, transition_depth=2, peephole=True, **F64),
    "dropouts": lambda: LSTM(3, 6, recurrent_dropout=0.1, zoneout=(0.1, 0.2), weight_drop=0.3, **F64),
    "initial-state": lambda: RNN(3, 6, nonlinearity="modrelu", learn_initial_state=True, weight_norm=True, **F64),
    "constraints": lambda: RNN(3, 6, 1, "relu", max_row_norm=1.5, checkpoint_every=2, backend="reference", **F64),
    "one-hot": lambda: RNN(3, 6, one_hot=True, complex=False, nonlinearity="identity", **F64),
    "mask": lambda: GRU(3, 4, structure=Sparse(mask=torch.eye(4).flip(0)) + Diagonal(), **F64),
    "fixed": lambda: RNN(3, 6, structure=Kronecker([(2, 3), (3, 2)], trainable=False), **F64),
    "order": lambda: RNN(3, 4, structure=LowRank(2) @ Permutation([2, 0, 3, 1]), **F64),
    "biases": lambda: MGU(3, 6, forget_bias=Chrono(9), **F64),
    "biases-list": lambda: SLSTM(3, 3, forget_bias=[0.0, 1.0, 2.5], **F64),
    "biases-pair": lambda: SLSTM(3, 3, forget_bias=(0, 3), forget="exp", **F64),
    "biases-tensor": lambda: MGU(3, 4, forget_bias=torch.tensor([1.0, 2.0, 0.1, -1.0]), **F64),
    "biases-uniform": lambda: GRU(3, 4, update_bias=UniformGate(), reset="before", **F64),
    "cell": lambda: Recurrent(LEMCell, 3, 6, 2, dt=0.3, structure=BlockDiagonal(2), **F64),
    "start": lambda: IndRNN(3, 6, 2, "tanh", start=(0.5, 0.9), **F64),
    "half": lambda: LEM(3, 6, dtype=torch.bfloat16, backend="reference"),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_comes_back(option: str, tmp_path: Path) -> None:
    layer = OPTIONS[option]()
    found = kept(layer, tmp_path)
    x = torch.randn(5, 2, layer.input_size).to(next(layer.parameters()).dtype)
    same_results(layer.eval(), found.eval(), x)


def test_tokens_and_an_embedding_of_ones_own_come_back(tmp_path: Path) -> None:
    layer = GRU(3, 6, vocabulary=7, **F64)
    same_results(layer, kept(layer, tmp_path), torch.tensor([[1, 6], [0, 3]]))
    layer.embedding = nn.Embedding(9, 3, padding_idx=2, max_norm=torch.inf, **F64)
    found = kept(layer, tmp_path)
    same_results(layer, found, torch.tensor([[1, 8], [2, 3]]))
    assert isinstance(found, GRU)
    assert found.embedding is not None
    assert found.embedding.padding_idx == 2


def gru(**options: Any) -> GRU:
    return GRU(4, 6, **{"structure": BlockDiagonal(2), **F64, **options})


MODULES: dict[str, Callable[[], nn.Module]] = {
    "deep": lambda: Deep(4, gru(), 2, input_depth=3, output_depth=1, width=5, nonlinearity="relu", skip=False),
    "deep-shallow": lambda: Deep(4, gru(leak=0.5), 2, input_depth=0),
    "output": lambda: OutputRecurrent(4, 6, 2, nonlinearity="relu", batch_first=True, **F64),
    "output-hidden": lambda: OutputRecurrent(4, 6, 2, hidden_recurrence=LowRank(1) + Diagonal(), **F64),
    "output-module": lambda: OutputRecurrent(4, 6, 2, feedback=nn.Softmax(-1), backend="reference", **F64),
    "switching": lambda: ContextSwitching(gru(), "both", normalise="sigmoid", mean_one=True, auxiliary_size=3),
    "read-out": lambda: ReadOut(gru(bidirectional=True, batch_first=True), 4, "last", bias=False),
    "highway": lambda: Highway(4, 2, structure=LowRank(2), batch_norm=True, transform_bias=-2.0, **F64),
    "complex": lambda: nn.Linear(4, 5, dtype=torch.complex128),
    "torch": lambda: nn.LSTM(4, 5, 2, bias=False, proj_size=2, **F64),
    "common": lambda: nn.Sequential(
        *(nn.Linear(4, 4, bias=False, **F64), nn.LayerNorm((4,), eps=0.1, bias=False, **F64), nn.GELU("tanh")),
        *(nn.Dropout(0.3), nn.PReLU(2, 0.3, **F64), nn.Softmax(dim=-1), nn.BatchNorm1d(2, momentum=None, **F64)),
        *(nn.Conv1d(2, 2, 3, padding=1, **F64), nn.LeakyReLU(0.3), nn.Identity(), Highway(4, **F64), gru()),
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_every_module_comes_back(name: str, tmp_path: Path) -> None:
    model = MODULES[name]()
    found = kept(model, tmp_path)
    same_results(model.eval(), found.eval(), numbers(3, 2, 12 if name == "read-out" else 4, complex=name == "complex"))


def test_containers_keep_names_modes_and_tied_weights(tmp_path: Path) -> None:
    model = nn.ModuleDict({"words": nn.Embedding(7, 4), "rnn": GRU(4, 4), "twice": nn.ModuleList([nn.Tanh()] * 2)})
    model["out"] = nn.Linear(4, 7)
    model["out"].weight = model["words"].weight
    model["again"] = model["rnn"]
    model["rnn"].layers.requires_grad_(False)
    model["rnn"].eval()
    found = kept(model, tmp_path)
    assert isinstance(found, nn.ModuleDict)
    assert found["out"].weight is found["words"].weight
    assert found["again"] is found["rnn"]
    first, second = found["twice"]._modules.values()
    assert first is second
    (weights,) = tmp_path.glob("*.safetensors")
    assert weights.stat().st_size < 4 * sum(p.numel() for p in model.parameters()) + 2000  # once each


def test_numbers_that_state_dict_leaves_out_are_kept(tmp_path: Path) -> None:
    """Computed again in double precision, the memory would be another."""
    layer = RNN(2, 5, structure=Legendre(7.0)).double()
    same_results(layer, kept(layer, tmp_path), numbers(4, 1, 2))


def test_the_default_dtype_does_not_matter(tmp_path: Path) -> None:
    model = nn.Sequential(LSTM(3, 4), nn.Linear(3, 2), ReadOut(LSTM(3, 4), 2))
    slimrnn.save(model, tmp_path)
    torch.set_default_dtype(torch.float64)
    try:
        found = slimrnn.load(tmp_path)
    finally:
        torch.set_default_dtype(torch.float32)
    assert {p.dtype for p in found.parameters()} == {torch.float32}


OWN: dict[str, tuple[Callable[[], nn.Module], list[Any]]] = {
    "cell": (lambda: Recurrent(SlowCell, 3, 4, rate=0.7, **F64), [SlowCell]),
    "layer": (lambda: SlowLayer(3, 4, rate=0.7, zoneout=0.0, **F64), [SlowLayer]),
    "structure": (lambda: GRU(3, 4, structure=Scaled(2.0) + Diagonal(), **F64), [Scaled]),
    "function": (lambda: OutputRecurrent(3, 4, 2, feedback=halved, **F64), [halved]),
}


@pytest.mark.parametrize("name", OWN)
def test_what_a_user_wrote_comes_back_only_if_it_is_given(name: str, tmp_path: Path) -> None:
    make, custom = OWN[name]
    model = make().eval()
    same_results(model, kept(model, tmp_path, custom_objects=custom), numbers(3, 2, 3))
    with pytest.raises(SavedModelError, match=f"expected {custom[0].__qualname__}, .* among custom_objects"):
        slimrnn.load(tmp_path)


def test_weights_of_any_model_are_read_into_one(tmp_path: Path) -> None:
    model, other = Tagger(), Tagger()
    slimrnn.save(model, tmp_path, weights_only=True)
    assert slimrnn.load(tmp_path, into=other) is other
    same_results(model, other, numbers(2, 3, 3))
    with pytest.raises(SavedModelError, match="expected into=, a model of class 'Tagger'"):
        slimrnn.load(tmp_path)
    for wrong in (Tagger(7), Tagger(dtype=torch.float32), GRU(3, 6)):
        before = [p.clone() for p in wrong.parameters()]
        with pytest.raises(SavedModelError, match=r"weights of another model: expected .* got"):
            slimrnn.load(tmp_path, into=wrong)
        assert all(map(torch.equal, before, wrong.parameters()))


def _hooked() -> nn.Module:
    layer = GRU(3, 4)
    layer.register_forward_hook(lambda *_: None)
    return layer


def _parametrized() -> nn.Module:
    return nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)))


def _pruned() -> nn.Module:
    linear = nn.Linear(3, 4)
    prune.random_unstructured(linear, "weight", 0.5)
    return linear


def _changed() -> nn.Module:
    layer = LSTM(3, 4)
    layer.layer(0).delay = 2
    return layer


def _exchanged() -> nn.Module:
    layer = GRU(3, 4)
    layer.layer(0).recurrent = LowRank(2).build(4, gates=3)
    return layer


def _mixed() -> nn.Module:
    layer = GRU(3, 4, 2)
    layer.layer(0).backend = "reference"
    return layer


def _other_forward() -> nn.Module:
    linear = nn.Linear(3, 4)
    linear.forward = lambda x: x  # type: ignore[method-assign, assignment]
    return linear


NOT_TOLD: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "own class": (Tagger, "got Tagger"),
    "inside": (lambda: nn.Sequential(nn.Tanh(), Tagger()), "got Tagger at 1"),
    "subclass": (lambda: type("Mine", (GRU,), {})(3, 4), "got Mine"),
    "lambda": (lambda: OutputRecurrent(3, 4, 2, feedback=lambda o: o), "has a name in its module"),
    "hook": (_hooked, "without hooks"),
    "parametrized": (_parametrized, "got ParametrizedLinear at 0"),
    "pruned": (_pruned, "without hooks"),
    "changed": (_changed, "with delay=1"),
    "exchanged": (_exchanged, "got LowRankMap at layers.0.recurrent"),
    "backends": (_mixed, "expected backend"),
    "forward": (_other_forward, "its own forward"),
}


@pytest.mark.parametrize("name", NOT_TOLD)
def test_what_a_file_would_lose_is_not_saved(name: str, tmp_path: Path) -> None:
    make, words = NOT_TOLD[name]
    model = make()
    with pytest.raises(TypeError, match=f"{words}.*; save the weights of any model with weights_only=True"):
        slimrnn.save(model, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_config_is_small_and_readable(tmp_path: Path) -> None:
    slimrnn.save(GRU(10, 128, structure=LowRank(24) + Diagonal(), batch_first=True), tmp_path)
    text = (tmp_path / "config.json").read_text()
    assert '"structure": {"type": "Sum", "parts": [{"type": "LowRank", "rank": 24}, {"type": "Diagonal"}]}' in text
    assert len(text) < 700
    assert json.loads(text)["model"]["hidden_size"] == 128


def test_an_empty_container_is_kept(tmp_path: Path) -> None:
    slimrnn.save(nn.Sequential(GRU(2, 3), nn.Sequential()), tmp_path)
    assert [type(part) for part in slimrnn.load(tmp_path).children()] == [GRU, nn.Sequential]
