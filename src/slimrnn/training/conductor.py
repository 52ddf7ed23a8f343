"""What happens between updates: evaluations, the curve, the best net, checkpoints, and the decision to stop."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from slimrnn.training import random
from slimrnn.training.checkpoints import checkpoint_path, remove_old
from slimrnn.training.config import Config
from slimrnn.training.curve import Curve, Row
from slimrnn.training.evaluation import EvaluationBatches, measure
from slimrnn.training.files import write_tensors
from slimrnn.training.interrupts import Interrupts
from slimrnn.training.module import SequenceModule
from slimrnn.training.nets import WEIGHTS
from slimrnn.training.progress import Progress


class Conductor(Callback):
    """All that it does is done after an update, in this order: evaluate, log, keep the best, write a checkpoint, stop.

    So a checkpoint holds whole updates with all their consequences, and a resumed run repeats none of them. The
    process that writes has a directory and a curve, the others have none."""

    def __init__(self, config: Config, progress: Progress, interrupts: Interrupts, budget: float | None = None) -> None:
        self.config, self.progress, self.interrupts, self.budget = config, progress, interrupts, budget
        self.directory: Path | None = None
        self.curve: Curve | None = None
        self.ended = "finished"
        self.best, self.best_update = math.inf, -1
        self.seconds_before = 0.0  # of the run, when this process took it up
        self.began = self.start = time.perf_counter()
        self.update, self.seconds_done = 0, 0.0  # at the last checkpoint
        self.evaluation_seconds, self.evaluating = 0.0, 0.0  # of the last one, and of all
        self.dropout_key = 0
        self.sets: dict[str, EvaluationBatches] = {}

    # --- Lightning's hooks ------------------------------------------------------------------------------

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        assert isinstance(module, SequenceModule)
        self.interrupts.take_over()
        self.dropout_key = random.key(self.config.seed, "dropout", trainer.global_rank)
        self.start, self.seconds_before = time.perf_counter(), self.seconds_done
        self.progress.begin(trainer.global_step)
        module.say = self.progress.say
        if trainer.global_step == 0:
            self._evaluate(trainer, module)

    def on_train_batch_start(self, trainer: Trainer, module: LightningModule, batch: Any, batch_idx: int) -> None:
        """What dropout draws is a function of the seed, the update and the process, so that there is no generator's
        state to carry over. (torch.manual_seed would take a hundred times as long.)"""
        assert isinstance(module, SequenceModule)
        seed = (self.dropout_key + trainer.global_step) % 2**64
        torch.default_generator.manual_seed(seed)
        if module.device.type == "cuda":
            torch.cuda.manual_seed(seed)
        module.stop_wanted = self._wants_to_stop()

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        assert isinstance(module, SequenceModule)
        config, update = self.config, trainer.global_step
        self.progress.update(update)
        last = update == config.updates
        stop = module.stop_agreed if trainer.world_size > 1 else self._wants_to_stop()
        evaluation = last or update % config.eval_every == 0
        checkpoint = last or update % config.checkpoint_every == 0
        if not (evaluation or checkpoint or stop):
            return
        module.ensure_finite()
        if evaluation and self._evaluate(trainer, module):
            self.ended = "target"
        elif stop and not last:
            self.ended = "budget" if self._is_over_budget() and not self.interrupts.received else "interrupted"
        trainer.should_stop = self.ended != "finished"
        if checkpoint or trainer.should_stop:
            module.is_stopped_in_between = not checkpoint
            self._save(trainer)

    def state_dict(self) -> dict[str, Any]:
        names = ("ended", "best", "best_update", "update", "seconds_done", "evaluating", "evaluation_seconds")
        return {name: getattr(self, name) for name in names}

    def on_load_checkpoint(self, trainer: Trainer, module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """A run that was killed after it had reached its target is not trained on, unless that was moved."""
        state = checkpoint["callbacks"][self.state_key]
        vars(self).update(state)
        if self.ended != "target" or not self._is_target(self.best):
            self.ended = "finished"
        trainer.should_stop = self.ended == "target"

    # --- parts ------------------------------------------------------------------------------------------

    def _evaluate(self, trainer: Trainer, module: SequenceModule) -> bool:
        """Write a row of the curve; whether the target is reached. Of a test set, as many sequences as the validation
        set has."""
        config, update, start = self.config, trainer.global_step, time.perf_counter()
        task = config.task
        row: Row = {"update": update, "seconds": 0.0, "lr": module.current_rate, "train/loss": module.mean_loss()}
        for split, size in evaluated_sizes(config).items():
            if split not in self.sets:
                self.sets[split] = module.evaluation_batches(split, size)
            scores = measure(module.model, task, self.sets[split], trainer.world_size)
            row |= {f"{split}/{name}": value for name, value in scores.items()}
        watched = row[f"valid/{task.monitor}"]
        sign = 1 if task.lower_is_better else -1
        if sign * watched < self.best:
            self.best, self.best_update = sign * watched, update
            if self.directory is not None:
                data = {"update": update, "score": watched}
                write_tensors(self.directory / "best.safetensors", WEIGHTS, module.model.state_dict(), data)
        if update % config.eval_every == 0:
            module.observe(watched)
        row["seconds"] = round(self._elapsed(), 3)
        if self.curve is not None:
            self.curve.write(row)
        self.progress.evaluated(row)
        self.evaluation_seconds = time.perf_counter() - start
        self.evaluating += self.evaluation_seconds
        return self._is_target(sign * watched)

    def _is_target(self, score: float) -> bool:
        """Whether a score, negative where more is better, is as good as asked for."""
        target, sign = self.config.stop_at, 1 if self.config.task.lower_is_better else -1
        return target is not None and score <= sign * target

    def _save(self, trainer: Trainer) -> None:
        """On all processes, of which one writes. The old ones go after the new one is there."""
        self.update, self.seconds_done = trainer.global_step, self._elapsed()
        directory = self.directory or Path()
        trainer.save_checkpoint(checkpoint_path(directory / "checkpoints", trainer.global_step), weights_only=False)
        if self.directory is not None:
            remove_old(self.directory / "checkpoints")

    def _elapsed(self) -> float:
        return self.seconds_before + time.perf_counter() - self.start

    def _wants_to_stop(self) -> bool:
        return self.interrupts.received or self._is_over_budget()

    def _is_over_budget(self) -> bool:
        """With what three evaluations will take: of the best and of the last net, and one that may be due before."""
        if self.budget is None:
            return False
        return time.perf_counter() - self.began + 3 * self.evaluation_seconds > self.budget


def final_sizes(config: Config) -> dict[str, int]:
    """Sequences of each set in the evaluation that ends a run."""
    tests = {split: config.test_size or size for split, size in config.task.test_sets.items()}
    present = {split: config.task.samples(split, config.seed).size for split in ("valid", *tests)}
    wanted = {"valid": config.valid_size, **tests}
    return {split: min(size, present[split] or size) for split, size in wanted.items()}


def evaluated_sizes(config: Config) -> dict[str, int]:
    """Sequences of each set in the evaluations on the way."""
    return {split: min(size, config.valid_size) for split, size in final_sizes(config).items()}
