"""The stages of a model that runs step by step: recurrent layers, read-outs and activations, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from slimrnn.errors import ExportError
from slimrnn.exporting.int8.embedding import Int8Embedding
from slimrnn.exporting.int8.layer import Int8Layer
from slimrnn.exporting.int8.linear import Int8Linear, Int8ReadOut
from slimrnn.layers import ReadOut, RecurrentStack
from slimrnn.layers.affine import Affine
from slimrnn.layers.readout import Reading

LINEAR = (nn.Linear, Affine, ReadOut, Int8Linear, Int8ReadOut)
EMBEDDINGS = (nn.Embedding, Int8Embedding)
ACTIVATIONS = (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.Softmax, nn.LogSoftmax)
NOTHING = (nn.Identity, nn.Dropout)  # in eval()
MOST_APART = 1e-2  # rounding, of int8 as well
KNOWN = "recurrent layers of slimrnn, ReadOut, nn.Linear, nn.Embedding, ReLU, Tanh, Sigmoid, Softmax and LogSoftmax"


def stages_of(model: nn.Module) -> list[nn.Module]:
    """What the input passes through. A model with a forward of its own tells by `stages()`, a list of modules."""
    found = list(_stages(model, type(model).__name__))
    if not any(isinstance(stage, RecurrentStack) for stage in found):
        raise ExportError(f"expected a model with a recurrent layer of slimrnn, got {type(model).__name__} without")
    return found


def _stages(module: nn.Module, at: str) -> Iterator[nn.Module]:
    kind = type(module)
    if any(part._forward_hooks or part._forward_pre_hooks for part in module.modules()):
        raise ExportError(f"expected modules without hooks, got some in {at}: remove them, or make them modules")
    if isinstance(module, RecurrentStack):
        if module.bidirectional:
            raise ExportError(f"expected one direction, got {at} with two: a step sees only the past")
        yield module
    elif kind in NOTHING:
        return
    elif kind in LINEAR:
        if isinstance(module, Reading) and module.at in ("mean", "max"):
            wanted = "a ReadOut at='every' step or the 'last', which is the output of the last call"
            raise ExportError(f"expected {wanted}, got at={module.at!r} in {at}: a step does not see the others")
        yield module
    elif kind in ACTIVATIONS:
        if isinstance(module, nn.Softmax | nn.LogSoftmax) and module.dim != -1:
            raise ExportError(f"expected {kind.__name__}(dim=-1), got dim={module.dim} in {at}")
        yield module
    elif kind in EMBEDDINGS:
        yield module
    elif kind is nn.Sequential or callable(getattr(module, "stages", None)):
        children = list(module) if kind is nn.Sequential else module.stages()  # type: ignore[operator, call-overload]
        for number, child in enumerate(children):
            yield from _stages(child, f"{at}.{number} ({type(child).__name__})")
    else:
        raise ExportError(
            f"expected {KNOWN}, nn.Sequential of these, or a model with stages(), a list of these in the order in "
            f"which the input passes through them, got {at}"
        )


class Unrolled(nn.Module):
    """(T, B, I) or tokens (T, B) -> (T, B, O): a model from its initial state on, step by step, as what runs steps only
    is compared with. By the model's own `step` where it has one, else stage by stage."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model: Any = model
        self.parts = stages_of(model)

    @property
    def is_exact(self) -> bool:
        """Whether all it computes has the same bits everywhere: what is int8, and ReLU."""
        return all(
            isinstance(stage, Int8Linear | Int8Embedding | nn.ReLU)
            or (isinstance(stage, RecurrentStack) and all(isinstance(core, Int8Layer) for core in stage.cores))
            for stage in self.parts
        )

    @torch.no_grad()
    def check(self, x_TBI: Tensor) -> None:
        """ExportError where the model's own forward gives something else than its stages do, one after the other. One
        that takes other arguments, or gives neither all steps nor the last one, cannot be compared."""
        if type(self.model) is nn.Sequential or isinstance(self.model, RecurrentStack):
            return
        batch_first = any(isinstance(part, RecurrentStack) and part.batch_first for part in self.parts)
        try:
            found = self.model(x_TBI.transpose(0, 1) if batch_first else x_TBI)
        except Exception:  # anything may be wrong with these arguments
            return
        found = found[0] if isinstance(found, tuple) else found
        steps = self(x_TBI)
        for wanted in (steps.transpose(0, 1) if batch_first else steps, steps[-1]):
            if isinstance(found, Tensor) and found.shape == wanted.shape:
                if float((found - wanted).norm()) > MOST_APART * float(wanted.norm()):
                    raise ExportError(
                        f"expected {type(self.model).__name__}.forward to give what its stages give, got something "
                        "else: put all that it computes into the modules of stages()"
                    )
                return

    def forward(self, x: Tensor) -> Tensor:
        if callable(getattr(self.model, "step", None)) and callable(getattr(self.model, "initial_state", None)):
            return torch.stack(list(self._by_its_own_step(x)))
        return torch.stack(list(self._stage_by_stage(x)))

    def _by_its_own_step(self, x_TBI: Tensor) -> Iterator[Tensor]:
        state = self.model.initial_state(x_TBI.shape[1])
        for x_t in x_TBI.unbind(0):
            y_t, state = self.model.step(x_t, state)
            yield y_t

    def _stage_by_stage(self, x_TBI: Tensor) -> Iterator[Tensor]:
        stacks = [stage for stage in self.parts if isinstance(stage, RecurrentStack)]
        states = {stack: stack.initial_state(x_TBI.shape[1]) for stack in stacks}
        for y_t in x_TBI.unbind(0):
            for stage in self.parts:
                if isinstance(stage, RecurrentStack):
                    y_t, states[stage] = stage.step(y_t, states[stage])
                elif isinstance(stage, Reading):
                    y_t = stage.product(y_t)
                else:
                    y_t = stage(y_t)
            yield y_t

    def canonical(self, example: Any) -> Tensor:
        """(T, B, I) or tokens (T, B) of what a user gives: a step, or one or several sequences."""
        if isinstance(example, tuple) and len(example) == 1:
            (example,) = example
        if not isinstance(example, Tensor):
            wanted = "inputs of a step (I), of a sequence (T, I) or of several (T, B, I), or tokens without I"
            raise ExportError(f"expected {wanted}, got a {type(example).__name__}")
        axes = 2 if example.is_floating_point() else 1
        if example.dim() > axes + 1 or example.dim() < axes - 1:
            raise ExportError(f"expected inputs of a step or of sequences, got a tensor of {tuple(example.shape)}")
        if not example.numel():
            raise ExportError(f"expected sequences of at least one step, got a tensor of {tuple(example.shape)}")
        if example.dim() == axes + 1:
            stack = next(stage for stage in self.parts if isinstance(stage, RecurrentStack))
            return example.transpose(0, 1).contiguous() if stack.batch_first else example
        return example.unsqueeze(0).unsqueeze(0) if example.dim() == axes - 1 else example.unsqueeze(1)
