"""What an update changes: net, optimizer, learning rate, carried state, and the good state to recover from.

The loop and `SequenceModule` share it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from slimrnn.errors import TrainingDiverged
from slimrnn.training.checks import build_model, check
from slimrnn.training.config import Config
from slimrnn.training.distillation import Distillation, each
from slimrnn.training.launch import ALONE, Place
from slimrnn.training.models.sequence_model import learned_initial_states, recurrent_layers
from slimrnn.training.nets import START, load_weights_from
from slimrnn.training.optim import build_optimizer, clip_gradients_, freeze_recurrent_, gradient_norm
from slimrnn.training.rates import Rate, refresh_rate_
from slimrnn.training.recovery import GoodState, is_finite
from slimrnn.training.task import Batch, Score, Task

TINY = 1e-30


def net_to_train(config: Config, model: nn.Module | None = None, *, resumes: bool = False) -> nn.Module:
    """Check the settings; the task's net, or `model`, with frozen matrices or layers if the settings say so. A run that
    `resumes` has all weights in its checkpoint, and does not need the file that it started from."""
    check(config)
    model = build_model(config) if model is None else model.to(getattr(torch, config.dtype))
    if config.start_from is not None and not resumes:
        load_weights_from(model, _start(config.start_from, config.out))
    if config.optim.recurrent_rate == 0:
        freeze_recurrent_(model)
    if config.optim.readout_only:
        for stack in recurrent_layers(model):
            stack.requires_grad_(False)
    return model


def _start(start_from: Path, directory: Path | None) -> Path:
    """The file to start from: of a compressed run, the one in its own directory, which may have been moved. Files of
    other names there, such as best.safetensors, are what the run itself wrote."""
    own = None if directory is None or start_from.name != START else directory / START
    return own if own is not None and own.exists() else start_from


class Objective(nn.Module):
    """The loss of a batch as a module for DDP to wrap, since tasks call other methods of their nets than `forward`."""

    def __init__(self, task: Task, model: nn.Module) -> None:
        super().__init__()
        self.task, self.model = task, model

    def forward(self, batch: Batch, state: Any) -> tuple[Score, Any]:
        """The loss as a sum and its weight, and the state to continue from."""
        outcome, state = self.task.run(self.model, batch, state)
        return outcome.scores["loss"], each(Tensor.detach, state)  # truncated BPTT: no gradient beyond a piece


class Learner:
    """`model` is on its device. `update` counts the updates done."""

    def __init__(self, config: Config, model: nn.Module, say: Callable[[str], Any], place: Place = ALONE) -> None:
        self.config, self.model, self.say, self.place = config, model, say, place
        self.objective: nn.Module = Objective(config.task, model)
        if config.teacher is not None:
            self.objective = Distillation(config, model)
        self.stacks, self.initial_states = recurrent_layers(model), learned_initial_states(model)
        self.trainable = [p for p in model.parameters() if p.requires_grad]
        self.rate = Rate(config.optim, config.updates, config.task.lower_is_better)
        self.optimizer = build_optimizer(model, config.optim)
        self.schedule = LambdaLR(self.optimizer, self.rate)
        self.update = 0
        self.recoveries: list[dict[str, Any]] = []
        self.mean_loss = MeanLoss()
        self.someone_stops = False  # some process wants to stop: all stop together
        self._carried: Any = None  # the state after the last batch, for truncated backpropagation
        self._loss: tuple[Tensor, Tensor | float] = (torch.zeros(()), 0.0)  # of this update, over all processes
        self._good = GoodState.of(0, model, self.optimizer)

    # --- the parts of an update, in their order ---------------------------------------------------------

    def loss(self, batch: Batch, stop: bool = False) -> Tensor:
        """The mean loss of the batch plus the penalty. `stop` tells the other processes that this one wants to stop."""
        batch = replace(batch, update=self.update)
        (total, weight), self._carried = self.objective(batch, None if batch.first else self._carried)
        loss: Tensor = total / self._share(total.detach(), weight, stop)
        if not batch.first:  # learned initial states are unused here, but DDP expects all gradients
            loss = sum((0 * initial.sum() for initial in self.initial_states), loss)
        if self.config.optim.penalty:
            for stack in self.stacks:
                loss = loss + self.config.optim.penalty * stack.penalty()
        return loss

    def _share(self, total: Tensor, weight: Tensor | float, stop: bool) -> Tensor | float:
        """The divisor of this process's total with which DDP's mean of gradients is the gradient of the mean over the
        whole batch."""
        world = self.place.world
        if world > 1:
            sums = total.new_tensor([total, weight, stop], dtype=torch.float64)
            torch.distributed.all_reduce(sums)
            total, weight, self.someone_stops = sums[0], sums[1], bool(sums[2])
        self._loss = (total, weight)
        return (weight.clamp_min(TINY) if isinstance(weight, Tensor) else max(weight, TINY)) / world

    def clip_or_recover_(self) -> None:
        """Clip the gradients, which are the same in all processes. If they are not finite, drop them and restore
        the last good state; the optimizer's step then changes nothing."""
        norm = gradient_norm([p.grad for p in self.trainable if p.grad is not None])
        if norm.isfinite():
            self.mean_loss.add(*self._loss)
            clip_gradients_(self.trainable, norm, self.config.optim)
        else:
            self._recover(f"the gradient of update {self.update + 1:,} is not finite")

    def constrain_(self) -> None:
        """Hard constraints on weights, such as the largest norm of a row."""
        for stack in self.stacks:
            stack.constrain_()

    # --- between updates --------------------------------------------------------------------------------

    def ensure_finite(self) -> None:
        """Recover if a weight or the optimizer's state is infinite or NaN, so that it never becomes a good state."""
        if not is_finite(self.model, self.optimizer):
            self._recover(f"the net or its optimizer after update {self.update:,} is not finite")

    @property
    def current_rate(self) -> float:
        """The learning rate of the next update, without the factor of the recurrent matrices."""
        return float(self.optimizer.param_groups[0]["lr"])

    def observe(self, score: float) -> None:
        """Pass the validation score to a plateau schedule."""
        self.rate.observe(score)
        refresh_rate_(self.schedule)

    def _recover(self, reason: str) -> None:
        good, done, most = self._good, len(self.recoveries), self.config.optim.max_recoveries
        if done >= most:
            raise TrainingDiverged(
                f"{reason}, and {done} returns to a good net at half the rate did not help: try a smaller lr, clip_norm"
                " or clip_value"
            )
        good.restore_(self.model, self.optimizer)
        self._carried = None
        self.rate.halve()
        refresh_rate_(self.schedule)
        rate = self.current_rate
        self.recoveries.append({"update": self.update, "back_to": good.update, "rate": rate})
        self.say(
            f"{reason}: back to the net after update {good.update:,} at half the rate, {rate:.3g} ({done + 1}/{most})"
        )

    # --- checkpoints ------------------------------------------------------------------------------------

    def state_dict(self, becomes_good: bool = True) -> dict[str, Any]:
        """Everything but the weights, the optimizer and the schedule; all processes must call this.

        A regular checkpoint is also the good state to recover from. An extra one, written when a run is stopped, is
        not: it contains the good state."""
        state = {
            "update": self.update,
            "state": _of_all_processes(self._carried, self.place),
            "sums": self.mean_loss.sums(),
            "recoveries": list(self.recoveries),
        }
        if not becomes_good:
            return state | {"good": dict(vars(self._good))}
        self._good = GoodState.of(self.update, self.model, self.optimizer)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Call it after loading the weights, the optimizer and the schedule."""
        self.update = state["update"]
        self._carried = _of_one_process(state["state"], self.place, next(self.model.parameters()).device)
        self.mean_loss, self.recoveries = MeanLoss(*state["sums"]), list(state["recoveries"])
        good = state.get("good")
        self._good = GoodState.of(self.update, self.model, self.optimizer) if good is None else GoodState(**good)


class MeanLoss:
    """Mean loss since the last `take`. Tensors are read only then, so that a GPU is not waited for."""

    def __init__(self, total: float = 0.0, weight: float = 0.0) -> None:
        self._sums = [total, weight]
        self._waiting: list[tuple[Tensor, Tensor | float]] = []

    def add(self, total: Tensor, weight: Tensor | float) -> None:
        self._waiting.append((total, weight))

    def sums(self) -> list[float]:
        """Total and weight."""
        for total, weight in self._waiting:  # in order: the sum does not depend on when it is read
            self._sums[0] += float(total)
            self._sums[1] += float(weight)
        self._waiting.clear()
        return list(self._sums)

    def take(self) -> float:
        """Return the mean and reset."""
        total, weight = self.sums()
        self._sums = [0.0, 0.0]
        return total / weight if weight else float("nan")


# The state carried over by truncated BPTT: tensors with the sequences on axis 1. Each process has its own sequences;
# checkpoints hold all of them.


def _of_all_processes(state: Any, place: Place) -> Any:
    """The states of all sequences; all processes must call this."""

    def joined(part: Tensor) -> Tensor:
        if place.world == 1:
            return part
        count = torch.tensor(part.shape[1], device=part.device)
        torch.distributed.all_reduce(count)
        whole = part.new_zeros(part.shape[0], int(count), *part.shape[2:])
        whole[:, place.rank :: place.world] = part
        torch.distributed.all_reduce(whole)
        return whole

    return each(joined, state)


def _of_one_process(state: Any, place: Place, device: torch.device) -> Any:
    return each(lambda whole: whole[:, place.rank :: place.world].to(device).contiguous(), state)
