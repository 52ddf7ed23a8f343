"""The style of all figures of a diagnosis: small, so that they are legible on a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slimrnn.plotting import GREY, GRID

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (4.6, 3.3)  # inches; a phone shows it about 1 : 1
INK = "#1f2328"


def new_axes(xlabel: str, ylabel: str) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure  # takes a while, and is only needed here

    figure = Figure(figsize=SIZE, layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    set_style(axes, xlabel, ylabel)
    return figure, axes


def set_style(axes: Axes, xlabel: str, ylabel: str) -> None:
    axes.set_xlabel(xlabel, fontsize=11, color=INK)
    axes.set_ylabel(ylabel, fontsize=11, color=INK)
    axes.tick_params(labelsize=10, colors=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0.02)


def draw_legend(axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        axes.legend(
            handles,
            labels,
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=min(len(labels), 4),
            fontsize=10,
            frameon=False,
            labelcolor="linecolor",
            handlelength=1.1,
            columnspacing=1.2,
            borderaxespad=0.2,
        )


def draw_level(axes: Axes, level: float, text: str) -> None:
    axes.axhline(level, color=GREY, linewidth=1.1, linestyle="--", zorder=1.5)
    axes.annotate(
        text, (1, level), (-3, 3), axes.get_yaxis_transform(), "offset points", color=GREY, fontsize=10, ha="right"
    )
