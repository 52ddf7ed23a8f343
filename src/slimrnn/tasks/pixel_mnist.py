"""MNIST pixel by pixel: tell a digit after 784 steps of one pixel each (Le, Jaitly & Hinton 2015).

KRU §4.3; low-rank paper §3.0.3. Shape suffixes: T time, B sequences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Integral

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from slimrnn._checks import check_choice
from slimrnn.data.mnist import CLASSES, SIDE, load_mnist_split
from slimrnn.tasks.averages import average
from slimrnn.training import random
from slimrnn.training.config import Config, ModelConfig, OptimConfig
from slimrnn.training.paper import FURNN_RATE, PaperRow
from slimrnn.training.task import Batch, Indices, Samples, Score, Task

STEPS = SIDE * SIDE


@dataclass(frozen=True)
class PixelMnistTask(Task):
    """Tell handwritten digits from their pixels, one a step."""

    permuted: bool = False
    """all images have their pixels in one random order instead of row by row"""
    permutation_seed: int = 0
    """permuted: of that order"""

    name = "pixel-mnist"
    every_step = False
    monitor = "accuracy"
    lower_is_better = False
    input_size = 1
    output_size = CLASSES

    def __post_init__(self) -> None:
        if not isinstance(self.permutation_seed, Integral):
            raise TypeError(f"expected permutation_seed to be an int, got {self.permutation_seed!r}")
        if self.permutation_seed and not self.permuted:
            raise ValueError(f"expected permutation_seed only with permuted, got {self.permutation_seed}")

    @property
    def baselines(self) -> dict[str, float]:
        return {"guessing": math.log(CLASSES)}

    def samples(self, split: str, seed: int) -> Samples:
        """Images in the order of the files; the seed makes no difference."""
        check_choice("split", split, ["train", "valid", *self.test_sets])
        return _Samples(self, split, len(load_mnist_split(split)[0]))

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        losses = functional.cross_entropy(output, batch.targets, reduction="none")
        correct = (output.argmax(-1) == batch.targets).to(output.dtype)
        return {"loss": average(losses, batch.weights), "accuracy": average(correct, batch.weights)}

    @classmethod
    def papers(cls) -> tuple[PaperRow, ...]:
        return (*_kronecker_paper(), *_low_rank_paper(), *_ours())


@dataclass(frozen=True)
class _Samples:
    """Holds no images, so that it is quick to send to a worker."""

    task: PixelMnistTask
    split: str
    size: int

    def fetch(self, indices: Indices) -> Batch:
        images, labels = load_mnist_split(self.split)
        pixels_BT = images[indices].reshape(-1, STEPS)
        if self.task.permuted:
            pixels_BT = pixels_BT[:, _order(self.task.permutation_seed)]
        inputs_TB = np.divide(pixels_BT.T, np.float32(255), dtype=np.float32)
        return Batch(torch.from_numpy(inputs_TB)[..., None], torch.from_numpy(labels[indices].astype(np.int64)))


@lru_cache(maxsize=4)
def _order(seed: int) -> Indices:
    return random.permutation(random.key(seed, "pixel-mnist", "order"), STEPS)


def _row(name: str, paper: str, percent: float, config: Config, note: str = "") -> PaperRow:
    """The paper's test accuracy is the bound."""
    claim, bound = f"test accuracy {percent} %", round(percent / 100, 6)
    return PaperRow(name, paper, claim, config, score="accuracy", bound=bound, direction="at least", note=note)


_KRU = ModelConfig("rnn", 512, "kronecker", factors=(2,) * 9, nonlinearity="modrelu")
_KRONECKER_PAPER = {  # nets, and their test accuracies on plain and permuted images
    "lstm": (ModelConfig("lstm", 128), 97.8, 91.3),
    "uernn": (ModelConfig("rnn", 512, "unitary-product", nonlinearity="modrelu", learn_initial_state=True), 97.5, 93.3),
    "furnn": (ModelConfig("rnn", 512, "full-unitary", nonlinearity="modrelu"), 96.9, 94.1),
    "kru": (_KRU, 95.6, 94.5),
}


def _kronecker_paper() -> list[PaperRow]:
    """KRU §4.3, table 2: the net of the best validation accuracy is tested."""
    config = Config(
        PixelMnistTask(),
        optim=OptimConfig("rmsprop"),
        updates=55_000,
        valid_size=5_000,
        eval_every=2_750,  # an epoch
        checkpoint_every=2_750,
    )
    note = "the paper gives neither batch size nor length of training: batches of 20, twenty epochs"
    # ‖W‖ is the product of nine norms, and over 784 steps its power counts: the factors move slowly and stay unitary.
    kru = replace(config, optim=replace(config.optim, recurrent_rate=0.1, clip_norm=1.0, penalty=1.0))
    furnn = replace(config, optim=replace(config.optim, recurrent_rate=FURNN_RATE))
    special = {"kru": kru, "furnn": furnn}
    ours = {
        "kru": ["slow factors, penalty 1 and clipping are ours"],
        "furnn": ["a slow unitary matrix, near its authors' settings"],
        "uernn": ["a learned initial state, which gives the paper's count of parameters, is ours"],
    }
    rows = []
    for net, (model, plain, permuted) in _KRONECKER_PAPER.items():
        settings = replace(special.get(net, config), model=model)
        note_here = "; ".join([note, *ours.get(net, [])])
        rows.append(_row(f"pixel-mnist-{net}", "KRU §4.3", plain, settings, note_here))
        settings = replace(settings, task=PixelMnistTask(permuted=True))
        rows.append(_row(f"permuted-mnist-{net}", "KRU §4.3", permuted, settings, note_here))
    return rows


_LOW_RANK_PAPER = {  # units, structure, rank and test accuracies
    "gru-128": (128, "dense", None, 92.8),
    "lr-gru-128-24": (128, "low-rank", 24, 91.8),
    "lr-gru-512-4": (512, "low-rank", 4, 91.3),
    "lrd-gru-64-24": (64, "low-rank+diagonal", 24, 91.9),
    "lrd-gru-128-24": (128, "low-rank+diagonal", 24, 93.5),
    "lrd-gru-256-24": (256, "low-rank+diagonal", 24, 94.7),
}
_LOG = ((21_000, 0.67), (43_000, 0.84), (86_000, 0.896), (140_000, 0.919), (205_000, 0.928), (313_000, 0.931))


def _low_rank_paper() -> list[PaperRow]:
    """Low-rank paper §3.0.3, table 1, with what the authors' code adds: learned initial state, RMSprop from 1e-3."""
    rows = []
    for net, (hidden, structure, rank, percent) in _LOW_RANK_PAPER.items():
        config = Config(
            PixelMnistTask(permuted=True),
            ModelConfig("gru", hidden, structure, rank=rank, reset="before", update_bias=5.0, learn_initial_state=True),
            OptimConfig("rmsprop", lr=5e-4, accumulator_start=1e-3, clip_value=1.0),
            updates=330_000,  # 120 epochs; the authors' log goes on to 313,000 updates
            valid_size=5_000,
            eval_every=1_000,
            checkpoint_every=1_000,
        )
        rows.append(_row(f"permuted-mnist-{net}", "low-rank §3.0.3", percent, config))
    return [
        replace(row, curve=_LOG, note="the authors' log is of their validation set, ours beside it of the test set")
        if row.name == "permuted-mnist-lr-gru-128-24"
        else row
        for row in rows
    ]


def _quick(row: PaperRow, optim: OptimConfig, epochs: int) -> PaperRow:
    """The row in batches of 50, by Adam with a cosine."""
    optim, epoch = replace(optim, optimizer="adam", schedule="cosine"), 1_100
    config = replace(
        row.config, optim=optim, updates=epochs * epoch, batch_size=50, eval_every=epoch, checkpoint_every=epoch // 2
    )
    note = f"our recipe: Adam at {optim.lr}, a cosine, batches of 50, {epochs} epochs"
    return replace(row, name=f"{row.name}-quick", config=config, note=note)


def _ours() -> list[PaperRow]:
    """Recipes that need fewer updates, and the structure that neither paper tried here."""
    rows = {row.name: row for row in (*_kronecker_paper(), *_low_rank_paper())}
    gru = rows["permuted-mnist-gru-128"]
    blocks = replace(
        gru,
        name="permuted-mnist-block-gru-256-4",
        paper="ours",
        claim="the recurrent parameters of gru-128, twice its units",
        config=replace(gru.config, model=replace(gru.config.model, hidden=256, structure="block-diagonal", blocks=4)),
        bound=None,
    )
    kru = rows["permuted-mnist-kru"]
    fast = OptimConfig(lr=5e-3, clip_norm=1.0)
    gated = (rows["permuted-mnist-lrd-gru-128-24"], gru, blocks)
    return [blocks, _quick(kru, kru.config.optim, 8), *(_quick(row, fast, 20) for row in gated)]
