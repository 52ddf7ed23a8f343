"""Optimizers, and gradients that must be finite and not too long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_value_, clip_grads_with_norm_, get_total_norm

from slimrnn.layers.parameter_groups import parameter_groups, recurrent_parameters
from slimrnn.training.config import OptimConfig
from slimrnn.training.models.sequence_model import row_scales


class RMSprop(torch.optim.RMSprop):
    """torch's, whose running mean v of squared gradients starts at a chosen value instead of zero.

    From zero, the first update of a parameter has a length of lr/√(1 − decay) however small its gradient is. With
    `eps_inside` the step is divided by √(v + eps), as the low-rank authors do, and not by √v + eps."""

    def __init__(
        self, params: Any, lr: float = 1e-2, *, accumulator_start: float = 0.0, eps_inside: bool = False, **options: Any
    ) -> None:
        super().__init__(params, lr=lr, **options)
        self.eps_inside = eps_inside
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p] = {"step": torch.zeros(()), "square_avg": torch.full_like(p, accumulator_start)}
                if group["momentum"] > 0:
                    self.state[p]["momentum_buffer"] = torch.zeros_like(p)
                if group["centered"]:
                    self.state[p]["grad_avg"] = torch.zeros_like(p)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """One update."""
        if not self.eps_inside:
            return super().step(closure)
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._step_inside(p, p.grad, group)
        return loss

    def _step_inside(self, p: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[p]
        state["step"] += 1
        if group["weight_decay"]:
            gradient = gradient.add(p, alpha=group["weight_decay"])
        mean = state["square_avg"].mul_(group["alpha"]).addcmul_(gradient, gradient, value=1 - group["alpha"])
        step = gradient / (mean + group["eps"]).sqrt_()
        if group["momentum"] > 0:
            step = state["momentum_buffer"].mul_(group["momentum"]).add_(step)
        p.add_(step, alpha=-group["lr"])


def freeze_recurrent_(model: nn.Module) -> None:
    """Leave the recurrent matrices as they are from now on."""
    for p in recurrent_parameters(model):
        p.requires_grad_(False)


def build_optimizer(model: nn.Module, optim: OptimConfig) -> torch.optim.Optimizer:
    """The optimizer of the trainable parameters, in groups: the recurrent matrices have a rate of their own, and so may
    the scales of weight normalisation."""
    scales = {id(p) for p in row_scales(model)} if optim.scale_rate != 1 else set()
    trainable = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {
            "params": [p for p in group["params"] if p.requires_grad and (id(p) in scales) == is_scale],
            "lr": group["lr"] * (optim.scale_rate if is_scale else 1),
        }
        for group in parameter_groups(model, optim.lr, optim.recurrent_rate)
        for is_scale in (False, True)
    ]
    filled = [group for group in groups if group["params"]]
    fused = all(p.device.type == "cpu" for p in trainable)  # on the CPU torch chooses the slow loop by itself
    match optim.optimizer:
        case "rmsprop":
            return RMSprop(
                filled,
                lr=optim.lr,
                alpha=optim.decay,
                eps=optim.eps,
                momentum=optim.momentum,
                weight_decay=optim.weight_decay,
                accumulator_start=optim.accumulator_start,
                eps_inside=optim.eps_inside,
            )
        case "adam":
            return torch.optim.Adam(filled, lr=optim.lr, eps=optim.eps, weight_decay=optim.weight_decay, fused=fused)
        case "adamw":
            return torch.optim.AdamW(filled, lr=optim.lr, eps=optim.eps, weight_decay=optim.weight_decay, fused=fused)
        case "adagrad":
            return torch.optim.Adagrad(filled, lr=optim.lr, eps=optim.eps, weight_decay=optim.weight_decay, fused=fused)
        case "sgd":
            return torch.optim.SGD(
                filled, lr=optim.lr, momentum=optim.momentum, weight_decay=optim.weight_decay, fused=fused
            )


def gradient_norm(gradients: Sequence[Tensor]) -> Tensor:
    """Of all gradients together; it is finite exactly if they all are."""
    norm = get_total_norm(gradients)
    if not norm.isfinite():  # squares of large float32 numbers overflow, those of their float64 do not
        norm = get_total_norm([gradient.double() for gradient in gradients])
    return norm


def clip_gradients_(parameters: Sequence[nn.Parameter], norm: Tensor, optim: OptimConfig) -> None:
    """Components first, then the norm, which is given as it was before."""
    if optim.clip_value is not None:
        clip_grad_value_(parameters, optim.clip_value)
        if optim.clip_norm is not None:
            norm = get_total_norm([p.grad for p in parameters if p.grad is not None])
    if optim.clip_norm is not None:
        clip_grads_with_norm_(parameters, optim.clip_norm, norm)
