"""Read-outs of one and two directions, and perceptrons around a layer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from registry import numbers
from slimrnn import GRU, RNN, Deep, ReadOut

LENGTHS = [6, 1, 4]


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("at", ["last", "mean", "max"])
@pytest.mark.parametrize("complex", [False, True])
def test_a_ragged_batch_is_read_as_each_sequence_alone(bidirectional: bool, at: str, complex: bool) -> None:
    options: dict[str, Any] = {"nonlinearity": "modrelu"} if complex else {}
    rnn = RNN(3, 4, bidirectional=bidirectional, dtype=torch.float64, **options)
    readout = ReadOut(rnn, 2, at)
    x = numbers(6, 3, 3)
    together = readout(rnn(x, lengths=LENGTHS)[0], LENGTHS)
    for b, length in enumerate(LENGTHS):
        torch.testing.assert_close(together[b], readout(rnn(x[:length, b])[0]))


def test_last_is_the_state_of_each_direction_when_it_has_seen_everything() -> None:
    rnn = GRU(3, 4, bidirectional=True, dtype=torch.float64)
    readout = ReadOut(rnn, 2, "last")
    output, h_n = rnn(numbers(6, 3, 3), lengths=LENGTHS)
    expected = torch.nn.functional.linear(torch.cat([h_n[0], h_n[1]], -1), readout.weight, readout.bias)
    torch.testing.assert_close(readout(output, LENGTHS), expected)


def test_mean_and_max_are_over_valid_steps() -> None:
    rnn = GRU(3, 4, dtype=torch.float64)
    h: Tensor = rnn(numbers(6, 3, 3), lengths=LENGTHS)[0]
    mean, largest = (ReadOut(rnn, 4, at) for at in ("mean", "max"))
    for readout in (mean, largest):
        torch.nn.init.eye_(readout.weight)
        torch.nn.init.zeros_(readout.bias)
    for b, length in enumerate(LENGTHS):
        torch.testing.assert_close(mean(h, LENGTHS)[b], h[:length, b].mean(0))
        torch.testing.assert_close(largest(h, LENGTHS)[b], h[:length, b].amax(0))


def test_every_step_and_batch_first() -> None:
    rnn = GRU(3, 4, batch_first=True, bidirectional=True, dtype=torch.float64)
    h, _ = rnn(numbers(2, 6, 3))
    assert ReadOut(rnn, 5)(h).shape == (2, 6, 5)
    last = ReadOut(rnn, 5, "last")
    torch.testing.assert_close(last(h)[1], last(h[1]))
    with pytest.raises(ValueError, match=r"expected a layer's output of width 8, got shape \(2, 6, 4\)"):
        last(h[..., :4])
    with pytest.raises(ValueError, match="expected at to be one of 'every', 'last', 'mean', 'max', got 'first'"):
        ReadOut(rnn, 5, "first")


def test_deep_is_perceptron_layer_perceptron() -> None:
    layer = GRU(6, 8, transition_depth=2, dtype=torch.float64)
    net = Deep(3, layer, 2, input_depth=3, output_depth=2)
    x = numbers(5, 2, 3)
    before = net.before.path(x) + net.before.skip(x)  # type: ignore[operator]
    hidden, _ = layer(before)
    expected = net.after.path(hidden) + net.after.skip(hidden)  # type: ignore[misc]
    torch.testing.assert_close(net(x)[0], expected)
    state, outputs = None, []
    for x_t in x:
        y_t, state = net.step(x_t, state)
        outputs.append(y_t)
    torch.testing.assert_close(torch.stack(outputs), expected)


def test_deep_of_depth_one_is_linear_and_zero_is_nothing() -> None:
    layer = GRU(3, 8, dtype=torch.float64)
    net = Deep(3, layer, 2, input_depth=0, output_depth=1)
    x = numbers(5, 2, 3)
    linear: Any = net.after.path[0]
    torch.testing.assert_close(net(x)[0], linear(layer(x)[0]))
    assert net.after.skip is None
    with pytest.raises(ValueError, match="expected a layer of input_size=4 with input_depth=0, got 3"):
        Deep(4, layer, 2, input_depth=0)
    with pytest.raises(TypeError, match="expected an RNN, GRU or LSTM, got Linear"):
        Deep(4, torch.nn.Linear(2, 3), 2)  # type: ignore[arg-type]
