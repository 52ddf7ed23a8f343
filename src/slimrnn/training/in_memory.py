"""Training without a directory: the same loop, with the best net and the curve kept in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from slimrnn.training.checks import check_budget
from slimrnn.training.config import Config
from slimrnn.training.curve import Row
from slimrnn.training.engine import run_settings
from slimrnn.training.interrupts import Interrupts
from slimrnn.training.learner import Learner, net_to_train
from slimrnn.training.loop import Loop
from slimrnn.training.progress import Progress


@dataclass(frozen=True)
class Fitted:
    """What training came to."""

    model: nn.Module  #: the best net on the validation set, for inference
    history: list[Row]  #: a row for each evaluation
    ended: str  #: finished, target, patience, budget or interrupted
    updates: int  #: done in all
    best_update: int  #: after which the net was best


def train_in_memory(config: Config, *, budget: float | None = None, quiet: bool = True) -> Fitted:
    """Train a net and write no files. `budget` is a time limit in seconds.

    Ctrl-C ends the training at once, and what it came to is returned as "interrupted"; the caller decides whether to
    go on."""
    check_budget(budget)
    model = net_to_train(config)
    with run_settings(config):
        progress = Progress(config, quiet, speaks=not quiet)
        loop = _LoopInMemory(config, Learner(config, model, progress.say), progress, Interrupts(), budget)
        try:
            loop.run()
            if loop.learner.update > loop.history[-1]["update"]:  # stopped between evaluations
                loop.evaluate()
        except KeyboardInterrupt:
            loop.ended = "interrupted"
        finally:
            progress.end()
        if loop.best_weights is not None:
            model.load_state_dict(loop.best_weights)
    return Fitted(model.eval(), loop.history, loop.ended, loop.learner.update, max(loop.best_update, 0))


class _LoopInMemory(Loop):
    """Evaluates the validation set only. `Interrupts` is not entered, so that signals stay the caller's."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.sets = {"valid": self.sets["valid"]}
        self.history: list[Row] = []
        self.best_weights: dict[str, Tensor] | None = None

    def evaluate(self) -> bool:
        before = self.best_update
        reached = super().evaluate()
        self.history.append(self.progress.row)
        if self.best_update != before:
            self.best_weights = {name: value.clone() for name, value in self.learner.model.state_dict().items()}
        return reached
