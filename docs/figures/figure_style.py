"""The style of all figures of the documentation, as slimrnn.training.plots."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from PIL import Image

from slimrnn.plotting import GREY

LEGEND: dict[str, Any] = {
    "loc": "best",
    "fontsize": 10.5,
    "frameon": False,
    "labelcolor": "linecolor",
    "handlelength": 1.5,
}


def two_panels(widths: Sequence[float] = (1, 1), sharey: bool = False) -> tuple[Figure, tuple[Axes, Axes]]:
    figure = Figure(figsize=(10, 4.2), dpi=130, layout=ConstrainedLayoutEngine(w_pad=0.15))
    left, right = figure.subplots(1, 2, width_ratios=widths, sharey=sharey)
    return figure, (left, right)


def styled(axes: Axes, title: str, subtitle: str, xlabel: str, ylabel: str) -> None:
    axes.set_title(title, loc="left", fontsize=14, weight="bold", pad=26)
    axes.annotate(subtitle, (0, 1), (0, 10), "axes fraction", "offset points", color=GREY, fontsize=10.5)
    axes.set_xlabel(xlabel, fontsize=11)
    axes.set_ylabel(ylabel, fontsize=11)
    axes.tick_params(labelsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e8e8e8", linewidth=0.8)
    axes.set_axisbelow(True)


def save(figure: Figure, path: Path) -> None:
    """With a palette of 96 colors, which is a third of the size and looks the same."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", bbox_inches="tight", pad_inches=0.15)
    Image.open(drawn).convert("RGB").quantize(96).save(path, optimize=True)
