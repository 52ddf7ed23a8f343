"""Sequences of real vectors: each element is Gaussian, with independent components.

Shape suffixes: B batch, D size of an element.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from slimrnn._checks import check_count
from slimrnn.sequence.sampling import Sampling

LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class Gaussian:
    """Elements of `size` real numbers; the decoder gives the mean and the log-variance of each."""

    size: int

    def __post_init__(self) -> None:
        check_count("size", self.size)


class GaussianOutput(nn.Module):
    """Reads the element before, or a learned vector at the beginning, and gives the density of the next."""

    padding = 0.0

    def __init__(self, spec: Gaussian, hidden: int, with_end: bool, **where: Any) -> None:
        super().__init__()
        self.size = spec.size
        self.first = nn.Parameter(torch.zeros(spec.size, **where))
        self.readout = nn.Linear(hidden, 2 * spec.size, **where)

    @staticmethod
    def read_width(spec: Gaussian) -> int:
        """Numbers that stand for an element when it is read."""
        return spec.size

    def begin(self, batch: int) -> Tensor:
        """What is read before the first element, (B, D)."""
        return self.first.expand(batch, -1)

    def read(self, values: Tensor) -> Tensor:
        return values

    def check(self, values_TBD: Tensor, inside_TB: Tensor) -> Tensor:
        """The values, with zeros where there is no element."""
        if not isinstance(values_TBD, Tensor) or values_TBD.dtype != self.first.dtype:
            got = values_TBD.dtype if isinstance(values_TBD, Tensor) else type(values_TBD).__name__
            raise TypeError(f"expected values as a tensor of {self.first.dtype}, got {got}")
        if values_TBD.dim() != 3 or values_TBD.shape[-1] != self.size:
            raise ValueError(f"expected values of shape (T, B, {self.size}), got {tuple(values_TBD.shape)}")
        return values_TBD.masked_fill(~inside_TB.unsqueeze(-1), 0)

    def choice(self, hidden: Tensor, stop: tuple[Tensor, Tensor] | None) -> GaussianChoice:
        """`stop` are the log-probabilities of halting and of going on."""
        mean, log_variance = self.readout(hidden).chunk(2, -1)
        return GaussianChoice(mean, log_variance, stop)

    def empty(self, steps: int, *shape: int) -> Tensor:
        """Only padding."""
        return self.first.new_zeros(steps, *shape, self.size)


@dataclass(frozen=True)
class GaussianChoice:
    """The density (…, D) of what comes next, and the log-probabilities (…) of halting and of going on."""

    mean: Tensor
    log_variance: Tensor
    halting: tuple[Tensor, Tensor] | None

    def log_prob(self, values: Tensor) -> Tensor:
        """Of going on, and with these values: log p = −½ Σ (log 2π + log σ² + (y − μ)²/σ²)."""
        squares = (values - self.mean).square() * (-self.log_variance).exp()
        log_density = -0.5 * (LOG_2PI + self.log_variance + squares).sum(-1)
        return log_density if self.halting is None else log_density + self.halting[1]

    def stop(self) -> Tensor:
        """Log-probability that there is no more."""
        assert self.halting is not None
        return self.halting[0]

    def feedback(self, draw: bool, generator: torch.Generator | None) -> Tensor:
        """A value to read next, were there one: the mean, or one that is drawn. The gradient follows it."""
        return self._value(float(draw), generator)

    def pick(
        self, how: Sampling, generator: torch.Generator | None, gone_B: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """(B, D) values, the log-density of each, and where instead there is no more, with its log-probability: None
        where there is always more."""
        value_BD = self._value(how.temperature, generator)
        if self.halting is None:
            return value_BD, self.log_prob(value_BD), None
        halts_B = Sampling(how.temperature).pick(torch.stack(self.halting[::-1], -1), generator) == 1
        return value_BD, torch.where(halts_B, self.stop(), self.log_prob(value_BD)), halts_B

    def _value(self, temperature: float, generator: torch.Generator | None) -> Tensor:
        if not temperature:
            return self.mean
        noise = torch.empty_like(self.mean).normal_(generator=generator)
        return self.mean + temperature * (0.5 * self.log_variance).exp() * noise
