"""Learning curves as pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from slimrnn.plotting import COLORS, GREY, PALE, save, styled
from slimrnn.training.record import Run
from slimrnn.training.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Line:
    """A curve and its name."""

    label: str
    updates: Sequence[float]
    values: Sequence[float]
    color: str | None = None  # by default the next of COLORS
    pale: bool = False  # thin, in the background
    mark: float | None = None  # an update that gets a dot


def plot_run(run: Run, task: Task) -> None:
    """curve.png: the losses of a run, with the task's baselines and the best net."""
    curve, best = run.curve, run.result.best_update if run.result else None
    if not curve:  # somebody removed it
        return
    tests = {f"{split}/loss": "test" if split == "test" else f"test: {split}" for split in task.test_sets}
    lines = [
        Line("validation", curve["update"], curve["valid/loss"], mark=best),
        *(Line(label, curve["update"], curve[name]) for name, label in tests.items()),
        Line("training", curve["update"], curve["train/loss"], PALE, pale=True),
    ]
    subtitle = f"{describe_model(run.config['model'])}: {run.record['parameters']['total']:,} parameters"
    plot_curves(lines, run.directory / "curve.png", describe_task(run.config["task"]), subtitle, task.baselines)


def plot_curves(
    lines: Sequence[Line],
    path: Path,
    title: str,
    subtitle: str = "",
    baselines: Mapping[str, float] | None = None,
    ylabel: str = "loss",
) -> None:
    """Curves over the number of updates, with levels to compare them with."""
    from matplotlib.figure import Figure  # takes a while, and is only needed here

    figure = Figure(figsize=(8, 5), dpi=160)
    axes = figure.add_subplot()
    draw_curves(axes, lines, baselines, ylabel)
    styled(axes, title, subtitle)
    if lines:
        axes.legend(loc="best", fontsize=11.5, frameon=False, labelcolor="linecolor", handlelength=1.5)
    save(figure, path)


def draw_curves(
    axes: Axes, lines: Sequence[Line], baselines: Mapping[str, float] | None = None, ylabel: str = "loss"
) -> None:
    """The curves and levels alone."""
    scale, colors = _scale(lines), iter(COLORS * len(lines))
    for line in lines:
        _draw(axes, line, line.color or next(colors))
    for level in (baselines or {}).values():
        axes.axhline(level, color=GREY, linewidth=1.2, linestyle="--", zorder=1.5)
    axes.set_yscale(scale)
    if scale == "linear":
        axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    axes.set_xlabel("updates", fontsize=12)
    axes.set_ylabel(ylabel, fontsize=12)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.margins(x=0.01)
    for name, level in (baselines or {}).items():
        _label_level(axes, f"{name}: {level:.3g}", level)


def describe_task(task: Mapping[str, object]) -> str:
    """ "adding, length 750"; what is off is left out."""
    words = [str(task["name"]).replace("-", " ")]
    for key, value in task.items():
        if key not in ("name", "class") and value is not False and value is not None:
            words.append(key.replace("_", " ") + ("" if value is True else f" {value}"))
    return ", ".join(words)


def describe_model(model: Mapping[str, object]) -> str:
    """ "GRU, 128 units, low-rank 24 + diagonal"; "modrelu RNN, 512 units, kronecker"."""
    numbers = {"low-rank": model["rank"], "block-diagonal": model["blocks"]}
    terms = [f"{name} {numbers.get(name) or ''}".strip() for name in str(model["structure"]).split("+")]
    layers = "" if model["layers"] == 1 else f"{model['layers']} layers of "
    cell = "highway" if model["cell"] == "highway" else str(model["cell"]).upper()
    kind = f"{model['nonlinearity']} " if cell in ("RNN", "highway") and model["nonlinearity"] != "tanh" else ""
    return f"{kind}{cell}, {layers}{model['hidden']} units, {' + '.join(terms)}"


def _draw(axes: Axes, line: Line, color: str) -> None:
    behind = {"linewidth": 1.4, "zorder": 1.8} if line.pale else {"linewidth": 2.2, "zorder": 2.0}
    axes.plot(line.updates, line.values, color=color, label=line.label, **behind)  # type: ignore[arg-type]
    if line.mark is not None and line.mark in line.updates:
        value = line.values[line.updates.index(line.mark)]
        axes.plot(line.mark, value, "o", color=color, markersize=9, markeredgecolor="white", zorder=3)


def _label_level(axes: Axes, text: str, level: float) -> None:
    """Above or below the level, at the left, in the middle or at the right: wherever the curves leave most room."""
    from matplotlib.patheffects import withStroke

    low, high = axes.get_ylim()  # computes the limits, and with them transData
    pixels, width = axes.figure.dpi / 72, 6.5 * len(text)  # of a point; points of the label
    height = axes.transData.transform((0, min(max(level, low), high)))[1]

    def room(place: tuple[float, float, float]) -> float:
        x, shift, lift = place
        left = axes.bbox.x0 + x * axes.bbox.width + shift * pixels
        return _room(axes, left, width * pixels, height + lift * pixels)

    across = ((0.0, 6.0), (0.5, -width / 2), (1.0, -width - 6))
    x, shift, lift = max(((x, shift, lift) for x, shift in across for lift in (9.0, -10.0)), key=room)
    at = axes.get_yaxis_transform()
    label = axes.annotate(text, (x, level), (shift, lift), at, "offset points", color=GREY, fontsize=11, va="center")
    label.set_path_effects([withStroke(linewidth=3, foreground="white")])  # readable on a curve too


def _room(axes: Axes, left: float, width: float, height: float) -> float:
    """How far the curves are from a label, in pixels."""
    x = np.linspace(left, left + width, 32)
    lines = (line for line in axes.get_lines() if line.get_transform() == axes.transData)  # not the levels
    curves = [curve[np.isfinite(curve).all(1)] for curve in (np.asarray(line.get_xydata(), float) for line in lines)]
    with np.errstate(divide="ignore"):  # zeros on a logarithmic axis
        points = [axes.transData.transform(curve).T for curve in curves if len(curve)]
    return min((float(np.abs(np.interp(x, *curve) - height).min()) for curve in points), default=0.0)


def _scale(lines: Sequence[Line]) -> str:
    """Logarithmic where the values are positive and span more than a decade."""
    values = [value for line in lines for value in line.values if math.isfinite(value)]
    return "log" if values and 0 < min(values) * 20 < max(values) else "linear"
