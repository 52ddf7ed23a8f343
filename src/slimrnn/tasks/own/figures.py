"""Figures of results on a user's data."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from slimrnn.plotting import COLORS, GREY, save, styled
from slimrnn.tasks.own.label_scores import accuracy, macro_f1
from slimrnn.training.run_files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NUMBERS = 20  # classes whose counts are written into the figure


def write_confusion(counts_CC: Tensor, classes: Sequence[str], path: Path) -> None:
    """A row for each label, a column for each answer."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["label", *classes])
    for name, row in zip(classes, counts_CC.tolist(), strict=True):
        lines.writerow([name, *row])
    write_whole(path, text.getvalue().encode())


def plot_confusion(counts_CC: Tensor, classes: Sequence[str], path: Path, title: str) -> None:
    """Shares of each label's cases as shades of blue, counts as numbers."""
    from matplotlib.figure import Figure  # takes a while, and is only needed here

    shares = (counts_CC / counts_CC.sum(1, keepdim=True).clamp_min(1)).numpy()
    side = min(10.0, max(4.0, 0.55 * len(classes) + 1.5))
    figure = Figure(figsize=(side, side), dpi=160)
    axes = figure.add_subplot()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    ticks = range(0, len(classes), -(-len(classes) // 40))
    names = [_short(classes[tick]) for tick in ticks]
    turn = 0 if max(map(len, names)) < 5 else 60
    axes.set_xticks(ticks, names, rotation=turn, ha="center", fontsize=10, parse_math=False)  # $ is no math in a name
    axes.set_yticks(ticks, names, fontsize=10, parse_math=False)
    axes.set_xlabel("predicted", fontsize=12)
    axes.set_ylabel("label", fontsize=12)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if len(classes) <= MOST_NUMBERS:
        _write_counts(axes, counts_CC, shares)
    total = int(counts_CC.sum())
    subtitle = f"{total:,} for testing: accuracy {accuracy(counts_CC):.1%}, macro F1 {macro_f1(counts_CC):.3f}"
    axes.set_title(title, loc="left", fontsize=15, weight="bold", pad=28, parse_math=False)
    axes.annotate(subtitle, (0, 1), (0, 10), "axes fraction", "offset points", color=GREY, fontsize=11)
    save(figure, path)


def _write_counts(axes: Axes, counts_CC: Tensor, shares: NDArray[np.float32]) -> None:
    for i, row in enumerate(counts_CC.tolist()):
        for j, count in enumerate(row):
            if count:
                color = "white" if shares[i, j] > 0.55 else "black"
                axes.text(j, i, f"{count:,}", ha="center", va="center", fontsize=10, color=color)


def _short(name: str) -> str:
    return name if len(name) <= 14 else f"{name[:13]}…"


def plot_numbers(
    answers: NDArray[np.float64], numbers: NDArray[np.float64], path: Path, title: str, scores: Mapping[str, float]
) -> None:
    """A dot for each sequence; the line is where both are the same."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 6), dpi=160)
    axes = figure.add_subplot()
    low, high = min(answers.min(), numbers.min()), max(answers.max(), numbers.max())
    axes.plot([low, high], [low, high], color=GREY, linewidth=1, linestyle="--", zorder=1)
    axes.scatter(numbers, answers, s=18, color=COLORS[0], alpha=0.6, linewidths=0)
    axes.set_xlabel("true", fontsize=12)
    axes.set_ylabel("predicted", fontsize=12)
    axes.set_aspect("equal", adjustable="box")
    subtitle = f"{len(numbers):,} for testing: MAE {scores['mae']:.4g}, R² {scores['r2']:.3f}"
    styled(axes, title, subtitle)
    save(figure, path)
