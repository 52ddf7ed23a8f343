"""The copy problem at T = 1000: a Kronecker Recurrent Unit with 5 K parameters beside an LSTM and a GRU with over 50 K.

Ten symbols have to be recalled in order after a thousand blank steps. A net without memory can do no better than guess
them: a cross-entropy of 10 ln 8 / (T + 20). All nets see the same sequences; the KRU's recurrent factors stay what they
are at the start, a random unitary matrix (Jose, Cissé, Fleuret 2018, §4.1).
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import tyro
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from slimrnn.plotting import COLORS, GREY, save, styled
from slimrnn.tasks import Contestant, CopyTask, comparison_table, draw_comparison, load_run
from slimrnn.training import Config, ModelConfig, OptimConfig, Run, train

NETS = {
    "KRU": (
        ModelConfig("rnn", 128, "kronecker", factors=(2,) * 7, nonlinearity="modrelu"),
        OptimConfig("rmsprop", 2e-3, recurrent_rate=0.0, clip_norm=1.0, schedule="cosine"),
    ),
    "LSTM": (ModelConfig("lstm", 128), OptimConfig("rmsprop", 2e-3, clip_norm=1.0, schedule="cosine")),
    "GRU": (ModelConfig("gru", 128), OptimConfig("rmsprop", 2e-3, clip_norm=1.0, schedule="cosine")),
}
LETTERS = "ABCDEFGH ?"  # the eight symbols, the blank, and the delimiter, which is never an answer


def main(length: int = 1000, updates: int = 500, seed: int = 0, out: Path = Path("out/demo")) -> None:
    """Train the three nets, then print a table and save a picture.

    Args:
        length: blank steps between reading and recalling
        updates: updates of each net, with 20 sequences each
        seed: of the initial weights and of the data
        out: directory of the runs and the picture
    """
    contestants = []
    for name, (model, optim) in NETS.items():
        directory = out / name.lower()
        if (directory / "run.json").exists():  # of the demo before this one
            shutil.rmtree(directory)
        config = Config(
            CopyTask(length),
            model,
            optim,
            updates=updates,
            valid_size=50,
            test_size=200,
            eval_every=max(1, updates // 40),
            checkpoint_every=updates,
            seed=seed,
            out=directory,
            tensorboard=False,
        )
        print(f"{name}, {updates} updates")
        result = train(config)
        contestants.append(Contestant(name, Run(directory)))
        if result.ended == "interrupted":
            break
    print(f"\n{comparison_table(contestants)}\n")
    print(f"picture: {draw(contestants, out / 'copy-memory.png')}")


def draw(contestants: Sequence[Contestant], path: Path) -> Path:
    """How the nets learned, and what they recall of one sequence that they have never seen."""
    figure = Figure(figsize=(8.6, 7.6), dpi=150)
    learning, recall = figure.subplots(2, 1, height_ratios=[5, 3], gridspec_kw={"hspace": 0.6, "right": 0.78})
    draw_comparison(learning, contestants, "cross-entropy")
    steps = contestants[0].run.config["task"]["length"]
    styled(
        learning,
        f"Recalling ten symbols after {steps:,} blank steps",
        "the lower the better; all nets see the same data",
    )
    draw_answers(recall, contestants)
    styled(recall, "The answers to one test sequence", "filled: right; empty: wrong; without a letter: blank")
    recall.set_axis_off()
    save(figure, path)
    return path


def draw_answers(axes: Axes, contestants: Sequence[Contestant]) -> None:
    """A row of ten squares with the symbols to recall, and one with the answers of each net."""
    config = contestants[0].config
    batch = config.task.samples("test", config.seed).fetch(np.zeros(1, dtype=np.int64))
    wanted = batch.targets[-10:, 0].tolist()
    rows = [("shown", "in all tests", "#3a3a3a", wanted)]
    for one, color in zip(contestants, COLORS, strict=False):
        net, _ = load_run(one.run.directory)
        with torch.no_grad():
            answers = net(batch.inputs)[0][-10:, 0].argmax(-1).tolist()
        rows.append((one.name, f"{one.score('test', 'recall_accuracy'):.1%} right", color, answers))
    for y, (name, score, color, symbols) in enumerate(rows):
        axes.text(0, y, name, color=color, fontsize=13, weight="bold", va="center")
        axes.text(11.7, y, score, color=color, fontsize=12, va="center")
        for x, (symbol, right) in enumerate(zip(symbols, wanted, strict=True), start=1):
            face, ink = (color, "white") if symbol == right else ("white", GREY)
            axes.scatter(x + 1, y, s=540, marker="s", facecolor=face, edgecolor=color, clip_on=False)
            axes.text(x + 1, y, LETTERS[symbol], color=ink, fontsize=13, weight="bold", ha="center", va="center")
    axes.set(xlim=(0, 11.4), ylim=(len(rows) - 0.4, -0.6))


if __name__ == "__main__":
    tyro.cli(main)
