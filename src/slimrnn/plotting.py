"""The colours and the style of all figures. matplotlib itself is imported by whoever draws."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slimrnn._disk import disk_errors, whole_file
from slimrnn.errors import RunDirectoryError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#0b6bcb", "#c8553d", "#2a8c5a", "#8a5bb5", "#b8860b", "#3a3a3a")
GREY, PALE, GRID = "#666666", "#9db4cc", "#e8e8e8"


def styled(axes: Axes, title: str, subtitle: str = "") -> None:
    """Title, subtitle, ticks, spines and grid of a figure. A $ in a user's name is no math."""
    shown = textwrap.fill(title[:1].upper() + title[1:], 52)
    axes.set_title(shown, loc="left", fontsize=16, weight="bold", pad=30, parse_math=False)
    at: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(subtitle, (0, 1), (0, 12), **at, color=GREY, fontsize=12, parse_math=False)
    axes.tick_params(labelsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)


def label_ends(axes: Axes, ends: Sequence[tuple[str, float, str]]) -> None:
    """Labels at the right ends of curves, instead of a legend. An end is a text (a second line has details), the last
    value of its curve and a colour. Labels that would overlap are moved apart."""
    low, high = axes.get_ylim()  # computes the limits, and with them transData
    at_end, to_points, free = axes.get_yaxis_transform(), 72 / axes.figure.dpi, -math.inf
    for text, last, color in sorted(ends, key=lambda end: end[1]):
        name, _, detail = text.partition("\n")
        value = min(max(last, low), high)
        height = (axes.transData.transform((0, value))[1] - axes.bbox.y0) * to_points
        below = 24 if detail else 9
        lift = max(free + below, 15 if detail else 0, height) - height  # details stay above the axis
        free = height + lift + 9
        style: dict[str, Any] = {"xycoords": at_end, "textcoords": "offset points", "color": color, "va": "center"}
        style["parse_math"] = False  # a name of the user's may have a $
        axes.annotate(name, (1, value), (7, lift), fontsize=13, weight="bold", **style)
        axes.annotate(detail, (1, value), (7, lift - 15), fontsize=11, **style)


def save(figure: Figure, path: Path) -> None:
    """Write a figure atomically, in the format that the file name ends in."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix[1:], bbox_inches="tight", pad_inches=0.2)
    with disk_errors(RunDirectoryError, "write", path), whole_file(path) as file:
        file.write(drawn.getvalue())
