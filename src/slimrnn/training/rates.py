"""The learning rate over time."""

from __future__ import annotations

import math

from torch.optim.lr_scheduler import LambdaLR

from slimrnn.training.config import OptimConfig


class Rate:
    """The factor on the learning rate at each update: a schedule, times a scale that falls with every plateau and
    every recovery. Called with the number of updates done; LambdaLR saves its attributes in checkpoints."""

    def __init__(self, optim: OptimConfig, updates: int, lower_is_better: bool = True) -> None:
        self.schedule: str = optim.schedule
        self.every, self.patience, self.factor = optim.schedule_every, optim.schedule_patience, optim.schedule_factor
        self.updates, self.sign = updates, 1 if lower_is_better else -1
        self.scale, self.best, self.waited = 1.0, math.inf, 0

    def __call__(self, update: int) -> float:
        if self.schedule == "cosine":
            return self.scale * (1 + math.cos(math.pi * min(update / max(1, self.updates), 1))) / 2
        if self.schedule == "step":
            return self.scale * float(self.factor ** (update // self.every))
        return self.scale

    def observe(self, score: float) -> None:
        """A plateau schedule waits until `patience` scores in a row were no gain, then reduces the rate."""
        if self.schedule != "plateau":
            return
        self.waited += 1
        if self.sign * score < self.best:
            self.best, self.waited = self.sign * score, 0
        if self.waited >= self.patience:
            self.scale *= self.factor
            self.waited = 0

    def halve(self) -> None:
        self.scale /= 2


def refresh_rate_(scheduler: LambdaLR) -> None:
    """Apply a changed scale from the next update on."""
    for group, base, factor in zip(
        scheduler.optimizer.param_groups, scheduler.base_lrs, scheduler.lr_lambdas, strict=True
    ):
        group["lr"] = base * factor(scheduler.last_epoch)
