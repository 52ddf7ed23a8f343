"""Optimizers, the learning rate over time, and gradients that must be finite and not too long."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_value_, clip_grads_with_norm_, get_total_norm

from slimrnn.training.config import OptimConfig
from slimrnn.training.model import recurrent_parameters


class RMSprop(torch.optim.RMSprop):
    """torch's, whose running mean of squared gradients starts at a chosen value instead of zero.

    From zero, the first update of a parameter has a length of lr/√(1 − decay) however small its gradient is."""

    def __init__(self, params: Any, lr: float = 1e-2, *, accumulator_start: float = 0.0, **options: Any) -> None:
        super().__init__(params, lr=lr, **options)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p] = {"step": torch.zeros(()), "square_avg": torch.full_like(p, accumulator_start)}
                if group["momentum"] > 0:
                    self.state[p]["momentum_buffer"] = torch.zeros_like(p)
                if group["centered"]:
                    self.state[p]["grad_avg"] = torch.zeros_like(p)


def freeze_recurrent_(model: nn.Module) -> None:
    """Leave the recurrent matrices as they are from now on."""
    for p in recurrent_parameters(model):
        p.requires_grad_(False)


def build_optimizer(model: nn.Module, optim: OptimConfig) -> torch.optim.Optimizer:
    """The optimizer of the trainable parameters, in two groups: the recurrent matrices have a rate of their own."""
    recurrent = {id(p) for p in recurrent_parameters(model)}
    trainable = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trainable if id(p) not in recurrent], "lr": optim.lr},
        {"params": [p for p in trainable if id(p) in recurrent], "lr": optim.lr * optim.recurrent_rate},
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
            return self.scale * (1 + math.cos(math.pi * min(update / self.updates, 1))) / 2
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


def refresh_rate_(scheduler: torch.optim.lr_scheduler.LambdaLR) -> None:
    """Let a changed scale hold from the next update on."""
    for group, base, factor in zip(
        scheduler.optimizer.param_groups, scheduler.base_lrs, scheduler.lr_lambdas, strict=True
    ):
        group["lr"] = base * factor(scheduler.last_epoch)


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
