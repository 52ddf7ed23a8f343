"""Phones of TIMIT: say at every 10 ms of speech which phone it is (Graves & Schmidhuber 2005; KRU §4.5).

Shape suffixes: T frames, B utterances, F features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from slimrnn._checks import check_choice
from slimrnn.data.errors import DataError
from slimrnn.data.mfcc import FEATURES
from slimrnn.data.phones import classes, folding
from slimrnn.data.timit import SAMPLE, WHOLE, Corpus, load_timit, split, which_corpus
from slimrnn.tasks.averages import average
from slimrnn.training.config import Config
from slimrnn.training.errors import ConfigError
from slimrnn.training.task import Batch, Indices, Samples, Score, Task

SPLITS = ("train", "valid", "test")
SCORED = 39  # classes by which nets on more of them are compared as well


@dataclass(frozen=True)
class TimitFramesTask(Task):
    """Tell the phone in every 10 ms of speech, on TIMIT or its sample."""

    phones: Literal[61, 48, 39] = 61
    """classes: all of TIMIT's phones, or these folded as Lee and Hon (1989) do"""
    corpus: Literal["timit", "timit_sample"] | None = None
    """by default the whole corpus where it is in the data directory, else the sample; a run keeps what it began with"""
    sa: bool = True
    """with the two sentences that all speakers read"""
    core_test: bool = False
    """test on the 192 utterances of the core test set; only with the whole corpus"""

    name = "timit-frames"
    every_step = True
    monitor = "accuracy"
    lower_is_better = False
    input_size = FEATURES

    def __post_init__(self) -> None:
        classes(self.phones)
        if self.corpus is None:  # found once and written into run.json, so that a run does not change its data
            object.__setattr__(self, "corpus", which_corpus())
        else:
            check_choice("corpus", self.corpus, (WHOLE, SAMPLE))

    @property
    def output_size(self) -> int:
        return self.phones

    @property
    def baselines(self) -> dict[str, float]:
        return {name: scores["loss"] for name, scores in self.rivals("test").items()}

    def rivals(self, split: str) -> dict[str, dict[str, float]]:
        """All classes equally likely; and as likely as in training, where the data is there, with its name."""
        rivals = {"uniform": {"loss": math.log(self.phones)}}
        try:
            train, here = self._utterances("train").labels(), self._utterances(split).labels()
        except DataError:
            return rivals
        counts = np.bincount(train, minlength=self.phones) + 1  # none is impossible
        loss = float(-np.log(counts / counts.sum())[here].mean())
        accuracy = float(np.mean(here == counts.argmax()))
        return rivals | {f"phone frequencies, {self.corpus}": {"loss": loss, "accuracy": accuracy}}

    def samples(self, split: str, seed: int) -> Samples:
        """Utterances in the order of speakers and sentences; the seed makes no difference."""
        check_choice("split", split, SPLITS)
        return self._utterances(split)

    def _utterances(self, split: str) -> _Utterances:
        if self.core_test and self.corpus == SAMPLE:
            raise ConfigError("expected core_test only with the whole corpus, got timit_sample")
        return _Utterances(self, split, len(_chosen(self, split)))

    def check(self, config: Config) -> None:
        for name in SPLITS:
            self.samples(name, config.seed)

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """Cross-entropy in nats and accuracy of a frame; with more classes than 39, accuracy among 39 as well."""
        logits, targets = output.reshape(-1, output.shape[-1]), batch.targets.reshape(-1)
        losses = functional.cross_entropy(logits, targets, reduction="none").view_as(batch.targets)
        answers = output.argmax(-1)
        scores = {"loss": losses, "accuracy": (answers == batch.targets).to(output.dtype)}
        means = {name: average(values, batch.weights) for name, values in scores.items()}
        if self.phones != SCORED:
            means[f"accuracy_{SCORED}"] = self._folded_accuracy(answers, batch, output.dtype)
        return means

    def _folded_accuracy(self, answers: Tensor, batch: Batch, dtype: torch.dtype) -> Score:
        """An answer counts as right if it is of the class of the target; q is no target here, and always wrong."""
        table = torch.from_numpy(_onto_39(self.phones)).to(answers.device)
        right, known = table[answers] == table[batch.targets], table[batch.targets] >= 0
        weights = known.to(dtype) if batch.weights is None else known * batch.weights.to(dtype)
        return average(right.to(dtype), weights)


@dataclass(frozen=True)
class _Utterances:
    """Sequence i is utterance i of a split. It holds no features, so that it is quick to send to a worker."""

    task: TimitFramesTask
    split: str
    size: int

    def lengths(self, indices: Indices) -> Indices:
        """Frames of each utterance."""
        starts, chosen = _corpus(self.task).starts, _chosen(self.task, self.split)[indices]
        return starts[chosen + 1] - starts[chosen]

    def labels(self) -> NDArray[np.int64]:
        """The classes of all frames that have one."""
        corpus = _corpus(self.task)
        phones = [corpus.phones[corpus.frames(one)] for one in _chosen(self.task, self.split)]
        found = folding(self.task.phones)[np.concatenate(phones)]
        return found[found >= 0]

    def fetch(self, indices: Indices) -> Batch:
        """Features less their mean in training, over their deviation; frames without a class have no weight."""
        corpus, lengths_B = _corpus(self.task), self.lengths(indices)
        starts_B = corpus.starts[_chosen(self.task, self.split)[indices]]
        mean_F, deviation_F = _moments(corpus, self.task.sa)
        steps_T1 = np.arange(lengths_B.max(initial=1))[:, None]
        inside_TB = steps_T1 < lengths_B
        places_TB = np.where(inside_TB, starts_B + steps_T1, 0)
        inputs_TBF = (corpus.features[places_TB] - mean_F) / deviation_F
        inputs_TBF[~inside_TB] = 0
        classes_TB = folding(self.task.phones)[corpus.phones[places_TB]]
        counted_TB = inside_TB & (classes_TB >= 0)
        return Batch(
            torch.from_numpy(inputs_TBF),
            torch.from_numpy(np.where(counted_TB, classes_TB, 0)),
            torch.from_numpy(counted_TB.astype(np.float32)),
            torch.from_numpy(lengths_B),
        )


def _corpus(task: TimitFramesTask) -> Corpus:
    return load_timit(task.corpus or SAMPLE)  # where there is none, the sample is what can be had


def _chosen(task: TimitFramesTask, name: str) -> NDArray[np.int64]:
    """Places in the corpus of the utterances of a split."""
    return _places(_corpus(task), name, task.sa, task.core_test)


@lru_cache(maxsize=16)
def _places(corpus: Corpus, name: str, sa: bool, core: bool) -> NDArray[np.int64]:
    return split(corpus.utterances, name, sa=sa, core=core)


@lru_cache(maxsize=4)
def _moments(corpus: Corpus, sa: bool) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and deviation of the features in training; of what is constant, 1."""
    pieces = [corpus.features[corpus.frames(one)] for one in _places(corpus, "train", sa, False)]
    frames = sum(map(len, pieces))
    mean = sum(piece.sum(0, dtype=np.float64) for piece in pieces) / frames
    deviation = np.sqrt(sum(np.square(piece - mean).sum(0) for piece in pieces) / frames)
    return mean.astype(np.float32), np.where(deviation > 0, deviation, 1).astype(np.float32)


@lru_cache(maxsize=2)
def _onto_39(count: int) -> NDArray[np.int64]:
    """The class among 39 of each of the classes; −1 for q."""
    table = np.full(count, -1, dtype=np.int64)
    fine, coarse = folding(count), folding(SCORED)
    table[fine[fine >= 0]] = coarse[fine >= 0]
    return table
