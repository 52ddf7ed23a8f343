"""The recommender's task: losses, rankings, runs that go on, baselines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from exact_resume import check_exact_resume
from real_data import needs_data
from slimrnn import summary
from slimrnn.errors import ConfigError
from slimrnn.tasks import recommend as recommend_file
from slimrnn.tasks.recommend import RecommendTask
from slimrnn.training import Config, ModelConfig, OptimConfig, Run, train
from slimrnn.training.checks import check
from slimrnn.training.evaluation import EvaluationBatches, measure
from slimrnn.training.models.recommender_model import RecommenderModel
from slimrnn.training.task import Batch

MODEL = ModelConfig("gru", 6)
ITEMS = 12


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Forty users who go around a circle of items, a step or two at a time, on one of two pages."""
    choice, lines = Random(0), ["user,item,timestamp,page"]
    for user in range(40):
        item, time = choice.randrange(ITEMS), 100 * user
        for _ in range(choice.randrange(4, 20)):
            step = choice.choice((1, 1, 1, 2))
            item, time = (item + step) % ITEMS, time + choice.randrange(1, 500)
            lines.append(f"u{user},i{item},{time},{'left' if step == 1 else 'right'}")
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines))
    return path


def settings(task: RecommendTask, **options: Any) -> Config:
    """A run of a second."""
    sizes = {"updates": 12, "batch_size": 8, "eval_every": 4, "checkpoint_every": 4}
    return Config(task, MODEL, OptimConfig(lr=2e-2), **{"tensorboard": False, **sizes, **options})


def net(task: RecommendTask, model: ModelConfig = MODEL) -> RecommenderModel:
    torch.manual_seed(0)
    made = task.model(model)
    assert isinstance(made, RecommenderModel)
    return made.double()


def some(task: RecommendTask, split: str, count: int = 7) -> Batch:
    batch = task.samples(split, 0).fetch(np.arange(count))
    assert batch.weights is not None
    return replace(batch, weights=batch.weights.double())


def test_features_are_added_and_pages_read_by_name(file: Path) -> None:
    task = RecommendTask(file=file, page_column="page", embedding=4)
    made = net(task)
    weights = dict(made.inputs.named_parameters())
    assert {name: len(weight) for name, weight in weights.items()} == {
        "item.weight": ITEMS,
        "page.weight": 2,
        "gap.weight": 32,
    }
    batch = some(task, "train")
    added = torch.stack([weight[batch.inputs[..., k]] for k, weight in enumerate(weights.values())]).sum(0)
    expected = made.projection(made.rnn(added, lengths=batch.lengths)[0])
    torch.testing.assert_close(made(batch.inputs, None, batch.lengths)[0], expected)
    assert list(net(RecommendTask(file=file, time_gaps=False)).inputs) == ["item"]


@torch.no_grad()
def test_the_loss_of_an_update_is_the_cross_entropy_over_all_items(file: Path) -> None:
    task = RecommendTask(file=file)
    made, batch = net(task), some(task, "train")
    assert batch.weights is not None
    loss = task.run(made, batch)[0].scores["loss"]
    logits = made.scores(made(batch.inputs, None, batch.lengths)[0])
    expected = functional.cross_entropy(logits[batch.weights > 0], batch.targets[batch.weights > 0], reduction="sum")
    assert float(loss.total) == pytest.approx(float(expected), rel=1e-12)
    assert float(loss.weight) == float(batch.weights.sum())


@torch.no_grad()
def test_sampled_losses_are_near_the_full_one(file: Path) -> None:
    task = RecommendTask(file=file)
    made, batch = net(task), some(task, "train", 40)
    full = task.run(made, batch)[0].scores["loss"]
    for drawn_from in ("unigram", "log-uniform"):
        sampled = replace(task, negatives=ITEMS - 1, drawn_from=drawn_from)
        losses = [float(sampled.run(made, batch)[0].scores["loss"].total) for _ in range(60)]
        # log is concave: the estimate is right for Z and a little low for log Z
        assert np.mean(losses) == pytest.approx(float(full.total), rel=0.03)
        assert np.std(losses) > 0


@pytest.mark.parametrize("negatives", [0, ITEMS, 20_000])
def test_with_enough_negatives_the_softmax_is_full(file: Path, negatives: int) -> None:
    assert not RecommendTask(file=file, negatives=negatives).is_sampled


@torch.no_grad()
@pytest.mark.parametrize("split", ["valid", "test"])
@pytest.mark.parametrize("leave_out_seen", [False, True])
def test_evaluations_rank_all_items_in_blocks(
    file: Path, split: str, leave_out_seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = RecommendTask(file=file, split="temporal", leave_out_seen=leave_out_seen, negatives=3)
    made, batch = net(task).eval(), some(task, split)
    whole = task.run(made, batch)[0].scores
    monkeypatch.setattr(recommend_file, "BLOCK_SIZE", 3 * ITEMS)
    in_blocks = task.run(made, batch)[0].scores
    output = made.scores(made(batch.inputs, None, batch.lengths)[0])
    for name, score in task.scores(output, batch).items():
        for other in (whole, in_blocks):
            assert float(other[name].total) == pytest.approx(float(score.total), rel=1e-6)
            assert float(other[name].weight) == float(score.weight) > 0


@torch.no_grad()
def test_leaving_out_what_was_seen_never_lowers_a_score(file: Path) -> None:
    task = RecommendTask(file=file)
    made, batch = net(task).eval(), some(task, "test")
    plain, without = (replace(task, leave_out_seen=out).run(made, batch)[0].scores for out in (False, True))
    assert all(float(without[name].total) >= float(plain[name].total) for name in plain)
    assert float(without["mrr"].total) > float(plain["mrr"].total)


@torch.no_grad()
def test_a_batch_of_nothing_has_no_weight(file: Path) -> None:
    task = RecommendTask(file=file)
    batch = some(task, "test", 0)
    assert all(float(score.weight) == 0 for score in task.run(net(task).eval(), batch)[0].scores.values())


def test_cutting_the_history_cuts_the_scores_memory(file: Path) -> None:
    task = RecommendTask(file=file, max_length=2)
    assert task.samples("test", 0).fetch(np.arange(5)).inputs.shape[0] == 2


def test_blocks_can_be_switched_by_context(file: Path) -> None:
    task = RecommendTask(file=file)
    switched = ModelConfig("gru", 8, "block-diagonal", blocks=4, context_switching="outputs")
    made, batch = net(task, switched), some(task, "train")
    task.run(made, batch)[0].scores["loss"].total.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in made.parameters())


def test_tied_nets_have_one_embedding_of_items(file: Path) -> None:
    plain, tied = (summary(net(RecommendTask(file=file, tied=tied))).total for tied in (False, True))
    assert plain - tied == 64 * ITEMS


@pytest.mark.parametrize("options", [{"negatives": 5}, {"split": "temporal"}, {"negatives": 4, "tied": True}])
def test_a_stopped_run_goes_on_as_if_it_had_not_been(file: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    config = settings(RecommendTask(file=file, **options))
    check_exact_resume(config, tmp_path)


def test_a_net_learns_the_circle_and_beats_popularity(file: Path, tmp_path: Path) -> None:
    task = RecommendTask(file=file, negatives=8, embedding=8)
    config = settings(task, updates=60, eval_every=20, out=tmp_path / "run")
    result = train(replace(config, model=ModelConfig("gru", 16, "block-diagonal", blocks=4)), quiet=True)
    assert result.score("test", "map_at_20") > 1.5 * task.rivals("test")["popularity"]["map_at_20"]


def test_baselines_by_hand(tmp_path: Path) -> None:
    """In training b comes twice, a and c once each, and after a always b; the test is b after c, and c after a."""
    rows = ["x,a,1", "x,b,2", "x,b,3", "x,c,4", "x,b,5", "y,a,1", "y,b,2", "y,a,3", "y,c,4"]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["user,item,timestamp", *rows]))
    found = RecommendTask(file=path).rivals("test")
    # x is trained on a b b and y on a b, so that b comes 3 times, a twice, c never: after c and after a
    assert found["popularity"]["mrr"] == pytest.approx((1 + 1 / 3) / 2)
    assert found["popularity"]["recall_at_20"] == 1
    # after c nothing is known, so that popularity decides; after a come b (twice), then a by popularity, then c
    assert found["item to item"]["mrr"] == pytest.approx((1 + 1 / 3) / 2)


def test_baselines_know_the_circle(file: Path) -> None:
    found = RecommendTask(file=file).rivals("test")
    assert found["item to item"]["mrr"] > 2 * found["popularity"]["mrr"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_length": 0}, "expected max_length to be at least 1, got 0"),
        ({"embedding": 0}, "expected embedding to be at least 1, got 0"),
        ({"negatives": -1}, "expected negatives to be at least 1, got -1"),
        ({"test_share": 0.6}, r"expected test_share between 0 and 0\.5, got 0\.6"),
        ({"test_share": 0.2}, r"expected test_share only with a temporal split, got 0\.2"),
        ({"user_column": "who"}, "expected user_column only with file, got 'who'"),
        ({"file": Path("a.csv"), "in_order": True, "time_column": "t"}, "expected time_column only without in_order"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RecommendTask(**options)


def test_settings_that_do_not_go_together_are_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected one direction, got a bidirectional net"):
        check(replace(settings(RecommendTask(file=file)), model=ModelConfig("gru", 4, bidirectional=True)))
    timeless = tmp_path / "log.txt"
    timeless.write_text("1 2\n1 3\n1 4\n")
    with pytest.raises(
        ConfigError, match=r"expected times for a temporal split, got .*log\.txt, which has none: try leave"
    ):
        check(settings(RecommendTask(file=timeless, split="temporal")))
    timeless.write_text("1 2\n1 3\n")
    with pytest.raises(ConfigError, match="expected events to predict in valid, got none: the log has too few"):
        check(settings(RecommendTask(file=timeless)))
    with pytest.raises(ValueError, match="expected split to be one of 'train', 'valid', 'test', got 'tset'"):
        RecommendTask(file=timeless).samples("tset", 0)


@needs_data
def test_a_net_learns_on_the_real_log(tmp_path: Path) -> None:
    task = RecommendTask(data="ml-latest-small", split="temporal", negatives=500, max_length=50, embedding=16)
    config = settings(task, updates=20, eval_every=20, valid_size=50, test_size=20, out=tmp_path / "run")
    result = train(config, quiet=True)
    curve = Run(result.directory).curve["valid/loss"]
    assert curve[-1] < curve[0] < 1.1 * np.log(9_724)


@needs_data
def test_movielens_has_no_temporal_split_without_times() -> None:
    with pytest.raises(ConfigError, match="expected times for a temporal split, got ml-1m-sequences, which has none"):
        check(settings(RecommendTask(split="temporal")))


@needs_data
def test_every_user_of_movielens_is_tested_once() -> None:
    task = RecommendTask()
    assert {split: task.samples(split, 0).size for split in ("train", "valid", "test")} == dict.fromkeys(
        ("train", "valid", "test"), 6_040
    )
    assert len(task.windows("test").targets()) == len(task.windows("valid").targets()) == 6_040


def test_one_evaluation_is_the_same_in_one_batch_and_in_many(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = RecommendTask(file=file)
    made, config = net(task), settings(task)
    whole = measure(made, task, EvaluationBatches(config, "test", 1000))
    monkeypatch.setattr("slimrnn.training.evaluation.MOST", 3)
    assert measure(made, task, EvaluationBatches(config, "test", 1000)) == pytest.approx(whole, rel=1e-6)
