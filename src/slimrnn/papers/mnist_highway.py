"""Results of highway layers on MNIST: low-rank paper A.1."""

from __future__ import annotations

from dataclasses import replace

from slimrnn.papers.row import PaperRow, accuracy_row
from slimrnn.tasks.mnist_highway import MnistHighwayTask
from slimrnn.training.config import Config, ModelConfig, OptimConfig

_EPOCH = 550  # updates: 55,000 images in batches of 100
_EPOCHS = 67  # the length of the authors' log of the low-rank net
_LOGS = {  # test accuracy every ten epochs, from the authors' logs
    "lr": (0.9818, 0.9843, 0.9857, 0.9877, 0.9879, 0.9878),
    "lrd": (0.9822, 0.9857, 0.9862, 0.9867, 0.9864),
}
_PARAMETERS = {"lr": 6_078_474, "lrd": 6_088_714}


def _low_rank_paper(net: str, structure: str, percent: float) -> PaperRow:
    """Low-rank paper A.1; dropout rates, Glorot's initialisation and the epochs are from the authors' code."""
    config = Config(
        MnistHighwayTask(input_dropout=0.2, output_dropout=0.5),
        ModelConfig("highway", 1024, structure, rank=256, layers=5, nonlinearity="relu", dropout=0.3),
        OptimConfig("adam", lr=3e-3, clip_norm=1.0, schedule="plateau", schedule_patience=3, schedule_factor=0.5),
        updates=_EPOCHS * _EPOCH,
        batch_size=100,
        valid_size=10_000,  # all 5,000 validation images, and all 10,000 of the test set
        eval_every=_EPOCH,
        checkpoint_every=_EPOCH,
    )
    return replace(
        accuracy_row(f"highway-mnist-{net}", "low-rank A.1", percent, config),
        curve=tuple((10 * (k + 1) * _EPOCH, accuracy) for k, accuracy in enumerate(_LOGS[net])),
        note=f"{_PARAMETERS[net]:,} parameters, as in the authors' code (the paper gives no count); clipping is ours;"
        " that code trains on 50,000 images and returns to the best net when it halves the learning rate; its log is"
        " compared with ours by epochs",
    )


ROWS = (_low_rank_paper("lr", "low-rank", 98.83), _low_rank_paper("lrd", "low-rank+diagonal", 98.64))
