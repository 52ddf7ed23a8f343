"""Context switching: masks on the blocks of a factorized layer (factorized paper §2.2.3)."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import pytest
import torch

from registry import BACKENDS, numbers, randomise_
from slimrnn import GRU, LSTM, RNN, BlockDiagonal, ContextSwitching, Dense
from slimrnn.layers import RecurrentStack

LAYERS: dict[str, Any] = {
    "rnn": RNN,
    "gru": GRU,
    "lstm": LSTM,
    "modrelu": partial(RNN, nonlinearity="modrelu"),
}
every_layer = pytest.mark.parametrize("name", LAYERS)
everywhere = pytest.mark.parametrize("on", ["inputs", "outputs", "both"])


def build(name: str, **options: Any) -> RecurrentStack:
    return randomise_(LAYERS[name](6, 12, structure=BlockDiagonal(3), dtype=torch.float64, **options))


def uniform_(switching: ContextSwitching) -> ContextSwitching:
    torch.nn.init.zeros_(switching.switch.weight)
    torch.nn.init.zeros_(switching.switch.bias)
    return switching


@every_layer
@pytest.mark.parametrize("normalise", ["softmax", "sigmoid"])
def test_a_uniform_mask_is_the_plain_layer_scaled(name: str, normalise: str) -> None:
    layer, x = build(name), numbers(5, 2, 6)
    outputs = uniform_(ContextSwitching(layer, "outputs", normalise=normalise))
    inputs = uniform_(ContextSwitching(layer, "inputs", normalise=normalise))
    both = uniform_(ContextSwitching(layer, "both", normalise=normalise))
    torch.testing.assert_close(outputs(x)[0], layer(x)[0] / 3)
    torch.testing.assert_close(inputs(x)[0], layer(x / 3)[0])
    torch.testing.assert_close(both(x)[0], layer(x / 3)[0] / 3)


@every_layer
@everywhere
@pytest.mark.parametrize("normalise", ["softmax", "sigmoid"])
def test_a_uniform_mask_of_mean_one_is_the_plain_layer(name: str, on: str, normalise: str) -> None:
    layer, x = build(name), numbers(5, 2, 6)
    switching = ContextSwitching(layer, on, normalise=normalise, mean_one=True)
    torch.testing.assert_close(switching.contexts(x).mean(-1), torch.ones(5, 2, dtype=torch.float64))
    assert not torch.allclose(switching(x)[0], layer(x)[0])
    torch.testing.assert_close(uniform_(switching)(x)[0], layer(x)[0])


@every_layer
def test_every_group_of_units_has_blocks_of_its_own(name: str) -> None:
    switching, x = ContextSwitching(build(name, delays=[1, 2])), numbers(5, 2, 6)
    output, plain = switching(x)[0].unflatten(-1, (-1, 6, 2)), switching.layer(x)[0].unflatten(-1, (-1, 6, 2))
    torch.testing.assert_close(output, plain * switching.contexts(x)[..., None, :, None])


@everywhere
@every_layer
def test_masks_reach_their_blocks_alone(name: str, on: str) -> None:
    switching = ContextSwitching(build(name), on)
    torch.nn.init.zeros_(switching.switch.weight)
    with torch.no_grad():
        switching.switch.bias.copy_(torch.tensor([0.0, -800.0, -800.0]))  # the first block alone
    x = numbers(5, 2, 6)
    output, _ = switching(x)
    if on != "inputs":
        blocks = output.unflatten(-1, (-1, 3, 4))
        assert torch.all(blocks[..., 1:, :] == 0)
        assert torch.all(blocks[..., 0, :].abs().sum(-1) > 0)
    if on != "outputs":
        elsewhere = x.clone()
        elsewhere[..., 2:] += 1
        masked = [switching.layer(torch.cat([one[..., :2], torch.zeros(5, 2, 4)], -1))[0] for one in (x, elsewhere)]
        torch.testing.assert_close(masked[0], masked[1])
        expected = masked[0] if on == "inputs" else output
        torch.testing.assert_close(output, expected)


@everywhere
@every_layer
@pytest.mark.parametrize("backend", BACKENDS)
def test_steps_pieces_and_ragged_batches_are_the_sequence(name: str, on: str, backend: str) -> None:
    switching = ContextSwitching(build(name, backend=backend, num_layers=2), on)
    x, state, outputs = numbers(7, 3, 6), None, []
    whole, _ = switching(x)
    for x_t in x:
        y_t, state = switching.step(x_t, state)
        outputs.append(y_t)
    torch.testing.assert_close(torch.stack(outputs), whole)
    first, state = switching(x[:3])
    torch.testing.assert_close(torch.cat([first, switching(x[3:], state)[0]]), whole)
    ragged, _ = switching(x, lengths=[7, 2, 4])
    torch.testing.assert_close(ragged[:2, 1], whole[:2, 1])
    assert torch.all(ragged[2:, 1] == 0)


def test_masks_depend_on_the_past_and_sum_to_one() -> None:
    switching = ContextSwitching(build("gru"), "outputs")
    x = numbers(6, 2, 6)
    masks = switching.contexts(x)
    torch.testing.assert_close(masks.sum(-1), torch.ones(6, 2, dtype=torch.float64))
    changed = x.clone()
    changed[0] += 1
    assert not torch.allclose(switching.contexts(changed)[5], masks[5], rtol=1e-12, atol=1e-12)


def test_extra_cost_is_what_it_adds() -> None:
    layer = build("gru")
    switching = ContextSwitching(layer, "both", auxiliary_size=5)
    total = sum(p.numel() for p in switching.parameters())
    assert switching.extra_parameters == total - layer.num_parameters == 3 * 5 * (5 + 6 + 1) + 5 + 3 * (5 + 1)
    assert switching.extra_macs == 3 * 5 * (5 + 6) + 3 * 5 + 6 + 12


def test_gradients_are_right() -> None:
    switching = ContextSwitching(build("gru"), "both", normalise="sigmoid", auxiliary_size=2)
    x = numbers(3, 2, 6).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: switching(x)[0], (x,), fast_mode=True)
    switching(x)[0].sum().backward()
    assert all(p.grad is not None for p in switching.parameters())


def test_survives_pickling_and_batch_first() -> None:
    switching = ContextSwitching(build("lstm", batch_first=True))
    x = numbers(2, 5, 6)
    copied = pickle.loads(pickle.dumps(switching))
    assert torch.equal(copied(x)[0], switching(x)[0])
    assert switching(x)[0].shape == (2, 5, 12)


@pytest.mark.parametrize(
    ("layer", "options", "message"),
    [
        (GRU(6, 12, structure=Dense()), {}, "expected a layer of structure BlockDiagonal, got Dense"),
        (
            GRU(7, 12, structure=BlockDiagonal(3)),
            {"on": "both"},
            "expected input_size divisible by the 3 blocks",
        ),
        (
            GRU(6, 12, structure=BlockDiagonal(3)),
            {"on": "input"},
            "expected on to be one of 'inputs', ",
        ),
        (GRU(6, 12, structure=BlockDiagonal(3), bidirectional=True), {}, "expected a layer of one direction"),
        (GRU(6, 12, structure=BlockDiagonal(3)), {"auxiliary_size": 0}, "expected auxiliary_size to be at least 1"),
    ],
)
def test_bad_arguments_are_explained(layer: RecurrentStack, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ContextSwitching(layer, **options)


def test_what_is_no_layer_is_refused() -> None:
    with pytest.raises(TypeError, match="expected an RNN, GRU or LSTM, got GRU"):
        ContextSwitching(torch.nn.GRU(3, 4))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected the states of the layer and of the auxiliary net, got Tensor"):
        ContextSwitching(build("gru"))(numbers(2, 1, 6), torch.zeros(1, 1, 12))
