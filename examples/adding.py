"""The adding problem: a dense GRU beside a low-rank plus diagonal one with as large a state and far fewer parameters.

A sequence holds uniform numbers and two markers, one in each half; after the last step the net names the sum of the
two marked numbers. Always predicting 1 has a mean squared error of 1/6. Both nets see the same batches, in turn.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import NoReturn

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from slimrnn import GRU, Diagonal, LowRank, summary

BASELINE, SOLVED = 1 / 6, 0.01
TEST_SEQUENCES, MEASUREMENTS = 1000, 40
COLORS, GREY = ("#c8553d", "#0b6bcb"), "#666666"


class Run:
    """One net in training, its seconds of training so far and its learning curve: (updates, test error)."""

    def __init__(self, name: str, rnn: GRU, updates: int) -> None:
        self.name, self.backend = name, rnn.backend
        self.net = nn.ModuleDict({"rnn": rnn, "readout": nn.Linear(rnn.output_size, 1)})
        self.parameters = summary(self.net)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-2)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, updates)
        self.seconds = 0.0
        self.curve: list[tuple[int, float]] = []

    def error(self, x_TBI: Tensor, target_B: Tensor) -> Tensor:
        output_TBH, _ = self.net["rnn"](x_TBI)
        prediction_B = self.net["readout"](output_TBH[-1]).squeeze(-1)
        return nn.functional.mse_loss(prediction_B, target_B)

    def update(self, x_TBI: Tensor, target_B: Tensor) -> None:
        start = time.perf_counter()
        self.optimizer.zero_grad()
        torch.autograd.backward(self.error(x_TBI, target_B))
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimizer.step()
        self.schedule.step()
        self.seconds += time.perf_counter() - start

    @torch.no_grad()
    def measure(self, update: int, x_TBI: Tensor, target_B: Tensor) -> None:
        self.curve.append((update, float(self.error(x_TBI, target_B))))

    @property
    def solution(self) -> tuple[int, float] | None:
        """The first point of the curve at which the problem is solved."""
        return next((point for point in self.curve if point[1] < SOLVED), None)


def draw(length: int, batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sequences (length, batch, 2) of numbers and markers, and the sums of the marked numbers."""
    numbers = torch.rand(length, batch, generator=generator)
    first = torch.randint(0, length // 2, (1, batch), generator=generator)
    second = torch.randint(length // 2, length, (1, batch), generator=generator)
    markers = torch.zeros(length, batch).scatter_(0, torch.cat([first, second]), 1.0)
    return torch.stack([numbers, markers], -1), (numbers * markers).sum(0)


def build(hidden: int, rank: int, updates: int, seed: int) -> tuple[Run, Run]:
    """The two nets; both start with update gates that lean towards keeping the state."""
    torch.manual_seed(seed)
    dense = Run("dense", GRU(2, hidden, update_bias=1.0), updates)
    torch.manual_seed(seed)
    slim = GRU(2, hidden, structure=LowRank(rank) + Diagonal(), reset="before", update_bias=1.0)
    return dense, Run(f"rank {rank} + diagonal", slim, updates)


def train(runs: tuple[Run, Run], length: int, batch: int, updates: int, seed: int) -> None:
    """Update both nets on each fresh batch; an interrupt ends training and keeps the results."""
    generator = torch.Generator().manual_seed(seed)
    test = draw(length, TEST_SEQUENCES, generator)
    measured_at = {round(k * updates / MEASUREMENTS) for k in range(MEASUREMENTS + 1)}
    start, update = time.perf_counter(), 0
    try:
        for update in range(updates + 1):
            data = draw(length, batch, generator)
            for run in runs:
                if update:
                    run.update(*data)
                if update in measured_at:
                    run.measure(update, *test)
            show_progress(runs, update, updates, time.perf_counter() - start)
    except KeyboardInterrupt:
        print(f"\nstopped after {update} of {updates} updates", flush=True)
        for run in runs:
            run.measure(update, *test)


def show_progress(runs: tuple[Run, Run], update: int, updates: int, elapsed: float) -> None:
    """On a terminal one line that is rewritten, elsewhere a line for every tenth of the way."""
    errors = ", ".join(f"{run.name} {run.curve[-1][1]:.4f}" for run in runs)
    left = f"   {elapsed / update * (updates - update):.0f} s left" if update else ""
    line = f"{update / updates:4.0%}   test error: {errors}{left}"
    if sys.stdout.isatty():
        print(f"\r{line}\x1b[K", end="" if update < updates else "\n", flush=True)
    elif update * 10 // updates > (update - 1) * 10 // updates:
        print(line, flush=True)


def table(runs: tuple[Run, Run]) -> str:
    """The nets side by side, and the second relative to the first."""
    rows: list[tuple[str, list[float | None], str]] = [
        ("recurrent parameters", [run.parameters.layers[0].recurrent for run in runs], ",.0f"),
        ("all parameters", [run.parameters.total for run in runs], ",.0f"),
        (f"training time in seconds ({runs[0].backend} backend)", [run.seconds for run in runs], ".1f"),
        (f"updates to a test error below {SOLVED}", [run.solution and run.solution[0] for run in runs], ",.0f"),
        (f"test error (always predicting 1: {BASELINE:.3f})", [run.curve[-1][1] for run in runs], ".5f"),
    ]
    lines = [("", *(run.name for run in runs), "ratio")]
    for label, (dense, slim), style in rows:
        shown = ("never" if value is None else format(value, style) for value in (dense, slim))
        lines.append((label, *shown, f"{slim / dense:.2f}" if dense and slim is not None else ""))
    a, b, c, d = (max(map(len, column)) for column in zip(*lines, strict=True))
    return "\n".join(f"{label:{a}}   {dense:>{b}}   {slim:>{c}}   {ratio:>{d}}" for label, dense, slim, ratio in lines)


def plot(runs: tuple[Run, Run], length: int, hidden: int, path: Path) -> None:
    """Both learning curves on a logarithmic scale, with a dot where a net first has solved the problem."""
    figure = Figure(figsize=(8, 5), dpi=160)
    axes = figure.add_subplot(yscale="log")
    axes.set_xlabel("updates", fontsize=12)
    axes.set_ylabel("mean squared error on the test set", fontsize=12)
    for run, color in zip(runs, COLORS, strict=True):
        label = f"{run.name}: {run.parameters.layers[0].recurrent:,} recurrent parameters"
        axes.plot(*zip(*run.curve, strict=True), color=color, linewidth=2.2, label=label)
        if run.solution:
            axes.plot(*run.solution, "o", color=color, markersize=10, markeredgecolor="white", zorder=3)
    place = axes.get_yaxis_transform()
    for level, text in ((BASELINE, f"always predicting 1: {BASELINE:.3f}"), (SOLVED, f"solved: below {SOLVED}")):
        axes.axhline(level, color=GREY, linewidth=1.2, linestyle="--", zorder=1.5)
        axes.annotate(text, (1, level), (-4, 4), place, "offset points", color=GREY, fontsize=11, ha="right")
    axes.set_title("Adding two marked numbers", loc="left", fontsize=16, weight="bold", pad=30)
    subtitle = f"sequences of {length} steps, two GRUs with {hidden} units each"
    axes.annotate(subtitle, (0, 1), (0, 12), "axes fraction", "offset points", color=GREY, fontsize=12)
    axes.legend(loc="upper right", fontsize=11.5, frameon=False, labelcolor="linecolor", handlelength=1.5)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.tick_params(labelsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e8e8e8", linewidth=0.8)
    axes.margins(x=0.01)
    axes.set_axisbelow(True)
    figure.savefig(path, bbox_inches="tight", pad_inches=0.2)


class OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def parse() -> argparse.Namespace:
    parser = OneLineParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options = {
        "length": (50, 2, "steps of a sequence"),
        "hidden": (128, 1, "units of each net"),
        "rank": (8, 1, "rank of the slim net's recurrent matrices, at most --hidden"),
        "updates": (600, 1, "updates of each net"),
        "batch": (50, 1, "sequences in an update"),
        "seed": (0, 0, "seed of the initial weights and of the data"),
    }
    for name, (default, _, text) in options.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{text} (default: {default})")
    parser.add_argument("--out", type=Path, default=Path("out/adding.png"), help="the plot (default: %(default)s)")
    args = parser.parse_args()
    for name, (_, least, _) in options.items():
        if getattr(args, name) < least:
            parser.error(f"expected --{name} of at least {least}, got {getattr(args, name)}")
    if args.rank > args.hidden:
        parser.error(f"expected --rank of at most --hidden {args.hidden}, got {args.rank}")
    if args.out.suffix not in (".png", ".pdf", ".svg"):
        parser.error(f"expected --out to end in .png, .pdf or .svg, got {args.out}")
    return args


def main() -> None:
    args = parse()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # products this small gain nothing from a second one
    print(f"adding problem of {args.length} steps, two GRUs with {args.hidden} units, {args.updates} updates")
    runs = build(args.hidden, args.rank, args.updates, args.seed)
    train(runs, args.length, args.batch, args.updates, args.seed)
    print(f"\n{table(runs)}\n")
    plot(runs, args.length, args.hidden, args.out)
    print(f"learning curves: {args.out}")


if __name__ == "__main__":
    main()
