"""The figures of RESULTS.md: `python docs/figures/paper_results.py` writes them beside itself, or into a directory
given, from the curves in results/."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from figure_style import LEGEND, save, styled
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from slimrnn.papers import find_row
from slimrnn.plotting import COLORS, GREY
from slimrnn.training.curve import read_curve
from slimrnn.training.record import Run

RESULTS = Path(__file__).parents[2] / "results"
IMAGES = 55_000  # in the training set of MNIST
NETS = ("KRU", "LSTM", "RNN", "fuRNN", "ueRNN", "LR-GRU")  # each has its color on all figures
BLUE, RED, GREEN = COLORS[:3]
MORE_COLORS = (*COLORS, "#c43c7a", "#1aa3a3")


def main(directory: Path = Path(__file__).parent) -> None:
    figures = {
        "copy": draw_copy,
        "adding": draw_adding,
        "memory": draw_memory,
        "word-copy": draw_word_copy,
        "mnist": draw_mnist,
        "parameters": draw_parameters,
        "ptb": draw_ptb,
    }
    for name, draw in figures.items():
        save(draw(), directory / f"results-{name}.png")


def panels(rows: int, columns: int, height: float = 3.4) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(11, height * rows), dpi=120, layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def curve(row: str, column: str, seed: int = 0) -> tuple[list[float], list[float]]:
    """Updates and scores; nothing where there was no run."""
    name = row if seed == 0 else f"{row}-seed-{seed}"
    columns = read_curve(RESULTS / name / "curve.csv")
    return columns.get("update", []), columns.get(column, [])


def lines(axes: Axes, rows: Mapping[str, str], column: str, colors: Sequence[str] = COLORS, style: str = "-") -> None:
    """Curves of rows by their labels; every further seed thinner."""
    for (label, row), color in zip(rows.items(), colors, strict=False):
        for seed in range(3):
            updates, scores = curve(row, column, seed)
            if updates:
                width, name = (1.9, label) if seed == 0 else (0.9, None)
                axes.plot(updates, scores, style, color=color, linewidth=width, label=name)


def log_of_the_authors(axes: Axes, row: str, color: str, label: str | None = "the authors") -> None:
    updates, scores = zip(*find_row(row).curve, strict=True)
    axes.plot(updates, scores, "o", color=color, markersize=4, label=label)


def level(axes: Axes, value: float, text: str, place: float = 0.99) -> None:
    axes.axhline(value, color=GREY, linewidth=1, linestyle="--", zorder=1)
    transform = axes.get_yaxis_transform()
    align = "right" if place > 0.5 else "left"
    label = axes.annotate(text, (place, value), (0, 3), transform, "offset points", color=GREY, fontsize=9, ha=align)
    label.set_path_effects([withStroke(linewidth=3, foreground="white")])  # readable on a curve too


def finish(axes: Axes, title: str, subtitle: str, ylabel: str, legend: bool = True, **placed: Any) -> None:
    styled(axes, title, subtitle, "updates", ylabel)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlim(left=0)
    is_empty = not axes.get_legend_handles_labels()[0]
    if legend and not is_empty:
        axes.legend(**{**LEGEND, **placed})
    if is_empty:
        axes.text(0.5, 0.5, "not run yet", transform=axes.transAxes, color=GREY, fontsize=11, ha="center", va="center")


def draw_copy() -> Figure:
    figure, both = panels(1, 2, 4.2)
    for axes, length in zip(both, (1000, 2000), strict=True):
        row = find_row(f"copy-{length}-kru")
        axes.set_yscale("log")
        level(axes, row.config.task.baselines["memoryless"], "without memory")
        lines(axes, {net: f"copy-{length}-{net.lower()}" for net in NETS[:5]}, "test/loss")
        finish(axes, f"Copy, T = {length:,}", "128 units (ueRNN: 470), batches of 20", "cross-entropy (test)")
    return figure


def draw_adding() -> Figure:
    figure, four = panels(2, 2, 3.8)
    for axes, length in zip(four, (100, 200, 400, 750), strict=True):
        axes.set_yscale("log")
        level(axes, find_row(f"adding-{length}-kru").config.task.baselines["always 1"], "always 1", 0.01)
        nets = {net: f"adding-{length}-{net.lower()}" for net in NETS}
        ours = {net if not curve(row, "update")[0] else f"_{net}": f"{row}-ours" for net, row in nets.items()}
        lines(axes, ours, "half/loss", style="--")  # a label that begins with _ is not in the legend
        lines(axes, nets, "half/loss")
        axes.set_ylim(top=40 if length == 750 else 8)  # room for the legend
        if length == 750:
            axes.plot(*curve("adding-750-lr-gru", "any/loss"), ":", color=COLORS[5], label="LR-GRU, markers anywhere")
            log_of_the_authors(axes, "adding-750-lr-gru", COLORS[5], "the same, its authors")
        placed: dict[str, Any] = {"loc": "upper right", "ncols": 2 if length == 750 else 3}
        finish(
            axes,
            f"Adding, T = {length}",
            "one marker in each half; dashed: our recipe",
            "squared error (test)",
            **placed,
        )
    return figure


def draw_memory() -> Figure:
    figure, three = panels(1, 3, 4.0)
    tasks = {"500": "N = 500", "danihelka": "1 to 10 symbols, N = 100", "henaff": "lag 1 to 100"}
    for axes, (task, words) in zip(three, tasks.items(), strict=True):
        axes.set_yscale("log")
        plain = f"copy-{task}-lrd-gru"
        nets = {"as it is": plain, "weight norm": f"{plain}-wn"}
        if task == "500":
            nets["without the diagonal"] = "copy-500-lr-gru"
        lines(axes, nets, "test/loss")
        level(axes, 1e-3, "the paper's bound", 0.01)
        if task == "500":
            level(axes, find_row("copy-500-lrd-gru").config.task.baselines["memoryless"], "without memory")
        if task == "danihelka":
            log_of_the_authors(axes, plain, BLUE)
        finish(axes, words, "GRU, 128 units, rank 50 + diagonal", "cross-entropy (test)")
    return figure


def draw_word_copy() -> Figure:
    figure, eight = panels(2, 4, 3.2)
    cases = [(cell, repeats) for cell in ("lstm", "gru") for repeats in (4, 8, 16, 32)]
    for axes, (cell, repeats) in zip(eight, cases, strict=True):
        rows = {kind: f"word-copy-{repeats}-{cell}-{kind}" for kind in ("dense", "factorized")}
        lines(axes, rows, "test/loss", (RED, BLUE))
        first = repeats == 4
        finish(axes, f"{cell.upper()}, {repeats} repeats", "", "cross-entropy" if first else "", first)
    return figure


def draw_mnist() -> Figure:
    figure, (left, right) = panels(1, 2, 4.4)
    slow = {
        "GRU 128": "gru-128",
        "LRD-GRU 128, rank 24": "lrd-gru-128-24",
        "LSTM 128": "lstm",
        "GRU 256, 4 blocks": "block-gru-256-4",
    }
    lines(left, {label: f"permuted-mnist-{row}" for label, row in slow.items()}, "valid/accuracy")
    log_of_the_authors(left, "permuted-mnist-lr-gru-128-24", GREY, "LR-GRU 128, rank 24: its authors")
    finish(left, "Permuted MNIST, the papers' settings", "batches of 20", "accuracy (validation)")
    quick = {label: f"{row}-quick" for label, row in slow.items() if row != "block-gru-256-4"} | {
        "LR-GRU 128, rank 24": "lr-gru-128-24-quick",
        "LRD-GRU 64, rank 24": "lrd-gru-64-24-quick",
        "KRU 512": "kru-quick",
        "ueRNN 512, batches of 20": "uernn-quick",
        "fuRNN 512, the same, three epochs": "furnn-quick",
    }
    rows = {label: f"permuted-mnist-{row}" for label, row in quick.items()}
    lines(right, rows, "valid/accuracy", MORE_COLORS)
    finish(right, "Permuted MNIST, our recipe", "Adam with a cosine, batches of 50", "accuracy (validation)")
    left.set_ylim(0, 1)
    right.set_ylim(0.8, 0.97)
    return figure


PUBLISHED = {  # permuted MNIST elsewhere: parameters and test accuracy
    "UnICORNN 35 K": (35_000, 0.978),
    "LEM": (68_000, 0.966),
    "LMU": (102_000, 0.972),
    "coRNN": (134_000, 0.973),
    "UnICORNN 135 K": (135_000, 0.984),
    "parallel LMU": (165_000, 0.985),
}


def point(label: str, row: str) -> tuple[str, tuple[int, float]]:
    """Label with the number of epochs; trained parameters, and the mean accuracy over the seeds."""
    names = [row, *(f"{row}-seed-{seed}" for seed in (1, 2))]
    runs = [Run(RESULTS / name) for name in names if (RESULTS / name / "run.json").exists()]
    accuracies = [run.result.score("test", "accuracy") for run in runs if run.result is not None]
    config = find_row(row).config
    epochs = config.updates * config.batch_size // IMAGES
    return f"{label}, {epochs} epochs", (runs[0].record["parameters"]["trainable"], mean(accuracies))


def draw_parameters() -> Figure:
    """Test accuracy on permuted MNIST over trained parameters: runs by our recipe."""
    figure, (axes,) = panels(1, 1, 4.6)
    nets = {
        "Legendre memory": "mnist-12k-legendre",
        "UnICORNN, 3 layers": "mnist-12k-unicornn",
        "LEM 50": "mnist-12k-lem",
        "coRNN 74": "mnist-12k-cornn",
        "fuRNN 70": "mnist-12k-furnn",
        "KRU 512": "permuted-mnist-kru-quick",
        "LRD-GRU 64": "permuted-mnist-lrd-gru-64-24-quick",
        "LRD-GRU 128": "permuted-mnist-lrd-gru-128-24-quick",
        "GRU 128": "permuted-mnist-gru-128-quick",
        "LSTM 128": "permuted-mnist-lstm-quick",
    }
    points = dict(point(label, row) for label, row in nets.items())
    for found, color, label in ((points, BLUE, "ours"), (PUBLISHED, GREY, "published elsewhere")):
        axes.plot(*zip(*found.values(), strict=True), "o", color=color, label=label)
        for name, place in found.items():
            below, left = name.startswith("UnICORNN, 3"), name == "UnICORNN 135 K"  # other labels are close to these
            place_of_text = (-7 if left else 7, -10 if below else -3)
            align = "right" if left else "left"
            axes.annotate(name, place, place_of_text, textcoords="offset points", color=color, fontsize=9, ha=align)
    axes.set_xscale("log")
    styled(axes, "Permuted MNIST", "by trained parameters", "trained parameters", "accuracy (test)")
    axes.set_xlim(8_000, 250_000)
    axes.legend(**{**LEGEND, "loc": "lower right"})
    return figure


def draw_ptb() -> Figure:
    figure, (axes,) = panels(1, 1, 4.6)
    nets = {
        "GRU 1000 (3.2 M parameters)": "ptb-gru-1000",
        "low-rank 64 + diagonal, 1000 (0.59 M)": "ptb-lrd-gru-1000-64",
        "the same, tied (0.46 M)": "ptb-lrd-gru-tied-1000-64",
        "low-rank 128 + diagonal, 3298 (3.2 M)": "ptb-lrd-gru-3298-128",
        "KRU 512 (72 recurrent parameters)": "ptb-kru",
        "RNN 256": "ptb-rnn",
        "LSTM 128": "ptb-lstm",
        "fuRNN 128": "ptb-furnn",
    }
    lines(axes, nets, "test/perplexity", MORE_COLORS)
    level(axes, 2.92, "low-rank 64 + diagonal of the paper: 2.92", 0.6)
    finish(axes, "Penn Treebank characters", "without dropout", "perplexity per character (test)")
    axes.set_ylim(2.7, 6)
    return figure


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
