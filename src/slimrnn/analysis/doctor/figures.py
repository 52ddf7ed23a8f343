"""Figures of a diagnosis, or of two side by side, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from slimrnn.analysis.doctor.captioned_figure import CaptionedFigure
from slimrnn.analysis.doctor.diagnosis import Diagnosis
from slimrnn.analysis.doctor.plots import PLOTS, PlottedLayer
from slimrnn.plotting import COLORS


def layer_figures(
    diagnosis: Diagnosis, compare: Diagnosis | None = None, names: Sequence[str] = ("A", "B")
) -> list[list[CaptionedFigure]]:
    """For each layer its figures; with `compare`, those of both nets' first layers, second layers, ..."""
    groups = []
    for number, pair in enumerate(zip_longest(diagnosis.layers, compare.layers if compare else ())):
        plotted = [
            PlottedLayer(name if compare else "", layer, color)
            for name, layer, color in zip(names, pair, COLORS, strict=False)
            if layer is not None
        ]
        groups.append([captioned for draw in PLOTS if (captioned := draw(plotted, f"layer-{number}")) is not None])
    return groups


def save_figures(
    diagnosis: Diagnosis,
    directory: Path | str,
    compare: Diagnosis | None = None,
    names: Sequence[str] = ("A", "B"),
    *,
    figures: Sequence[Sequence[CaptionedFigure]] | None = None,
) -> list[Path]:
    """All figures as PNG and SVG files; `figures` are those of `layer_figures`, where they have been drawn already."""
    directory, written = Path(directory), []
    directory.mkdir(parents=True, exist_ok=True)
    for group in layer_figures(diagnosis, compare, names) if figures is None else figures:
        for captioned in group:
            for kind in ("png", "svg"):
                path = directory / f"{captioned.name}.{kind}"
                path.write_bytes(captioned.rendered(kind))
                written.append(path)
    return written
