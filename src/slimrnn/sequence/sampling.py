"""How a value is drawn from the options of a step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from slimrnn._checks import check_count, check_number

SMALLEST = 1e-30  # temperature, at which nothing but the likeliest is drawn in any precision


@dataclass(frozen=True)
class Sampling:
    """Draw in proportion to p^(1/temperature), among the `top_k` likeliest options, or among the fewest whose
    probabilities reach `top_p` (nucleus sampling, Holtzman et al. 2020); with both, among those in both.

    A temperature of 0 always takes the likeliest. Of a Gaussian output, temperature scales the standard deviation."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        check_number("temperature", self.temperature)
        if self.temperature < 0:
            raise ValueError(f"expected temperature of at least 0, got {self.temperature}")
        if self.top_k is not None:
            check_count("top_k", self.top_k)
        if self.top_p is not None:
            check_number("top_p", self.top_p)
            if not 0 < self.top_p <= 1:
                raise ValueError(f"expected top_p above 0 and at most 1, got {self.top_p}")

    @property
    def greedy(self) -> bool:
        return self.temperature == 0

    @property
    def restricts(self) -> bool:
        return self.top_k is not None or self.top_p is not None

    def pick(self, options: Tensor, generator: torch.Generator | None) -> Tensor:
        """(B, N) log-probabilities to (B) numbers of options."""
        if self.greedy:
            return options.argmax(-1)
        scaled = options
        if self.temperature != 1:  # from the likeliest on, and no smaller than it can be divided by
            scaled = (options - options.amax(-1, keepdim=True)) / max(self.temperature, SMALLEST)
        if self.restricts:
            scaled = self._restricted(scaled)
        # By the inverse of the distribution function: torch.multinomial takes four to seven times as long. A uniform
        # number below its last value finds no option of probability zero.
        reached = scaled.softmax(-1, dtype=torch.promote_types(scaled.dtype, torch.float32)).cumsum(-1)
        below = torch.rand(len(reached), 1, generator=generator, dtype=reached.dtype, device=reached.device)
        return torch.searchsorted(reached, below * reached[:, -1:], right=True).squeeze(-1)

    def _restricted(self, scaled: Tensor) -> Tensor:
        """The log-probabilities, with −∞ for options that are not to be drawn."""
        ordered, places = scaled.sort(dim=-1, descending=True, stable=True)
        left_out = torch.zeros_like(ordered, dtype=torch.bool)
        if self.top_k is not None:
            left_out[:, self.top_k :] = True
        if self.top_p is not None:
            p = ordered.softmax(-1)
            left_out |= p.cumsum(-1) - p >= self.top_p  # those before it suffice; the first one always stays
        return scaled.masked_fill(torch.zeros_like(left_out).scatter(-1, places, left_out), float("-inf"))


GREEDY = Sampling(temperature=0.0)
