"""The copy problem at T = 1000: a Kronecker Recurrent Unit with 5 K parameters beside an LSTM and a GRU with over 50 K.

Ten symbols have to be recalled in order after a thousand blank steps. A net without memory can do no better than guess
them: a cross-entropy of 10 ln 8 / (T + 20). All nets see the same sequences; the KRU's recurrent factors stay what they
are at the start, a random unitary matrix (Jose, Cissé, Fleuret 2018, §4.1).
"""

from __future__ import annotations

import shutil
from pathlib import Path

import tyro

from slimrnn.cli.comparison import Contestant, comparison_table, plot_comparison
from slimrnn.tasks import CopyTask
from slimrnn.training import Config, ModelConfig, OptimConfig, Run, train

NETS = {
    "KRU": (
        ModelConfig("rnn", 128, "kronecker", factors=(2,) * 7, nonlinearity="modrelu"),
        OptimConfig("rmsprop", recurrent_rate=0.0, clip_norm=1.0),
    ),
    "LSTM": (ModelConfig("lstm", 128), OptimConfig("rmsprop", clip_norm=1.0)),
    "GRU": (ModelConfig("gru", 128), OptimConfig("rmsprop", clip_norm=1.0)),
}


def main(length: int = 1000, updates: int = 500, seed: int = 0, out: Path = Path("out/demo")) -> None:
    """Train the three nets, then print a table and save a plot.

    Args:
        length: blank steps between reading and recalling
        updates: updates of each net, with 20 sequences each
        seed: of the initial weights and of the data
        out: directory of the runs and the plot
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
    plot = out / "copy-memory.png"
    subtitle = f"after {length:,} blank steps; all nets see the same data"
    plot_comparison(contestants, plot, "Recalling ten symbols", subtitle, "cross-entropy")
    print(f"learning curves: {plot}")


if __name__ == "__main__":
    tyro.cli(main)
