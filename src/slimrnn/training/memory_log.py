"""A callback that shows memory grow: how far gradients reach, and spectral radii, while a net is trained."""

from __future__ import annotations

from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor, nn

from slimrnn._checks import check_count
from slimrnn.analysis.layer_inputs import layer_inputs
from slimrnn.analysis.layers import find_layers
from slimrnn.analysis.measuring import chosen_sequences
from slimrnn.analysis.spectrum import spectra
from slimrnn.analysis.state_reach import state_reach
from slimrnn.training.module import SequenceModule
from slimrnn.training.task import Batch


class MemoryLog(Callback):
    """Every `every` updates, logs of each recurrent layer of a SequenceModule, to all loggers of the Trainer:

    - memory/NAME/length: steps within which gradients fall to 1 % of their peak, at most the steps looked at;
    - memory/NAME/per_step: the factor by which they change in a step;
    - memory/NAME/radius/GATE: the spectral radius of each recurrent matrix.

    The reach is estimated from `probes` random vectors on the first `steps` steps of some `sequences` of the batch.
    Training is not changed in any bit: no random numbers are drawn from torch's generators, and no state is touched."""

    def __init__(self, every: int = 100, *, sequences: int = 4, steps: int = 200, probes: int = 4) -> None:
        for name, value in (("every", every), ("sequences", sequences), ("steps", steps), ("probes", probes)):
            check_count(name, value)
        self.every, self.sequences, self.steps, self.probes = every, sequences, steps, probes

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        update = trainer.global_step
        if update % self.every or not trainer.is_global_zero:
            return
        if not isinstance(module, SequenceModule) or not isinstance(batch, Batch):
            raise TypeError(f"expected a SequenceModule and its batches, got {type(module).__name__}")
        with torch.random.fork_rng():
            measured = self.measure(module.model, batch.inputs, batch.lengths)
        for logger in trainer.loggers:
            logger.log_metrics(measured, step=update)

    def measure(self, model: nn.Module, inputs: Tensor, lengths: Tensor | None = None) -> dict[str, float]:
        """What is logged, of a net that is called as model(inputs, None, lengths)."""
        views = find_layers(model)
        found = {
            f"memory/{one.layer}/radius/{one.gate}": one.spectral_radius for view in views for one in spectra(view)
        }
        inputs = inputs[: self.steps, : self.sequences]
        lengths = None if lengths is None else lengths[: self.sequences].clamp_max(len(inputs))
        given = layer_inputs(model, inputs, None, lengths)
        for view in views:
            own = chosen_sequences(view, given[view.owner], self.sequences)
            reach = state_reach(
                view, own.x, own.hx, lengths=own.lengths, probes=self.probes, lags=len(inputs), spectral=False
            )
            found[f"memory/{view.name}/length"] = min(reach.memory_length(), float(reach.lags[-1]))
            found[f"memory/{view.name}/per_step"] = reach.per_step()
        return found
