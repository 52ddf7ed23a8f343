"""The native core equals the emulation in plain torch bit for bit, on every instruction set of this machine."""

from __future__ import annotations

import pytest
import torch
from int8_cases import (
    BATCH,
    EXACT_CELLS,
    EXACT_STRUCTURES,
    INPUT,
    ISAS,
    LENGTHS,
    TIME,
    assert_same_bits,
    emulated,
    in_int8,
    instruction_set,
    made,
)
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from registry import STRUCTURES, needs_library
from slimrnn import GRU, LSTM, BlockDiagonal, Diagonal, LowRank
from slimrnn.ops import calls

pytestmark = [needs_library, pytest.mark.parametrize("isa", ISAS)]
PAIRS = [(cell, "low-rank+diagonal") for cell in EXACT_CELLS]
PAIRS += [(cell, name) for name in EXACT_STRUCTURES for cell in ("gru-before", "lstm")]


@pytest.mark.parametrize(("cell", "structure"), PAIRS)
def test_every_cell_and_structure_has_the_bits_of_the_emulation(isa: str, cell: str, structure: str) -> None:
    q = in_int8(made(cell, structure))
    same, x = emulated(q), torch.randn(TIME, BATCH, INPUT)
    with instruction_set(isa), torch.no_grad():
        whole = q(x)
        assert_same_bits(whole, same(x))
        assert_same_bits(q(x, lengths=LENGTHS), same(x, lengths=LENGTHS))
        state = q.initial_state(BATCH)
        for t in range(TIME):
            y, state = q.step(x[t], state)
            assert_same_bits(y, whole[0][t])
        assert_same_bits(state, whole[1])


@pytest.mark.parametrize("hidden", [1, 7, 16, 33, 130])
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_sizes_that_no_vector_fits(isa: str, hidden: int, batch: int) -> None:
    q = in_int8(GRU(hidden % 9 + 1, hidden))
    x = torch.randn(3, batch, hidden % 9 + 1)
    with instruction_set(isa), torch.no_grad():
        assert_same_bits(q(x), emulated(q)(x))


@pytest.mark.parametrize("blocks", [2, 3, 7])
def test_blocks_that_begin_anywhere(isa: str, blocks: int) -> None:
    q = in_int8(LSTM(4, 42, structure=BlockDiagonal(blocks)))
    x = torch.randn(4, 3, 4)
    with instruction_set(isa), torch.no_grad():
        assert_same_bits(q(x), emulated(q)(x))


def test_stacks_of_two_directions(isa: str) -> None:
    rnn = LSTM(INPUT, 10, 2, bidirectional=True, structure=LowRank(3) + Diagonal(), learn_initial_state=True)
    q = in_int8(rnn)
    same, x = emulated(q), torch.randn(TIME, BATCH, INPUT)
    packed = pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
    with instruction_set(isa), torch.no_grad():
        for options in ({}, {"lengths": LENGTHS}):
            assert_same_bits(q(x, **options), same(x, **options))
        ours, theirs = q(packed), same(packed)
        assert_same_bits((ours[0].data, ours[1]), (theirs[0].data, theirs[1]))


def test_resets_residuals_and_batch_first(isa: str) -> None:
    q = in_int8(GRU(INPUT, 9, 2, batch_first=True, residual=True))
    same, x = emulated(q), torch.randn(BATCH, TIME, INPUT)
    resets = torch.rand(BATCH, TIME) < 0.3
    with instruction_set(isa), torch.no_grad():
        assert_same_bits(q(x, resets=resets), same(x, resets=resets))
        assert_same_bits(q(x[0]), same(x[0]))


def test_tokens_are_their_vectors(isa: str) -> None:
    tokens = torch.randint(0, 4, (TIME, BATCH))
    for options in ({"vocabulary": 4}, {"one_hot": True}):
        q = in_int8(GRU(4, 9, **options))
        same = emulated(q)
        with instruction_set(isa), torch.no_grad():
            found = q(tokens)
            assert_same_bits(found, same(tokens))
            assert_same_bits(found, q(q.vectors(tokens)))
            assert_same_bits(q.step(tokens[0], q.initial_state(BATCH))[0], found[0][0])


def test_threads_change_no_bit(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "ONE_THREAD", 0)
    q = in_int8(GRU(20, 260))
    for batch in (1, 5):
        x = torch.randn(4, batch, 20)
        with instruction_set(isa), torch.no_grad():
            torch.set_num_threads(3)
            try:
                found = q(x)
            finally:
                torch.set_num_threads(1)
            assert_same_bits(found, q(x))


def test_linear_layers(isa: str) -> None:
    q = in_int8(nn.Linear(33, 21))
    same = emulated(q)
    with instruction_set(isa):
        for shape in ((33,), (4, 33), (30, 5, 33)):
            x = torch.randn(shape)
            assert_same_bits(q(x), same(x))


def test_every_exact_structure_is_tested(isa: str) -> None:
    assert set(EXACT_STRUCTURES) <= set(STRUCTURES)


def test_silence_keeps_the_bits_of_subnormal_states(isa: str) -> None:
    q = in_int8(LSTM(3, 8, bias=False))
    x = torch.zeros(400, 1, 3)
    x[0] = 1
    with instruction_set(isa), torch.no_grad():
        output = q(x)[0]
        assert_same_bits(output, emulated(q)(x)[0])
    assert bool(((output != 0) & (output.abs() < torch.finfo(torch.float32).tiny)).any())
