"""The rows of the papers: all there, all runnable, with the papers' parameter counts."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import slimrnn.papers
from slimrnn import summary
from slimrnn.layers.summary import Summary
from slimrnn.papers import PaperRow, find_row, paper_rows, register_rows
from slimrnn.tasks import GeneratedTask, config_from_dict, config_to_dict
from slimrnn.training.checks import check

ROWS = paper_rows()
LOW_RANK = ("lrd-gru", "lrd-gru-authors", "lrd-gru-wn")
SYNTHETIC = [row for row in ROWS.values() if isinstance(row.config.task, GeneratedTask)]


def count(name: str) -> Summary:
    config = ROWS[name].config
    with torch.device("meta"):
        return summary(config.task.model(config.model))


def test_every_row_of_the_synthetic_tasks_is_there() -> None:
    expected = {f"copy-{length}-{net}" for length in (1000, 2000) for net in ("kru", "furnn", "rnn", "lstm", "uernn")}
    for task in ("500", "danihelka", "henaff"):
        expected |= {f"copy-{task}-{net}" for net in (*LOW_RANK, "gru", "uernn")}
    expected |= {"copy-500-lr-gru", "copy-danihelka-lrd-gru-wn-ours", "copy-henaff-lrd-gru-perfect"}
    expected |= {
        f"word-copy-{repeats}-{cell}-{matrix}"
        for repeats in (4, 8, 16, 32)
        for cell in ("lstm", "gru")
        for matrix in ("dense", "factorized")
    }
    for length in (100, 200, 400, 750):
        nets = ("kru", "lstm", "rnn", "furnn", *(["uernn"] if length <= 200 else []))
        expected |= {f"adding-{length}-{net}{recipe}" for net in nets for recipe in ("", "-ours")}
        expected |= {f"adding-{length}-lr-gru"}
    assert {row.name for row in SYNTHETIC} == expected


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_rows_can_be_judged(row: PaperRow) -> None:
    config = row.config
    assert config_from_dict(json.loads(json.dumps(config_to_dict(config)))) == config
    assert row.split in config.task.test_sets or (row.split, row.score) == ("train", "loss")
    assert all(update % config.eval_every == 0 for update, _ in row.curve)
    if row.compared_with is not None:
        other = ROWS[row.compared_with]
        assert other.within == row.within
        assert (other.score, other.split, other.direction) == (row.score, row.split, row.direction)


@pytest.mark.parametrize("row", [row for row in ROWS.values() if row.also], ids=lambda row: row.name)
def test_two_recipes_train_the_same_net_for_no_more_updates(row: PaperRow) -> None:
    assert row.also is not None
    other = ROWS[row.also]
    own = row.config.model  # but a start is part of a recipe
    model = replace(other.config.model, forget_bias=own.forget_bias, cell_options=own.cell_options)
    assert (model, other.config.task) == (row.config.model, row.config.task)
    assert other.within <= row.within
    assert other.config.optim != row.config.optim
    assert other.criterion == ""  # the verdict on both is that of the row


@pytest.mark.parametrize("row", SYNTHETIC, ids=lambda row: row.name)
def test_rows_can_be_run(row: PaperRow) -> None:
    config = row.config
    check(config)
    small = replace(config.task, **{"length": 6} if hasattr(config.task, "length") else {"repeats": 1})
    batch = small.samples(row.split, 0).fetch(np.arange(2))
    output, _ = small.model(config.model)(batch.inputs)
    assert row.score in small.scores(output, batch)


@pytest.mark.parametrize(
    ("name", "total", "recurrent"),
    [
        ("copy-1000-kru", 5_314, 56),
        ("copy-1000-rnn", 19_082, 128**2),
        ("copy-1000-lstm", 72_458, 4 * 128**2),
        ("adding-200-kru", 3_657, 72),
        ("adding-200-lstm", 67_201, 4 * 128**2),
        # by the paper's rule, which counts one input matrix of three and no initial state: 41,738
        ("copy-danihelka-lrd-gru", 41_738 + 2 * 10 * 128 + 128, 39_168 - 3 * 128),
        ("adding-750-lr-gru", 19_713 + 128, 3 * 6_144),
        ("pixel-mnist-lstm", 67_850, 4 * 128**2),  # 68 K
        ("pixel-mnist-kru", 11_858, 72),  # 12 K
        ("pixel-mnist-uernn", 16_394, 7 * 512),  # 16 K
        ("pixel-mnist-furnn", 536_074, 2 * 512**2),  # 540 K
        # 51.0, 20.2, 19.5, 10.3, 20.6 and 41.2 K by the same rule
        ("permuted-mnist-gru-128", 50_954 + 3 * 128, 3 * 128**2),
        ("permuted-mnist-lr-gru-128-24", 20_234 + 3 * 128, 3 * 2 * 128 * 24),
        ("permuted-mnist-lr-gru-512-4", 19_466 + 3 * 512, 3 * 2 * 512 * 4),
        ("permuted-mnist-lrd-gru-64-24", 10_314 + 3 * 64, 3 * (2 * 64 * 24 + 64)),
        ("permuted-mnist-lrd-gru-128-24", 20_618 + 3 * 128, 3 * (2 * 128 * 24 + 128)),
        ("permuted-mnist-lrd-gru-256-24", 41_226 + 3 * 256, 3 * (2 * 256 * 24 + 256)),
        ("ptb-kru", 103_034, 72),
        ("ptb-rnn", 91_442, 256**2),
        ("ptb-lstm", 98_098, 4 * 128**2),
        ("ptb-furnn", 58_546, 2 * 128**2),
        # the dense nets have equal recurrent parameters, the KRU a 910th: the paper's three orders of magnitude
        ("timit-rnn", 88_125, 256**2),
        ("timit-lstm", 87_229, 4 * 128**2),
        ("timit-kru", 89_733, 72),
    ],
)
def test_nets_have_the_papers_sizes(name: str, total: int, recurrent: int) -> None:
    assert (count(name).total, count(name).layers[0].recurrent) == (total, recurrent)


@pytest.mark.parametrize("name", [row.name for row in SYNTHETIC if row.name.endswith("factorized")])
def test_factorized_nets_have_twice_the_state_for_the_same_parameters(name: str) -> None:
    dense = name.replace("factorized", "dense")
    assert ROWS[name].config.model.hidden == 2 * ROWS[dense].config.model.hidden
    assert count(name).total == pytest.approx(count(dense).total, rel=0.01)


def test_a_mistyped_row_gets_a_suggestion() -> None:
    assert find_row("adding-750-lr-gru").bound == 0.003
    with pytest.raises(ValueError, match="got 'copy-1000-kur'; did you mean 'copy-1000-kru'"):
        find_row("copy-1000-kur")


def test_registered_rows_are_found_and_names_are_unique(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slimrnn.papers.registry._BY_NAME", paper_rows())
    row = replace(ROWS["copy-1000-kru"], name="copy-1000-kru-mine")
    register_rows(row)
    assert find_row(row.name) is row
    with pytest.raises(ValueError, match="expected a new name for a paper's row, got 'copy-1000-kru-mine'"):
        register_rows(row)


@pytest.mark.parametrize(
    ("module", "name"),
    [("slimrnn.tasks", "find_row"), ("slimrnn.tasks", "paper_rows"), ("slimrnn.training.paper", "PaperRow")],
)
def test_old_names_still_work_and_say_where_they_went(module: str, name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{module}.{name} has moved: import it from slimrnn.papers"):
        found = getattr(importlib.import_module(module), name)
    assert found is getattr(slimrnn.papers, name)
    assert not hasattr(importlib.import_module(module), "find_rwo")
