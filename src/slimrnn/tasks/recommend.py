"""Recommendation: predict the next item of a user (factorized paper §3.3).

Shape suffixes: T time, B sequences, P scored positions, V items, E width of the embeddings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from slimrnn.errors import ConfigError
from slimrnn.tasks.recommend_baselines import baseline_scores
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
from slimrnn.tasks.sampled_softmax import BLOCK_SIZE, Sampler, log_uniform, softmax_loss, unigram
from slimrnn.training.config import Config, ModelConfig
from slimrnn.training.models.recommender_model import RecommenderModel
from slimrnn.training.task import Batch, Outcome, Samples, Score, Task


@dataclass(frozen=True)
class RecommendTask(Task):
    """Recommend the next item to a user, on MovieLens or any log of events."""

    data: Literal["ml-1m-sequences", "ml-1m", "ml-latest-small"] = "ml-1m-sequences"
    """MovieLens data set"""
    file: Path | None = None
    """your own log instead: .csv, .tsv, .parquet, or .txt and .dat in the format of MovieLens"""
    user_column: str | None = None
    """file: default user, user_id or userId"""
    item_column: str | None = None
    """file: default item, item_id, itemId or movieId"""
    time_column: str | None = None
    """file: default timestamp or time; seconds or dates"""
    page_column: str | None = None
    """file: page or other context of an event, an additional input of the net; default none"""
    in_order: bool = False
    """file: without times, the rows are in time order"""
    skip_incomplete: bool = False
    """file: skip rows with missing values, instead of raising an error"""
    split: Literal["leave-one-out", "temporal"] = "leave-one-out"
    """test events: the last one of each user, or all in the last slice of time"""
    test_share: float = 0.1
    """temporal: share of the events"""
    valid_share: float = 0.1
    """temporal: share of the events, just before the test events"""
    max_length: int = 500
    """truncate histories to the last max_length events"""
    time_gaps: bool = True
    """if the data has times, the time since the previous event is an input too"""
    embedding: int = 64
    """size of the embeddings of items, pages and time gaps, which are summed"""
    tied: bool = False
    """tie the input and output embeddings of the items"""
    negatives: int = 20_000
    """sampled softmax: negative items per update; 0, or the number of items or more: the full softmax"""
    drawn_from: Literal["unigram", "log-uniform"] = "unigram"
    """distribution of the negatives: item frequency, or Zipf's law on the frequency ranks"""
    leave_out_seen: bool = False
    """in evaluations, leave items of the user's history out of the ranking"""

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
        """Titles by item id, if the data has them."""
        return read_titles(self.data) if self.file is None else {}

    def windows(self, split: str) -> Windows:
        """The sequences of a split, as positions in the log."""
        check_choice("split", split, SPLITS)
        log = self.log
        if self.split == "temporal" and log.times is None:
            where = self.data if self.file is None else self.file
            raise ConfigError(f"expected times for a temporal split, got {where}, which has none: try leave-one-out")
        return _windows(log, self.split, self.max_length, self.valid_share, self.test_share)[split]

    def samples(self, split: str, seed: int) -> Samples:
        """Users in the order of their ids, for any seed."""
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

    def check_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Refuse a net with other items or pages."""
        catalogue = weights.get("catalogue")
        if catalogue is not None and [*catalogue.reshape(-1).tolist()] != [self.log.catalogue]:
            known, found = len(weights.get("bias", ())), self.output_size
            raise ValueError(
                f"expected the log that the net was trained on, with {known:,} items, got another, with {found:,}"
            )

    def model(self, config: ModelConfig) -> nn.Module:
        log = self.log
        sizes = {"item": len(log.item_ids)}
        if log.pages is not None:
            sizes["page"] = len(log.page_ids)
        if self.time_gaps and log.times is not None:
            sizes["gap"] = GAPS
        return RecommenderModel(sizes, self.embedding, config, self.tied, log.catalogue)

    def run(self, model: nn.Module, batch: Batch, state: Any = None) -> tuple[Outcome, Any]:
        """Updates use the sampled softmax; evaluations rank all items, in blocks of positions."""
        assert isinstance(model, RecommenderModel)
        hidden_TBE, state = model(batch.inputs, state, batch.lengths)
        is_scored = torch.ones_like(batch.targets, dtype=torch.bool) if batch.weights is None else batch.weights > 0
        rows_PE, targets_P = hidden_TBE[is_scored], batch.targets[is_scored]
        weights_P = rows_PE.new_ones(len(rows_PE)) if batch.weights is None else batch.weights[is_scored].to(rows_PE)
        if model.training:
            candidates = self._sampler.draw() if self.is_sampled else None
            matrix_VE, bias_V = model.output_embedding
            loss = softmax_loss(rows_PE, targets_P, weights_P, matrix_VE, bias_V, candidates)
            return Outcome({"loss": Score(loss, weights_P.sum())}), state
        totals: dict[str, Score] = {}
        events_P = batch.inputs[..., -1][is_scored]
        for block in _blocks(len(rows_PE), self.output_size):
            scores = model.scores(rows_PE[block])
            block_scores = self._ranked(scores, targets_P[block], weights_P[block], events_P[block])
            totals = {name: _plus(totals.get(name), score) for name, score in block_scores.items()}
        return Outcome(totals), state

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """For an output (T, B, V): the scores of all items."""
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
        """Whether training samples negatives, or uses the full softmax."""
        return 0 < self.negatives < self.output_size

    @property
    def _sampler(self) -> Sampler:
        return _sampler(self.log, self.windows("train"), self.drawn_from, self.negatives)

    def rivals(self, split: str) -> dict[str, dict[str, float]]:
        """Popularity, and the most frequent successors of the last item."""
        return baseline_scores(self.log, self.windows("train"), self.windows(split), self.leave_out_seen)

    def check(self, config: Config) -> None:
        for split in SPLITS:
            if len(self.windows(split)) == 0:
                raise ConfigError(f"expected events to predict in {split}, got none: the log has too few")
        if config.model.bidirectional:
            raise ValueError("expected one direction, got a bidirectional net, which sees the target")


def _blocks(count: int, items: int) -> Iterator[slice]:
    """Blocks of positions whose scores of all items fit in memory; at least one, so that there are sums of nothing."""
    size = max(1, BLOCK_SIZE // max(1, items))
    return (slice(start, start + size) for start in range(0, max(1, count), size))


def _plus(total: Score | None, score: Score) -> Score:
    return score if total is None else Score(total.total + score.total, total.weight + score.weight)


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
