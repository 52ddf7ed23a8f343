"""TIMIT frames against their definition: on the real sample, and on a small corpus in the layout of the whole one."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from scoring import value

from real_data import needs_data
from slimrnn.data import DataError, timit
from slimrnn.data.phones import classes
from slimrnn.errors import ConfigError
from slimrnn.tasks import TimitFramesTask, config_to_dict
from slimrnn.training import Batch, Config, ModelConfig
from slimrnn.training.batches import Batches
from slimrnn.training.checks import check
from slimrnn.training.run import train
from speech import write_utterance

SAMPLE = TimitFramesTask(corpus="timit_sample")


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus of six speakers in the LDC's layout, which passes for complete."""
    monkeypatch.setenv("SLIMRNN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(timit, "SPEAKERS", {"train": 4, "test": 2})
    monkeypatch.setattr(timit, "PER_SPEAKER", 3)
    monkeypatch.setattr(timit, "VALIDATION", 2)
    for speaker in ("TRAIN/DR1/FAAA0", "TRAIN/DR2/MBBB0", "TRAIN/DR3/MCCC0", "TRAIN/DR4/FDDD0", "TEST/DR1/FELC0"):
        for sentence in ("SA1", "SI7", "SX9"):
            write_utterance(tmp_path / "timit" / speaker, sentence, upper=True)
    for sentence in ("SA1", "SI7", "SX9"):
        write_utterance(tmp_path / "timit/TEST/DR8/MZZZ0", sentence, ("h#", "ix", "zh", "h#"), riff=True, upper=True)
    return tmp_path


def sizes(task: TimitFramesTask) -> list[int | None]:
    return [task.samples(split, 0).size for split in ("train", "valid", "test")]


def test_the_whole_corpus_is_taken_where_it_is_and_the_task_says_so(small: Path) -> None:
    task = TimitFramesTask()
    assert task.corpus == "timit"
    assert config_to_dict(Config(task))["task"]["corpus"] == "timit"
    assert sizes(task) == [10, 2, 6]
    assert sizes(replace(task, sa=False)) == [6, 2, 4]
    assert sizes(replace(task, core_test=True)) == [10, 2, 2]


def test_features_are_normalised_on_what_is_trained_on(small: Path) -> None:
    for task in (TimitFramesTask(), TimitFramesTask(sa=False)):
        inputs = task.samples("train", 0).fetch(np.arange(sizes(task)[0] or 0)).inputs
        assert inputs.shape[2] == task.input_size == 26
        assert inputs.mean((0, 1)) == pytest.approx(np.zeros(26), abs=1e-4)
        assert inputs.std((0, 1), correction=0) == pytest.approx(np.ones(26), abs=1e-3)


@pytest.mark.parametrize(("phones", "counted"), [(61, 99), (48, 74), (39, 74)])
def test_frames_of_no_class_have_no_weight(small: Path, phones: Literal[61, 48, 39], counted: int) -> None:
    """The last frame, which no segment covers; and the 25 of q where it is left out."""
    batch = replace(TimitFramesTask(), phones=phones).samples("train", 0).fetch(np.array([0]))
    assert batch.weights is not None
    assert len(batch.targets) == 100
    assert int(batch.weights.sum()) == counted
    names = [classes(phones)[target] for target in batch.targets[batch.weights > 0]]
    silence = "h#" if phones == 61 else "sil"
    assert names[0] == names[-1] == silence
    assert names[30] == "aa"


def test_the_folded_accuracy_counts_classes_of_39() -> None:
    names = classes(61)
    targets = torch.tensor([[names.index(name)] for name in ("ix", "zh", "q", "aa", "h#")])
    answers = [names.index(name) for name in ("ih", "sh", "q", "q", "ah")]
    output = torch.zeros(5, 1, 61)
    output[range(5), 0, answers] = 9.0
    scores = TimitFramesTask().scores(output, Batch(torch.zeros(5, 1, 26), targets))
    assert value(scores["accuracy"]) == pytest.approx(1 / 5)  # q alone
    assert value(scores["accuracy_39"]) == pytest.approx(2 / 4)  # without q, ix as ih and zh as sh
    weights = torch.tensor([[1.0], [0.0], [1.0], [1.0], [0.0]])
    scores = TimitFramesTask().scores(output, Batch(torch.zeros(5, 1, 26), targets, weights))
    assert value(scores["accuracy"]) == pytest.approx(1 / 3)
    assert value(scores["accuracy_39"]) == pytest.approx(1 / 2)
    assert "accuracy_39" not in TimitFramesTask(39).scores(
        torch.zeros(1, 1, 39), Batch(torch.zeros(1, 1, 26), targets[:1])
    )


def test_scores_of_known_outputs() -> None:
    output = torch.zeros(2, 2, 39, dtype=torch.float64)
    output[0, 0, 3] = 2.0
    batch = Batch(torch.zeros(2, 2, 26), torch.tensor([[3, 1], [0, 0]]), torch.tensor([[1.0, 1.0], [1.0, 0.0]]))
    scores = TimitFramesTask(39).scores(output, batch)
    assert value(scores["loss"]) == pytest.approx((math.log(math.exp(2) + 38) - 2 + 2 * math.log(39)) / 3)
    assert value(scores["accuracy"]) == pytest.approx(2 / 3)  # the right one, and the tie that goes to the first class


def test_rivals_know_how_frequent_phones_are(small: Path) -> None:
    rivals = TimitFramesTask().rivals("test")
    assert list(rivals) == ["uniform", "phone frequencies, timit"]
    train = np.array([10 * 49, 10 * 25, 10 * 25]) + 1  # h#, aa and q of 10 utterances, each once more
    share = train / (train.sum() + 58)
    h, aa, q = -np.log(share)
    rare = math.log(train.sum() + 58)
    expected = (3 * (49 * h + 25 * aa + 25 * q) + 3 * (49 * h + 50 * rare)) / (6 * 99)
    assert rivals["phone frequencies, timit"]["loss"] == pytest.approx(expected)
    assert rivals["phone frequencies, timit"]["accuracy"] == pytest.approx(49 / 99)  # always h#
    assert TimitFramesTask().baselines == {name: pytest.approx(scores["loss"]) for name, scores in rivals.items()}


@needs_data
def test_a_sequence_does_not_depend_on_the_others() -> None:
    samples = SAMPLE.samples("valid", 0)
    together = samples.fetch(np.array([3, 0, 19, 3]))
    assert together.lengths is not None
    assert together.weights is not None
    for b, index in enumerate((3, 0, 19, 3)):
        alone, steps = samples.fetch(np.array([index])), int(together.lengths[b])
        assert len(alone.inputs) == steps
        assert torch.equal(alone.inputs[:, 0], together.inputs[:steps, b])
        assert torch.equal(alone.targets[:, 0], together.targets[:steps, b])
        assert not together.weights[steps:, b].any()
        assert not together.inputs[steps:, b].any()


@needs_data
def test_padding_changes_no_score() -> None:
    samples, net = SAMPLE.samples("valid", 0), SAMPLE.model(ModelConfig("gru", 4, bidirectional=True))

    @torch.no_grad()
    def scores_of(indices: list[int]) -> dict[str, np.ndarray]:
        batch = samples.fetch(np.array(indices))
        scores = SAMPLE.run(net.eval(), batch)[0].scores
        return {name: np.array([float(score.total), float(score.weight)]) for name, score in scores.items()}

    together, alone = scores_of([0, 5, 7]), [scores_of([index]) for index in (0, 5, 7)]
    for name, found in together.items():
        assert sum(one[name] for one in alone) == pytest.approx(found, rel=1e-5)


@needs_data
def test_batches_are_of_utterances_of_similar_length() -> None:
    samples = SAMPLE.samples("train", 0)
    batches = Batches(samples, 10, updates=10)
    lengths = [samples.lengths(batches.indices(k)) for k in range(10)]  # type: ignore[attr-defined]
    padded = sum(10 * length.max() for length in lengths) / sum(length.sum() for length in lengths)
    assert padded < 1.12  # 1.46 in a random order
    assert sorted(np.concatenate([batches.indices(k) for k in range(10)]).tolist()) == list(range(100))


@needs_data
def test_samples_survive_the_way_to_a_worker() -> None:
    samples = SAMPLE.samples("test", 0)
    sent = pickle.dumps(samples)
    assert len(sent) < 1000  # no features
    copied = pickle.loads(sent).fetch(np.array([1, 2]))
    assert torch.equal(copied.inputs, samples.fetch(np.array([1, 2])).inputs)


@needs_data
def test_an_empty_share_of_a_batch_is_empty() -> None:
    batch = SAMPLE.samples("train", 0).fetch(np.arange(0))
    assert tuple(batch.inputs.shape) == (1, 0, 26)
    scores = SAMPLE.scores(torch.randn(1, 0, 61), batch)
    assert all(float(score.weight) == 0 for score in scores.values())


@needs_data
def test_a_tiny_net_learns_that_silence_is_silent(tmp_path: Path) -> None:
    config = Config(
        replace(SAMPLE, phones=39),
        ModelConfig("gru", 16),
        updates=60,
        batch_size=4,
        valid_size=4,
        test_size=6,
        eval_every=60,
        checkpoint_every=60,
        threads=1,
        out=tmp_path / "run",
        tensorboard=False,
    )
    config = replace(config, optim=replace(config.optim, lr=1e-2))
    result = train(config, quiet=True)
    rival = config.task.rivals("test")["phone frequencies, timit_sample"]
    assert result.final["test"]["loss"] < rival["loss"] - 0.5
    assert result.final["test"]["accuracy"] > rival["accuracy"] + 0.1


def test_without_data_training_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIMRNN_DATA", str(tmp_path))
    task = TimitFramesTask()
    assert task.corpus is None
    assert task.baselines == {"uniform": math.log(61)}
    with pytest.raises(DataError, match="put it there, or run slimrnn data get timit_sample"):
        train(Config(task, out=tmp_path / "run"), quiet=True)
    assert not (tmp_path / "run").exists()


def test_the_sample_has_no_core_test_set() -> None:
    with pytest.raises(ConfigError, match="expected core_test only with the whole corpus, got timit_sample"):
        check(Config(replace(SAMPLE, core_test=True)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"phones": 40}, "expected 61, 48 or 39 phones, got 40"),
        ({"corpus": "timid"}, "expected corpus to be one of 'timit', 'timit_sample', got 'timid'"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TimitFramesTask(**options)  # type: ignore[arg-type]
