"""The figures of docs/analysis-gates.md: `python docs/figures/theory.py` writes them beside itself, or into a directory
given."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from figure_style import LEGEND, save, styled, two_panels
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from slimrnn import GRU, LSTM, RNN, FullUnitary
from slimrnn.analysis import gaussian_information, linear_capacity, measure_gates, memory_capacity
from slimrnn.layers import RecurrentStack
from slimrnn.plotting import COLORS, GREY

Array = NDArray[np.float64]

BLUE, RED, GREEN = COLORS[:3]
DARK = COLORS[-1]
UNITS, INPUTS = 32, 8


def net(make: type[RecurrentStack], **options: Any) -> RecurrentStack:
    torch.manual_seed(0)
    build: Any = make
    built: RecurrentStack = build(INPUTS, UNITS, dtype=torch.float64, **options)
    return built


def noise(steps: int, batch: int) -> Tensor:
    return torch.tensor(np.random.default_rng(0).normal(size=(steps, batch, INPUTS)))


# --- memory of the state ----------------------------------------------------------------------------------


def distances(layer: RecurrentStack, steps: int = 60, small: float = 1e-6) -> Array:
    """How far two runs on the same inputs are apart whose states differ by `small` at first, relative to that; the
    median of 20 sequences."""
    x = noise(200 + steps, 20)
    with torch.no_grad():
        _, state = layer(x[:200])
        states = state if isinstance(state, tuple) else (state,)
        change = [torch.randn_like(part) for part in states]
        size = torch.stack([part.abs().square().sum(-1) for part in change]).sum(0).sqrt().unsqueeze(-1)
        moved = tuple(part + small * move / size for part, move in zip(states, change, strict=True))
        ends = [layer(x[200:], given if len(given) > 1 else given[0])[0] for given in (states, moved)]
    return np.asarray(np.median(torch.linalg.vector_norm(ends[0] - ends[1], dim=-1) / small, axis=1))


def draw_range() -> Figure:
    figure, (falls, curve) = two_panels(widths=(1, 1))
    nets = {
        "unitary, modReLU": (net(RNN, nonlinearity="modrelu", structure=FullUnitary()), GREEN),
        "GRU, update_bias 3": (net(GRU, update_bias=3.0), DARK),
        "GRU": (net(GRU), BLUE),
        "LSTM": (net(LSTM), RED),
    }
    for name, (layer, color) in nets.items():
        falls.plot(distances(layer), color=color, linewidth=2.2, label=name)
    falls.set_yscale("log")
    falls.set_ylim(1e-8, 1e1)
    styled(falls, "What is left of a change", "of the state; 32 units, inputs are noise", "steps after it", "")
    falls.legend(**{**LEGEND, "loc": "center right", "bbox_to_anchor": (1, 0.6)})
    draw_curve(curve)
    return figure


def draw_curve(axes: Axes) -> None:
    """r² of the inputs before: a linear net by its closed form and measured, and gated nets."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(UNITS, UNITS)))[0]
    lags = 60
    exact = linear_capacity(0.97 * turn, np.ones(UNITS), lags)
    axes.plot(exact.r2[:, 0], color=GREEN, linewidth=2.2, label=f"0.97 · orthogonal, linear: {exact.total:.0f} in all")
    for name, make, color in (("GRU", GRU, BLUE), ("LSTM", LSTM, RED)):
        torch.manual_seed(0)
        build: Any = make
        found = memory_capacity(build(1, UNITS), lags=lags)
        axes.plot(found.r2[:, 0], color=color, linewidth=2.2, label=f"{name}, untrained: {found.total:.1f}")
    styled(axes, "Memory capacity", "r² of decoding the input k steps before; 32 units", "lag k", "")
    axes.set_ylim(-0.03, 1.05)
    axes.legend(**{**LEGEND, "loc": "upper right"})


# --- gates and channels -----------------------------------------------------------------------------------


def draw_gates() -> Figure:
    figure, (histogram, channels) = two_panels(widths=(1, 1))
    for bias, color in ((0.0, BLUE), (3.0, DARK)):
        gate = measure_gates(net(GRU, update_bias=bias), noise(400, 8), bins=50)[1]
        assert gate.forgetting_time is not None
        share = gate.counts / gate.counts.sum() * len(gate.counts)
        steps = float(np.median(gate.forgetting_time))
        label = f"bias {bias:g}: forgets in {steps:.1f} steps"
        histogram.stairs(share, gate.edges, color=color, linewidth=2.2, label=label)
    for end in (0.1, 0.9):
        histogram.axvline(end, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    styled(
        histogram,
        "Update gates of a GRU",
        "with two initial biases; dashed: saturated beyond",
        "value of the gate",
        "density",
    )
    histogram.legend(**{**LEGEND, "loc": "upper left", "bbox_to_anchor": (0.15, 1)})
    count = np.arange(1, 129)
    channels.plot(count, gaussian_information(count), color=GREEN, linewidth=2.2, label="η = σ in every channel")
    shared = gaussian_information(count, 32 / count)
    channels.plot(count, shared, color=RED, linewidth=2.2, label="32 σ shared by all")
    styled(channels, "Information of Gaussian channels", "prop. 1.4, in nats", "channels", "")
    channels.legend(**{**LEGEND, "loc": "upper left"})
    return figure


FIGURES = {"range": draw_range, "gates": draw_gates}


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        save(draw(), directory / f"theory-{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
