"""state_dicts of torch's layers: loaded exactly into dense layers, with torch's own report of what does not fit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from registry import numbers
from slimrnn import GRU, LSTM, MGU, RNN, Diagonal, LowRank
from slimrnn.layers import RecurrentStack

KINDS: list[tuple[type[RecurrentStack], Any]] = [(RNN, nn.RNN), (GRU, nn.GRU), (LSTM, nn.LSTM)]
SHAPES: list[dict[str, Any]] = [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False, "num_layers": 2}]
kinds = pytest.mark.parametrize(("ours", "theirs"), KINDS)


@kinds
@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_a_layer_of_torch_loads_exactly(ours: Any, theirs: Any, options: dict[str, Any], assign: bool) -> None:
    module = theirs(3, 4, dtype=torch.float64, **options)
    stack = ours(3, 4, dtype=torch.float64, **options)
    report = stack.load_state_dict(module.state_dict(), assign=assign)
    assert report == ([], [])
    x = numbers(5, 2, 3)
    torch.testing.assert_close(stack(x)[0], module(x)[0], rtol=0, atol=1e-12)
    converted = ours.from_torch(module).state_dict()
    assert all(torch.equal(value, converted[key]) for key, value in stack.state_dict().items())


@kinds
def test_it_loads_inside_a_model_beside_other_keys(ours: Any, theirs: Any) -> None:
    module = nn.ModuleDict({"a": nn.Sequential(theirs(3, 4)), "b": nn.Linear(4, 2)})
    model = nn.ModuleDict({"a": nn.Sequential(ours(3, 4)), "b": nn.Linear(4, 2)})
    given = module.state_dict()
    keys = list(given)
    assert model.load_state_dict(given) == ([], [])
    assert list(given) == keys  # the caller's stays as it is
    assert torch.equal(model["a"][0].weight_hh_l0, module["a"][0].weight_hh_l0)  # type: ignore[index]
    assert model.load_state_dict(model.state_dict()) == ([], [])


def test_what_is_missing_or_too_much_is_reported_by_torchs_names() -> None:
    given = nn.ModuleDict({"rnn": nn.GRU(3, 4, 2)}).state_dict()
    del given["rnn.weight_hh_l1"]
    model = nn.ModuleDict({"rnn": GRU(3, 4)})
    report = model.load_state_dict(given, strict=False)
    assert report.missing_keys == []
    assert set(report.unexpected_keys) == {"rnn.weight_ih_l1", "rnn.bias_ih_l1", "rnn.bias_hh_l1"}
    deeper = nn.ModuleDict({"rnn": GRU(3, 4, 2)})
    report = deeper.load_state_dict(given, strict=False)
    assert report == (["rnn.weight_hh_l1"], [])
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "rnn.weight_hh_l1"'):
        deeper.load_state_dict(given)
    with pytest.raises(RuntimeError, match=r"size mismatch for rnn.weight_hh_l0: expected \(15, 5\), got \(12, 4\)"):
        nn.ModuleDict({"rnn": GRU(3, 5, 2)}).load_state_dict(given)


def test_one_of_two_biases_changes_nothing() -> None:
    given = nn.LSTM(3, 4).state_dict()
    del given["bias_hh_l0"]
    stack = LSTM(3, 4, forget_bias=2.0)
    before = stack.layer(0).cell.bias.detach().clone()  # type: ignore[union-attr]
    assert stack.load_state_dict(given, strict=False) == (["bias_hh_l0"], [])
    assert torch.equal(stack.layer(0).cell.bias, before)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stack", "reason"),
    [
        (GRU(3, 4, structure=LowRank(2)), r"structure=LowRank\(2\).*GRU.from_torch, or with slimrnn.replace"),
        (GRU(3, 4, input_structure=LowRank(2)), r"input_structure=LowRank\(2\)"),
        (GRU(3, 4, structure=Diagonal()), r"structure=Diagonal\(\)"),
        (GRU(3, 4, weight_norm=True), "weight_norm=True"),
        (GRU(3, 4, reset="before"), "reset='before'"),
        (GRU(3, 4, learn_initial_state=True), "learn_initial_state=True"),
        (MGU(3, 4), "torch.nn has no layer that computes what MGU does"),
    ],
    ids=repr,
)
def test_layers_that_hold_other_numbers_refuse_them(stack: RecurrentStack, reason: str) -> None:
    before = {key: value.clone() for key, value in stack.state_dict().items()}
    with pytest.raises(RuntimeError, match=rf"got that of a torch layer \(weight_ih_l0\): .*{reason}"):
        stack.load_state_dict(nn.GRU(3, 4).state_dict(), strict=False)
    assert all(torch.equal(value, before[key]) for key, value in stack.state_dict().items())
