"""The rows on data sets: what only one task has to hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from pages import DOCS
from real_data import needs_data
from slimrnn import LSTM, BlockDiagonal, hidden_size_for, summary
from slimrnn.layers.summary import Summary
from slimrnn.papers import (
    PaperRow,
    find_row,
    mnist_highway,
    pixel_mnist,
    ptb_chars,
    recommend,
    small_mnist,
    timit_frames,
    youtube8m,
)
from slimrnn.tasks import PixelMnistTask, RecommendTask
from slimrnn.training.checks import check
from slimrnn.training.models.sequence_model import recurrent_layers


def count(row: PaperRow) -> Summary:
    with torch.device("meta"):
        return summary(row.config.task.model(row.config.model))


def test_pixel_mnist_has_both_orders_of_pixels_and_quicker_settings() -> None:
    rows = {row.name: row for row in pixel_mnist.ROWS}
    assert len(rows) == 30
    for name, row in rows.items():
        assert row.config.task == PixelMnistTask(permuted=name.startswith("permuted"))
        assert (row.score, row.direction) == ("accuracy", "at least")
    assert rows["permuted-mnist-kru"].criterion == "test accuracy ≥ 0.945"
    assert len(rows["permuted-mnist-lr-gru-128-24"].curve) == 6
    epochs = {"pixel-mnist-lstm": 30, "pixel-mnist-uernn": 10, "permuted-mnist-uernn": 10, "permuted-mnist-furnn": 3}
    for name in (name for name in rows if name.endswith("-quick")):
        slow = rows[name.removesuffix("-quick")]
        assert slow.also == name or slow.paper == "ours"
        config = rows[name].config
        assert config.updates * config.batch_size == epochs.get(slow.name, 20) * 55_000
        assert config.updates < slow.config.updates


@pytest.mark.parametrize("row", small_mnist.ROWS, ids=lambda row: row.name)
def test_small_nets_train_at_most_12_000_parameters(row: PaperRow) -> None:
    net = row.config.task.model(row.config.model)
    frozen = recurrent_layers(net) if row.config.optim.readout_only else []
    left_out = {parameter for layer in frozen for parameter in layer.parameters()}
    trained = sum(p.numel() for p in net.parameters() if p.requires_grad and p not in left_out)
    assert 9_000 < trained <= small_mnist.MOST


@pytest.mark.parametrize(("name", "total", "diagonals"), [("lr", 6_078_474, 0), ("lrd", 6_088_714, 2 * 1024)])
def test_highway_nets_have_the_size_of_the_authors_code(name: str, total: int, diagonals: int) -> None:
    """784 × 1024, five times two matrices L R of rank 256, 1024 × 10; a scale and a bias per normalised unit."""
    row = find_row(f"highway-mnist-{name}")
    per_layer = 2 * 2 * 1024 * 256 + diagonals
    assert [layer.recurrent for layer in count(row).layers] == [per_layer] * 5
    assert count(row).total == 784 * 1024 + 2 * 1024 + 5 * (per_layer + 4 * 1024) + 1024 * 10 + 10 == total
    assert f"{total:,} parameters" in row.note
    assert row.criterion == f"test accuracy ≥ {0.9883 if name == 'lr' else 0.9864}"
    assert (row.config.batch_size * row.config.eval_every, row.config.optim.schedule_factor) == (55_000, 0.5)


@needs_data
def test_highway_rows_pass_the_checks() -> None:
    for row in mnist_highway.ROWS:
        check(row.config)


def low_rank_papers_count(total: int, hidden: int, recurrent: int, gates: int, symbols: int) -> float:
    """By the rule of the low-rank paper, in millions: of the GRU's input matrices it counts one."""
    matrices = 1 if gates == 3 else gates
    assert total == recurrent + gates * hidden * 51 + (gates == 3) * hidden + 50 * hidden + 50
    return (recurrent + (matrices * symbols + gates) * hidden + symbols * (hidden + 1)) / 1e6


@pytest.mark.parametrize("row", [row for row in ptb_chars.ROWS if "low-rank" in row.paper], ids=lambda r: r.name)
def test_ptb_nets_have_the_papers_sizes(row: PaperRow) -> None:
    model, found = row.config.model, count(row)
    stated, papers = row.note.split(" parameters, ")
    assert f"{found.total:,}" == stated
    gates, symbols = (3, 51) if model.cell == "gru" else (4, 49)
    millions = low_rank_papers_count(found.total, model.hidden, found.layers[0].recurrent, gates, symbols)
    expected = float(papers.split(" M ")[0])
    if row.name == "ptb-lrd-gru-tied-1000-64":  # by the rule of the other rows it would be 0.36
        assert round(found.total / 1e6, 2) == expected
    elif row.name != "ptb-lrd-lstm-1740-300-dropout":  # whose sizes give 4.6 million
        assert round(millions, 1 if expected > 30 else 2) == expected


@needs_data
@pytest.mark.parametrize("row", ptb_chars.ROWS, ids=lambda r: r.name)
def test_ptb_rows_evaluate_once_an_epoch_and_on_the_whole_text(row: PaperRow) -> None:
    config = row.config
    check(config)
    samples = config.task.samples("train", 0)
    assert samples.size is not None
    if config.bptt is None:
        updates = -(-samples.size // config.batch_size)
    else:
        updates = -(-len(samples.fetch(np.arange(1)).inputs) // config.bptt)
    assert (config.eval_every, config.updates) == (updates, 20 * updates)
    assert config.valid_size >= max(config.task.samples(split, 0).size or 0 for split in ("valid", "test"))


def test_timit_rows_are_shorter_on_the_sample_and_have_no_criterion_there() -> None:
    rows, nets = {row.name: row for row in timit_frames.ROWS}, ["rnn", "lstm", "kru"]
    assert list(rows) == [*(f"timit-{net}" for net in nets), *(f"timit-sample-{net}" for net in nets)]
    for name, row in rows.items():
        updates, epoch = (2_000, 100) if "sample" in name else (88_720, 4_436)
        assert (row.config.updates, row.config.eval_every, row.config.batch_size) == (updates, epoch, 1)
        assert row.score == "accuracy"
    assert rows["timit-kru"].criterion == "test accuracy ≥ that of timit-rnn"
    assert rows["timit-sample-kru"].criterion == ""


def test_youtube8m_nets_have_the_sizes_of_their_notes_and_of_the_page() -> None:
    rows = {row.name.removeprefix("youtube-8m-"): row for row in youtube8m.ROWS}
    assert list(rows) == ["lstm", "factorized-small", "factorized-big"]
    layers, memory = {}, {}
    for name, row in rows.items():
        total = count(row).total
        layers[name], memory[name] = sum(layer.total for layer in count(row).layers), row.config.model.hidden
        assert row.note.startswith(f"{total:,} parameters, {layers[name]:,} without the read-out; ")
        page = (DOCS / "youtube8m.md").read_text()
        assert f"| {layers[name]:,} | {total:,} | {row.bound}, {row.claim[-5:]} |" in page
    assert layers["lstm"] == 4 * (1024 * (1152 + 1024 + 1)) + 4 * (1024 * (1024 + 1024 + 1))
    assert layers["factorized-small"] / layers["lstm"] == pytest.approx(1 / 4, rel=2e-3)
    assert memory["factorized-small"] == memory["lstm"] < memory["factorized-big"]
    blocks = BlockDiagonal(4)
    largest = hidden_size_for(layers["lstm"], LSTM, 1152, structure=blocks, input_structure=blocks, num_layers=2)
    assert memory["factorized-big"] == largest
    figures = ((0.645, 0.573), (0.719, 0.604), (0.809, 0.641))
    assert [row.criterion for row in rows.values()] == [f"test hit_at_1 ≥ {h} and perr ≥ {p}" for h, p in figures]
    assert [row.claim.partition(", ")[2] for row in rows.values()] == ["PERR 0.573", "PERR 0.604", "PERR 0.641"]


@needs_data
@pytest.mark.parametrize("row", recommend.ROWS, ids=lambda row: row.name)
def test_recommenders_have_the_sizes_of_their_notes(row: PaperRow) -> None:
    check(row.config)
    found = summary(row.config.task.model(row.config.model))
    assert row.note.startswith(f"{found.total:,} parameters; ")
    count, gaps = (9_724, 32) if "temporal" in row.name else (3_416, 0)
    items = 2 * count * 64 + count + gaps * 64
    hidden, recurrent = row.config.model.hidden, 3 * 128 * 128
    blocks = row.config.model.blocks or 1
    assert recurrent == 3 * hidden * hidden // blocks == found.layers[0].recurrent
    switch = 3 * 32 * (64 + 32) + 4 * 32 + 4 * (32 + 1) if row.config.model.context_switching != "none" else 0
    assert found.total == items + hidden * 64 + recurrent + 3 * hidden * 64 // blocks + 4 * hidden + switch


@pytest.mark.parametrize("split", ["recommendation", "recommendation-temporal"])
@pytest.mark.parametrize(("better", "worse"), [("factorized", "gru"), ("context-switching", "factorized")])
def test_recommenders_have_to_beat_those_before_them_at_the_same_rate(split: str, better: str, worse: str) -> None:
    row, other = find_row(f"{split}-{better}"), find_row(f"{split}-{worse}")
    assert (row.compared_with, row.direction) == (other.name, "at least")
    assert row.config.optim == other.config.optim
    assert replace(row.config, model=other.config.model) == other.config


@needs_data
def test_the_papers_split_has_times_and_negatives_that_are_sampled() -> None:
    tasks = {row.config.task for row in recommend.ROWS if "temporal" in row.name}
    assert len(tasks) == 1
    (task,) = tasks
    assert isinstance(task, RecommendTask)
    assert task.is_sampled
    assert (task.split, task.time_gaps) == ("temporal", True)
    assert task.log.times is not None
