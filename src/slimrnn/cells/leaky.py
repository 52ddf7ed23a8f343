"""Leaky units: a state that is a running average of what the cell gives (lecture, "Leaky Units")."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from slimrnn._checks import check_number
from slimrnn._watched import Watched
from slimrnn.ops.reference import State

SMALLEST = 1e-3  # share of `most` that a learned α has at the start: at zero its gradient would vanish
LARGEST = 1 - 1e-6  # at one it would too


@dataclass(frozen=True)
class Leaky:
    """h_t = α h_{t−1} + (1 − α) v_t, where v_t is what the cell gives.

    `alpha` is one number for all units or one for each; or `time_constants=(shortest, longest)` spreads 1/(1 − α)
    evenly in its logarithm over the units. `learned` makes α a parameter, which stays below `most`."""

    alpha: float | tuple[float, ...] | None = None
    time_constants: tuple[float, float] | None = None
    learned: bool = False
    most: float = 0.999

    def __post_init__(self) -> None:
        if (self.alpha is None) == (self.time_constants is None):
            raise ValueError(f"expected alpha or time_constants, got {self.alpha} and {self.time_constants}")
        check_number("most", self.most)
        if not 0 < self.most <= 1:
            raise ValueError(f"expected most between 0 and 1, got {self.most}")
        if isinstance(self.alpha, Sequence):
            object.__setattr__(self, "alpha", tuple(self.alpha))  # so that a list may be given
        limit = self.most if self.learned else 1
        for alpha in self.alpha if isinstance(self.alpha, tuple) else () if self.alpha is None else (self.alpha,):
            check_number("alpha", alpha)
            if not 0 <= alpha < limit:
                raise ValueError(f"expected alpha of at least 0 and below {limit}, got {alpha}")
        if self.time_constants is not None:
            self._check_time_constants(limit)

    def _check_time_constants(self, limit: float) -> None:
        constants = self.time_constants
        if not isinstance(constants, Sequence) or len(constants) != 2:
            raise ValueError(f"expected time_constants to be (shortest, longest), got {constants!r}")
        for constant in constants:
            check_number("time_constants", constant)
        shortest, longest = constants
        if not 1 <= shortest <= longest or 1 - 1 / longest >= limit:
            most = f"below {1 / (1 - limit):g}" if limit < 1 else "finite"
            raise ValueError(f"expected time_constants of at least 1, rising and {most}, got {constants}")
        object.__setattr__(self, "time_constants", (shortest, longest))

    def values(self, units: int) -> Tensor:
        """α of each unit at the start, (H) in double precision."""
        if self.time_constants is not None:
            shortest, longest = map(math.log, self.time_constants)
            return 1 - torch.linspace(shortest, longest, units, dtype=torch.float64).neg().exp()
        assert self.alpha is not None
        if isinstance(self.alpha, tuple):
            if len(self.alpha) != units:
                raise ValueError(f"expected {units} values of alpha, one for each unit, got {len(self.alpha)}")
            return torch.tensor(self.alpha, dtype=torch.float64)
        return torch.full((units,), float(self.alpha), dtype=torch.float64)

    def split(self, parts: int, units: int) -> list[Leaky]:
        """The same for consecutive groups of the units."""
        if parts == 1:
            return [self]
        pieces = self.values(units).chunk(parts)
        return [replace(self, alpha=tuple(piece.tolist()), time_constants=None) for piece in pieces]

    def build(self, units: int, *, dtype: torch.dtype | None = None, device: torch.device | str | None = None) -> Leak:
        """The module that holds α."""
        return Leak(self, self.values(units), dtype, device)


class Leak(Watched):
    """α of each unit: fixed, or most · σ(a) with a parameter a."""

    def __init__(
        self, spec: Leaky, alpha_H: Tensor, dtype: torch.dtype | None, device: torch.device | str | None
    ) -> None:
        super().__init__()
        self.spec = spec
        if spec.learned:
            share = (alpha_H / spec.most).clamp(SMALLEST, LARGEST)
            self.logit = nn.Parameter(torch.logit(share).to(dtype=dtype or torch.get_default_dtype(), device=device))
        else:
            self.register_buffer("alpha", alpha_H.to(dtype=dtype or torch.get_default_dtype(), device=device))

    def forward(self) -> Tensor:
        """(H)"""
        return self.spec.most * torch.sigmoid(self.logit) if self.spec.learned else self.get_buffer("alpha")

    def extra_repr(self) -> str:
        return repr(self.spec)


def leaked(alpha_H: Tensor | None, before: State, given: State) -> State:
    """h = α h_before + (1 − α) v; the LSTM's c does not leak."""
    if alpha_H is None:
        return given
    return given[0] + alpha_H * (before[0] - given[0]), *given[1:]
