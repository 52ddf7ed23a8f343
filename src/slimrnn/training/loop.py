"""The training loop: update, log, evaluate, write a checkpoint, and so on until the end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from slimrnn.training import random
from slimrnn.training.batches import Batches, on_device
from slimrnn.training.checkpoints import checkpoint_path, remove_old, write_checkpoint
from slimrnn.training.config import Config
from slimrnn.training.curve import Curve, Row
from slimrnn.training.evaluation import EvaluationBatches, evaluated_sizes, mean_row_norm, measure
from slimrnn.training.interrupts import Interrupts
from slimrnn.training.launch import in_any_process
from slimrnn.training.learner import Learner
from slimrnn.training.nets import WEIGHTS
from slimrnn.training.progress import Progress
from slimrnn.training.record import fingerprint
from slimrnn.training.run_files import write_tensors
from slimrnn.training.task import Batch

KEPT = ("ended", "best", "best_update", "update", "seconds_done", "evaluating", "evaluation_seconds")  # in checkpoints


class Callback(Protocol):
    """Called after every update, in the first process."""

    def after_update(self, update: int, model: nn.Module, batch: Batch, say: Callable[[str], Any]) -> dict[str, float]:
        """Numbers for TensorBoard by name; may be empty."""
        ...


class Loop:
    """Everything that follows from an update is done before its checkpoint is written, so a resumed run repeats
    and misses nothing. Only the first process has a directory and a curve."""

    def __init__(
        self,
        config: Config,
        learner: Learner,
        progress: Progress,
        interrupts: Interrupts,
        budget: float | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.began = self.start = time.perf_counter()
        self.config, self.learner, self.progress, self.interrupts = config, learner, progress, interrupts
        self.budget, self.callbacks, self.place = budget, callbacks, learner.place
        self.device = next(learner.model.parameters()).device
        self.batches = Batches.of_run(config, self.place)
        self.sets = {
            split: EvaluationBatches(config, split, size, self.place.rank, self.place.world)
            for split, size in evaluated_sizes(config).items()
        }
        self.dropout_key = random.key(config.seed, "dropout", self.place.rank)
        self.directory: Path | None = None
        self.curve: Curve | None = None
        self.ended = "finished"
        self.best, self.best_update = math.inf, -1
        self.seconds_before = 0.0  # of the run, when this process took it up
        self.update, self.seconds_done = 0, 0.0  # at the last checkpoint
        self.evaluation_seconds, self.evaluating = 0.0, 0.0  # of the last one, and of all

    def run(self) -> None:
        """Train to the last update, or until the target, the budget or a signal ends the run."""
        config, learner, batches = self.config, self.learner, iter(self.batches)
        self.start, self.seconds_before = time.perf_counter(), self.seconds_done
        self.progress.begin(learner.update)
        learner.model.train()
        if learner.update == 0:
            self.evaluate()
        while self.ended == "finished" and learner.update < config.updates:
            batch = on_device(next(batches), config, self.device)
            self.seed_dropout()

            loss = learner.loss(batch, stop=self.wants_to_stop())
            learner.optimizer.zero_grad()
            loss.backward()
            learner.clip_or_recover_()
            learner.optimizer.step()
            learner.constrain_()
            learner.schedule.step()
            learner.update += 1

            self.progress.update(learner.update)
            self.call_back(batch)
            last = learner.update == config.updates
            evaluation_is_due = last or learner.update % config.eval_every == 0
            checkpoint_is_due = last or learner.update % config.checkpoint_every == 0
            stop = learner.someone_stops if self.place.world > 1 else self.wants_to_stop()
            if not (evaluation_is_due or checkpoint_is_due or stop):
                continue
            learner.ensure_finite()
            if evaluation_is_due and self.evaluate():
                self.ended = "target"
            elif evaluation_is_due and not last and self.is_out_of_patience():
                self.ended = "patience"
            elif stop and not last:
                interrupted = in_any_process(self.interrupts.received, self.place, self.device)
                self.ended = "interrupted" if interrupted else "budget"
            if checkpoint_is_due or self.ended != "finished":
                self.save(checkpoint_is_due)

    def seed_dropout(self) -> None:
        """Dropout masks are a function of the seed, the update and the process: there is no generator state to save.
        (torch.manual_seed is a hundred times slower.)"""
        seed = (self.dropout_key + self.learner.update) % 2**64
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def call_back(self, batch: Batch) -> None:
        if self.curve is None:
            return
        for callback in self.callbacks:
            numbers = callback.after_update(self.learner.update, self.learner.model, batch, self.progress.say)
            self.curve.log(self.learner.update, numbers)

    def evaluate(self) -> bool:
        """Score the net, write a row of the curve and keep the best net; True if the target is reached."""
        config, learner, task, start = self.config, self.learner, self.config.task, time.perf_counter()
        row: Row = {"update": learner.update, "seconds": 0.0, "lr": learner.current_rate}
        row["train/loss"] = learner.mean_loss.take()
        for split, batches in self.sets.items():
            scores = measure(learner.model, task, batches, self.place.world)
            row |= {f"{split}/{name}": value for name, value in scores.items()}
        if (norm := mean_row_norm(learner.model)) is not None:
            row["net/row_norm"] = norm
        watched, sign = row[f"valid/{task.monitor}"], 1 if task.lower_is_better else -1
        if sign * watched < self.best:
            self.best, self.best_update = sign * watched, learner.update
            if self.directory is not None:
                data = {"update": learner.update, "score": watched}
                write_tensors(self.directory / "best.safetensors", WEIGHTS, learner.model.state_dict(), data)
        if learner.update % config.eval_every == 0:
            learner.observe(watched)
        row["seconds"] = round(self.elapsed(), 3)
        if self.curve is not None:
            self.curve.write(row)
        self.progress.evaluated(row)
        self.evaluation_seconds = time.perf_counter() - start
        self.evaluating += self.evaluation_seconds
        return self.is_target(sign * watched)

    def save(self, becomes_good: bool) -> None:
        """All processes must call this; the first writes the checkpoint, then deletes old ones."""
        learner = self.learner
        self.update, self.seconds_done = learner.update, self.elapsed()
        checkpoint = {
            "update": learner.update,
            "model": learner.model.state_dict(),
            "optimizer": learner.optimizer.state_dict(),
            "schedule": learner.schedule.state_dict(),
            "learner": learner.state_dict(becomes_good),
            "batches": self.batches.state_dict(),
            "loop": {name: getattr(self, name) for name in KEPT},
        }
        if self.directory is not None:
            checkpoints = self.directory / "checkpoints"
            write_checkpoint(checkpoint_path(checkpoints, learner.update), fingerprint(self.config), checkpoint)
            remove_old(checkpoints)

    def load(self, checkpoint: dict[str, Any]) -> None:
        """A run that was killed after it reached its target, or the end of its patience, stays ended, unless these
        have changed."""
        learner = self.learner
        learner.model.load_state_dict(checkpoint["model"])
        learner.optimizer.load_state_dict(checkpoint["optimizer"])
        learner.schedule.load_state_dict(checkpoint["schedule"])
        learner.load_state_dict(checkpoint["learner"])
        self.batches.load_state_dict(checkpoint["batches"])
        vars(self).update({name: checkpoint["loop"][name] for name in KEPT})
        reached = {"target": self.is_target(self.best), "patience": self.is_out_of_patience()}
        if not reached.get(self.ended, False):
            self.ended = "finished"

    def is_target(self, score: float) -> bool:
        """Whether a score (negated if higher is better) reaches the target."""
        target, sign = self.config.stop_at, 1 if self.config.task.lower_is_better else -1
        return target is not None and score <= sign * target

    def is_out_of_patience(self) -> bool:
        """Whether so many evaluations have passed since the best one; a score that is no number is none."""
        patience, every = self.config.patience, self.config.eval_every
        return patience is not None and self.learner.update - max(self.best_update, 0) >= patience * every

    def wants_to_stop(self) -> bool:
        return self.interrupts.received or self.is_over_budget()

    def is_over_budget(self) -> bool:
        """Including the time of three evaluations: of the best net, of the last, and one that may be due before."""
        if self.budget is None:
            return False
        return time.perf_counter() - self.began + 3 * self.evaluation_seconds > self.budget

    def elapsed(self) -> float:
        return self.seconds_before + time.perf_counter() - self.start
