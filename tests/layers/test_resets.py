"""Sequences that begin anew in the middle of a batch: the state before such a step is the initial one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from registry import BACKENDS, CELLS, needs_library, numbers, randomise_
from slimrnn import GRU, LSTM, RNN, Diagonal, Kronecker, LowRank
from slimrnn.layers import RecurrentStack

TIME, BATCH, INPUT, HIDDEN = 7, 3, 2, 12
LENGTHS = torch.tensor([7, 3, 5])
RESETS = torch.tensor([[1, 0, 0], [0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 1], [0, 1, 1], [0, 0, 0]]).bool()
OPTIONS: dict[str, dict[str, Any]] = {
    "two layers": {"num_layers": 2, "residual": True},
    "learned": {"learn_initial_state": True},
    "segments": {"checkpoint_every": 3},
    "delays": {"delays": [1, 3]},
    "skip": {"skip": 2, "learn_initial_state": True},
    "deep": {"transition_depth": 2},
    "expected noise": {"zoneout": 0.3},
}


def parts(state: Any) -> tuple[Tensor, ...]:
    return state if isinstance(state, tuple) else (state,)


def step_by_step(stack: RecurrentStack, x: Tensor, lengths: Tensor | None = None) -> list[Tensor]:
    """Output and last states, by single steps of the layer from states that are reset here."""
    state, anew = parts(stack.initial_state(BATCH)), parts(stack.initial_state(BATCH))
    outputs = []
    for t in range(TIME):
        going_on = torch.full((BATCH,), True) if lengths is None else t < lengths
        at = (RESETS[t] & going_on)[:, None]
        before = tuple(torch.where(at, new, old) for new, old in zip(anew, state, strict=True))
        y, after = stack.step(x[t], before if len(before) > 1 else before[0])
        outputs.append(y * going_on[:, None])
        state = tuple(torch.where(going_on[:, None], a, b) for a, b in zip(parts(after), state, strict=True))
    return [torch.stack(outputs), *state]


def gradients(stack: RecurrentStack, x: Tensor, found: list[Tensor]) -> list[Tensor]:
    draw = torch.Generator().manual_seed(1)
    wanted = [x, *(p for p in stack.parameters() if p.requires_grad)]
    loss = sum((t.abs() * torch.rand(t.shape, generator=draw)).sum() for t in found)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(wanted, _grad(loss, wanted), strict=True)]


def _grad(loss: Any, wanted: list[Tensor]) -> tuple[Tensor | None, ...]:
    return torch.autograd.grad(loss, wanted, allow_unused=True)


def check(stack: RecurrentStack, lengths: Tensor | None = None) -> None:
    randomise_(stack)
    x = numbers(TIME, BATCH, INPUT).requires_grad_()
    output, last = stack(x, resets=RESETS, lengths=lengths)
    found, expected = [output, *parts(last)], step_by_step(stack, x, lengths)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
    for a, b in zip(gradients(stack, x, found), gradients(stack, x, expected), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("cell", CELLS)  # structures see nothing of it
def test_resets_equal_single_steps_from_a_reset_state(cell: str) -> None:
    check(CELLS[cell].build(INPUT, HIDDEN, structure=LowRank(2) + Diagonal()), LENGTHS)


@pytest.mark.parametrize("cell", ["lstm-peephole", "modrelu-leaky-deep"])
def test_resets_of_the_reference_equal_single_steps(cell: str) -> None:
    check(CELLS[cell].build(INPUT, HIDDEN, backend="reference"), LENGTHS)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("options", OPTIONS)
def test_resets_with_options_of_layers(options: str, backend: str) -> None:
    check(LSTM(INPUT, HIDDEN, dtype=torch.float64, backend=backend, **OPTIONS[options]).eval(), LENGTHS)


@pytest.mark.parametrize("options", ["two layers", "learned", "delays"])
def test_resets_of_complex_states_without_lengths(options: str) -> None:
    check(CELLS["modrelu"].build(INPUT, HIDDEN, **OPTIONS[options]))


def test_resets_equal_torch_called_for_every_episode() -> None:
    ours = GRU(INPUT, HIDDEN, dtype=torch.float64)
    theirs = ours.to_torch()
    x = numbers(TIME, 1, INPUT)
    output, last = ours(x, resets=torch.tensor([0, 0, 1, 0, 0, 1, 0]).bool()[:, None])
    expected = [theirs(piece)[0] for piece in x.split([2, 3, 2])]
    torch.testing.assert_close(output, torch.cat(expected))
    torch.testing.assert_close(last, expected[-1][-1:])


def test_masks_and_noise_of_training_are_those_of_the_reference() -> None:
    options: dict[str, Any] = {"recurrent_dropout": 0.3, "zoneout": 0.2, "weight_drop": 0.2, "dtype": torch.float64}
    layer = randomise_(LSTM(INPUT, HIDDEN, **options))
    x, found = numbers(TIME, BATCH, INPUT), []
    for backend in ("native", "reference"):
        layer.layer(0).backend = backend
        torch.manual_seed(3)
        found.append(layer(x, resets=RESETS)[0])
    torch.testing.assert_close(found[0], found[1], rtol=1e-10, atol=1e-10)


def test_packed_input_has_resets_in_the_order_of_its_sequences() -> None:
    rnn, x = LSTM(INPUT, HIDDEN, dtype=torch.float64), numbers(TIME, BATCH, INPUT)
    padded, last = rnn(x, lengths=LENGTHS, resets=RESETS)
    packed, packed_last = rnn(pack_padded_sequence(x, LENGTHS, enforce_sorted=False), resets=RESETS)
    assert torch.equal(pad_packed_sequence(packed)[0], padded)
    assert torch.equal(packed_last[1], last[1])


def test_batch_first_and_single_sequences() -> None:
    rnn, x = GRU(INPUT, HIDDEN, batch_first=True), torch.randn(BATCH, TIME, INPUT)
    output, _ = rnn(x, resets=RESETS.T)
    one, _ = rnn(x[0], resets=RESETS[:, 0])
    assert torch.equal(one, output[0])
    assert torch.equal(rnn(x, resets=torch.zeros(BATCH, TIME).bool())[0], rnn(x)[0])


def test_reset_state_is_what_a_sequence_begins_with_and_has_its_gradient() -> None:
    rnn, x = LSTM(INPUT, HIDDEN, dtype=torch.float64), numbers(TIME, BATCH, INPUT)
    state = tuple(numbers(1, BATCH, HIDDEN).requires_grad_() for _ in range(2))
    anew = tuple(numbers(1, BATCH, HIDDEN).requires_grad_() for _ in range(2))
    always = torch.ones(TIME, BATCH).bool()

    def run(h: Tensor, c: Tensor, h_reset: Tensor, c_reset: Tensor) -> Tensor:
        output, _ = rnn(x, (h, c), resets=RESETS, reset_state=(h_reset, c_reset))
        return torch.as_tensor(output)

    assert torch.autograd.gradcheck(run, (*state, *anew))
    from_anew = rnn(x.flatten(0, 1)[None], tuple(s.repeat(1, TIME, 1) for s in anew))[0]
    assert torch.allclose(rnn(x, state, resets=always, reset_state=anew)[0].flatten(0, 1), from_anew[0])


def test_no_gradient_passes_a_reset() -> None:
    rnn, x = GRU(INPUT, HIDDEN), torch.randn(TIME, 1, INPUT, requires_grad=True)
    output, _ = rnn(x, resets=(torch.arange(TIME) == 4)[:, None])
    (found,) = torch.autograd.grad(output[-1].sum(), x)
    assert torch.equal(found[:4], torch.zeros_like(found[:4]))
    assert found[4:].abs().amin() > 0


@needs_library
def test_second_derivatives_and_vmap() -> None:
    rnn = RNN(1, 4, nonlinearity="modrelu", structure=Kronecker([2, 2]), dtype=torch.float64)
    x = numbers(4, 2, 1).requires_grad_()

    def run(x: Tensor) -> Tensor:
        return torch.as_tensor(rnn(x, resets=RESETS[2:6, :2])[0])

    assert torch.autograd.gradgradcheck(run, x, fast_mode=True)
    many = torch.stack([x, 2 * x]).detach()
    torch.testing.assert_close(torch.vmap(run)(many)[1], run(many[1]))


# --- one step -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_step_with_a_reset_begins_with_the_initial_state(learned: bool, grad: bool) -> None:
    rnn = randomise_(LSTM(INPUT, HIDDEN, num_layers=2, learn_initial_state=learned, dtype=torch.float64))
    x, state = numbers(BATCH, INPUT), tuple(numbers(2, BATCH, HIDDEN) for _ in range(2))
    at = torch.tensor([True, False, True])
    with torch.set_grad_enabled(grad):
        y, after = rnn.step(x, state, reset=at)
        fresh, fresh_after = rnn.step(x, rnn.initial_state(BATCH))
        going_on, _ = rnn.step(x, state)
        assert torch.equal(y, torch.where(at[:, None], fresh, going_on))
        assert torch.equal(after[1][:, at], fresh_after[1][:, at])
        one, _ = rnn.step(x[0], tuple(s[:, 0] for s in state), reset=torch.tensor(True))
        torch.testing.assert_close(one, fresh[0])


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"resets": RESETS.float()}, TypeError, r"expected resets of dtype torch.bool, got torch.float32; .*bool"),
        ({"resets": RESETS.tolist()}, TypeError, "expected resets to be a tensor, got list"),
        ({"resets": RESETS.T}, ValueError, r"expected resets of shape \(7, 3\), one for each step, got \(3, 7\)"),
        ({"reset_state": torch.zeros(1, BATCH, HIDDEN)}, ValueError, "expected resets= with reset_state=, got none"),
        ({"resets": RESETS, "reset_state": torch.zeros(1, 1, HIDDEN)}, ValueError, "initial state of shape"),
    ],
)
def test_resets_that_do_not_fit_are_refused(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        GRU(INPUT, HIDDEN)(torch.zeros(TIME, BATCH, INPUT), **arguments)


def test_two_directions_have_no_resets() -> None:
    with pytest.raises(ValueError, match="expected one direction for resets, got bidirectional=True"):
        GRU(INPUT, HIDDEN, bidirectional=True)(torch.zeros(TIME, BATCH, INPUT), resets=RESETS)
    rnn = GRU(INPUT, HIDDEN)
    with pytest.raises(TypeError, match=r"expected reset of dtype torch.bool"):
        rnn.step(torch.zeros(BATCH, INPUT), rnn.initial_state(BATCH), reset=torch.ones(BATCH))


@pytest.mark.parametrize("state", [None, torch.zeros(1, BATCH, HIDDEN)])
def test_a_reset_that_does_not_fit_is_refused_with_and_without_a_state(state: Tensor | None) -> None:
    rnn, x = GRU(INPUT, HIDDEN), torch.zeros(BATCH, INPUT)
    with pytest.raises(ValueError, match=r"expected reset of shape \(3,\).*got \(4,\)"):
        rnn.step(x, state, reset=torch.ones(BATCH + 1).bool())
    with pytest.raises(TypeError, match=r"expected reset of dtype torch.bool"):
        rnn.step(x, state, reset=torch.ones(BATCH))
    y, _ = rnn.step(x, state, reset=torch.ones(BATCH).bool())
    assert torch.equal(y, rnn.step(x)[0])


def test_torchs_operators_leave_resets_to_the_loop() -> None:
    ours, theirs = GRU(INPUT, HIDDEN), nn.GRU(INPUT, HIDDEN)
    forced = GRU.from_torch(theirs, backend="torch")
    x = torch.randn(TIME, BATCH, INPUT)
    ours = GRU.from_torch(theirs)
    torch.testing.assert_close(forced(x, resets=RESETS)[0], ours(x, resets=RESETS)[0])
