"""Initial biases of a gate: one for all units, spread over them, or one for each."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from slimrnn._checks import check_number

GateBias = float | Sequence[float] | Tensor  # a number, (first, last), or as many numbers as units


def gate_bias(name: str, given: GateBias, units: int, bias: bool = True) -> Tensor:
    """(H) in double precision: a number for all units, (first, last) evenly spaced from the first unit to the last, or
    one number for each; `bias` says whether the cell has any, or only zeros are allowed."""
    numbers: object = given.detach().cpu().tolist() if isinstance(given, Tensor) else given
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
