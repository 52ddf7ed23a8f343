"""A decoder that writes symbols, one after the other: native, as the reference in plain torch, and over torch.nn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from timing import Pass
from torch import nn

from slimrnn import GRU, LSTM, Diagonal, LowRank
from slimrnn.layers import RecurrentStack
from slimrnn.sequence import GREEDY, Decoder, Sampling, Symbols

UNITS, SYMBOLS, EMBEDDING, STEPS = 128, 50, 32, 200
BATCHES = (1, 64)
SLIM = LowRank(24) + Diagonal()
CORES: dict[str, Callable[[str, int], RecurrentStack]] = {
    "GRU dense": lambda backend, width: GRU(width, UNITS, backend=backend),
    "GRU low-rank 24+diagonal": lambda backend, width: GRU(width, UNITS, structure=SLIM, backend=backend),
    "LSTM dense": lambda backend, width: LSTM(width, UNITS, backend=backend),
}
RIVALS: dict[str, Callable[[int], nn.RNNBase]] = {
    "GRU dense": lambda width: nn.GRU(width, UNITS),
    "LSTM dense": lambda width: nn.LSTM(width, UNITS),
}
WAYS = {"greedy": GREEDY, "sampled": Sampling()}


def endless(core: Callable[[int], RecurrentStack | nn.RNNBase]) -> Decoder:
    """A decoder that never chooses to end, so that every pass has as many steps."""
    made = Decoder(core, Symbols(SYMBOLS, EMBEDDING))
    with torch.no_grad():
        made.output.readout.bias[-1] = -1e9
    return made


def contestants(name: str) -> dict[str, Decoder]:
    """The same decoder three ways; torch.nn has dense layers only."""
    found = {backend: endless(partial(CORES[name], backend)) for backend in ("auto", "reference")}
    return found | ({"torch.nn": endless(RIVALS[name])} if name in RIVALS else {})


def decoding_pass(decoder: Decoder, batch: int, how: Sampling, steps: int) -> Pass:
    """`batch` sequences of `steps` symbols."""
    generator = torch.Generator().manual_seed(0)
    return lambda: decoder.generate(how=how, batch=batch, max_length=steps, generator=generator)
