"""One recurrent layer in one direction: a cell, the map of its state and the map of its input.

Shape suffixes: T time, B batch, I input width, G gates, H hidden units.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from slimrnn._fields import field_dtype
from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.ops import native, reference, resolve_backend
from slimrnn.ops.library import native_library
from slimrnn.structures import Dense, Structure
from slimrnn.structures.base import ALL


class RecurrentLayer(nn.Module):
    """state_t = cell(U x_t + b, h ↦ W h, state_{t−1}), with W and U of any structure.

    `recurrent_dropout` draws one mask per sequence for the input and one for h (Gal & Ghahramani 2016)."""

    initial: Tensor | None

    def __init__(
        self,
        input_size: int,
        cell: Cell,
        structure: Structure | None = None,
        input_structure: Structure | None = None,
        *,
        recurrent_dropout: float = 0.0,
        learn_initial_state: bool = False,
        weight_norm: bool = False,
        dtype: torch.dtype | None = None,
        backend: str = "auto",
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.backend = resolve_backend(backend)
        hidden, field = cell.hidden_size, cell.complex
        self.cell = cell
        self.recurrent = (structure or Dense()).build(
            hidden, hidden, cell.gates, complex=field, weight_norm=weight_norm, dtype=dtype, device=device
        )
        self.input = (input_structure or Dense()).build(
            hidden, input_size, cell.gates, complex=field, weight_norm=weight_norm, dtype=dtype, device=device
        )
        self.recurrent_dropout = recurrent_dropout
        shape = (cell.states, hidden, 2) if field else (cell.states, hidden)
        start = nn.Parameter(torch.zeros(shape, dtype=dtype, device=device)) if learn_initial_state else None
        self.register_parameter("initial", start)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if native_library() is None:  # pickled where there was one
            self.backend = "reference"

    def initial_state(self, batch: int) -> State:
        """Zeros, or the learned state, for every sequence of the batch."""
        if self.initial is not None:
            learned = torch.view_as_complex(self.initial) if self.cell.complex else self.initial
            return tuple(row.expand(batch, -1) for row in learned)
        some = next(self.parameters())
        dtype = field_dtype(some.dtype, self.cell.complex)
        zero = torch.zeros(batch, self.cell.hidden_size, dtype=dtype, device=some.device)
        return (zero,) * self.cell.states

    def forward(
        self, x_TBI: Tensor, state: State, lengths_B: Tensor | None = None, reverse: bool = False
    ) -> tuple[Tensor, State]:
        """Outputs (T, B, H), complex where the state is, and the last state."""
        x_mask, h_mask = self._dropout_masks(x_TBI)
        wx_TBGH = self._input_product(x_TBI if x_mask is None else x_TBI * x_mask)
        name = self.cell.native_name
        if self.backend == "native" and name and native.can_serve(wx_TBGH):
            terms = self.recurrent.native_terms()
            if terms is not None:
                own = self.cell.native_parameters()
                return native.scan(name, own, terms, wx_TBGH, state, h_mask, lengths_B, reverse)
        return reference.scan(self.cell, self._recurrence(h_mask), wx_TBGH, state, lengths_B, reverse)

    def step(self, x_BI: Tensor, state: State) -> State:
        """One time step."""
        return self.cell.step(self._input_product(x_BI), self._recurrence(None), state)

    def _input_product(self, x: Tensor) -> Tensor:
        wx = self.input.matvec(x.to(field_dtype(x.dtype, self.cell.complex)))
        bias = self.cell.input_bias()
        return wx if bias is None else wx + bias

    def _recurrence(self, h_mask: Tensor | None) -> Matvec:
        prepared = self.recurrent.prepare()

        def matvec(h: Tensor, gates: slice = ALL) -> Tensor:
            return self.recurrent.matvec(h if h_mask is None else h * h_mask, gates, prepared)

        return matvec

    def _dropout_masks(self, x_TBI: Tensor) -> tuple[Tensor | None, Tensor | None]:
        if not (self.training and self.recurrent_dropout):
            return None, None
        ones = x_TBI.new_ones(x_TBI.shape[1], x_TBI.shape[2] + self.cell.hidden_size)
        mask = functional.dropout(ones, self.recurrent_dropout)
        return mask[:, : x_TBI.shape[2]], mask[:, x_TBI.shape[2] :]
