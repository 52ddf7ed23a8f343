"""The figure of docs/choosing.md: `python docs/figures/choosing.py` writes it beside itself, or into a directory
given."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from figure_style import LEGEND, save, styled, two_panels
from matplotlib.axes import Axes

from slimrnn import GRU, LSTM, RNN, BlockDiagonal, Dense, Diagonal, Kronecker, LowRank
from slimrnn.analysis import state_reach
from slimrnn.layers import RecurrentStack
from slimrnn.plotting import COLORS
from slimrnn.structures import Structure

BLUE, RED, GREEN = COLORS[:3]
DARK = COLORS[-1]
STEPS = 150
EXPONENTS = range(4, 13)  # sizes are powers of two


def draw_reach(axes: Axes) -> None:
    """Fresh nets on noise; the largest value of each is one."""
    torch.manual_seed(0)
    x = torch.randn(STEPS, 2, 1)
    blocks, low_rank = BlockDiagonal(4), LowRank(4) + Diagonal()
    nets: dict[str, tuple[RecurrentStack, str]] = {
        "modReLU, Kronecker": (RNN(1, 32, nonlinearity="modrelu", structure=Kronecker([2] * 5)), GREEN),
        "GRU, low rank + diagonal, bias 5": (GRU(1, 32, structure=low_rank, update_bias=5.0), DARK),
        "the same, bias 0": (GRU(1, 32, structure=low_rank), BLUE),
        "LSTM, blocks, bias 0": (LSTM(1, 32, structure=blocks), RED),
    }
    for name, (rnn, color) in nets.items():
        curve = state_reach(rnn, x).curve()
        axes.plot(np.exp(curve - curve.max()), color=color, linewidth=2.2, label=name)
    axes.set_yscale("log")
    axes.set_ylim(1e-6, 3)
    styled(axes, "How far gradients reach", "fresh nets of 32 units on noise", "steps back", "share of their peak")
    axes.legend(**{**LEGEND, "loc": "lower right", "bbox_to_anchor": (1, 0.3)})


def draw_sizes(axes: Axes) -> None:
    """Of one gate."""
    sizes = [2**k for k in EXPONENTS]
    families: dict[str, tuple[list[Structure], str]] = {
        "dense": ([Dense() for _ in sizes], RED),
        "8 blocks": ([BlockDiagonal(8) for _ in sizes], BLUE),
        "rank n/8 + diagonal": ([LowRank(n // 8) + Diagonal() for n in sizes], COLORS[3]),
        "rank 8 + diagonal": ([LowRank(8) + Diagonal() for _ in sizes], DARK),
        "Kronecker, 2 × 2": ([Kronecker([2] * k) for k in EXPONENTS], GREEN),
    }
    for name, (specs, color) in families.items():
        counts = [spec.build(n, device="meta").num_parameters for spec, n in zip(specs, sizes, strict=True)]
        axes.loglog(sizes, counts, color=color, linewidth=2.2, label=name, base=2)
    axes.set_yscale("log", base=10)
    axes.set_xticks([16, 64, 256, 1024, 4096], ["16", "64", "256", "1,024", "4,096"])
    styled(axes, "What a matrix costs", "recurrent numbers of one gate", "units", "")
    axes.legend(**{**LEGEND, "loc": "upper left"})


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    figure, (reach, sizes) = two_panels()
    draw_reach(reach)
    draw_sizes(sizes)
    save(figure, directory / "choosing.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
