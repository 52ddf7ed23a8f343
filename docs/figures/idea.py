"""The idea in one figure: `python docs/figures/idea.py` writes it beside itself, or into a directory given. The
matrices are those of real layers."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from figure_style import save
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpecFromSubplotSpec
from matplotlib.patches import FancyBboxPatch
from numpy.typing import NDArray

from slimrnn import RNN, BlockDiagonal, Dense, Diagonal, FullUnitary, Kronecker, LowRank, Structure, Sum, summary
from slimrnn.plotting import COLORS, GREY

DRAWN, COUNTED = 32, 512  # units of the layers that are drawn, and of those whose numbers are counted
CELLS = {
    "RNN": "$h_t = \\phi(W h_{t-1} + U x_t + b)$",
    "GRU": "$h_t = u \\odot h_{t-1} + (1 - u) \\odot \\tilde{h}$",
    "LSTM": "$c_t = f \\odot c_{t-1} + i \\odot \\tilde{c}$",
}
STRUCTURES: dict[str, tuple[Structure, Structure]] = {  # to draw, to count
    "Dense()": (Dense(), Dense()),
    "BlockDiagonal(4)": (BlockDiagonal(4), BlockDiagonal(4)),
    "LowRank(24)": (LowRank(2), LowRank(24)),
    "LowRank(24) + Diagonal()": (LowRank(2) + Diagonal(), LowRank(24) + Diagonal()),
    "Kronecker([2] * 9)": (Kronecker([2] * 5), Kronecker([2] * 9)),
    "FullUnitary()": (FullUnitary(), FullUnitary()),
}


def main(directory: Path = Path(__file__).parent) -> None:
    torch.manual_seed(3)
    figure = Figure(figsize=(12, 5), dpi=130)
    grid = figure.add_gridspec(1, 2, width_ratios=(1, 2.05), wspace=0.16, left=0, right=1, bottom=0.02, top=0.8)
    draw_cells(figure, grid[0])
    figure.text(0.337, 0.4, "×", fontsize=40, color=GREY, ha="center", va="center")
    figure.text(0, 0.97, "Any cell", fontsize=17, weight="bold", va="center")
    figure.text(0, 0.91, "how the state is updated", fontsize=11.5, color=GREY, va="center")
    figure.text(0.365, 0.97, "Any structure", fontsize=17, weight="bold", va="center")
    words = f"how the recurrent matrix $W$ is stored and multiplied; below, its numbers at {COUNTED} units"
    figure.text(0.365, 0.91, words, fontsize=11.5, color=GREY, va="center")
    tiles = GridSpecFromSubplotSpec(2, 3, grid[1], hspace=0.28, wspace=0.05)
    for place, (name, (drawn, counted)) in enumerate(STRUCTURES.items()):
        count = f"{numbers(counted):,}" + (" (complex factors)" if isinstance(counted, Kronecker) else "")
        draw_matrix(figure, tiles[divmod(place, 3)], name, drawn, count)
    save(figure, directory / "idea.png")


def draw_cells(figure: Figure, place: object) -> None:
    axes = figure.add_subplot(place)  # type: ignore[call-overload]
    axes.set(xlim=(0, 1), ylim=(0, 3))
    axes.axis("off")
    for row, ((name, equation), color) in enumerate(zip(CELLS.items(), COLORS, strict=False)):
        low = 2.08 - row
        box = FancyBboxPatch((0.02, low), 0.9, 0.74, "round,pad=0.02,rounding_size=0.05", color=color, alpha=0.11, lw=0)
        axes.add_patch(box)
        axes.text(0.07, low + 0.52, name, fontsize=15, weight="bold", va="center")
        axes.text(0.07, low + 0.2, equation, fontsize=12.5, va="center")


def draw_matrix(figure: Figure, place: object, name: str, structure: Structure, count: str) -> None:
    axes = figure.add_subplot(place)  # type: ignore[call-overload]
    values = matrix(structure)
    shades = LinearSegmentedColormap.from_list("shades", [COLORS[1], "#ffffff", COLORS[0]])
    most = float(np.quantile(np.abs(values), 0.995))
    axes.imshow(values, cmap=shades, vmin=-most, vmax=most, interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color("#cccccc")
    axes.set_title(name, fontsize=11, family="monospace", loc="center", pad=5)
    axes.set_xlabel(count, fontsize=11.5, color=GREY, labelpad=4)


def matrix(structure: Structure) -> NDArray[np.float64]:
    """Of a layer as it starts, but for a diagonal of 0.4 instead of about 0; the real part where it is complex."""
    found = layer(structure, DRAWN).recurrent_matrices()[0][0].detach().real.double()
    if isinstance(structure, Sum):
        found += 0.4 * torch.eye(DRAWN)
    return np.asarray(found)


def numbers(structure: Structure) -> int:
    """Of one recurrent matrix."""
    return summary(layer(structure, COUNTED)).layers[0].recurrent


def layer(structure: Structure, units: int) -> RNN:
    """Kronecker factors are complex, as in the KRU."""
    return RNN(1, units, structure=structure, nonlinearity="modrelu" if isinstance(structure, Kronecker) else "tanh")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
