"""Framewise phone classification on TIMIT, a frame every 10 ms (Graves & Schmidhuber 2005; KRU §4.5).

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
from slimrnn.data.mfcc import FEATURES
from slimrnn.data.phones import classes, folding
from slimrnn.data.timit import SAMPLE, WHOLE, Corpus, load_timit, split, which_corpus
from slimrnn.errors import ConfigError, DataError
from slimrnn.tasks.averages import average
from slimrnn.training.config import Config
from slimrnn.training.task import Batch, Indices, Samples, Score, Task

SPLITS = ("train", "valid", "test")
COARSE = 39  # classes of the usual comparison; nets with more classes are scored on these as well


@dataclass(frozen=True)
class TimitFramesTask(Task):
    """Classify the phone in every 10 ms of speech, on TIMIT or its sample."""

    phones: Literal[61, 48, 39] = 61
    """number of classes: all of TIMIT's phones, or folded as in Lee and Hon (1989)"""
    corpus: Literal["timit", "timit_sample"] | None = None
    """default: the whole corpus if it is in the data directory, else the sample; a run keeps its first choice"""
    sa: bool = True
    """include the two SA sentences, which all speakers read"""
    core_test: bool = False
    """test on the core test set, 192 utterances; only with the whole corpus"""

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
        """Uniform; and, if the data is there, the class frequencies of the training set."""
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
        """Utterances in the order of speakers and sentences, for any seed."""
        check_choice("split", split, SPLITS)
        return self._utterances(split)

    def _utterances(self, split: str) -> _Utterances:
        if self.core_test and self.corpus == SAMPLE:
            raise ConfigError("expected core_test only with the whole corpus, got timit_sample")
        return _Utterances(self, split, len(_utterance_indices(self, split)))

    def check(self, config: Config) -> None:
        for name in SPLITS:
            self.samples(name, config.seed)

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """Cross-entropy in nats and accuracy per frame; with more than 39 classes, also the accuracy folded to 39."""
        logits, targets = output.reshape(-1, output.shape[-1]), batch.targets.reshape(-1)
        losses = functional.cross_entropy(logits, targets, reduction="none").view_as(batch.targets)
        predictions = output.argmax(-1)
        scores = {"loss": losses, "accuracy": (predictions == batch.targets).to(output.dtype)}
        means = {name: average(values, batch.weights) for name, values in scores.items()}
        if self.phones != COARSE:
            means[f"accuracy_{COARSE}"] = self._folded_accuracy(predictions, batch, output.dtype)
        return means

    def _folded_accuracy(self, predictions: Tensor, batch: Batch, dtype: torch.dtype) -> Score:
        """Accuracy after folding to 39 classes; q has no class there: not scored as a target, wrong as a prediction."""
        table = torch.from_numpy(_onto_39(self.phones)).to(predictions.device)
        correct, known = table[predictions] == table[batch.targets], table[batch.targets] >= 0
        weights = known.to(dtype) if batch.weights is None else known * batch.weights.to(dtype)
        return average(correct.to(dtype), weights)


@dataclass(frozen=True)
class _Utterances:
    """Sequence i is utterance i of a split. Holds no features, so it is cheap to send to a worker process."""

    task: TimitFramesTask
    split: str
    size: int

    def lengths(self, indices: Indices) -> Indices:
        """Frames of each utterance."""
        starts, utterances = _corpus(self.task).starts, _utterance_indices(self.task, self.split)[indices]
        return starts[utterances + 1] - starts[utterances]

    def labels(self) -> NDArray[np.int64]:
        """Classes of all frames, without those that have none."""
        corpus = _corpus(self.task)
        phones = [corpus.phones[corpus.frames(utterance)] for utterance in _utterance_indices(self.task, self.split)]
        labels = folding(self.task.phones)[np.concatenate(phones)]
        return labels[labels >= 0]

    def fetch(self, indices: Indices) -> Batch:
        """Features are standardised by the training set; frames without a class have no weight."""
        corpus, lengths_B = _corpus(self.task), self.lengths(indices)
        starts_B = corpus.starts[_utterance_indices(self.task, self.split)[indices]]
        mean_F, deviation_F = _moments(corpus, self.task.sa)
        steps_T1 = np.arange(lengths_B.max(initial=1))[:, None]
        inside_TB = steps_T1 < lengths_B
        places_TB = np.where(inside_TB, starts_B + steps_T1, 0)
        inputs_TBF = (corpus.features[places_TB] - mean_F) / deviation_F
        inputs_TBF[~inside_TB] = 0
        classes_TB = folding(self.task.phones)[corpus.phones[places_TB]]
        scored_TB = inside_TB & (classes_TB >= 0)
        return Batch(
            torch.from_numpy(inputs_TBF),
            torch.from_numpy(np.where(scored_TB, classes_TB, 0)),
            torch.from_numpy(scored_TB.astype(np.float32)),
            torch.from_numpy(lengths_B),
        )


def _corpus(task: TimitFramesTask) -> Corpus:
    return load_timit(task.corpus or SAMPLE)  # if there is none, the sample can be downloaded


def _utterance_indices(task: TimitFramesTask, name: str) -> NDArray[np.int64]:
    """Indices in the corpus of the utterances of a split."""
    return _split_indices(_corpus(task), name, task.sa, task.core_test)


@lru_cache(maxsize=16)
def _split_indices(corpus: Corpus, name: str, sa: bool, core_test: bool) -> NDArray[np.int64]:
    return split(corpus.utterances, name, sa=sa, core=core_test)


@lru_cache(maxsize=4)
def _moments(corpus: Corpus, sa: bool) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and standard deviation of the features in training; 1 for constant features."""
    pieces = [corpus.features[corpus.frames(utterance)] for utterance in _split_indices(corpus, "train", sa, False)]
    frames = sum(map(len, pieces))
    mean = sum(piece.sum(0, dtype=np.float64) for piece in pieces) / frames
    deviation = np.sqrt(sum(np.square(piece - mean).sum(0) for piece in pieces) / frames)
    return mean.astype(np.float32), np.where(deviation > 0, deviation, 1).astype(np.float32)


@lru_cache(maxsize=2)
def _onto_39(count: int) -> NDArray[np.int64]:
    """Map from the classes to the 39; −1 for q."""
    table = np.full(count, -1, dtype=np.int64)
    fine, coarse = folding(count), folding(COARSE)
    table[fine[fine >= 0]] = coarse[fine >= 0]
    return table
