"""Dense layers are torch.nn's: outputs, final states and every gradient."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from registry import BACKENDS, numbers
from slimrnn import GRU, LSTM, RNN
from slimrnn.layers import RecurrentStack

INPUT, HIDDEN = 5, 7
LAYERS: dict[str, tuple[type[RecurrentStack], type[nn.RNNBase], dict[str, Any]]] = {
    "tanh": (RNN, nn.RNN, {}),
    "relu": (RNN, nn.RNN, {"nonlinearity": "relu"}),
    "gru": (GRU, nn.GRU, {}),
    "lstm": (LSTM, nn.LSTM, {}),
}
SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "stacked": {"num_layers": 3},
    "bidirectional": {"bidirectional": True},
    "stacked-bidirectional": {"num_layers": 2, "bidirectional": True},
    "no-bias": {"bias": False, "num_layers": 2, "bidirectional": True},
    "batch-first": {"batch_first": True, "num_layers": 2},
}
INPUTS = ["padded", "packed-sorted", "packed-unsorted", "unbatched"]


def make_input(kind: str, batch_first: bool) -> Any:
    if kind == "unbatched":
        return numbers(6, INPUT).requires_grad_()
    if kind == "padded":
        return (numbers(3, 6, INPUT) if batch_first else numbers(6, 3, INPUT)).requires_grad_()
    lengths = [6, 4, 1] if kind == "packed-sorted" else [2, 6, 1]
    pieces = [numbers(n, INPUT) for n in lengths]
    return pack_sequence(pieces, enforce_sorted=kind == "packed-sorted")


def data(x: Any) -> Tensor:
    found: Tensor = x.data if isinstance(x, PackedSequence) else x
    return found


def leaves(state: Any) -> list[Tensor]:
    return list(state) if isinstance(state, tuple) else [state]


def torch_gradients(module: nn.RNNBase) -> dict[str, Tensor]:
    """Per layer: gradients in our layout (one bias, and the GRU's second)."""
    found: dict[str, Tensor] = {}
    suffixes = [f"_l{k}{d}" for k in range(module.num_layers) for d in ("", "_reverse")[: 1 + module.bidirectional]]
    for k, suffix in enumerate(suffixes):
        found[f"layers.{k}.recurrent.weight"] = getattr(module, "weight_hh" + suffix).grad
        found[f"layers.{k}.input.weight"] = getattr(module, "weight_ih" + suffix).grad
        if module.bias:
            found[f"layers.{k}.cell.bias"] = getattr(module, "bias_ih" + suffix).grad
            if isinstance(module, nn.GRU):
                found[f"layers.{k}.cell.recurrent_bias"] = getattr(module, "bias_hh" + suffix).grad[2 * HIDDEN :]
    return found


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", LAYERS)
def test_matches_torch(name: str, shape: str, kind: str, with_state: bool, backend: str) -> None:
    ours_type, torch_type, own = LAYERS[name]
    options = SHAPES[shape]
    theirs = torch_type(INPUT, HIDDEN, **options, **own).double()  # type: ignore[arg-type]
    ours = ours_type.from_torch(theirs, backend=backend)
    x = make_input(kind, options.get("batch_first", False))
    hx: Any = None
    if with_state:
        count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
        size = (count, HIDDEN) if kind == "unbatched" else (count, 3, HIDDEN)
        hx = tuple(numbers(*size).requires_grad_() for _ in range(2 if name == "lstm" else 1))
        hx = hx if name == "lstm" else hx[0]

    gradients, results = [], []
    watched = [p for p in [data(x), *([] if hx is None else leaves(hx))] if p.requires_grad]
    weights: list[Tensor] = []
    for module in (theirs, ours):
        output, last = module(x, hx)
        tensors = [data(output), *leaves(last)]
        if not weights:
            weights = [torch.randn_like(t) for t in tensors]
        loss = sum((w * t).sum() for w, t in zip(weights, tensors, strict=True))
        assert isinstance(loss, Tensor)
        module.zero_grad()
        gradients.append(torch.autograd.grad(loss, watched, retain_graph=True) if watched else ())
        loss.backward()
        results.append((output, tensors))
    for a, b in zip(results[0][1], results[1][1], strict=True):
        torch.testing.assert_close(b, a, rtol=1e-10, atol=1e-10)
    if isinstance(x, PackedSequence):
        for part in ("batch_sizes", "sorted_indices", "unsorted_indices"):
            a, b = (getattr(r[0], part) for r in results)
            assert (a is None and b is None) or torch.equal(a, b)
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-10, atol=1e-10)
    expected, found = torch_gradients(theirs), dict(ours.named_parameters())
    assert expected.keys() == found.keys()
    for key, value in expected.items():
        actual = found[key].grad
        assert actual is not None
        torch.testing.assert_close(actual.reshape_as(value), value, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", LAYERS)
def test_to_torch_gives_the_weights_back(name: str, shape: str) -> None:
    ours_type, torch_type, own = LAYERS[name]
    theirs = torch_type(INPUT, HIDDEN, **SHAPES[shape], **own).double()  # type: ignore[arg-type]
    again = ours_type.from_torch(theirs).to_torch()
    assert type(again) is torch_type
    assert again.batch_first == theirs.batch_first
    x = numbers(4, 2, INPUT)
    torch.testing.assert_close(again(x)[0], theirs(x)[0], rtol=1e-12, atol=1e-12)
    for key, value in theirs.state_dict().items():
        if key.startswith("weight"):
            assert torch.equal(again.state_dict()[key], value)


def test_conversion_keeps_dtype_dropout_and_mode() -> None:
    theirs = nn.LSTM(3, 4, 2, dropout=0.25).eval()
    ours = LSTM.from_torch(theirs)
    assert not ours.training
    assert ours.dropout == 0.25
    assert {p.dtype for p in ours.parameters()} == {torch.float32}
    back = ours.to_torch()
    assert back.dropout == 0.25
    assert not back.training


def test_wrong_kinds_are_refused() -> None:
    with pytest.raises(TypeError, match=r"expected a torch.nn.GRU, got LSTM"):
        GRU.from_torch(nn.LSTM(3, 4))
    with pytest.raises(ValueError, match=r"expected an LSTM without projection, got proj_size=2"):
        LSTM.from_torch(nn.LSTM(3, 4, proj_size=2))
    with pytest.raises(ValueError, match="expected reset='after'"):
        GRU.from_torch(nn.GRU(3, 4), reset="before")


@pytest.mark.parametrize(
    "stack",
    [
        RNN(3, 4, nonlinearity="modrelu"),
        RNN(3, 4, nonlinearity="identity"),
        GRU(3, 4, reset="before"),
        LSTM(3, 4, peephole=True),
        LSTM(3, 4, 2, residual=True),
        LSTM(3, 4, learn_initial_state=True),
        GRU(3, 4, recurrent_dropout=0.5),
        LSTM(3, 4, weight_drop=0.5),
        LSTM(3, 4, zoneout=0.5).eval(),
    ],
    ids=repr,
)
def test_what_torch_cannot_express_is_refused(stack: RecurrentStack) -> None:
    with pytest.raises(ValueError, match=r"expected a layer that torch.nn.\w+ can express, got"):
        stack.to_torch()


@pytest.mark.parametrize("layer", [RNN, GRU, LSTM])
@pytest.mark.parametrize("bias", [False, True])
def test_frozen_weights_stay_frozen(layer: Any, bias: bool) -> None:
    module = layer.torch_type(3, 4, 2, bias=bias)
    frozen = ["weight_hh_l0", "weight_ih_l1", *(["bias_ih_l1", "bias_hh_l1"] if bias else [])]
    for name in frozen:
        module.get_parameter(name).requires_grad_(False)
    ours = layer.from_torch(module)
    parts = (ours.layer(0).recurrent, ours.layer(1).input, *([ours.layer(1).cell] if bias else []))
    wanted = {id(p) for part in parts for p in part.parameters()}
    assert {id(p) for p in ours.parameters() if not p.requires_grad} == wanted
    back = ours.to_torch()
    assert sorted(name for name, p in back.named_parameters() if not p.requires_grad) == sorted(frozen)
