"""A callback that shows memory grow: how far gradients reach, and spectral radii, while a net is trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor, nn

from slimrnn._checks import check_count
from slimrnn.analysis.layer_inputs import layer_calls
from slimrnn.analysis.layers import find_layers
from slimrnn.analysis.measuring import chosen_sequences
from slimrnn.analysis.spectrum import spectra
from slimrnn.analysis.state_reach import state_reach
from slimrnn.training.module import SequenceModule
from slimrnn.training.nets import reader
from slimrnn.training.task import Batch


class MemoryLog(Callback):
    """Every `every` updates, logs of each recurrent layer, to TensorBoard in `train(config, callbacks=[MemoryLog()])`
    and to all loggers of a Trainer that trains a SequenceModule:

    - memory/NAME/length: steps within which gradients fall to 1 % of their peak, at most the steps looked at;
    - memory/NAME/per_step: the factor by which they change in a step;
    - memory/NAME/radius/GATE: the spectral radius of each recurrent matrix.

    The reach is estimated from `probes` random vectors on the first `steps` steps of some `sequences` of the batch.
    Training is not changed in any bit: no random numbers are drawn from torch's generators, and no state is touched."""

    def __init__(self, every: int = 100, *, sequences: int = 4, steps: int = 200, probes: int = 4) -> None:
        for name, value in (("every", every), ("sequences", sequences), ("steps", steps), ("probes", probes)):
            check_count(name, value)
        self.every, self.sequences, self.steps, self.probes = every, sequences, steps, probes

    def on_fit_start(self, trainer: Trainer, module: LightningModule) -> None:
        if not isinstance(module, SequenceModule):
            raise TypeError(f"expected a SequenceModule, got {type(module).__name__}")
        find_layers(module.model)  # refuses a net without any

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        assert isinstance(module, SequenceModule)
        assert isinstance(batch, Batch)
        if trainer.is_global_zero:
            measured = self.after_update(trainer.global_step, module.model, batch, module.say)
            for logger in trainer.loggers if measured else []:
                logger.log_metrics(measured, step=trainer.global_step)

    def after_update(self, update: int, model: nn.Module, batch: Batch, say: Callable[[str], Any]) -> dict[str, float]:
        """What is logged after this update, in whichever loop: nothing after most."""
        if update % self.every:
            return {}
        try:
            with torch.random.fork_rng():
                return self.measure(model, batch.inputs, batch.lengths)
        except ValueError as error:  # weights or states that are not finite, from which training may recover
            say(f"no memory is logged after update {update:,}: {error}")
            return {}

    def measure(self, model: nn.Module, inputs: Tensor, lengths: Tensor | None = None) -> dict[str, float]:
        """What is logged, of a task's net. A layer that it calls step by step has radii only, and of an encoder-decoder
        the encoder is looked at."""
        inputs = inputs[: self.steps, : self.sequences]
        lengths = None if lengths is None else lengths[: self.sequences].clamp_max(len(inputs))
        reads, given = reader(model, inputs, lengths)
        views, calls = find_layers(reads), layer_calls(reads, *given)
        found = {
            f"memory/{one.layer}/radius/{one.gate}": one.spectral_radius for view in views for one in spectra(view)
        }
        for view in views:
            heard = calls.get(view.owner, [])
            if len(heard) != 1:
                continue
            own = chosen_sequences(view, heard[0], self.sequences)
            reach = state_reach(view, own.x, own.hx, lengths=own.lengths, probes=self.probes, spectral=False)
            found[f"memory/{view.name}/length"] = min(reach.memory_length(), float(reach.lags[-1]))
            found[f"memory/{view.name}/per_step"] = reach.per_step()
        return found
