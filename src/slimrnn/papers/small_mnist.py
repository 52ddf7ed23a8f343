"""Rows of ours: permuted MNIST with at most 12,000 trained parameters, by one recipe of eight epochs."""

from __future__ import annotations

from dataclasses import replace

from slimrnn.papers.nets import UNITARY_RATE, full_unitary
from slimrnn.papers.pixel_mnist import FAST, quick
from slimrnn.papers.pixel_mnist import ROWS as PIXEL_ROWS
from slimrnn.papers.row import PaperRow
from slimrnn.tasks.pixel_mnist import PIXELS, PixelMnistTask
from slimrnn.training.config import Config, ModelConfig

MOST = 12_000  # trained parameters
_NETS = {  # net, and what it is
    "legendre": (
        ModelConfig("rnn", 256, f"legendre({PIXELS})", nonlinearity="identity", readout_hidden=43),
        "a fixed Legendre memory of all steps, read by 43 ReLU units",
    ),
    "unicornn": (ModelConfig("unicornn", 64, layers=3), "three layers of 64 oscillators"),
    "lem": (ModelConfig("lem", 50), "long expressive memory, 50 units"),
    "cornn": (ModelConfig("cornn", 74), "coupled oscillators, 74 units"),
    "lrd-gru": (
        next(row.config.model for row in PIXEL_ROWS if row.name == "permuted-mnist-lrd-gru-64-24"),
        "the low-rank plus diagonal GRU of 64 units and rank 24",
    ),
    "furnn": (full_unitary(70), "70 complex units with a unitary matrix"),
}
_OPTIMS = {
    "legendre": replace(FAST, readout_only=True),
    "furnn": replace(FAST, lr=1e-3, recurrent_rate=UNITARY_RATE),  # as permuted-mnist-furnn-quick
}


def _row(net: str) -> PaperRow:
    model, claim = _NETS[net]
    config = Config(PixelMnistTask(permuted=True), model, valid_size=5_000)
    row = PaperRow(f"mnist-12k-{net}", "ours", claim, config, score="accuracy", direction="at least")
    return replace(quick(row, _OPTIMS.get(net, FAST), epochs=8), name=row.name, claim=claim)


ROWS = tuple(map(_row, _NETS))
