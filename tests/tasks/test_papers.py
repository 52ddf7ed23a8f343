"""The rows of the papers: all there, all runnable, with the papers' parameter counts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from torch import nn

from slimrnn import summary
from slimrnn.tasks import CopyTask, GeneratedTask, config_from_dict, config_to_dict, find_row, paper_rows
from slimrnn.training import Config
from slimrnn.training.checks import check
from slimrnn.training.paper import PaperRow

ROWS = paper_rows()
SYNTHETIC = [row for row in ROWS.values() if isinstance(row.config.task, GeneratedTask)]
CONFIG = Config(CopyTask(3))


def config_of(name: str) -> Config:
    return ROWS[name].config


def net_of(name: str) -> nn.Module:
    config = config_of(name)
    return config.task.model(config.model)


def test_every_line_of_the_synthetic_tasks_is_there() -> None:
    expected = {f"copy-{length}-{net}" for length in (1000, 2000) for net in ("kru", "furnn", "rnn", "lstm", "uernn")}
    expected |= {f"copy-{task}-lrd-gru{wn}" for task in ("500", "danihelka", "henaff") for wn in ("", "-wn")}
    expected |= {
        f"word-copy-{repeats}-{cell}-{matrix}"
        for repeats in (4, 8, 16, 32)
        for cell in ("lstm", "gru")
        for matrix in ("dense", "factorized")
    }
    nets = ("kru", "lstm", "rnn", "furnn", "lr-gru")
    expected |= {f"adding-{length}-{net}" for length in (100, 200, 400, 750) for net in nets}
    expected |= {"adding-100-uernn", "adding-200-uernn"}
    assert {row.name for row in SYNTHETIC} == expected


@pytest.mark.parametrize("row", SYNTHETIC, ids=lambda row: row.name)
def test_rows_can_be_run(row: PaperRow) -> None:
    config = row.config
    assert config_from_dict(json.loads(json.dumps(config_to_dict(config)))) == config
    check(config)
    assert row.split in config.task.test_sets
    small = replace(config.task, **{"length": 6} if hasattr(config.task, "length") else {"repeats": 1})
    batch = small.samples(row.split, 0).fetch(np.arange(2))
    output, _ = small.model(config.model)(batch.inputs)
    assert row.score in small.scores(output, batch)
    if row.compared_with is not None:
        other = ROWS[row.compared_with]
        assert other.within == row.within
        assert (other.score, other.split) == (row.score, row.split)


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
    ],
)
def test_nets_have_the_papers_sizes(name: str, total: int, recurrent: int) -> None:
    count = summary(net_of(name))
    assert (count.total, count.layers[0].recurrent) == (total, recurrent)


@pytest.mark.parametrize("name", [row.name for row in SYNTHETIC if row.name.endswith("factorized")])
def test_factorized_nets_have_twice_the_state_for_the_same_parameters(name: str) -> None:
    other = name.replace("factorized", "dense")
    assert config_of(name).model.hidden == 2 * config_of(other).model.hidden
    assert summary(net_of(name)).total == pytest.approx(summary(net_of(other)).total, rel=0.01)


def test_a_mistyped_row_gets_a_suggestion() -> None:
    assert find_row("adding-750-lr-gru").bound == 0.003
    with pytest.raises(ValueError, match="got 'copy-1000-kur'; did you mean 'copy-1000-kru'"):
        find_row("copy-1000-kur")


def test_a_bound_is_met_on_the_right_side() -> None:
    below = PaperRow("a", "p", "c", CONFIG, bound=0.5)
    above = PaperRow("a", "p", "c", CONFIG, bound=0.5, direction="at least", split="half")
    assert [below.passes(x) for x in (0.4, 0.5, 0.6, float("nan"))] == [True, True, False, False]
    assert [above.passes(x) for x in (0.4, 0.5, 0.6, float("nan"))] == [False, True, True, False]
    assert (below.criterion, above.criterion) == ("test loss ≤ 0.5", "half loss ≥ 0.5")


def test_another_row_can_be_the_bound() -> None:
    row = PaperRow("a", "p", "c", CONFIG, compared_with="b")
    assert row.criterion == "test loss ≤ that of b"
    assert [row.passes(x, 0.5) for x in (0.4, 0.6)] == [True, False]
    with pytest.raises(ValueError, match="expected a bound, or the score of another row, to judge a by"):
        row.passes(0.4)


def test_contradictory_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="expected row a to have a bound or another row, and both only in a race"):
        PaperRow("a", "p", "c", CONFIG, bound=1.0, compared_with="b")
    with pytest.raises(ValueError, match="expected row a"):
        PaperRow("a", "p", "c", CONFIG, bound=1.0, race="ahead")


def test_a_race_says_who_has_to_be_first() -> None:
    ahead = PaperRow("a", "p", "c", CONFIG, bound=1.0, compared_with="b", race="ahead")
    assert ahead.criterion == "test loss ≤ 1 before b"
    assert replace(ahead, race="behind").criterion == "test loss ≤ 1 not before b"
    assert replace(ahead, race="second").criterion == "test loss ≤ 1 after b"


def test_a_row_may_have_to_be_in_time() -> None:
    assert PaperRow("a", "p", "c", CONFIG, bound=1.0, by=30_000).criterion == "test loss ≤ 1 by update 30,000"
