"""Forward and backward passes of slimrnn's layers beside torch.nn's: milliseconds, ratios and recurrent parameters.

All layers take turns in every round and the best round of each counts. The ratio is to the rival, the torch.nn layer
with the same cell and number of units (modReLU and a complex state, which torch.nn lacks, meet its tanh).
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass

import torch
from torch import nn

from slimrnn import GRU, LSTM, RNN, BlockDiagonal, Diagonal, Kronecker, LowRank, summary


@dataclass
class Entry:
    name: str
    layer: nn.Module
    rival: str = ""  # name of the torch.nn layer
    best: float = math.inf  # seconds

    @property
    def backend(self) -> str:
        return self.layer.backend if isinstance(self.layer, GRU | LSTM | RNN) else "torch"

    @property
    def recurrent(self) -> int:
        if isinstance(self.layer, nn.RNNBase):
            return sum(p.numel() for name, p in self.layer.named_parameters() if name.startswith("weight_hh"))
        return sum(layer.recurrent for layer in summary(self.layer).layers)


def entries(m: int, n: int) -> list[Entry]:
    """The layers that exist at this size: some structures need a divisible one."""
    slim = LowRank(min(24, n)) + Diagonal()
    found = [
        Entry("nn.GRU", nn.GRU(m, n)),
        Entry("GRU Dense()", GRU(m, n), "nn.GRU"),
        Entry(f"GRU {slim}, reset before", GRU(m, n, structure=slim, reset="before"), "nn.GRU"),
        Entry("nn.LSTM", nn.LSTM(m, n)),
        Entry("LSTM Dense()", LSTM(m, n), "nn.LSTM"),
        Entry(f"LSTM {slim}", LSTM(m, n, structure=slim), "nn.LSTM"),
        Entry("nn.RNN tanh", nn.RNN(m, n)),
        Entry("RNN Dense(), tanh", RNN(m, n), "nn.RNN tanh"),
    ]
    if n % 8 == 0:
        blocks = BlockDiagonal(8)
        found.insert(6, Entry(f"LSTM {blocks}", LSTM(m, n, structure=blocks), "nn.LSTM"))
    if n > 1 and n & (n - 1) == 0:
        factors = Kronecker([2] * (n.bit_length() - 1))
        found.append(Entry(f"RNN {factors}, tanh", RNN(m, n, structure=factors), "nn.RNN tanh"))
        unitary = RNN(m, n, nonlinearity="modrelu", structure=factors)
        found.append(Entry(f"RNN {factors}, modrelu, complex", unitary, "nn.RNN tanh"))
    return found


def time_pass(layer: nn.Module, x: torch.Tensor) -> float:
    start = time.perf_counter()
    output, _ = layer(x)
    torch.autograd.backward(output.sum())
    elapsed = time.perf_counter() - start
    layer.zero_grad()
    return elapsed


def measure(found: list[Entry], x: torch.Tensor, repeats: int) -> None:
    for _ in range(repeats + 1):  # the first is the slowest and warms up
        for entry in found:
            entry.best = min(entry.best, time_pass(entry.layer, x))


def table(found: list[Entry]) -> str:
    best = {entry.name: entry.best for entry in found}
    rows = [("layer", "backend", "ms", "ratio", "rival", "recurrent parameters")]
    for entry in found:
        ratio = f"{entry.best / best[entry.rival]:.2f}" if entry.rival else ""
        milliseconds, count = f"{1000 * entry.best:.1f}", f"{entry.recurrent:,}"
        rows.append((entry.name, entry.backend, milliseconds, ratio, entry.rival, count))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = "<<>><>"
    return "\n".join("   ".join(f"{c:{s}{w}}" for c, s, w in zip(row, sides, widths, strict=True)) for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default, text in (
        ("hidden", 128, "units of the state"),
        ("batch", 20, "sequences"),
        ("length", 100, "steps of a sequence"),
        ("input", 1, "width of the input"),
        ("repeats", 10, "rounds, of which the best counts"),
        ("threads", 1, "threads of torch"),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{text} (default: {default})")
    args = parser.parse_args()
    for name, value in vars(args).items():
        if value < 1:
            parser.error(f"expected --{name} of at least 1, got {value}")
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    found = entries(args.input, args.hidden)
    measure(found, torch.randn(args.length, args.batch, args.input), args.repeats)
    print(f"forward + backward: n={args.hidden} B={args.batch} T={args.length} m={args.input} threads={args.threads}")
    print(table(found))


if __name__ == "__main__":
    main()
