"""What code written for torch.nn's layers reads of them is on ours, too."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from registry import numbers
from slimrnn import GRU, LSTM, MGU, RNN, Dense, Kronecker, LowRank, Structure
from slimrnn.layers import RecurrentStack
from slimrnn.layers.computed_weight import ComputedWeight

KINDS: dict[str, tuple[type[RecurrentStack], Any]] = {
    "RNN_TANH": (RNN, nn.RNN),
    "RNN_RELU": (RNN, nn.RNN),
    "GRU": (GRU, nn.GRU),
    "LSTM": (LSTM, nn.LSTM),
}
SHAPES: list[dict[str, Any]] = [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False, "num_layers": 2}]


def both(mode: str, **options: Any) -> tuple[RecurrentStack, nn.RNNBase]:
    ours, theirs = KINDS[mode]
    own = {"nonlinearity": "relu"} if mode == "RNN_RELU" else {}
    module = theirs(3, 4, dtype=torch.float64, **own, **options)
    return ours.from_torch(module), module


@pytest.mark.parametrize("options", SHAPES, ids=str)
@pytest.mark.parametrize("mode", KINDS)
def test_attributes_are_those_of_torch(mode: str, options: dict[str, Any]) -> None:
    ours, theirs = both(mode, **options)
    assert theirs.mode == mode
    for name in ("mode", "proj_size", "hidden_size", "input_size", "num_layers", "bias", "batch_first", "dropout"):
        assert getattr(ours, name) == getattr(theirs, name), name
    for name in ("bidirectional", "_all_weights", "_flat_weights_names"):
        assert getattr(ours, name) == getattr(theirs, name), name
    if isinstance(theirs, nn.RNN):
        assert ours.nonlinearity == theirs.nonlinearity
    assert [[w.shape for w in row] for row in ours.all_weights] == [
        [w.shape for w in row] for row in theirs.all_weights
    ]
    assert len(ours._flat_weights) == len(theirs._flat_weights)
    for name in theirs._flat_weights_names:
        if name.startswith("weight"):
            assert torch.equal(getattr(ours, name), getattr(theirs, name))
            other = name.replace("weight", "bias").replace("ih", "hh")
            if options.get("bias", True) and "ih" in name:
                first, second = name.replace("weight", "bias"), other
                expected = getattr(theirs, first) + getattr(theirs, second)
                torch.testing.assert_close(getattr(ours, first) + getattr(ours, second), expected)


@pytest.mark.parametrize("structure", [Dense(), LowRank(2), Kronecker([2, 2])], ids=repr)
def test_weights_are_read_through_the_structure_with_gradients(structure: Structure) -> None:
    stack: Any = GRU(3, 4, structure=structure, dtype=torch.float64)
    matrices = stack.recurrent_matrices()[0]
    assert torch.equal(stack.weight_hh_l0, matrices.flatten(0, 1))
    parameters = list(stack.layer(0).recurrent.parameters())
    found, expected = (torch.autograd.grad(w.square().sum(), parameters) for w in (stack.weight_hh_l0, matrices))
    torch.testing.assert_close(found, expected)
    assert type(2 * stack.weight_hh_l0) is Tensor


def test_what_is_written_into_a_dense_weight_is_kept() -> None:
    stack: Any = LSTM(3, 4, dtype=torch.float64)
    nn.init.orthogonal_(stack.weight_hh_l0)
    stack.bias_ih_l0.data[4:8].fill_(1.0)
    assert torch.equal(stack.layer(0).cell.bias[1], torch.ones(4, dtype=torch.float64))
    w = stack.recurrent_matrices()[0].flatten(0, 1)
    torch.testing.assert_close(w.mT @ w, torch.eye(4, dtype=torch.float64))


WRITES: dict[str, Any] = {
    "attribute": lambda stack: setattr(stack, "weight_hh_l0", torch.zeros(16, 4)),
    "parameter": lambda stack: setattr(stack, "weight_hh_l0", nn.Parameter(torch.zeros(16, 4))),
    "init": lambda stack: nn.init.orthogonal_(stack.weight_hh_l0),
    "data": lambda stack: stack.weight_hh_l0.data.fill_(0),
    "slice": lambda stack: stack.weight_hh_l0.data[4:8].normal_(),
    "assigned slice": lambda stack: stack.weight_hh_l0.detach().__setitem__(0, 1.0),
    "copy": lambda stack: stack.weight_hh_l0.copy_(torch.zeros(16, 4)),
    "new data": lambda stack: setattr(stack.weight_hh_l0, "data", torch.zeros(16, 4)),
    "freezing": lambda stack: stack.weight_hh_l0.requires_grad_(False),
    "added": lambda stack: stack.weight_hh_l0.__iadd__(1),
    "out": lambda stack: torch.add(torch.ones(16, 4), 1, out=stack.weight_hh_l0),
}


@torch.no_grad()
@pytest.mark.parametrize("kind", WRITES)
def test_what_would_be_lost_is_refused_with_the_way_to_set_it(kind: str) -> None:
    stack = LSTM(3, 4, structure=LowRank(2))
    before = [p.clone() for p in stack.parameters()]
    with pytest.raises((AttributeError, RuntimeError), match=r"weight_hh_l0 .* use layers\[0\]\.recurrent\.nearest_"):
        WRITES[kind](stack)
    assert all(torch.equal(a, b) for a, b in zip(stack.parameters(), before, strict=True))


def test_the_second_bias_is_refused_with_the_way_to_set_it() -> None:
    lstm: Any = LSTM(3, 4, 2)
    gru: Any = GRU(3, 4)
    with pytest.raises(RuntimeError, match=r"write to layers\[1\]\.cell\.bias"):
        lstm.bias_hh_l1.data.fill_(1)
    with pytest.raises(RuntimeError, match=r"layers\[0\]\.cell\.recurrent_bias for what a GRU resets"):
        gru.bias_hh_l0.data.fill_(1)


@pytest.mark.parametrize(
    ("stack", "name", "reason"),
    [
        (GRU(3, 4), "weight_hh_l1", "expected the end of a name from _l0, got _l1"),
        (GRU(3, 4), "weight_hh_l0_reverse", "got _l0_reverse"),
        (GRU(3, 4, bias=False), "bias_ih_l0", "it was made with bias=False"),
        (MGU(3, 4), "weight_hh_l0", "torch.nn has no such layer"),
        (GRU(3, 4, delays=(1, 2)), "weight_hh_l0", "torch.nn has no such layer"),
        (RNN(3, 4, nonlinearity="modrelu"), "weight_hh_l0", "torch.nn has no such layer"),
    ],
    ids=repr,
)
def test_names_that_do_not_exist_are_missing_attributes(stack: RecurrentStack, name: str, reason: str) -> None:
    assert not hasattr(stack, name)
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': .*{reason}"):
        getattr(stack, name)


def test_layers_that_torch_lacks_have_no_mode() -> None:
    assert not hasattr(MGU(3, 4), "mode")


@pytest.mark.parametrize("structure", [Dense(), LowRank(2)], ids=repr)
def test_reading_them_leaves_copies_pickles_and_exports_as_they_are(structure: Structure) -> None:
    stack: Any = LSTM(3, 4, structure=structure)
    weights = stack.all_weights
    assert isinstance(weights[0][3], ComputedWeight)
    x = torch.randn(5, 2, 3)
    for other in (copy.deepcopy(stack), pickle.loads(pickle.dumps(stack))):
        assert torch.equal(other(x)[0], stack(x)[0])
        assert torch.equal(other.weight_hh_l0, stack.weight_hh_l0)
    assert stack.state_dict().keys() == LSTM(3, 4, structure=structure).state_dict().keys()


class Decayed(nn.Module):
    """Uses a weight by torch's name in its forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn: Any = GRU(3, 4, structure=LowRank(2))

    def forward(self, x: Tensor) -> Tensor:
        loss: Tensor = self.rnn(x)[0].sum() + self.rnn.weight_hh_l0.square().sum()
        return loss


def test_a_model_that_reads_them_compiles_and_exports() -> None:
    torch._dynamo.reset()
    model, x = Decayed(), numbers(5, 2, 3).float()
    expected = model(x)
    torch.testing.assert_close(torch.compile(model, backend="eager", fullgraph=True)(x), expected)
    torch.testing.assert_close(torch.export.export(model, (x,)).module()(x), expected)
