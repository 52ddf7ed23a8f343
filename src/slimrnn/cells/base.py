"""The contract of a cell: a pointwise update that asks for the recurrent products it needs.

Shape suffixes: B batch, G gates, H hidden units. Gates are in torch's order.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from slimrnn._checks import check_count
from slimrnn._watched import Watched
from slimrnn.cells.biases import GateBias, gate_bias
from slimrnn.ops.reference import State as State


class Matvec(Protocol):
    """h -> W_g h for the chosen matrices: (B, H) -> (B, G, H)."""

    def __call__(self, h: Tensor, gates: slice = ..., /) -> Tensor: ...


class Cell(Watched):
    """state_t = step(U x_t + b, h ↦ W h, state_{t−1}).

    A subclass names its gates, says how many states it has, and defines `step` in plain torch:

        class MGU(Cell):
            gates = ("f", "n")

            def step(self, wx, matvec, state):
                (h,) = state
                x_f, x_n = wx.unbind(-2)
                f = torch.sigmoid(x_f + matvec(h, slice(0, 1)).squeeze(-2))
                n = torch.tanh(x_n + matvec(f * h, slice(1, 2)).squeeze(-2))
                return (h + f * (n - h),)

    The first state is the layer's output. Every gate has an input product, in `wx` with its bias, and a recurrent
    matrix; a cell with more or fewer recurrent matrices than gates says so in `matrices`. Parameters and buffers that
    act within the step are numbers for each unit, (H) or (rows, H), or one number for all."""

    gates: ClassVar[tuple[str, ...]]
    states: ClassVar[int] = 1
    matrices: int  # of the class, or of an instance whose options say how many
    bias: Tensor | None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        gates: Any = cls.__dict__.get("gates")
        if isinstance(gates, int):  # without names
            cls.gates = tuple(f"gate {number}" for number in range(gates))
        if gates is not None and "matrices" not in cls.__dict__:
            cls.matrices = len(cls.gates)

    def __init__(
        self,
        hidden_size: int,
        bias: bool = True,
        *,
        complex: bool = False,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        check_count("hidden_size", hidden_size)
        self.hidden_size = hidden_size
        self.complex = complex
        self.register_parameter("bias", self._zeros(len(self.gates), dtype=dtype, device=device) if bias else None)

    def input_bias(self) -> Tensor | None:
        """What is added to the input product of every step, (G, H)."""
        return self.bias

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        """One time step; wx is U x_t + b."""
        raise NotImplementedError(f"{type(self).__name__} does not define step")

    def start_bias(self, gate: str, option: str, start: GateBias) -> None:
        """Set the initial bias of a gate, given as `option`: a number, (first, last) over the units, or one each."""
        start_H = gate_bias(option, start, self.hidden_size, self.bias is not None)
        if self.bias is not None:
            with torch.no_grad():
                self.bias[self.gates.index(gate)] = start_H

    def __getstate__(self) -> dict[str, Any]:
        """To copy or pickle: without the graphs of what torch.nn.utils.prune and its kind compute in every call."""
        found: dict[str, Any] = self.__dict__
        return {n: v.detach() if isinstance(v, Tensor) and not v.is_leaf else v for n, v in found.items()}

    def _zeros(self, *sizes: int, dtype: torch.dtype | None, device: torch.device | str | None) -> nn.Parameter:
        return nn.Parameter(torch.zeros(*sizes, self.hidden_size, dtype=dtype, device=device))
