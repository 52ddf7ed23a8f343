"""Scores against parameters and against time, over several budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slimrnn.plotting import COLORS, GREY, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from slimrnn.compression.report import CompressionReport


def pareto_figure(report: CompressionReport) -> Figure:
    """Two panels: the budgets right after the compression, the net before, and the net that was made."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.8))
    panels: Any = figure.subplots(1, 2)
    before, after = report.before, report.after
    parameters = [point.parameters for point in report.points]
    times = [point.sequence_ms for point in report.points]
    scores = [point.score for point in report.points]
    for axes, x, first, last, label in (
        (panels[0], parameters, before.parameters, after.parameters, "parameters of the recurrent layers"),
        (panels[1], times, before.sequence_ms, after.sequence_ms, "ms per sequence of 100 steps, one at a time"),
    ):
        by_cost = sorted(zip(x, scores, strict=True))
        axes.plot(*zip(*by_cost, strict=True), "o-", color=COLORS[0], label="right after, several budgets")
        axes.plot([first], [before.score], "s", color=GREY, markersize=9, label="before")
        name = f"after {report.updates:,} updates" if report.updates else "this model"
        axes.plot([last], [after.score], "*", color=COLORS[1], markersize=16, label=name)
        axes.set_xscale("log")
        axes.set_xlabel(label, fontsize=11)
        styled(axes, f"{report.score_name} against {'time' if axes is panels[1] else 'size'}")
    panels[0].legend(frameon=False, fontsize=11)
    figure.tight_layout()
    return figure
