"""YouTube-8M: name the topics of a video from features of its frames, one a second (factorized paper §3.2).

Shape suffixes: T frames, B videos, C classes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from slimrnn._checks import check_choice, check_count
from slimrnn.data.shards import Shards
from slimrnn.data.youtube8m import CLASSES, FRAME_BYTES, FRAMES, SIZES, Parse, find_videos, parser
from slimrnn.tasks.averages import average
from slimrnn.tasks.label_metrics import TOP, global_average_precision, mean_average_precision, precisions, ranking
from slimrnn.training.config import Config, ModelConfig
from slimrnn.training.task import Batch, Indices, Outcome, Samples, Score, Task

LABELS = 3.0  # of a video, on average


@dataclass(frozen=True)
class YouTube8MTask(Task):
    """Name the topics of a video from features of its frames."""

    level: Literal["frame", "video"] = "frame"
    """frame: sequences of the features of up to max_frames seconds; video: one step, their mean"""
    folder: Path | None = None
    """with the shards train*.tfrecord, validate*.tfrecord, test*.tfrecord; by default yt8m of the data directory, at
    video level yt8m_sample. A split without shards gets a fixed part of the records of others"""
    max_frames: int = FRAMES
    """frame level: leave out what comes after that many frames"""
    audio: bool = True
    """read the audio features beside those of the image; the release of 2016 has none"""
    classes: int = CLASSES
    """different labels: 3,862 since May 2018, 4,716 in February 2017, 4,800 in 2016"""

    name = "youtube8m"
    every_step = False
    monitor = "hit_at_1"
    lower_is_better = False

    def __post_init__(self) -> None:
        check_choice("level", self.level, ["frame", "video"])
        check_count("max_frames", self.max_frames)
        check_count("classes", self.classes)
        if self.level == "video" and self.max_frames != FRAMES:
            raise ValueError(f"expected max_frames only at level frame, got {self.max_frames}")

    @property
    def input_size(self) -> int:
        return sum(SIZES.values()) if self.audio else SIZES["rgb"]

    @property
    def output_size(self) -> int:
        return self.classes

    @property
    def baselines(self) -> dict[str, float]:
        """All labels equally likely, as many as a video has on average."""
        rest = 1 - self._share
        return {"uniform": -self.classes * (self._share * math.log(self._share) + rest * math.log(rest))}

    @property
    def _share(self) -> float:
        """Of all classes, those that a video has."""
        return min(0.5, LABELS / self.classes)

    @property
    def parse(self) -> Parse:
        """Makes a Video of a record."""
        return parser(self.level, self.classes, self.audio, self.max_frames)

    def samples(self, split: str, seed: int) -> Samples:
        """Videos in the order of the shards; the seed makes no difference."""
        check_choice("split", split, ["train", "valid", *self.test_sets])
        shards = find_videos(self.level, self.parse, self.folder)[split]
        return _Videos(self, shards) if self.level == "video" else _Frames(self, shards)

    def check(self, config: Config) -> None:
        for split in ("valid", *self.test_sets):
            self.samples(split, config.seed)

    def run(self, model: nn.Module, batch: Batch, state: Any = None) -> tuple[Outcome, Any]:
        """Rankings take time: an update does without them."""
        if not model.training:
            return super().run(model, batch, state)
        output, state = model(batch.inputs, state, batch.lengths)
        return Outcome({"loss": self._loss(output, batch)}), state

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """The loss of a video is the sum over all classes of the binary cross-entropy."""
        hits_B, equal_recall_B = precisions(output.detach(), batch.targets)
        return {
            "loss": self._loss(output, batch),
            "hit_at_1": average(hits_B, batch.weights),
            "perr": average(equal_recall_B, batch.weights),
        }

    def _loss(self, output: Tensor, batch: Batch) -> Score:
        losses_BC = functional.binary_cross_entropy_with_logits(output, batch.targets, reduction="none")
        return average(losses_BC.sum(-1), batch.weights)

    def kept(self, output: Tensor, batch: Batch) -> dict[str, Tensor]:
        """Of each video its first predictions; of the batch, in one row, how many videos have each label."""
        if batch.weights is not None:
            read = batch.weights > 0
            output, batch = output[read], Batch(batch.inputs, batch.targets[read])
        classes_BK = ranking(output, TOP)
        return {
            "classes": classes_BK,
            "confidence": output.gather(-1, classes_BK),
            "correct": batch.targets.gather(-1, classes_BK),
            "labels": batch.targets.sum(0, keepdim=True),
        }

    def pooled(self, kept: Mapping[str, Tensor]) -> dict[str, float]:
        classes, confidence, correct = (kept[name].flatten() for name in ("classes", "confidence", "correct"))
        labels_C = kept["labels"].sum(0)
        return {
            "gap_at_20": global_average_precision(confidence, correct, float(labels_C.sum())),
            "map": mean_average_precision(confidence, correct, classes, labels_C),
        }

    def model(self, config: ModelConfig) -> nn.Module:
        from slimrnn.tasks.frame_model import FrameModel

        net = FrameModel(self.input_size, self.output_size, config, every_step=False)
        # A video has a few of thousands of labels: else the first hundreds of updates only teach all outputs to be low,
        # through the state, which other videos do not share.
        nn.init.constant_(net.readout.bias, math.log(self._share / (1 - self._share)))
        return net


@dataclass(frozen=True, eq=False)
class _Videos:
    """Videos by number. One whose record is bad has no weight."""

    task: YouTube8MTask
    shards: Shards

    @property
    def size(self) -> int:
        return self.shards.size

    def fetch(self, indices: Indices) -> Batch:
        parse = self.task.parse
        videos = [self.shards.read(int(index), parse) for index in indices]
        lengths_B = [1 if video is None else len(video.features_TI) for video in videos]
        dtype = np.float32 if self.task.level == "video" else np.uint8
        inputs_TBI = np.zeros((max(lengths_B, default=1), len(videos), self.task.input_size), dtype)
        targets_BC = np.zeros((len(videos), self.task.classes), np.float32)
        for b, video in enumerate(videos):
            if video is not None:
                inputs_TBI[: lengths_B[b], b] = video.features_TI
                targets_BC[b, video.labels] = 1
        return Batch(
            torch.from_numpy(inputs_TBI),
            torch.from_numpy(targets_BC),
            torch.tensor([float(video is not None) for video in videos]),
            None if self.task.level == "video" else torch.tensor(lengths_B, dtype=torch.int64),
        )


class _Frames(_Videos):
    """... of different lengths."""

    def lengths(self, indices: Indices) -> Indices:
        """The frames of each by the size of its record, which is exact but for records with very many labels."""
        frames: Indices = self.shards.sizes_N[indices] // sum(FRAME_BYTES[name] for name in SIZES)
        return frames.clip(1, self.task.max_frames)
