"""Recommendation: what a user takes next (factorized paper §3.3).

Shape suffixes: T time, B sequences, P positions that count, V items, E width of the embeddings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from slimrnn._checks import check_choice, check_count, check_number
from slimrnn.data.interactions import Columns, Interactions, read_interactions
from slimrnn.data.movielens import read_movielens, read_titles
from slimrnn.tasks.recommend_baselines import baseline_scores
from slimrnn.tasks.recommend_model import RecommenderModel
from slimrnn.tasks.recommend_splits import (
    GAPS,
    SPLITS,
    Histories,
    Windows,
    gaps_of,
    leave_one_out,
    temporal,
    train_counts,
    without_seen,
)
from slimrnn.tasks.recommendation_metrics import ranking_scores, ranks_of
from slimrnn.tasks.sampled_softmax import AT_A_TIME, Sampler, log_uniform, softmax_loss, unigram
from slimrnn.training.config import Config, ModelConfig
from slimrnn.training.errors import ConfigError
from slimrnn.training.task import Batch, Outcome, Samples, Score, Task


@dataclass(frozen=True)
class RecommendTask(Task):
    """Predict what a user takes next, on MovieLens or any log of events."""

    data: Literal["ml-1m-sequences", "ml-1m", "ml-latest-small"] = "ml-1m-sequences"
    """a log of MovieLens"""
    file: Path | None = None
    """a log of your own instead: .csv, .tsv, .parquet, or .txt and .dat as MovieLens has them"""
    user_column: str | None = None
    """file: by default user, user_id or userId"""
    item_column: str | None = None
    """file: by default item, item_id, itemId or movieId"""
    time_column: str | None = None
    """file: by default timestamp or time; in seconds, or dates"""
    page_column: str | None = None
    """file: of the page or another context of an event, which the net then reads too; by default none"""
    in_order: bool = False
    """file: there are no times, and rows are in time order"""
    skip_incomplete: bool = False
    """file: leave out rows with a value missing, instead of refusing them"""
    split: Literal["leave-one-out", "temporal"] = "leave-one-out"
    """what is to be predicted in the test: the last event of each user, or all events of the last slice of time"""
    test_share: float = 0.1
    """temporal: of the events"""
    valid_share: float = 0.1
    """temporal: of the events, just before the test"""
    max_length: int = 500
    """events of a user that the net reads, the last ones"""
    time_gaps: bool = True
    """where the data has times, the net reads how long ago the event before was"""
    embedding: int = 64
    """width of the embeddings of items, pages and time gaps, which are added"""
    tied: bool = False
    """one embedding of the items for input and output"""
    negatives: int = 20_000
    """items drawn in each update, to hold the right ones against; 0, or as many as there are: all of them"""
    drawn_from: Literal["unigram", "log-uniform"] = "unigram"
    """negatives: in proportion to how often they occur, or by Zipf's law on their ranks"""
    leave_out_seen: bool = False
    """in evaluations, do not rank what the user took before"""

    name = "recommend"
    every_step = True
    monitor = "map_at_20"
    lower_is_better = False

    def __post_init__(self) -> None:
        for option in ("max_length", "embedding"):
            check_count(option, getattr(self, option))
        if self.negatives:
            check_count("negatives", self.negatives)
        for option in ("test_share", "valid_share"):
            check_number(option, getattr(self, option))
            if not 0 < getattr(self, option) < 0.5:
                raise ValueError(f"expected {option} between 0 and 0.5, got {getattr(self, option)}")
            if self.split != "temporal" and getattr(self, option) != getattr(RecommendTask, option):
                raise ValueError(f"expected {option} only with a temporal split, got {getattr(self, option)}")
        for option in ("user_column", "item_column", "time_column", "page_column", "in_order", "skip_incomplete"):
            if getattr(self, option) and self.file is None:
                raise ValueError(f"expected {option} only with file, got {getattr(self, option)!r}")
        if self.in_order and self.time_column is not None:
            raise ValueError(f"expected time_column only without in_order, got {self.time_column!r}")

    # --- data -------------------------------------------------------------------------------------------

    @property
    def log(self) -> Interactions:
        """All events."""
        if self.file is None:
            return read_movielens(self.data)
        columns = Columns(self.user_column, self.item_column, self.time_column, self.page_column, self.in_order)
        return read_interactions(Path(self.file), columns, self.skip_incomplete)

    @property
    def titles(self) -> dict[str, str]:
        """Of items, by their ids, where the data has them."""
        return read_titles(self.data) if self.file is None else {}

    def windows(self, split: str) -> Windows:
        """The sequences of a split, as places in the log."""
        check_choice("split", split, SPLITS)
        log = self.log
        if self.split == "temporal" and log.times is None:
            where = self.data if self.file is None else self.file
            raise ConfigError(f"expected times for a temporal split, got {where}, which has none: try leave-one-out")
        return _windows(log, self.split, self.max_length, self.valid_share, self.test_share)[split]

    def samples(self, split: str, seed: int) -> Samples:
        """Users in the order of their ids; the seed makes no difference."""
        return Histories(self.log, self.windows(split), gaps_of(self.log) if self.time_gaps else None)

    @property
    def input_size(self) -> int:
        return self.embedding

    @property
    def output_size(self) -> int:
        return len(self.log.item_ids)

    # --- the net and its scores -------------------------------------------------------------------------

    def default_model(self) -> ModelConfig:
        return ModelConfig("gru")

    def model(self, config: ModelConfig) -> nn.Module:
        log = self.log
        sizes = {"item": len(log.item_ids)}
        if log.pages is not None:
            sizes["page"] = len(log.page_ids)
        if self.time_gaps and log.times is not None:
            sizes["gap"] = GAPS
        return RecommenderModel(sizes, self.embedding, config, self.tied, log.catalogue)

    def run(self, model: nn.Module, batch: Batch, state: Any = None) -> tuple[Outcome, Any]:
        """Updates follow the sampled softmax; evaluations rank all items, some positions at a time."""
        assert isinstance(model, RecommenderModel)
        hidden_TBE, state = model(batch.inputs, state, batch.lengths)
        counts = torch.ones_like(batch.targets, dtype=torch.bool) if batch.weights is None else batch.weights > 0
        rows_PE, targets_P = hidden_TBE[counts], batch.targets[counts]
        weights_P = rows_PE.new_ones(len(rows_PE)) if batch.weights is None else batch.weights[counts].to(rows_PE)
        if model.training:
            candidates = self._sampler.draw() if self.is_sampled else None
            matrix_VE, bias_V = model.output_embedding
            loss = softmax_loss(rows_PE, targets_P, weights_P, matrix_VE, bias_V, candidates)
            return Outcome({"loss": Score(loss, weights_P.sum())}), state
        totals: dict[str, Score] = {}
        events_P = batch.inputs[..., -1][counts]
        for part in _parts(len(rows_PE), self.output_size):
            scores = model.scores(rows_PE[part])
            found = self._ranked(scores, targets_P[part], weights_P[part], events_P[part])
            totals = {name: _plus(totals.get(name), score) for name, score in found.items()}
        return Outcome(totals), state

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """Of an output (T, B, V) that has the scores of all items."""
        weights = torch.ones_like(batch.targets) if batch.weights is None else batch.weights
        flat = output.reshape(-1, output.shape[-1])
        return self._ranked(
            flat, batch.targets.reshape(-1), weights.to(output).reshape(-1), batch.inputs[..., -1].reshape(-1)
        )

    def _ranked(self, scores_PV: Tensor, targets_P: Tensor, weights_P: Tensor, events_P: Tensor) -> dict[str, Score]:
        losses_P = functional.cross_entropy(scores_PV, targets_P, reduction="none")
        if self.leave_out_seen:
            scores_PV = without_seen(scores_PV, targets_P, events_P, self.log)
        values = {"loss": losses_P, **ranking_scores(ranks_of(scores_PV, targets_P[:, None]))}
        return {name: Score((value.to(weights_P) * weights_P).sum(), weights_P.sum()) for name, value in values.items()}

    @property
    def is_sampled(self) -> bool:
        """Or else all items are in the softmax."""
        return 0 < self.negatives < self.output_size

    @property
    def _sampler(self) -> Sampler:
        return _sampler(self.log, self.windows("train"), self.drawn_from, self.negatives)

    def rivals(self, split: str) -> dict[str, dict[str, float]]:
        """Popularity, and the items that followed the last one."""
        return baseline_scores(self.log, self.windows("train"), self.windows(split), self.leave_out_seen)

    def check(self, config: Config) -> None:
        for split in SPLITS:
            if len(self.windows(split)) == 0:
                raise ConfigError(f"expected events to predict in {split}, got none: the log has too few")
        if config.model.bidirectional:
            raise ValueError("expected one direction, got a bidirectional net, which reads what it is to predict")


def _parts(count: int, items: int) -> Iterator[slice]:
    """Positions whose scores of all items fit into a block; one part at least, so that there are sums of nothing."""
    size = max(1, AT_A_TIME // max(1, items))
    return (slice(start, start + size) for start in range(0, max(1, count), size))


def _plus(one: Score | None, other: Score) -> Score:
    return other if one is None else Score(one.total + other.total, one.weight + other.weight)


@lru_cache(maxsize=4)
def _windows(
    log: Interactions, split: str, max_length: int, valid_share: float, test_share: float
) -> dict[str, Windows]:
    if split == "leave-one-out":
        return leave_one_out(log, max_length)
    return temporal(log, max_length, valid_share, test_share)


@lru_cache(maxsize=4)
def _sampler(log: Interactions, windows: Windows, drawn_from: str, count: int) -> Sampler:
    counts = train_counts(log, windows)
    return Sampler(unigram(counts) if drawn_from == "unigram" else log_uniform(counts), count)
