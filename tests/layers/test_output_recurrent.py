"""Output recurrence: one definition, computed in parallel, by the native core, or step by step."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor

from registry import BACKENDS, numbers
from slimrnn import Dense, Diagonal, LowRank, OutputRecurrent, Structure

STRUCTURES: dict[str, Structure | None] = {"none": None, "dense": Dense(), "low-rank+diagonal": LowRank(2) + Diagonal()}
every_structure = pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)


def build(structure: Structure | None, **options: Any) -> OutputRecurrent:
    net = OutputRecurrent(4, 7, 3, hidden_recurrence=structure, dtype=torch.float64, **options)
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.3 * torch.randn_like(p))
    return net


def one_by_one(net: OutputRecurrent, x: Tensor, targets: Tensor | None = None) -> Tensor:
    """The equations, step by step, with plain matrices."""
    through = net._through
    (r,), v = through.prepare()
    u, bias = net.layer.input.dense()[0], net.layer.cell.input_bias()
    assert bias is not None
    w = net.layer.recurrent.dense()[0] - r @ v
    h, fed, outputs = x.new_zeros(x.shape[1], 7), x.new_zeros(x.shape[1], 3), []
    for t in range(len(x)):
        h = torch.tanh(x[t] @ u.T + fed @ r.T + h @ w.T + bias[0])
        outputs.append(h @ v.T + net.output_bias)
        fed = outputs[-1] if targets is None else targets[t]
    return torch.stack(outputs)


@every_structure
@pytest.mark.parametrize("backend", BACKENDS)
def test_free_running_is_the_equation(structure: Structure | None, backend: str) -> None:
    net, x = build(structure, backend=backend), numbers(8, 3, 4)
    torch.testing.assert_close(net(x)[0], one_by_one(net, x), rtol=1e-10, atol=1e-10)


@every_structure
@pytest.mark.parametrize("backend", BACKENDS)
def test_teacher_forcing_at_once_is_step_by_step(structure: Structure | None, backend: str) -> None:
    net, x, y = build(structure, backend=backend), numbers(8, 3, 4), numbers(8, 3, 3)
    forced, state = net(x, targets=y)
    torch.testing.assert_close(forced, one_by_one(net, x, y), rtol=1e-10, atol=1e-10)
    assert torch.equal(state[1], y[-1])
    found = [torch.autograd.grad(o.square().sum(), list(net.parameters())) for o in (forced, one_by_one(net, x, y))]
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-10)


@every_structure
@pytest.mark.parametrize("feedback", [None, lambda o: o.softmax(-1)], ids=["linear", "softmax"])
def test_steps_and_pieces_are_the_sequence(structure: Structure | None, feedback: Any) -> None:
    net, x = build(structure, feedback=feedback), numbers(8, 3, 4)
    whole, end = net(x)
    state, outputs = None, []
    for x_t in x:
        output, state = net.step(x_t, state)
        outputs.append(output)
    torch.testing.assert_close(torch.stack(outputs), whole)
    first, state = net(x[:3])
    rest, state = net(x[3:], state)
    torch.testing.assert_close(torch.cat([first, rest]), whole)
    torch.testing.assert_close(state, end)


@every_structure
def test_a_linear_feedback_taken_step_by_step_is_the_same(structure: Structure | None) -> None:
    net, x = build(structure), numbers(8, 3, 4)
    stepwise = copy.deepcopy(net)
    stepwise.feedback = lambda o: o
    for lengths in (None, [8, 2, 5]):
        torch.testing.assert_close(net(x, lengths=lengths), stepwise(x, lengths=lengths))


@every_structure
def test_ragged_is_one_by_one(structure: Structure | None) -> None:
    net, x, y = build(structure), numbers(8, 3, 4), numbers(8, 3, 3)
    for targets in (None, y):
        padded, end = net(x, targets=targets, lengths=[8, 2, 5])
        for b, length in enumerate([8, 2, 5]):
            piece = slice(b, b + 1)
            forced = None if targets is None else targets[:length, piece]
            alone, alone_end = net(x[:length, piece], targets=forced)
            torch.testing.assert_close(padded[:length, piece], alone)
            assert torch.all(padded[length:, piece] == 0)
            torch.testing.assert_close(tuple(part[piece] for part in end), alone_end)


def test_only_the_output_comes_back_without_hidden_recurrence() -> None:
    net = build(None)
    with torch.no_grad():
        net._through.get_parameter("left").zero_()  # R = 0
    x = numbers(5, 2, 4)
    changed = x.clone()
    changed[:4] += 1
    torch.testing.assert_close(net(x)[0][4], net(changed)[0][4])


def test_batch_first_pickling_and_copies() -> None:
    net, x = build(Dense(), batch_first=True), numbers(2, 5, 4)
    output, _ = net(x)
    assert output.shape == (2, 5, 3)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(other(x)[0], output)
        with torch.no_grad():
            for p in other.parameters():
                p.mul_(0.5)
        y = numbers(2, 5, 3)
        torch.testing.assert_close(
            other(x, targets=y)[0], one_by_one(other, x.transpose(0, 1), y.transpose(0, 1)).transpose(0, 1)
        )


def test_gradients_are_right() -> None:
    net, x = build(Dense()), numbers(4, 2, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: net(x)[0], (x,), fast_mode=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: OutputRecurrent(4, 7, 0), "expected output_size to be at least 1, got 0"),
        (lambda: OutputRecurrent(4, 7, 3, nonlinearity="modrelu"), "expected nonlinearity to be one of"),
        (lambda: build(None)(numbers(5, 2, 3)), "expected input of width input_size=4, got 3"),
        (lambda: build(None)(numbers(5, 2, 4), targets=numbers(4, 2, 3)), r"expected targets of shape \(5, 2\)"),
        (
            lambda: build(None)(numbers(5, 2, 4), (numbers(1, 7), numbers(1, 3))),
            r"expected an initial state of shape \(2, 7\), got \(1, 7\)",
        ),
        (
            lambda: build(Dense()).step(numbers(2, 4), (numbers(2, 7), numbers(2, 4))),
            r"expected an initial state of shape \(2, 3\), got \(2, 4\)",
        ),
        (
            lambda: build(None)(numbers(5, 2, 4), numbers(2, 7, 1)[0]),
            "expected the state and the output .*, got Tensor",
        ),
    ],
)
def test_bad_input_is_explained(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@every_structure
@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("feedback", [None, torch.tanh])
def test_autocast_leaves_the_recurrence_alone(structure: Structure | None, forced: bool, feedback: Any) -> None:
    torch.manual_seed(0)
    net = build(structure, feedback=feedback).float()
    x, targets = numbers(6, 2, 4).float(), numbers(6, 2, 3).float() if forced else None
    expected, states = net(x, targets=targets)
    one, state = net.step(x[0])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, found = net(x, targets=targets)
        first, after = net.step(x[0])
    for a, b in zip((output, *found, first, *after), (expected, *states, one, *state), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
