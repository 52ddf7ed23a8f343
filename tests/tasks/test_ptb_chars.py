"""Characters: sentence by sentence and in streams, exact evaluation."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch import Trainer
from torch.nn import functional

from exact_resume import check_exact_resume
from real_data import needs_data
from slimrnn.data.text import Text
from slimrnn.errors import ConfigError
from slimrnn.tasks import load_run
from slimrnn.tasks.ptb_chars import PTBCharsTask
from slimrnn.tasks.sentences import Sentences
from slimrnn.tasks.text_sampling import sample_text
from slimrnn.training import Config, ModelConfig, OptimConfig, Run, SequenceModule, train
from slimrnn.training.batches import Batches
from slimrnn.training.checks import build_model, check
from slimrnn.training.evaluation import EvaluationBatches, evaluated_sizes, final_sizes, measure

MODEL = ModelConfig("lstm", 6)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Lines of 0 to 39 letters."""
    choice = Random(0)
    lines = ["".join(choice.choices("abcde ", k=choice.randrange(40))) for _ in range(200)]
    path = tmp_path / "text.txt"
    path.write_text("\n".join(lines))
    return path


def settings(task: PTBCharsTask, **options: Any) -> Config:
    """A run of a second."""
    sizes = {"updates": 12, "batch_size": 4, "eval_every": 4, "checkpoint_every": 4, "valid_size": 10_000}
    return Config(task, MODEL, OptimConfig(lr=1e-2), **{"tensorboard": False, **sizes, **options})


def nats(net: torch.nn.Module, text: Text, first: int, last: int, before: int) -> float:
    """The definition: the sum of −ln p over the characters first ... last − 1, one step at a time."""
    state, total = None, 0.0
    with torch.no_grad():
        for place in range(first, last):
            output, state = net(torch.tensor([[before]]), state)
            before = int(text.tokens[place])
            total -= float(functional.log_softmax(output[0, 0], -1)[before])
    return total


@pytest.mark.parametrize("split", ["valid", "test"])
def test_sentences_are_scored_each_from_the_beginning(file: Path, split: str) -> None:
    task = PTBCharsTask(file)
    config = settings(task, dtype="float64")
    net, text = build_model(config), task.text(split)
    starts, lengths = text.sentences()
    each = [nats(net, text, s, s + n, text.end) for s, n in zip(starts, lengths, strict=True)]
    scores = measure(net, task, EvaluationBatches(config, split, 10_000))
    assert scores["loss"] == pytest.approx(sum(each) / len(text.tokens), rel=1e-10)
    assert scores["sentence_loss"] == pytest.approx(np.mean(np.array(each) / lengths), rel=1e-10)
    assert scores["sentence_perplexity"] == pytest.approx(math.exp(scores["sentence_loss"]))
    assert scores["bits_per_character"] == pytest.approx(scores["loss"] / math.log(2))
    assert scores["perplexity"] == pytest.approx(2 ** scores["bits_per_character"])


@pytest.mark.parametrize("largest", [2**25, 2000, 100])
def test_a_single_stream_is_one_pass_over_the_text(file: Path, largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slimrnn.training.evaluation.LARGEST", largest)
    task = PTBCharsTask(file, streams=1)
    config = settings(task, dtype="float64", bptt=7, batch_size=1)
    net, text = build_model(config), task.text("valid")
    batches = EvaluationBatches(config, "valid", 10_000)
    expected = nats(net, text, 0, len(text.tokens), text.end) / len(text.tokens)
    assert measure(net, task, batches)["loss"] == pytest.approx(expected, rel=1e-10)
    assert len(batches) == len(list(batches))
    assert (len(batches) > 1) == (largest < 2**25)


def test_a_trainer_of_ones_own_sees_the_same_scores(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slimrnn.training.evaluation.LARGEST", 500)
    config = settings(PTBCharsTask(file, streams=4), bptt=7)
    module = SequenceModule(config)
    trainer = Trainer(logger=False, enable_progress_bar=False, enable_checkpointing=False, accelerator="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lightning recommends workers
        trainer.validate(module, verbose=False)
    batches = EvaluationBatches(config, "valid", 10_000)
    assert len(batches) > 1
    for name, value in measure(module.model, config.task, batches).items():
        assert float(trainer.callback_metrics[f"valid/{name}"]) == pytest.approx(value, rel=1e-5)


def test_sizes_are_at_most_what_there_is(file: Path) -> None:
    config = settings(PTBCharsTask(file, streams=4), bptt=7, valid_size=1000)
    assert final_sizes(config) == evaluated_sizes(config) == {"valid": 4, "test": 4}
    assert final_sizes(replace(config, test_size=3)) == {"valid": 4, "test": 3}


def test_streams_go_on_from_the_character_before(file: Path) -> None:
    task = PTBCharsTask(file, streams=3)
    config = settings(task, dtype="float64", bptt=7, batch_size=3)
    net, text = build_model(config), task.text("test")
    size = len(text.tokens)
    cuts = [0, size // 3, 2 * size // 3, size]
    before = [text.end, *(int(text.tokens[cut - 1]) for cut in cuts[1:3])]
    total = sum(nats(net, text, cuts[i], cuts[i + 1], before[i]) for i in range(3))
    assert measure(net, task, EvaluationBatches(config, "test", 10_000))["loss"] == pytest.approx(total / size)


@pytest.mark.parametrize("streams", [None, 1, 3, 7])
@pytest.mark.parametrize("split", ["train", "valid", "test"])
@pytest.mark.parametrize("world", [1, 2])
def test_every_character_counts_once(file: Path, split: str, streams: int | None, world: int) -> None:
    task = PTBCharsTask(file, streams=streams)
    config = settings(task, bptt=5)
    found: list[int] = []
    for rank in range(world):
        for batch in EvaluationBatches(config, split, 10_000, rank, world):
            assert batch.weights is not None
            assert batch.inputs.shape == batch.targets.shape == batch.weights.shape
            found += batch.targets[batch.weights > 0].tolist()
    assert sorted(found) == sorted(task.text(split).tokens.tolist())


@pytest.mark.parametrize("streams", [None, 5])
def test_a_sequence_is_a_function_of_its_number(file: Path, streams: int | None) -> None:
    samples = PTBCharsTask(file, streams=streams).samples("train", 0)
    together = samples.fetch(np.array([3, 0, 4]))
    for column, index in enumerate((3, 0, 4)):
        alone = samples.fetch(np.array([index]))
        steps = len(alone.inputs)
        assert torch.equal(alone.inputs[:, 0], together.inputs[:steps, column])
        assert torch.equal(alone.targets[:, 0], together.targets[:steps, column])
        assert together.weights is not None
        assert not together.weights[steps:, column].any()


def test_sentences_in_a_batch_are_about_as_long_as_each_other(file: Path) -> None:
    samples = PTBCharsTask(file).samples("train", 0)
    assert isinstance(samples, Sentences)
    batches = Batches(samples, 4, updates=100)
    chosen = [batches.indices(number) for number in range(samples.size // 4)]
    steps = sum(4 * int(samples.lengths(indices).max()) for indices in chosen)
    used = np.concatenate(chosen)
    assert int(samples.lengths(used).sum()) / steps > 0.95
    assert len(set(used.tolist())) == len(used)
    assert np.diff([samples.lengths(indices).max() for indices in chosen]).min() < 0  # in no order of length


def test_batches_by_length_do_not_depend_on_where_one_begins(file: Path) -> None:
    samples = PTBCharsTask(file).samples("train", 0)
    forward, backward = Batches(samples, 4, updates=9, seed=1), Batches(samples, 4, updates=9, seed=1)
    found = {number: backward.indices(number) for number in reversed(range(150))}
    assert all(np.array_equal(forward.indices(number), found[number]) for number in range(150))


def test_long_sentences_are_left_out_of_training_only(file: Path) -> None:
    task = PTBCharsTask(file, max_length=20)
    train, valid = task.samples("train", 0), task.samples("valid", 0)
    assert isinstance(train, Sentences)
    assert isinstance(valid, Sentences)
    assert train.lengths_N.max() == 20
    assert valid.lengths_N.sum() == len(task.text("valid").tokens)


@pytest.mark.parametrize("streams", [None, 8])
def test_a_stopped_run_goes_on_as_if_it_had_not_been(file: Path, tmp_path: Path, streams: int | None) -> None:
    config = settings(PTBCharsTask(file, streams=streams), bptt=5 if streams else None)
    check_exact_resume(config, tmp_path)


@pytest.mark.parametrize("width", [3, 7])  # 7: as many as there are symbols
def test_a_hidden_read_out_is_loaded_and_sampled_from(file: Path, tmp_path: Path, width: int) -> None:
    task, out = PTBCharsTask(file), tmp_path / "run"
    assert task.output_size == 7
    model = replace(MODEL, readout_hidden=width)
    train(replace(settings(task, updates=1, valid_size=5, test_size=5, out=out), model=model), quiet=True)
    net, _ = load_run(out)
    with torch.no_grad():
        net.output[1].bias[2] += 100.0  # type: ignore[index, union-attr]
    assert "".join(sample_text(net, task, "", 5, 0.0)) == 5 * task.symbols[2]


def test_a_text_with_another_alphabet_is_refused(file: Path) -> None:
    task = PTBCharsTask(file)
    net = task.model(replace(MODEL, readout_hidden=7))
    file.write_text(file.read_text() + "xyz" * 200)
    with pytest.raises(ValueError, match="expected the text that the net was trained on, with 7 symbols"):
        PTBCharsTask(file).check_weights(net.state_dict())


@needs_data
@pytest.mark.parametrize("streams", [None, 50])
def test_a_net_learns_on_the_real_text(streams: int | None, tmp_path: Path) -> None:
    task = PTBCharsTask(streams=streams)
    sizes: dict[str, Any] = {"bptt": 20 if streams else None, "valid_size": 20, "test_size": 5, "out": tmp_path / "run"}
    config = settings(task, updates=8, eval_every=8, **sizes)
    result = train(replace(config, model=ModelConfig("gru", 8, "low-rank+diagonal", rank=2)), quiet=True)
    curve = Run(result.directory).curve["valid/loss"]
    assert curve[-1] < curve[0] < 1.1 * task.baselines["uniform"]


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ({"streams": 4}, {}, "expected bptt with 4 streams, got none"),
        ({"streams": 4}, {"bptt": 5, "batch_size": 6}, "expected batch_size of at most the 4 streams, got 6"),
        ({"streams": 150}, {"bptt": 5}, r"expected at most \d+ streams of valid, got 150"),
        ({}, {"model": ModelConfig("gru", 4, bidirectional=True)}, "expected one direction, got a bidirectional net"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    file: Path, task: dict[str, int], options: dict[str, Any], message: str
) -> None:
    file.write_text(file.read_text()[:2000])
    with pytest.raises(ConfigError, match=message):
        check(replace(settings(PTBCharsTask(file, **task)), **options))


def test_bad_options_are_refused(file: Path) -> None:
    with pytest.raises(ValueError, match="expected streams to be at least 1, got 0"):
        PTBCharsTask(streams=0)
    with pytest.raises(ValueError, match="expected max_length only without streams, got 9 and 2"):
        PTBCharsTask(streams=2, max_length=9)
    with pytest.raises(ValueError, match="expected split to be one of 'train', 'valid', 'test', got 'tset'"):
        PTBCharsTask(file).samples("tset", 0)


def test_a_hopeless_loss_has_a_perplexity() -> None:
    assert PTBCharsTask().derived({"loss": 1e9})["perplexity"] > 1e300
