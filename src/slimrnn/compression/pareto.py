"""Scores against parameters and against time, over several budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slimrnn.plotting import COLORS, GREY, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from slimrnn.compression.report import CompressionReport

APART = 1.5  # factor between ticks, at least


def pareto_figure(report: CompressionReport) -> Figure:
    """Two panels: the budgets right after the compression, the net before, and the net that was made."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.6))
    panels: Any = figure.subplots(1, 2, sharey=True)
    before, after = report.before, report.after
    scores = [point.score for point in report.points]
    of_size = [float(point.parameters) for point in report.points], float(before.parameters), float(after.parameters)
    of_time = [point.sequence_ms for point in report.points], before.sequence_ms, after.sequence_ms
    for axes, (x, first, last), label in zip(panels, (of_size, of_time), ("parameters", "ms"), strict=True):
        by_cost = sorted(zip(x, scores, strict=True))
        axes.plot(*zip(*by_cost, strict=True), "o-", color=COLORS[0], label="right after, several budgets")
        axes.plot([first], [before.score], "s", color=GREY, markersize=9, label="before")
        name = f"after {report.updates:,} updates" if report.updates else "this model"
        axes.plot([last], [after.score], "*", color=COLORS[1], markersize=16, label=name)
        axes.set_xscale("log")
        ticks = _ticks([*x, first])
        axes.set_xticks(ticks, [_shown(tick) for tick in ticks])
        axes.set_xticks([], minor=True)
        long = label == "parameters"
        axes.set_xlabel("parameters of the recurrent layers" if long else "ms per sequence of 100 steps", fontsize=11)
        styled(axes, f"Against {'size' if long else 'time'}", report.score_name if long else "")
    panels[0].legend(frameon=False, fontsize=11)
    return figure


def _ticks(values: list[float]) -> list[float]:
    """Some of the values, from the largest down."""
    kept: list[float] = []
    for value in sorted(values, reverse=True):
        if not kept or value * APART <= kept[-1]:
            kept.append(value)
    return kept


def _shown(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"
