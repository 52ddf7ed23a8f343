"""A single sequence on several threads: they share its products, and nothing else changes."""

from __future__ import annotations

import threading

import pytest
import torch
from native_cases import Results, compare, differentiate, start, threads

from registry import CELLS, needs_library, numbers
from slimrnn import GRU, BlockDiagonal, Dense, Structure
from slimrnn.layers.recurrent_layer import RecurrentLayer

pytestmark = needs_library
TIME, INPUT, HIDDEN = 120, 9, 160  # so much that several threads are used


def layer_of(cell: str, structure: Structure) -> RecurrentLayer:
    return CELLS[cell].build(INPUT, HIDDEN, structure=structure, backend="native").layer(0)


def run(layer: RecurrentLayer, count: int, reverse: bool = False) -> Results:
    torch.manual_seed(0)
    x, state = numbers(TIME, 1, INPUT), start(layer, 1)
    with threads(count):
        return differentiate(layer, x, state, torch.tensor([TIME - 3]), reverse)


@pytest.mark.parametrize("structure", [Dense(), BlockDiagonal(2), BlockDiagonal(5)], ids=repr)
@pytest.mark.parametrize("cell", ["lstm-peephole", "gru-before", "gru-after", "modrelu"])
def test_threads_of_one_sequence_change_no_bit(cell: str, structure: Structure) -> None:
    layer = layer_of(cell, structure)
    alone = run(layer, 1, reverse=True)
    for count in (2, 3, 12):
        shared = run(layer, count, reverse=True)
        for name, value in alone.items():
            # The gradient of x is a product by torch, which sums in another order on many threads with AVX-512.
            tolerance = 1e-13 if name == "gradient of x" else 0.0
            torch.testing.assert_close(shared[name], value, rtol=tolerance, atol=tolerance, msg=name)


def test_threads_of_one_sequence_equal_the_reference() -> None:
    layer = layer_of("lstm", Dense())
    shared = run(layer, 2)
    layer.backend = "reference"
    compare(shared, run(layer, 1), 1e-10)


def test_sequences_of_several_python_threads_do_not_disturb_each_other() -> None:
    """Together they ask for more threads than there are cores, so that some have to wait."""
    rnn, x = GRU(INPUT, HIDDEN), torch.randn(6, TIME, 1, INPUT)
    found: list[torch.Tensor | None] = [None] * len(x)

    def work(k: int) -> None:
        for _ in range(5):
            with torch.no_grad():
                found[k] = rnn(x[k])[0]

    with torch.no_grad(), threads(2):
        workers = [threading.Thread(target=work, args=(k,)) for k in range(len(x))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for k, output in enumerate(found):
            assert output is not None
            assert torch.equal(output, rnn(x[k])[0])
