"""`backend="torch"`: torch's own fused operators give what the reference gives, for the layers that torch has.

There is no GPU in the tests: what "auto" chooses there is tested with another set of preferred devices."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils import parametrizations
from torch.nn.utils.rnn import pack_sequence

from registry import numbers, randomise_
from slimrnn import GRU, LSTM, RNN, Diagonal, Leaky, LowRank, Recurrent
from slimrnn.cells import MGUCell
from slimrnn.layers import RecurrentStack, torch_scan

LAYERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "tanh": (RNN, {}),
    "relu": (RNN, {"nonlinearity": "relu"}),
    "gru": (GRU, {}),
    "lstm": (LSTM, {}),
}
SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "no bias": {"bias": False},
    "stacked both ways": {"num_layers": 2, "bidirectional": True, "residual": True},
    "weight norm, learned start": {"weight_norm": True, "learn_initial_state": True, "batch_first": True},
    "segments": {"checkpoint_every": 2, "bidirectional": True},
}
INPUT, SIZE, TIME, BATCH = 3, 4, 5, 3
LENGTHS = (2, 5, 1)


def twins(kind: str, options: dict[str, Any]) -> tuple[RecurrentStack, RecurrentStack]:
    build, own = LAYERS[kind]
    fused = randomise_(build(INPUT, SIZE, **own, **options, dtype=torch.float64, backend="torch"), 0.3)
    plain = copy.deepcopy(fused)
    plain.backend = "reference"
    return fused, plain


def leaves(state: Any) -> list[Tensor]:
    return [*state] if isinstance(state, tuple) else [state]


def results(stack: RecurrentStack, start: bool, lengths: tuple[int, ...] | None) -> list[Tensor]:
    """Outputs, last states and the gradients of everything, for the same numbers every time."""
    torch.manual_seed(0)
    x = numbers(BATCH, TIME, INPUT) if stack.batch_first else numbers(TIME, BATCH, INPUT)
    given = [x.requires_grad_()]
    hx: Any = None
    if start:
        parts = [numbers(*s.shape).requires_grad_() for s in leaves(stack.initial_state(BATCH))]
        hx = tuple(parts) if len(parts) > 1 else parts[0]
        given += parts
    output, last = stack(x, hx, lengths=lengths)
    found = [output, *leaves(last)]
    loss = sum((t * numbers(*t.shape)).sum() for t in found)
    wanted = [*given, *(p for name, p in stack.named_parameters() if not (start and name.endswith("initial")))]
    assert isinstance(loss, Tensor)
    return [*found, *torch.autograd.grad(loss, wanted)]


@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["padded", "ragged"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", LAYERS)
def test_fused_operators_are_the_reference(kind: str, shape: str, lengths: tuple[int, ...] | None) -> None:
    fused, plain = twins(kind, SHAPES[shape])
    assert fused.runs_as == "torch"
    for start in (False, True):
        expected = results(plain, start, lengths)
        torch.testing.assert_close(results(fused, start, lengths), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", LAYERS)
def test_other_ways_in(kind: str) -> None:
    fused, plain = twins(kind, {"bidirectional": True})
    packed = pack_sequence([numbers(n, INPUT) for n in LENGTHS], enforce_sorted=False)
    for x in (numbers(TIME, INPUT), packed, numbers(TIME, 0, INPUT)):
        torch.testing.assert_close(fused(x), plain(x), rtol=1e-10, atol=1e-10)
    x, one_way = numbers(BATCH, INPUT), LAYERS[kind][0](INPUT, SIZE, dtype=torch.float64, backend="torch")
    torch.testing.assert_close(one_way.step(x)[0], one_way(x.unsqueeze(0))[0][0], rtol=1e-10, atol=1e-10)


def test_the_operator_of_torch_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    stack, operator, calls = GRU(INPUT, SIZE, 2, backend="torch"), torch.gru, []

    def counted(*given: Any) -> Any:
        calls.append(given)
        return operator(*given)

    monkeypatch.setattr(torch, "gru", counted)
    stack(torch.zeros(TIME, BATCH, INPUT))
    assert len(calls) == 2


@pytest.mark.parametrize("kind", LAYERS)
def test_transforms_and_eval_mode(kind: str) -> None:
    fused, plain = (stack.eval() for stack in twins(kind, {}))
    x, v = numbers(TIME, BATCH, INPUT), numbers(TIME, BATCH, INPUT)
    found, expected = ((lambda x, s=s: s(x)[0]) for s in (fused, plain))
    torch.testing.assert_close(torch.func.jvp(found, (x,), (v,)), torch.func.jvp(expected, (x,), (v,)))
    torch.testing.assert_close(results(fused, False, None), results(plain, False, None), rtol=1e-10, atol=1e-10)


def test_computed_weights() -> None:
    fused, plain = twins("lstm", {})
    for stack in (fused, plain):
        parametrizations.weight_norm(stack.layer(0).recurrent, "weight")
        parametrizations.weight_norm(stack.layer(0).cell, "bias")
    torch.testing.assert_close(results(fused, True, None), results(plain, True, None), rtol=1e-10, atol=1e-10)


WITHOUT: dict[str, tuple[Any, dict[str, Any]]] = {
    "structure=LowRank(2)": (GRU, {"structure": LowRank(2)}),
    "input_structure=LowRank(2)": (LSTM, {"input_structure": LowRank(2)}),
    "reset='before'": (GRU, {"reset": "before"}),
    "peephole=True": (LSTM, {"peephole": True}),
    "nonlinearity='modrelu'": (RNN, {"nonlinearity": "modrelu"}),
    "transition_depth=2": (RNN, {"transition_depth": 2}),
    "leak=Leaky": (GRU, {"leak": Leaky(0.5)}),
    "delays=2": (GRU, {"delays": 2}),
    "skip=3": (GRU, {"skip": 3}),
    "zoneout=": (LSTM, {"zoneout": 0.1}),
    "recurrent_dropout=0.5": (LSTM, {"recurrent_dropout": 0.5}),
    "weight_drop=0.5": (LSTM, {"weight_drop": 0.5}),
}


@pytest.mark.parametrize("reason", WITHOUT)
def test_what_torch_lacks_is_named(reason: str) -> None:
    build, options = WITHOUT[reason]
    with pytest.raises(ValueError, match=r"backend='torch', got ") as raised:
        build(INPUT, SIZE, **options, backend="torch")
    assert reason in str(raised.value)
    stack = build(INPUT, SIZE, **options)
    before = stack.backend
    with pytest.raises(ValueError, match=r"backend='torch', got "):
        stack.backend = "torch"
    assert stack.backend == before


def test_other_cells_are_named() -> None:
    with pytest.raises(ValueError, match=r"backend='torch', got MGUCell"):
        Recurrent(MGUCell, INPUT, SIZE, backend="torch")


def test_all_layers_are_asked_before_one_changes() -> None:
    stack = GRU(INPUT, SIZE, 2, backend="reference")
    stack.layer(1).recurrent = Diagonal().build(SIZE, SIZE, 3)
    with pytest.raises(ValueError, match=r"got structure=Diagonal\(\)"):
        stack.backend = "torch"
    assert stack.backend == "reference"


def test_a_layer_that_becomes_another_is_refused() -> None:
    stack = RNN(INPUT, SIZE, backend="torch")
    stack.layer(0).cell.nonlinearity = "identity"  # type: ignore[assignment]
    with pytest.raises(ValueError, match=r"got nonlinearity='identity'"):
        stack(torch.zeros(TIME, BATCH, INPUT))


def test_a_step_of_ones_own_is_refused() -> None:
    rnn = GRU(3, 4, backend="torch")
    rnn.cell.__dict__["step"] = lambda wx_BGH, matvec, state: state
    with pytest.raises(ValueError, match="as torch has it"):
        rnn(torch.zeros(2, 1, 3))


def test_print_copies_and_pickles_tell_it() -> None:
    stack = LSTM(INPUT, SIZE, 2, backend="torch")
    for each in (stack, copy.deepcopy(stack), pickle.loads(pickle.dumps(stack))):
        assert "backend='torch', runs_as='torch'" in repr(each)
        assert {core.backend for core in each.cores} == {"torch"}


def test_auto_takes_it_where_it_is_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    dense, low = GRU(INPUT, SIZE), GRU(INPUT, SIZE, structure=LowRank(2))
    mixed = GRU(INPUT, SIZE, 2)
    mixed.layer(1).recurrent = Diagonal().build(SIZE, SIZE, 3)
    chosen = GRU(INPUT, SIZE, backend="reference")
    usual = low.runs_as
    assert "torch" not in (dense.runs_as, mixed.runs_as, chosen.runs_as)
    monkeypatch.setattr(torch_scan, "PREFERRED_ON", {"cpu"})  # as if this were a GPU
    assert (dense.backend, dense.runs_as) == ("torch", "torch")
    assert low.runs_as == usual
    assert [mixed.layer(k).runs_as for k in (0, 1)] == ["torch", usual]
    assert chosen.runs_as == "reference"
    torch.testing.assert_close(mixed(torch.ones(TIME, BATCH, INPUT))[0].shape, torch.Size((TIME, BATCH, SIZE)))


def test_auto_prefers_it_on_no_other_device() -> None:
    assert not torch_scan.PREFERRED_ON & {"cpu", "meta"}
    assert GRU(INPUT, SIZE, device="meta").runs_as == "reference"
