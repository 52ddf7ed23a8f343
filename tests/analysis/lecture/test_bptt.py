"""The lecture's equations of BPTT against autograd, our own layer, finite differences and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from slimrnn import GRU, RNN, Diagonal, LowRank
from slimrnn.analysis import BPTT, elman_bptt, layer_bptt

STEPS, BATCH, INPUTS, HIDDEN, CLASSES = 7, 3, 2, 5, 4
WEIGHTS = ("U", "W", "V", "b", "c")


def a_net(batch: int | None, seed: int = 0) -> dict[str, Any]:
    """Random weights large enough to saturate some units, a sequence or a batch, and a state to start from."""
    random = np.random.default_rng(seed)
    lead = () if batch is None else (batch,)
    return {
        "U": random.normal(size=(HIDDEN, INPUTS)),
        "W": random.normal(size=(HIDDEN, HIDDEN)),
        "V": random.normal(size=(CLASSES, HIDDEN)),
        "b": random.normal(size=HIDDEN),
        "c": random.normal(size=CLASSES),
        "x": random.normal(size=(STEPS, *lead, INPUTS)),
        "targets": random.integers(CLASSES, size=(STEPS, *lead)),
        "h0": random.normal(size=(*lead, HIDDEN)),
    }


def in_torch(net: dict[str, Any]) -> tuple[Tensor, dict[str, Tensor]]:
    """The same net in torch operations: its loss, and its leaves, states and outputs with their gradients."""
    nodes = {name: torch.tensor(net[name], requires_grad=True) for name in (*WEIGHTS, "h0")}
    h, states = nodes["h0"], []
    for x_t in torch.tensor(net["x"]):
        h = torch.tanh(nodes["b"] + h @ nodes["W"].mT + x_t @ nodes["U"].mT)
        h.retain_grad()
        states.append(h)
    outputs = [nodes["c"] + h @ nodes["V"].mT for h in states]
    for output in outputs:
        output.retain_grad()
    targets = torch.tensor(net["targets"])
    loss = cross_entropy(torch.stack(outputs).flatten(0, -2), targets.flatten(), reduction="sum")
    loss.backward()
    gradients = {name: node.grad for name, node in nodes.items()}
    gradients["h"] = torch.stack([h.grad for h in states if h.grad is not None])
    gradients["o"] = torch.stack([o.grad for o in outputs if o.grad is not None])
    return loss.detach(), {name: grad for name, grad in gradients.items() if grad is not None}


def close(result: object, expected: object) -> None:
    np.testing.assert_allclose(np.asarray(result), np.asarray(expected), rtol=0, atol=1e-10)


@pytest.mark.parametrize("batch", [None, BATCH])
def test_every_gradient_is_autograds(batch: int | None) -> None:
    net = a_net(batch)
    ours = elman_bptt(**net)
    loss, gradients = in_torch(net)
    close(ours.loss, loss)
    assert gradients.keys() == {*WEIGHTS, "h0", "h", "o"}
    for name, gradient in gradients.items():
        close(getattr(ours, f"grad_{name}"), gradient)


@pytest.mark.parametrize("batch", [None, BATCH])
@pytest.mark.parametrize("name", [*WEIGHTS, "h0"])
def test_gradients_are_finite_differences(name: str, batch: int | None) -> None:
    net, step = a_net(batch, seed=1), 1e-5
    gradient = getattr(elman_bptt(**net), f"grad_{name}")
    for place in np.ndindex(gradient.shape):
        moved = np.zeros_like(gradient)
        moved[place] = step
        up, down = (elman_bptt(**{**net, name: net[name] + sign * moved}).loss for sign in (1, -1))
        assert gradient[place] == pytest.approx((up - down) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("backend", ["auto", "reference"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_gradients_are_those_of_our_layer(batch_first: bool, backend: str) -> None:
    torch.manual_seed(2)
    rnn = RNN(INPUTS, HIDDEN, batch_first=batch_first, backend=backend, learn_initial_state=True, dtype=torch.float64)
    readout = nn.Linear(HIDDEN, CLASSES, dtype=torch.float64)
    for parameter in rnn.parameters():
        nn.init.normal_(parameter)
    x = torch.randn(STEPS, BATCH, INPUTS, dtype=torch.float64)
    targets = torch.randint(CLASSES, (STEPS, BATCH))
    if batch_first:
        x, targets = x.transpose(0, 1), targets.T
    ours = layer_bptt(rnn, readout, x, targets)
    output, _ = rnn(x)
    loss = cross_entropy(readout(output).flatten(0, 1), targets.flatten(), reduction="sum")
    loss.backward()
    close(ours.loss, loss.detach())
    close(ours.h, output.detach().transpose(0, 1) if batch_first else output.detach())
    layer = rnn.layer(0)
    pairs = {
        "W": layer.recurrent.get_parameter("weight"),
        "U": layer.input.get_parameter("weight"),
        "b": layer.cell.get_parameter("bias"),
        "V": readout.weight,
        "c": readout.bias,
    }
    for name, weight in pairs.items():
        assert weight.grad is not None
        close(getattr(ours, f"grad_{name}"), weight.grad.reshape(getattr(ours, f"grad_{name}").shape))
    start = layer.get_parameter("initial").grad  # one state, which every sequence of the batch starts from
    assert start is not None
    close(ours.grad_h0.sum(0), start[0])


def test_structured_layer_gets_the_gradient_of_its_matrix() -> None:
    """∇_W of the matrix, carried on to the diagonal of LowRank + Diagonal, is what autograd gives that diagonal."""
    torch.manual_seed(3)
    rnn = RNN(INPUTS, HIDDEN, bias=False, structure=LowRank(2) + Diagonal(), dtype=torch.float64)
    readout = nn.Linear(HIDDEN, CLASSES, bias=False, dtype=torch.float64)
    x, targets = torch.randn(STEPS, INPUTS, dtype=torch.float64), torch.randint(CLASSES, (STEPS,))
    ours = layer_bptt(rnn, readout, x, targets, torch.ones(1, HIDDEN))
    output, _ = rnn(x, torch.ones(1, HIDDEN, dtype=torch.float64))
    cross_entropy(readout(output), targets, reduction="sum").backward()
    (diagonal,) = (p for p in rnn.layer(0).recurrent.parameters() if p.numel() == HIDDEN)
    assert diagonal.grad is not None
    close(np.diag(ours.grad_W), diagonal.grad.flatten())


@pytest.mark.parametrize("batch", [None, BATCH])
def test_contributions_of_the_steps_sum_to_the_whole(batch: int | None) -> None:
    net = a_net(batch)
    result = elman_bptt(**net)
    assert result.grad_W_at.shape == (STEPS, HIDDEN, HIDDEN)
    close(result.grad_W_at.sum(0), in_torch(net)[1]["W"])
    close(result.losses.sum(), result.loss)


def test_contribution_of_a_step_is_the_gradient_of_its_own_copy_of_w() -> None:
    net = a_net(BATCH)
    copies = torch.tensor(net["W"]).repeat(STEPS, 1, 1).requires_grad_()
    h, loss = torch.tensor(net["h0"]), torch.zeros((), dtype=torch.float64)
    weights = {name: torch.tensor(net[name]) for name in WEIGHTS}
    for x_t, targets_t, W_t in zip(net["x"], net["targets"], copies, strict=True):
        h = torch.tanh(weights["b"] + h @ W_t.mT + torch.tensor(x_t) @ weights["U"].mT)
        loss = loss + cross_entropy(weights["c"] + h @ weights["V"].mT, torch.tensor(targets_t), reduction="sum")
    loss.backward()
    close(elman_bptt(**net).grad_W_at, copies.grad)


def test_batch_is_the_sum_of_its_sequences() -> None:
    net = a_net(BATCH)
    whole = elman_bptt(**net)
    alone = [
        elman_bptt(**{**net, "x": net["x"][:, k], "targets": net["targets"][:, k], "h0": net["h0"][k]})
        for k in range(BATCH)
    ]
    for name in ("loss", "grad_W", "grad_W_at", "grad_U", "grad_V", "grad_b", "grad_c"):
        close(sum(getattr(one, name) for one in alone), getattr(whole, name))
    for name in ("losses", "h", "o", "y", "grad_o", "grad_h", "grad_a"):
        close(np.stack([getattr(one, name) for one in alone], 1), getattr(whole, name))
    close(np.stack([one.grad_h0 for one in alone]), whole.grad_h0)


def test_ignored_targets_have_no_loss_as_in_torch() -> None:
    net = a_net(BATCH)
    net["targets"][:-1] = -100  # one output, at the end
    net["targets"][-1, 0] = -100
    result = elman_bptt(**net)
    loss, gradients = in_torch(net)
    close(result.loss, loss)
    for name, gradient in gradients.items():
        close(getattr(result, f"grad_{name}"), gradient)
    assert not result.grad_h[:, 0].any()
    assert not result.losses[:-1].any()


def test_what_lies_behind_a_sequence_has_no_effect() -> None:
    net = a_net(None)
    short = {**net, "x": net["x"][:4], "targets": net["targets"][:4]}
    padded = {**net, "targets": np.where(np.arange(STEPS) < 4, net["targets"], -100)}
    for name in ("loss", *(f"grad_{name}" for name in (*WEIGHTS, "h0"))):
        close(getattr(elman_bptt(**padded), name), getattr(elman_bptt(**short), name))


def test_large_outputs_do_not_overflow() -> None:
    net = a_net(None)
    result = elman_bptt(**{**net, "V": 1e4 * net["V"]})
    assert np.isfinite(result.loss)
    assert all(np.isfinite(getattr(result, f"grad_{name}")).all() for name in WEIGHTS)


def test_the_arrays_given_are_left_alone() -> None:
    net = a_net(None)
    kept = {name: array.copy() for name, array in net.items()}
    result = elman_bptt(**net)
    result.h0[:] = 9
    for name, array in net.items():
        np.testing.assert_array_equal(array, kept[name])


def test_without_h0_the_state_starts_at_zero() -> None:
    net = a_net(BATCH)
    zero = elman_bptt(**{**net, "h0": np.zeros((BATCH, HIDDEN))})
    del net["h0"]
    close(elman_bptt(**net).grad_W, zero.grad_W)


def test_lists_and_tensors_of_any_precision_are_taken() -> None:
    half = {name: torch.tensor(array) for name, array in a_net(None).items()}
    half = {name: t.bfloat16() if t.is_floating_point() else t for name, t in half.items()}
    as_lists = {name: t.tolist() for name, t in half.items()}
    from_tensors, from_lists = elman_bptt(**half), elman_bptt(**as_lists)
    assert isinstance(from_tensors, BPTT)
    assert from_tensors.grad_W.dtype == np.float64
    close(from_tensors.grad_W, from_lists.grad_W)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"W": np.ones((5, 4))}, r"expected W to be a square matrix, got shape \(5, 4\)"),
        ({"W": 1.0}, r"expected W to be a square matrix, got shape \(\)"),
        ({"U": np.ones((4, 2))}, r"expected U of shape \(5, 2\), got \(4, 2\)"),
        ({"U": np.ones(5)}, r"expected U to be a matrix, got shape \(5,\)"),
        ({"V": np.ones((4, 3))}, r"expected V of shape \(4, 5\), got \(4, 3\)"),
        ({"V": [[1.0, 2.0], [3.0]]}, "expected V to be an array, got"),
        ({"b": np.ones((1, 5))}, r"expected b of shape \(5,\), got \(1, 5\)"),
        ({"c": np.ones(5)}, r"expected c of shape \(4,\), got \(5,\)"),
        ({"x": np.ones((7, 3))}, r"expected x of shape \(T, 2\) or \(T, B, 2\), at least one step, got \(7, 3\)"),
        ({"x": np.ones((0, 2))}, r"expected x of .* at least one step, got \(0, 2\)"),
        ({"x": np.full((7, 2), np.nan)}, "expected finite numbers in x, got nan"),
        ({"targets": np.zeros(6, int)}, r"expected targets of shape \(7,\), got \(6,\)"),
        ({"targets": np.full(7, 4)}, "expected targets from 0 to 3, or -100 for no loss, got 4"),
        ({"targets": np.full(7, -1)}, "expected targets from 0 to 3, or -100 for no loss, got -1"),
        ({"h0": np.ones((3, 5))}, r"expected h0 of shape \(5,\), got \(3, 5\)"),
    ],
)
def test_bad_arrays_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        elman_bptt(**{**a_net(None), **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": np.zeros(7)}, "expected targets to be an array of ints, got float64"),
        ({"W": np.ones((5, 5), complex)}, "expected W to be an array of real numbers, got complex128"),
        ({"b": ["a"] * 5}, "expected b to be an array of real numbers, got <U1"),
    ],
)
def test_numbers_of_the_wrong_kind_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        elman_bptt(**{**a_net(None), **changes})


@pytest.mark.parametrize(
    ("rnn", "readout", "message"),
    [
        (RNN(2, 5, nonlinearity="relu"), nn.Linear(5, 4), "expected nonlinearity='tanh', got 'relu'"),
        (RNN(2, 5, 2), nn.Linear(5, 4), "expected one layer in one direction, got num_layers=2 in one direction"),
        (RNN(2, 5, bidirectional=True), nn.Linear(10, 4), "expected one layer .* got num_layers=1 in two directions"),
        (RNN(2, 5, recurrent_dropout=0.5), nn.Linear(5, 4), r"expected eval\(\) with recurrent_dropout.* got training"),
        (RNN(2, 5, weight_drop=0.5), nn.Linear(5, 4), r"expected eval\(\) with weight_drop.* got training"),
        (RNN(2, 5, zoneout=0.5).eval(), nn.Linear(5, 4), "expected an RNN without zoneout.* got 0.5"),
        (RNN(2, 5, leak=0.5), nn.Linear(5, 4), "expected an RNN without leak"),
        (RNN(2, 5, transition_depth=2), nn.Linear(5, 4), "expected an RNN without transition_depth.* got 2"),
        (RNN(2, 5, delays=2), nn.Linear(5, 4), "expected an RNN without delays"),
        (RNN(2, 5, skip=2), nn.Linear(5, 4), "expected an RNN without skip.* got 2"),
        (RNN(2, 5), nn.Linear(6, 4), "expected readout.in_features=5, got 6"),
    ],
)
def test_other_nets_are_refused(rnn: RNN, readout: nn.Linear, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        layer_bptt(rnn, readout, torch.ones(STEPS, 2), torch.zeros(STEPS, dtype=torch.long))


def test_other_modules_are_refused() -> None:
    x, targets, other = torch.ones(STEPS, 2), torch.zeros(STEPS, dtype=torch.long), nn.RNN(2, 5)
    with pytest.raises(TypeError, match=r"expected a slimrnn.RNN, got torch.nn.modules.rnn.RNN"):
        layer_bptt(other, nn.Linear(5, 4), x, targets)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected a slimrnn.RNN, got slimrnn.layers.gru.GRU"):
        layer_bptt(GRU(2, 5), nn.Linear(5, 4), x, targets)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected a torch.nn.Linear, got torch.*Identity"):
        layer_bptt(RNN(2, 5), nn.Identity(), x, targets)  # type: ignore[arg-type]


def test_input_of_the_wrong_shape_is_refused() -> None:
    rnn, readout, targets = RNN(2, 5, batch_first=True), nn.Linear(5, 4), torch.zeros(3, 7, dtype=torch.long)
    with pytest.raises(ValueError, match=r"expected x of shape \(..., 2\).*, got \(3, 7, 1\) and \(3, 7\)"):
        layer_bptt(rnn, readout, torch.ones(3, 7, 1), targets)
    with pytest.raises(ValueError, match=r"expected x .*, and targets of those, got \(3, 7, 2\) and \(7, 3\)"):
        layer_bptt(rnn, readout, torch.ones(3, 7, 2), targets.T)
    with pytest.raises(ValueError, match=r"expected h0 of shape \(1, 3, 5\), got \(3, 5\)"):
        layer_bptt(rnn, readout, torch.ones(3, 7, 2), targets, torch.zeros(3, 5))
