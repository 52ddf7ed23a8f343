"""SequenceModule: a task and a net as Lightning sees them, for any Trainer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.trainer.states import TrainerFn
from lightning.pytorch.utilities import rank_zero_warn
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from slimrnn.training.batches import Batches, as_dtype
from slimrnn.training.checks import build_model, check
from slimrnn.training.config import Config
from slimrnn.training.errors import TrainingDiverged
from slimrnn.training.evaluation import EvaluationBatches, Totals
from slimrnn.training.model import learned_initial_states, recurrent_layers
from slimrnn.training.optim import build_optimizer, clip_gradients_, freeze_recurrent_, gradient_norm
from slimrnn.training.rates import Rate, refresh_rate_
from slimrnn.training.recovery import GoodState, is_finite
from slimrnn.training.state import detached, of_all_processes, of_one_process
from slimrnn.training.task import Batch

KEY = "slimrnn"  # of what is ours in Lightning's checkpoints
TINY = 1e-30


class SequenceModule(LightningModule):
    """A task's net, trained as a configuration says: loss, penalty, clipping, rates, constraints, recovery.

    `Trainer(max_steps=config.updates).fit(SequenceModule(config))` is all that it takes: it brings its own data.
    `model` replaces the net that the task would build."""

    def __init__(self, config: Config, model: nn.Module | None = None) -> None:
        super().__init__()
        check(config)
        self.config = config
        self.model = build_model(config) if model is None else model.to(getattr(torch, config.dtype))
        if config.optim.recurrent_rate == 0:
            freeze_recurrent_(self.model)
        self.stacks = recurrent_layers(self.model)
        self.starts = learned_initial_states(self.model)
        self.trainable = [p for p in self.model.parameters() if p.requires_grad]
        self.rate = Rate(config.optim, config.updates, config.task.lower_is_better)
        self.recoveries: list[dict[str, Any]] = []
        self.say: Callable[[str], Any] = rank_zero_warn
        self.stop_wanted = self.stop_agreed = False  # of several processes one may want to stop; all do so together
        self.is_stopped_in_between = False  # by a signal or a budget, at an update that would have had no checkpoint
        self._state: Any = None  # after the last batch, for one that goes on from there
        self._good: GoodState | None = None
        self._loss: tuple[Tensor, Tensor | float] = (torch.zeros(()), 0.0)  # of this update: total and weight, ...
        self._losses: list[tuple[Tensor, Tensor | float]] = []  # ... of those before it, not yet added to ...
        self._sums = [0.0, 0.0]  # ... the sums since the last mean was taken
        self._valid = Totals()
        self._valid_state: Any = None

    def __setattr__(self, name: str, value: Any) -> None:
        """Lightning notes the hook it is in some fifty times per update, for which nn.Module's way is slow."""
        if name == "_current_fx_name":
            self.__dict__[name] = value
        else:
            super().__setattr__(name, value)

    # --- data -------------------------------------------------------------------------------------------

    def train_dataloader(self) -> Batches:
        config = self.config
        return Batches(
            config.task.samples("train", config.seed),
            config.batch_size,
            updates=config.updates,
            seed=config.seed,
            size=config.train_size,
            bptt=config.bptt,
            rank=self.trainer.global_rank,
            world=self.trainer.world_size,
            workers=config.workers,
        )

    def val_dataloader(self) -> EvaluationBatches:
        return self.evaluation_batches("valid", self.config.valid_size)

    def evaluation_batches(self, split: str, size: int) -> EvaluationBatches:
        """This process's part of `size` sequences of a split."""
        return EvaluationBatches(self.config, split, size, self.trainer.global_rank, self.trainer.world_size)

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        batch = as_dtype(batch, getattr(torch, self.config.dtype))
        return batch if batch.inputs.device == device else batch.to(device)

    # --- an update --------------------------------------------------------------------------------------

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        batch = replace(batch, update=self.trainer.global_step)
        outcome, state = self.config.task.run(self.model, batch, None if batch.first else self._state)
        self._state = detached(state)
        total, weight = outcome.scores["loss"]
        loss = total / self._share(total.detach(), weight)
        if not batch.first:  # it has no use for learned initial states, but DDP asks for all gradients
            loss = sum((0 * start.sum() for start in self.starts), loss)
        if self.config.optim.penalty:
            for stack in self.stacks:
                loss = loss + self.config.optim.penalty * stack.penalty()
        return loss

    def _share(self, total: Tensor, weight: Tensor | float) -> Tensor | float:
        """What to divide this process's total by, so that the mean of the processes' gradients is the gradient of the
        mean over the whole batch, however its weight is spread over them."""
        world = self.trainer.world_size
        if world > 1:
            sums = total.new_tensor([total, weight, self.stop_wanted], dtype=torch.float64)
            torch.distributed.all_reduce(sums)
            total, weight, self.stop_agreed = sums[0], sums[1], bool(sums[2])
        self._loss = (total, weight)
        return (weight.clamp_min(TINY) if isinstance(weight, Tensor) else max(weight, TINY)) / world

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: int | float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """The gradients are there, the same in all processes: clip them, or return to the last good state."""
        gradients = [p.grad for p in self.trainable if p.grad is not None]
        norm = gradient_norm(gradients)
        if not norm.isfinite():
            self.recover(f"the gradient of update {self.trainer.global_step + 1:,} is not finite")
            return
        self._losses.append(self._loss)
        clip_gradients_(self.trainable, norm, self.config.optim)
        self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)  # the Trainer's own, if any

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        super().optimizer_step(*args, **kwargs)
        for stack in self.stacks:
            stack.constrain_()

    def configure_optimizers(self) -> Any:
        optimizer = build_optimizer(self.model, self.config.optim)
        schedule = {"scheduler": LambdaLR(optimizer, self.rate), "interval": "step"}
        return {"optimizer": optimizer, "lr_scheduler": schedule}

    def mean_loss(self) -> float:
        """Of the updates since it was asked for the last time."""
        self._add_up()
        total, weight = self._sums
        self._sums = [0.0, 0.0]
        return total / weight if weight else float("nan")

    def _add_up(self) -> None:
        # One after the other, so that the sum does not depend on when it is taken.
        for total, weight in self._losses:
            self._sums[0] += float(total)
            self._sums[1] += float(weight)
        self._losses.clear()

    # --- recovery ---------------------------------------------------------------------------------------

    def on_train_start(self) -> None:
        if self._good is None:
            self._keep()

    def _keep(self) -> None:
        self._good = GoodState.of(self.trainer.global_step, self.model, self.trainer.optimizers[0])

    def recover(self, reason: str) -> None:
        """Return to the last good state at half the rate, and drop the update at hand."""
        assert self._good is not None
        good, done, most = self._good, len(self.recoveries), self.config.optim.max_recoveries
        if done >= most:
            raise TrainingDiverged(
                f"{reason}, and {done} returns to a good net at half the rate did not help: try a smaller lr, clip_norm"
                " or clip_value"
            )
        good.restore_(self.model, self.trainer.optimizers[0])
        self._state = None
        self.rate.halve()
        self._refresh_rate()
        rate = self.current_rate
        self.recoveries.append({"update": self.trainer.global_step, "back_to": good.update, "rate": rate})
        self.say(
            f"{reason}: back to the net after update {good.update:,} at half the rate, {rate:.3g} ({done + 1}/{most})"
        )

    def ensure_finite(self) -> None:
        """What is not finite never becomes a good state."""
        if not is_finite(self.model, self.trainer.optimizers[0]):
            self.recover(f"the net or its optimizer after update {self.trainer.global_step:,} is not finite")

    # --- rates and scores -------------------------------------------------------------------------------

    @property
    def current_rate(self) -> float:
        """The learning rate of the next update, without the factor of the recurrent matrices."""
        return float(self.trainer.optimizers[0].param_groups[0]["lr"])

    def observe(self, score: float) -> None:
        """Tell a plateau schedule the score that the task watches."""
        self.rate.observe(score)
        self._refresh_rate()

    def _refresh_rate(self) -> None:
        scheduler = self.lr_schedulers()
        assert isinstance(scheduler, LambdaLR)  # what configure_optimizers made
        refresh_rate_(scheduler)

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        state = None if batch.first else self._valid_state
        outcome, self._valid_state = self.config.task.run(self.model, batch, state)
        self._valid.add(outcome)

    def on_validation_epoch_end(self) -> None:
        scores = self._valid.scores(self.config.task, self.device, self.trainer.world_size)
        self._valid, self._valid_state = Totals(), None
        self.log_dict({f"valid/{name}": value for name, value in scores.items()}, sync_dist=True)
        if self.trainer.state.fn == TrainerFn.FITTING and not self.trainer.sanity_checking:
            self.observe(scores[self.config.task.monitor])

    # --- checkpoints ------------------------------------------------------------------------------------

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Also the moment to keep a good state, which is then in the checkpoint and to be returned to after resuming.
        When a run is stopped in between, the good state is still another one and has to be saved as well."""
        self._add_up()
        state = of_all_processes(self._state, self.trainer.global_rank, self.trainer.world_size)
        checkpoint[KEY] = {"state": state, "sums": list(self._sums), "recoveries": list(self.recoveries)}
        if self.is_stopped_in_between and self._good is not None:
            checkpoint[KEY]["good"] = dict(vars(self._good))
        else:
            self._keep()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        ours, trainer = checkpoint[KEY], self.trainer
        self._state = of_one_process(ours["state"], trainer.global_rank, trainer.world_size, self.device)
        self._sums, self.recoveries = list(ours["sums"]), list(ours["recoveries"])
        self._good = GoodState(**ours["good"]) if "good" in ours else None
