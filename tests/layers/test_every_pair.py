"""Properties of layers with any cell and any structure."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from registry import BACKENDS, CELLS, FEW_PAIRS, SIZE, STRUCTURES, numbers, randomise_
from slimrnn.layers import RecurrentStack

INPUT = 4
LENGTHS = torch.tensor([3, 5, 1, 5])
few_pairs = pytest.mark.parametrize(("cell", "structure"), FEW_PAIRS)
backends = pytest.mark.parametrize("backend", BACKENDS)


def build(cell: str, structure: str, *args: Any, **options: Any) -> RecurrentStack:
    return randomise_(CELLS[cell].build(INPUT, SIZE, *args, structure=STRUCTURES[structure], **options), 0.1)


def leaves(state: Any) -> list[Tensor]:
    return list(state) if isinstance(state, tuple) else [state]


def close(actual: Any, expected: Any) -> None:
    torch.testing.assert_close(leaves(actual), leaves(expected), rtol=1e-11, atol=1e-11)


@backends
@few_pairs
def test_gradcheck(cell: str, structure: str, backend: str) -> None:
    stack = CELLS[cell].build(2, SIZE, structure=STRUCTURES[structure], learn_initial_state=True, backend=backend)
    randomise_(stack, 0.1)
    x = numbers(2, 1, 2).requires_grad_()
    parameters = [p for p in stack.parameters() if p.requires_grad]

    def run(x: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
        output, last = stack(x)
        return (output, *leaves(last))

    assert torch.autograd.gradcheck(run, (x, *parameters), fast_mode=True)


@backends
@few_pairs
def test_step_by_step_is_the_whole_sequence(cell: str, structure: str, backend: str) -> None:
    stack = build(cell, structure, num_layers=2, backend=backend)
    x = numbers(5, 3, INPUT)
    output, last = stack(x)
    state: Any = stack.initial_state(3)
    pieces = []
    for x_t in x:
        y_t, state = stack.step(x_t, state)
        pieces.append(y_t)
    close(torch.stack(pieces), output)
    close(state, last)


@backends
@few_pairs
def test_padded_packed_and_lengths_agree(cell: str, structure: str, backend: str) -> None:
    stack = build(cell, structure, num_layers=2, bidirectional=True, backend=backend)
    x = numbers(5, 4, INPUT)
    output, last = stack(x, lengths=LENGTHS)
    packed_output, packed_last = stack(pack_padded_sequence(x, LENGTHS, enforce_sorted=False))
    close(pad_packed_sequence(packed_output)[0], output)
    close(packed_last, last)
    for b, length in enumerate(LENGTHS.tolist()):  # each sequence alone, without any padding
        alone_output, alone_last = stack(x[:length, b])
        close(output[:length, b], alone_output)
        close([part[:, b] for part in leaves(last)], leaves(alone_last))
        assert torch.all(output[length:, b] == 0)


@backends
@few_pairs
def test_bidirectional_is_two_layers_by_hand(cell: str, structure: str, backend: str) -> None:
    both = build(cell, structure, bidirectional=True, backend=backend)
    single = build(cell, structure, backend=backend)
    x = numbers(5, 3, INPUT)
    output, last = both(x)
    halves = []
    for direction in range(2):
        single.layers[0] = both.layers[direction]
        y, h = single(x.flip(0) if direction else x)
        halves.append(y.flip(0) if direction else y)
        close([part[direction] for part in leaves(last)], [part[0] for part in leaves(h)])
    close(output, torch.cat(halves, -1))


@backends
@few_pairs
def test_a_sequence_cut_in_two_with_the_state_handed_on(cell: str, structure: str, backend: str) -> None:
    stack = build(cell, structure, num_layers=2, backend=backend)
    x = numbers(6, 2, INPUT)
    whole, last = stack(x)
    first, state = stack(x[:2])
    second, state = stack(x[2:], state)
    close(torch.cat([first, second]), whole)
    close(state, last)


@few_pairs
def test_state_dict_round_trips(cell: str, structure: str) -> None:
    a, b = (build(cell, structure, num_layers=2, bidirectional=True, weight_norm=True) for _ in range(2))
    x = numbers(3, 2, INPUT)
    assert not torch.equal(a(x)[0], b(x)[0])
    b.load_state_dict(a.state_dict(), strict=True)
    assert torch.equal(a(x)[0], b(x)[0])


@few_pairs
def test_recurrent_matrices_drive_the_state(cell: str, structure: str) -> None:
    stack = build(cell, structure, num_layers=2)
    matrices = stack.recurrent_matrices()
    assert len(matrices) == 2
    for k, w in enumerate(matrices):
        assert w.shape == (stack.cell.matrices, SIZE, SIZE)
        assert torch.equal(w, stack.layer(k).recurrent.dense())
    assert torch.isfinite(stack.penalty())
    assert stack.penalty().dim() == 0
