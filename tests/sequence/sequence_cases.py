"""Small decoders that the suites share."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from slimrnn import GRU, LSTM, RNN, BlockDiagonal, Diagonal, LowRank
from slimrnn.layers import ContextSwitching, Deep, OutputRecurrent
from slimrnn.sequence import Decoder, EndSymbol, Gaussian, Halt, PredictedLength, Symbols
from slimrnn.sequence._core import Core

CONTEXT = 3
CORES: dict[str, Callable[[int], Core]] = {
    "gru": lambda width: GRU(width, 6),
    "slim-gru": lambda width: GRU(width, 6, structure=LowRank(2) + Diagonal(), reset="before"),
    "two-lstms": lambda width: LSTM(width, 5, 2),
    "delayed": lambda width: LSTM(width, 4, delays=[1, 2]),
    "skipping": lambda width: GRU(width, 4, skip=3, leak=0.3),
    "switching": lambda width: ContextSwitching(GRU(width, 6, structure=BlockDiagonal(2)), "outputs", auxiliary_size=3),
    "deep": lambda width: Deep(width, RNN(4, 5), 6),
    "output-recurrent": lambda width: OutputRecurrent(width, 5, 4, hidden_recurrence=LowRank(2)),
    "complex": lambda width: RNN(width, 4, nonlinearity="modrelu"),
    "torch-gru": lambda width: nn.GRU(width, 6),
    "torch-lstm": lambda width: nn.LSTM(width, 5, 2),
}
RULES: dict[str, EndSymbol | Halt | PredictedLength] = {
    "end": EndSymbol(),
    "halt": Halt(),
    "predicted": PredictedLength(4),
}
CONTEXTS = ("state", "input", "both")

every_core = pytest.mark.parametrize("core", CORES.values(), ids=CORES)
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
every_context = pytest.mark.parametrize("context", CONTEXTS)


def decoder(
    core: Callable[[int], Core] = CORES["gru"],
    rule: EndSymbol | Halt | PredictedLength | None = None,
    output: Symbols | Gaussian | None = None,
    context: str = "both",
    *,
    sharp: float = 1.0,
    context_size: int = CONTEXT,
) -> Decoder:
    """In double precision; `sharp` scales the weights, so that probabilities are far from equal."""
    output = Symbols(3, 4) if output is None else output
    made = Decoder(core, output, rule, context_size=context_size, context=context).double()  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(sharp)
    return made


def contexts(batch: int) -> Tensor:
    return torch.randn(batch, CONTEXT, dtype=torch.float64)


def all_sequences(symbols: int, longest: int) -> list[tuple[int, ...]]:
    """Every sequence of at most `longest` symbols, also the empty one."""
    return [found for length in range(longest + 1) for found in product(range(symbols), repeat=length)]


def as_batch(sequences: list[tuple[int, ...]]) -> tuple[Tensor, Tensor]:
    """(T, B) symbols with −1 beyond the ends, and the lengths."""
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    padded = torch.full((int(lengths.max()), len(sequences)), -1)
    for b, sequence in enumerate(sequences):
        padded[: len(sequence), b] = torch.tensor(sequence, dtype=torch.long)
    return padded, lengths
