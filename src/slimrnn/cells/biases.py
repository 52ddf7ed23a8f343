"""Initial biases of a gate: one for all units, spread over them, one for each, or drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from slimrnn._checks import check_number


class DrawnBias:
    """Biases of a gate that keeps the state, drawn by torch's generator. An input gate beside it gets their opposite,
    and so does a gate that writes where it is one alone."""

    def draw(self, units: int) -> Tensor:
        """(H) in double precision."""
        raise NotImplementedError(f"{type(self).__name__} does not define draw")


@dataclass(frozen=True)
class Chrono(DrawnBias):
    """b = log T with T uniform between 1 and longest − 1: units that remember for 1 to `longest` steps.

    Tallec & Ollivier 2018, "Can recurrent neural networks warp time?": chrono initialization, with −b for the input
    gate of an LSTM."""

    longest: float

    def __post_init__(self) -> None:
        check_number("longest", self.longest)
        if self.longest < 2:
            raise ValueError(f"expected longest of at least 2 steps, got {self.longest}")

    def draw(self, units: int) -> Tensor:
        return (1 + torch.rand(units, dtype=torch.float64) * (self.longest - 2)).log()


@dataclass(frozen=True)
class UniformGate(DrawnBias):
    """b = log(u / (1 − u)) with u uniform between 1/n and 1 − 1/n: gates that are uniformly open.

    Gu, Gulcehre, Paine, Hoffman & Pascanu 2020, "Improving the gating mechanism of recurrent neural networks":
    uniform gate initialization, with −b for the input gate of an LSTM."""

    def draw(self, units: int) -> Tensor:
        least = min(1 / units, 0.5)
        return torch.logit(least + torch.rand(units, dtype=torch.float64) * (1 - 2 * least))


@dataclass(frozen=True)
class _Opposite(DrawnBias):
    of: DrawnBias

    def draw(self, units: int) -> Tensor:
        return -self.of.draw(units)


# A number, (first, last), one for each unit, or drawn.
GateBias = float | Sequence[float] | Tensor | NDArray[Any] | DrawnBias


def of_writing_gate(start: GateBias) -> GateBias:
    """The same for a gate that is near zero to keep the state: what is drawn changes its sign, numbers stay."""
    return _Opposite(start) if isinstance(start, DrawnBias) else start


def oppose(bias_GH: Tensor | None, start: GateBias, keeping: int, writing: int) -> None:
    """Give the input gate the opposite of a forget bias that was drawn."""
    if bias_GH is not None and isinstance(start, DrawnBias):
        with torch.no_grad():
            bias_GH[writing] = -bias_GH[keeping]


def gate_bias(name: str, given: GateBias, units: int, bias: bool = True) -> Tensor:
    """(H) in double precision: a number for all units, (first, last) evenly spaced from the first unit to the last, or
    one number for each, or drawn; `bias` says whether the cell has any, or only zeros are allowed."""
    if isinstance(given, DrawnBias):
        if not bias:
            raise ValueError(f"expected bias=True with {name}={given}, got bias=False")
        return given.draw(units)
    if isinstance(given, Tensor):
        given = given.detach().cpu()
    numbers: object = given.tolist() if isinstance(given, Tensor | np.ndarray) else given
    numbers = list(numbers) if isinstance(numbers, Sequence) and not isinstance(numbers, str) else numbers
    for number in numbers if isinstance(numbers, list) else [numbers]:
        check_number(name, number)
    if not isinstance(numbers, list):
        values = torch.full((units,), float(numbers), dtype=torch.float64)  # type: ignore[arg-type]
    elif len(numbers) == 2:  # of two units, one for each, too
        values = torch.linspace(float(numbers[0]), float(numbers[1]), units, dtype=torch.float64)
    elif len(numbers) == units:
        values = torch.tensor(numbers, dtype=torch.float64)
    else:
        raise ValueError(
            f"expected {name} to be a number, two (of the first and the last unit) or {units} (one for each unit), "
            f"got {len(numbers)} numbers"
        )
    if not bias and bool(values.any()):
        raise ValueError(f"expected bias=True with {name}={given}, got bias=False")
    return values
