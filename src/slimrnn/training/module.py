"""SequenceModule: a task and its net for your own Lightning Trainer. (Our loop is in `loop.py`.)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.utilities import rank_zero_warn
from torch import Tensor, nn

from slimrnn.training.batches import Batches, on_device
from slimrnn.training.config import Config
from slimrnn.training.evaluation import EvaluationBatches, Totals
from slimrnn.training.launch import Place
from slimrnn.training.learner import Learner, net_to_train
from slimrnn.training.task import Batch


class SequenceModule(LightningModule):
    """A task's net, trained as a configuration says: loss, penalty, clipping, rates, constraints, recovery.

    `Trainer(max_steps=config.updates).fit(SequenceModule(config))` is all that it takes: it brings its own data.
    `model` replaces the net that the task would build. `learner` is there from the Trainer's start on."""

    learner: Learner

    def __init__(self, config: Config, model: nn.Module | None = None) -> None:
        super().__init__()
        self.config, self.model = config, net_to_train(config, model)
        self.say: Callable[[str], Any] = rank_zero_warn
        self._checkpoint: dict[str, Any] | None = None  # what is ours in the one that the Trainer goes on from
        self._validation = Totals()

    @property
    def recoveries(self) -> list[dict[str, Any]]:
        return self.learner.recoveries

    def mean_loss(self) -> float:
        """Of the updates since it was last asked for."""
        return self.learner.mean_loss.take()

    @property
    def place(self) -> Place:
        return Place(self.trainer.global_rank, self.trainer.world_size)

    def train_dataloader(self) -> Batches:
        return Batches.of_run(self.config, self.place)

    def val_dataloader(self) -> EvaluationBatches:
        return EvaluationBatches(self.config, "valid", self.config.valid_size, self.place.rank, self.place.world)

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        return on_device(batch, self.config, device)

    def configure_optimizers(self) -> Any:
        self.learner = Learner(self.config, self.model, lambda text: self.say(text), self.place)
        return [self.learner.optimizer], [{"scheduler": self.learner.schedule, "interval": "step"}]

    def on_train_start(self) -> None:
        if self._checkpoint is not None:
            self.learner.load_state_dict(self._checkpoint)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        return self.learner.loss(batch)

    def configure_gradient_clipping(self, optimizer: Any, *trainers_own: Any, **also: Any) -> None:
        self.learner.clip_or_recover_()
        self.clip_gradients(optimizer, *trainers_own, **also)

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        super().optimizer_step(*args, **kwargs)
        self.learner.constrain_()
        self.learner.update += 1

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        self._validation.add_batch(self.model, self.config.task, batch)

    def on_validation_epoch_end(self) -> None:
        scores = self._validation.scores(self.config.task, self.device, self.place.world)
        self._validation = Totals()
        self.log_dict({f"valid/{name}": value for name, value in scores.items()}, sync_dist=True)
        if self.trainer.state.fn == "fit" and not self.trainer.sanity_checking:
            self.learner.observe(scores[self.config.task.monitor])

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["slimrnn"] = self.learner.state_dict()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self._checkpoint = checkpoint["slimrnn"]
