"""The figure of forecasts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from slimrnn.plotting import COLORS, GREY, save, styled
from slimrnn.tasks.own.naive_forecasts import naive

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from slimrnn.tasks.own.forecast import ForecastTask

MOST_SERIES = 3
MOST_PARTS = 8  # forecasts in a row


def plot_forecasts(task: ForecastTask, model: nn.Module, path: Path) -> None:
    """Up to three series: what was before, the truth, forecasts one after the other with their intervals, and the naive
    forecasts."""
    from matplotlib.figure import Figure  # takes a while, and is only needed here

    count = min(MOST_SERIES, len(task.series))
    figure = Figure(figsize=(9, 1.2 + 3.3 * count), dpi=160)
    for place in range(count):
        axes = figure.add_subplot(count, 1, place + 1)
        _draw(axes, task, model, place)
        sequence, column = divmod(place, len(task.targets))
        name = task.targets[column] + (f", {task.sequences.ids[sequence]}" if len(task.sequences) > 1 else "")
        low, high = task.quantiles[0], task.quantiles[-1]
        subtitle = f"{task.horizon} steps ahead, in the test part; the band is to hold {high - low:.0%} of the values"
        styled(axes, f"Forecast of {name}", subtitle if place == 0 else "")
    figure.tight_layout()
    save(figure, path)


def _draw(axes: Axes, task: ForecastTask, model: nn.Module, number: int) -> None:
    values, ahead = task.series.one(number), task.horizon
    first = int(task.cuts["test"][number]) - 1
    origins = np.arange(first, len(values) - ahead, ahead)[-MOST_PARTS:]
    found = task.forecasts(model, task.series, np.full(len(origins), number), origins)
    guesses = naive(values, origins, ahead, task.base)
    start = max(0, int(origins[0]) - max(2 * ahead, task.reads))
    end = int(origins[-1]) + ahead
    x, label = _axis(task, number)
    axes.plot(x[start : end + 1], values[start : end + 1], color="#3a3a3a", linewidth=1.6, label="truth")
    middle = task.quantiles.index(0.5)
    for place, origin in enumerate(origins):
        steps = x[origin + 1 : origin + 1 + ahead]
        names = ("forecast", "naive") if place == 0 else (None, None)
        axes.fill_between(steps, found[place, :, 0], found[place, :, -1], color=COLORS[0], alpha=0.2, linewidth=0)
        axes.plot(steps, guesses[place], color=GREY, linewidth=1, linestyle="--", label=names[1])
        axes.plot(steps, found[place, :, middle], color=COLORS[0], linewidth=2, label=names[0])
    axes.axvline(x[origins[0]], color=GREY, linewidth=0.8)
    axes.set_xlabel(label, fontsize=11, parse_math=False)
    axes.legend(loc="best", fontsize=10, frameon=False)


def _axis(task: ForecastTask, number: int) -> tuple[NDArray[Any], str]:
    """Times of a series' steps, or else their numbers."""
    sequences, sequence = task.sequences, number // len(task.targets)
    if sequences.times is None:
        return np.arange(sequences.lengths[sequence]), "steps"
    times = sequences.times[sequences.starts[sequence] : sequences.starts[sequence + 1]]
    return times, task.roles.time or "time"
