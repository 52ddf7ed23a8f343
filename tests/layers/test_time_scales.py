"""Leaky units, delays and skips through time: what they compute, beside what the registry's suites check."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from registry import BACKENDS, numbers, randomise_
from slimrnn import (
    GRU,
    LSTM,
    RNN,
    BlockDiagonal,
    Dense,
    Diagonal,
    Kronecker,
    Leaky,
    LowRank,
    Structure,
    hidden_size_for,
)
from slimrnn.layers import RecurrentStack

LAYERS: dict[str, Any] = {
    "rnn": RNN,
    "gru": GRU,
    "lstm": LSTM,
    "modrelu": partial(RNN, nonlinearity="modrelu"),
}
SCALES: list[dict[str, Any]] = [{"delays": 3}, {"delays": [1, 2, 4]}, {"skip": 3}]
every_layer = pytest.mark.parametrize("name", LAYERS)
every_scale = pytest.mark.parametrize("options", SCALES, ids=["dilated", "several", "skip"])


def build(name: str, **options: Any) -> RecurrentStack:
    return randomise_(LAYERS[name](4, 12, dtype=torch.float64, **options))


def last_part(state: Any) -> Tensor:
    return torch.cat([part.flatten() for part in (state if isinstance(state, tuple) else (state,))])


@every_layer
@pytest.mark.parametrize("delay", [2, 5, 11])
@pytest.mark.parametrize("backend", BACKENDS)
def test_dilated_is_interleaved_plain_layers(name: str, delay: int, backend: str) -> None:
    dilated = build(name, delays=delay, learn_initial_state=True, backend=backend)
    plain = build(name, learn_initial_state=True, backend=backend)
    plain.load_state_dict(dilated.state_dict())
    x = numbers(10, 3, 4)
    output, _ = dilated(x)
    for lane in range(min(delay, 10)):
        torch.testing.assert_close(output[lane::delay], plain(x[lane::delay])[0], rtol=1e-10, atol=1e-10)


@every_layer
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sequence_has_one_dropout_mask_for_all_its_lanes(name: str, backend: str) -> None:
    stack = build(name, delays=2, recurrent_dropout=0.5, backend=backend)
    output, _ = stack(numbers(1, 3, 4).expand(8, -1, -1))
    torch.testing.assert_close(output[0::2], output[1::2])


@every_scale
def test_recurrent_dropout_of_everything_leaves_the_bias(options: dict[str, Any]) -> None:
    output, _ = build("rnn", recurrent_dropout=1.0, **options)(numbers(8, 3, 4))
    torch.testing.assert_close(output, output[:1].expand_as(output))


def test_inputs_and_states_may_have_rates_of_their_own() -> None:
    x, zeros = numbers(8, 3, 4), torch.zeros(8, 3, 4, dtype=torch.float64)
    blind = build("rnn", recurrent_dropout=(1.0, 0.0))
    torch.testing.assert_close(blind(x), blind(zeros))
    forgetful = build("rnn", recurrent_dropout=(0.0, 1.0))
    torch.testing.assert_close(forgetful(x)[0][-1], forgetful(x[-1:])[0][0])
    with pytest.raises(ValueError, match="expected one recurrent_dropout, or two, of inputs and of h, got 3"):
        build("rnn", recurrent_dropout=(0.1, 0.2, 0.3))


@every_layer
def test_several_delays_are_layers_side_by_side(name: str) -> None:
    stack = build(name, delays=[1, 3], structure=LowRank(2) + Diagonal())
    x, found = numbers(7, 2, 4), []
    for core, delay in zip(stack.cores, (1, 3), strict=True):
        alone = LAYERS[name](4, 6, delays=delay, structure=LowRank(2) + Diagonal(), dtype=torch.float64)
        alone.layers[0] = core
        found.append(alone(x)[0])
    halves = [h.chunk(2, -1) for h in found]
    expected = torch.cat([h[k] for k in (0, 1) for h in halves] if name == "modrelu" else found, -1)
    torch.testing.assert_close(stack(x)[0], expected)


@every_layer
@every_scale
def test_a_sequence_in_pieces_is_the_sequence(name: str, options: dict[str, Any]) -> None:
    stack = build(name, num_layers=2, **options)
    x = numbers(11, 3, 4)
    whole, end = stack(x)
    first, state = stack(x[:2])
    middle, state = stack(x[2:7], state)
    rest, state = stack(x[7:], state)
    torch.testing.assert_close(torch.cat([first, middle, rest]), whole)
    torch.testing.assert_close(last_part(state), last_part(end))


@every_layer
@every_scale
def test_step_by_step_is_the_sequence(name: str, options: dict[str, Any]) -> None:
    stack = build(name, num_layers=2, learn_initial_state=True, **options)
    x, state, outputs = numbers(9, 3, 4), None, []
    for x_t in x:
        y_t, state = stack.step(x_t, state)
        outputs.append(y_t)
    whole, end = stack(x)
    torch.testing.assert_close(torch.stack(outputs), whole)
    torch.testing.assert_close(last_part(state), last_part(end))


@every_layer
@every_scale
@pytest.mark.parametrize("backend", BACKENDS)
def test_ragged_is_one_by_one_in_both_directions(name: str, options: dict[str, Any], backend: str) -> None:
    stack = build(name, bidirectional=True, learn_initial_state=True, backend=backend, **options)
    x, lengths = numbers(9, 4, 4), [9, 1, 4, 6]
    padded, end = stack(x, lengths=lengths)
    for b, length in enumerate(lengths):
        alone, alone_end = stack(x[:length, b])
        torch.testing.assert_close(padded[:length, b], alone)
        assert padded[length:, b].abs().sum() == 0
        for part, one in zip(*(s if isinstance(s, tuple) else (s,) for s in (end, alone_end)), strict=True):
            torch.testing.assert_close(part[:, b], one)


@every_layer
@every_scale
@pytest.mark.parametrize("structure", [Dense(), BlockDiagonal(2), Kronecker([2, 2])], ids=repr)
def test_native_equals_reference(name: str, options: dict[str, Any], structure: Structure) -> None:
    if "skip" in options or options["delays"] == 3:
        structure = Kronecker([3, 4]) if isinstance(structure, Kronecker) else structure
    native = build(name, structure=structure, bidirectional=True, recurrent_dropout=0.3, **options)
    reference = copy.deepcopy(native)
    for core in reference.cores:
        core.backend = "reference"
    x, found = numbers(8, 3, 4).requires_grad_(), []
    for stack in (native, reference):
        torch.manual_seed(1)  # of the dropout
        output, end = stack(x, lengths=[8, 3, 5])
        loss = output.square().sum() + (last_part(end).abs() ** 3).sum()
        found.append((output, last_part(end), *torch.autograd.grad(loss, [x, *stack.parameters()])))
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-10)


@every_scale
def test_gradients_are_right(options: dict[str, Any]) -> None:
    stack = build("gru", learn_initial_state=True, **options)
    x = numbers(5, 2, 4).requires_grad_()

    def run(x: Tensor, *parameters: Tensor) -> Tensor:
        named = dict(zip(dict(stack.named_parameters()), parameters, strict=True))
        output, end = torch.func.functional_call(stack, named, (x,))
        found: Tensor = output.sum(-1) + end.sum()
        return found

    assert torch.autograd.gradcheck(run, (x, *stack.parameters()), fast_mode=True)


def test_skip_adds_its_own_product() -> None:
    stack = build("rnn", skip=2)
    layer, x = stack.layer(0), numbers(6, 4)
    assert layer.skipped is not None
    (w,), (s,), (u,) = (m.dense() for m in (layer.recurrent, layer.skipped, layer.input))
    h, expected = [torch.zeros(12, dtype=torch.float64)] * 2, []
    for x_t in x:
        h = [torch.tanh(u @ x_t + w @ h[0] + s @ h[1] + layer.cell.input_bias()[0]), h[0]]  # type: ignore[index]
        expected.append(h[0])
    torch.testing.assert_close(stack(x)[0], torch.stack(expected))


@every_layer
@pytest.mark.parametrize("backend", BACKENDS)
def test_leak_zero_is_the_plain_cell(name: str, backend: str) -> None:
    plain = build(name, backend=backend)
    leaky = LAYERS[name](4, 12, leak=0.0, dtype=torch.float64, backend=backend)
    leaky.load_state_dict(plain.state_dict(), strict=False)
    x = numbers(6, 3, 4)
    # In the native core a GRU is compiled and a leaky one bytecode: multiplications and additions may round together.
    torch.testing.assert_close(leaky(x)[0], plain(x)[0], rtol=0, atol=1e-14)


def test_leak_is_a_running_average() -> None:
    stack = build("rnn", leak=0.75)
    for p in stack.layer(0).recurrent.parameters():
        nn.init.zeros_(p)  # what the cell gives then depends on the input alone
    x, average = numbers(20, 4), torch.zeros(12, dtype=torch.float64)
    given = torch.tanh(stack.layer(0).input_product(x))[:, 0]
    output, _ = stack(x)
    for y, v in zip(output, given, strict=True):
        average = 0.75 * average + 0.25 * v
        torch.testing.assert_close(y, average)


def test_time_constants_are_spread_and_learned_ones_stay_bounded() -> None:
    fixed = Leaky(time_constants=(1, 100)).values(5)
    torch.testing.assert_close(1 / (1 - fixed), torch.tensor([1, 10**0.5, 10, 10**1.5, 100], dtype=torch.float64))
    leak = Leaky(time_constants=(2, 50), learned=True).build(6, dtype=torch.float64)
    torch.testing.assert_close(leak(), Leaky(time_constants=(2, 50)).values(6))
    longest = Leaky(time_constants=(2, 999), learned=True).build(6, dtype=torch.float64)
    torch.testing.assert_close(longest(), Leaky(time_constants=(2, 999)).values(6), rtol=0, atol=1e-6)
    with torch.no_grad():
        leak.logit.fill_(50)
    assert leak().max() <= 0.999
    assert dict(Leaky((0.1, 0.2)).build(2).named_parameters()) == {}


def test_groups_share_out_the_time_constants() -> None:
    stack = build("gru", delays=[1, 2], leak=Leaky(time_constants=(1, 30)))
    alphas = torch.cat([core.leak() for core in stack.cores if core.leak is not None])
    torch.testing.assert_close(alphas, Leaky(time_constants=(1, 30)).values(12))


def test_transitions_pass_the_state_through_cells_without_input() -> None:
    stack = build("rnn", transition_depth=3)
    layer, x = stack.layer(0), numbers(5, 4)
    h, expected = torch.zeros(12, dtype=torch.float64), []
    for x_t in x:
        for number, (cell, recurrent) in enumerate(layer.transitions):
            z = recurrent.matvec(h)[0] + cell.input_bias()[0]  # type: ignore[index]
            h = torch.tanh(z + (layer.input.dense()[0] @ x_t if number == 0 else 0))
        expected.append(h)
    torch.testing.assert_close(stack(x)[0], torch.stack(expected))
    assert stack.num_parameters == 4 * 12 + 3 * (12 * 12 + 12)


def test_more_transitions_than_the_core_has_room_for_run_in_the_reference() -> None:
    stack, x = build("rnn", transition_depth=17, structure=Diagonal()), numbers(3, 2, 4)
    twin = copy.deepcopy(stack)
    twin.layer(0).backend = "reference"
    torch.testing.assert_close(stack(x)[0], twin(x)[0])


@every_layer
@every_scale
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_batch_may_be_empty(name: str, options: dict[str, Any], backend: str) -> None:
    stack = build(name, **options, bidirectional=True, backend=backend)
    output, last = stack(numbers(5, 0, 4))
    assert output.shape == (5, 0, stack.output_size)
    assert last_part(last).numel() == 0


def test_second_derivatives_of_deep_leaky_layers() -> None:
    stack = build("gru", transition_depth=2, leak=Leaky(0.4, learned=True))
    x = numbers(4, 2, 4).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: stack(x)[0], (x,), fast_mode=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delays": [1, 2, 3, 4, 5]}, "expected hidden_size divisible by the 5 delays, got 12"),
        ({"delays": []}, "expected at least one delay, got none"),
        ({"delays": 0}, "expected delays to be at least 1, got 0"),
        ({"skip": 1}, "expected skip of at least 2"),
        ({"skip": 2, "delays": 2}, "expected skip of at least 2, and delays of 1 with it"),
        ({"skip": 4, "checkpoint_every": 8}, "expected no checkpoint_every with skip"),
        ({"leak": 1.0}, "expected alpha of at least 0 and below 1, got 1.0"),
        ({"leak": float("nan")}, "expected leak to be finite"),
        ({"leak": Leaky((0.1, 0.2))}, "expected 12 values of alpha, one for each unit, got 2"),
        ({"transition_depth": 0}, "expected transition_depth to be at least 1, got 0"),
    ],
)
def test_bad_options_are_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GRU(4, 12, **options)


@pytest.mark.parametrize(
    "options", [{}, {"alpha": 0.5, "time_constants": (1, 2)}, {"time_constants": (5, 2)}, {"time_constants": (0.5, 2)}]
)
def test_bad_leaks_are_explained(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Leaky(**options)


@pytest.mark.parametrize("options", [{"leak": 0.1}, {"delays": 2}, {"skip": 2}, {"transition_depth": 2}])
def test_torch_has_no_such_layers(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"can express, got {next(iter(options))}"):
        GRU(4, 12, **options).to_torch()
    with pytest.raises(ValueError, match=f"can express, got {next(iter(options))}"):
        GRU.from_torch(nn.GRU(4, 12), **options)


def test_the_largest_layer_of_a_budget_has_whole_groups() -> None:
    options: dict[str, Any] = {"delays": [1, 2, 4], "structure": BlockDiagonal(2)}
    n = hidden_size_for(5000, GRU, 4, **options)
    assert n % 6 == 0
    assert GRU(4, n, **options).num_parameters <= 5000 < GRU(4, n + 6, **options).num_parameters
