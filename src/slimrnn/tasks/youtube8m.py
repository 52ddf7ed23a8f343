"""YouTube-8M: label videos by topic from features of their frames, one per second (factorized paper §3.2).

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

LABELS_PER_VIDEO = 3.0  # on average


@dataclass(frozen=True)
class YouTube8MTask(Task):
    """Label videos by topic, from features of their frames."""

    level: Literal["frame", "video"] = "frame"
    """frame: one time step per second, up to max_frames; video: one step, the mean of the features"""
    folder: Path | None = None
    """folder of the shards train*.tfrecord, validate*.tfrecord, test*.tfrecord; default: yt8m in the data directory, at
    video level yt8m_sample. A split without shards gets a fixed part of the records of the others"""
    max_frames: int = FRAMES
    """frame level: truncate videos to this many frames"""
    audio: bool = True
    """use the audio features as well as the image features; the release of 2016 has none"""
    classes: int = CLASSES
    """number of labels: 3,862 since May 2018, 4,716 in February 2017, 4,800 in 2016"""

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
        """All labels equally likely, with the average number of labels per video."""
        rest = 1 - self._share
        return {"uniform": -self.classes * (self._share * math.log(self._share) + rest * math.log(rest))}

    @property
    def _share(self) -> float:
        """Average share of the classes that a video has."""
        return min(0.5, LABELS_PER_VIDEO / self.classes)

    @property
    def parse(self) -> Parse:
        """Function that parses a record to a Video."""
        return parser(self.level, self.classes, self.audio, self.max_frames)

    def samples(self, split: str, seed: int) -> Samples:
        """Videos in the order of the shards, for any seed."""
        check_choice("split", split, ["train", "valid", *self.test_sets])
        shards = find_videos(self.level, self.parse, self.folder)[split]
        return _Videos(self, shards) if self.level == "video" else _Frames(self, shards)

    def check(self, config: Config) -> None:
        for split in ("valid", *self.test_sets):
            self.samples(split, config.seed)

    def run(self, model: nn.Module, batch: Batch, state: Any = None) -> tuple[Outcome, Any]:
        """Updates compute the loss only: rankings take time."""
        if not model.training:
            return super().run(model, batch, state)
        output, state = model(batch.inputs, state, batch.lengths)
        return Outcome({"loss": self._loss(output, batch)}), state

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """The loss of a video is the binary cross-entropy, summed over the classes."""
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
        """Top predictions of each video; and, in one row, the number of videos with each label in the batch."""
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
        from slimrnn.training.models.frame_model import FrameModel

        net = FrameModel(self.input_size, self.output_size, config, every_step=False)
        # A video has few of thousands of labels: without this the first hundreds of updates only lower all outputs,
        # through the state, which differs between videos.
        last: Any = net.output[1] if isinstance(net.output, nn.Sequential) else net.readout
        nn.init.constant_(last.bias, math.log(self._share / (1 - self._share)))
        return net


@dataclass(frozen=True, eq=False)
class _Videos:
    """Videos by index. Videos with corrupt records have no weight."""

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
    """Videos of different lengths."""

    def lengths(self, indices: Indices) -> Indices:
        """Frames of each video, from the size of its record: exact unless it has very many labels."""
        frames: Indices = self.shards.sizes_N[indices] // sum(FRAME_BYTES[name] for name in SIZES)
        return frames.clip(1, self.task.max_frames)
