"""One recurrent layer in one direction: a cell, the map of its state and the map of its input.

Shape suffixes: T time, B batch, I input width, G gates, H hidden units.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from slimrnn._fields import as_complex, field_dtype, from_pairs, side_by_side
from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.ops import native, operators, reference, resolve_backend
from slimrnn.ops.library import native_library
from slimrnn.ops.terms import NativeTerm
from slimrnn.structures import Dense, Structure
from slimrnn.structures.base import ALL
from slimrnn.structures.dense import DenseMap


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
        checkpoint_every: int | None = None,
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
        self.checkpoint_every = checkpoint_every
        shape = (cell.states, hidden, 2) if field else (cell.states, hidden)
        start = nn.Parameter(torch.zeros(shape, dtype=dtype, device=device)) if learn_initial_state else None
        self.register_parameter("initial", start)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        if native_library() is None:  # it was pickled where there was one
            self.backend = "reference"

    def initial_state(self, batch: int) -> State:
        """Zeros, or the learned state, for every sequence of the batch."""
        if self.initial is not None:
            learned = as_complex(self.initial) if self.cell.complex else self.initial
            return tuple(row.expand(batch, -1) for row in learned)
        some = next(self.parameters())
        dtype = field_dtype(some.dtype, self.cell.complex)
        zero = torch.zeros(batch, self.cell.hidden_size, dtype=dtype, device=some.device)
        return (zero,) * self.cell.states

    def forward(
        self, x_TBI: Tensor, state: State, lengths_B: Tensor | None = None, reverse: bool = False
    ) -> tuple[Tensor, State]:
        """Outputs (T, B, H), or (T, B, 2H) of a complex state: real and imaginary parts side by side; last state."""
        x_mask, h_mask = self._dropout_masks(x_TBI)
        if x_mask is not None:
            x_TBI = x_TBI * x_mask
        if self.checkpoint_every is None or not torch.is_grad_enabled():
            return self._scan(x_TBI, state, h_mask, lengths_B, reverse)
        return self._scan_in_segments(self.checkpoint_every, x_TBI, state, h_mask, lengths_B, reverse)

    def _scan_in_segments(
        self, k: int, x_TBI: Tensor, state: State, h_mask: Tensor | None, lengths_B: Tensor | None, reverse: bool
    ) -> tuple[Tensor, State]:
        """Segments of k steps, of which only the states between them are kept: backward runs each again. The same
        numbers, in the memory of one segment's history."""
        starts = range(0, len(x_TBI), k)
        outputs: list[Tensor] = []
        for start in reversed(starts) if reverse else starts:
            piece = x_TBI[start : start + k]
            lengths = None if lengths_B is None else (lengths_B - start).clamp(0, len(piece))
            output, state = checkpoint(
                self._scan, piece, state, h_mask, lengths, reverse, use_reentrant=False, preserve_rng_state=False
            )
            outputs.append(output)
        return torch.cat(outputs[::-1] if reverse else outputs), state

    def _scan(
        self, x_TBI: Tensor, state: State, h_mask: Tensor | None, lengths_B: Tensor | None, reverse: bool
    ) -> tuple[Tensor, State]:
        if self.backend == "native" and native.can_serve(x_TBI):
            terms, name = self.recurrent.native_terms(), self.cell.native_name
            if terms is not None and name is not None:
                return self._native(name, terms, x_TBI, state, h_mask, lengths_B, reverse)
        wx_TBGH = self._input_product(x_TBI)
        output, last = reference.scan(self.cell.step, self._recurrence(h_mask), wx_TBGH, state, lengths_B, reverse)
        return side_by_side(output), last

    def _native(
        self,
        name: str,
        terms: list[NativeTerm],
        x: Tensor,
        state: State,
        h_mask: Tensor | None,
        lengths_B: Tensor | None,
        reverse: bool,
    ) -> tuple[Tensor, State]:
        own, u, bias = self.cell.native_parameters(), None, None
        again = None
        if isinstance(self.input, DenseMap):  # its product is taken in the time loop, step by step
            (u,), bias = self.input.prepare(), self.cell.input_bias()
            given = x
        else:
            given = self._input_product(x)
        if not torch.compiler.is_compiling():
            again = operators.Definition(self._replay, lambda: self._input_product(x))
        return native.scan(name, own, terms, given, u, bias, state, h_mask, lengths_B, reverse, again)

    def _replay(
        self,
        x: Tensor,
        u: Tensor | None,
        bias: Tensor | None,
        state: Tensor,
        own: Tensor | None,
        weights: list[Tensor],
        mask: Tensor | None,
        lengths_B: Tensor | None,
        reverse: bool,
    ) -> tuple[Tensor, Tensor]:
        """The reference scan on the tensors of the native operator, for second derivatives: (output, last state).

        There a complex number is a pair, and what stands for both of its parts stands twice."""
        pairs = self.cell.complex
        wx = x if u is None else (x @ u.flatten(0, 1).mT).reshape(*x.shape[:-1], *u.shape[:2])
        wx = wx if bias is None else wx + bias
        states = tuple(state.unbind(0))
        if pairs:
            wx, states = from_pairs(wx), tuple(map(from_pairs, states))
            own = None if own is None else own.reshape(*own.shape[:-1], -1, 2).mean(-1)
            mask = None if mask is None else mask[..., ::2]
            weights = [torch.view_as_complex(w.contiguous()) for w in weights]

        def matvec(h: Tensor, gates: slice = ALL) -> Tensor:
            return self.recurrent.native_product(h if mask is None else h * mask, gates, tuple(weights))

        def step(wx: Tensor, matvec: Matvec, before: State) -> State:
            return self.cell.step(wx, matvec, before, own)

        output, last = reference.scan(step, matvec, wx, states, lengths_B, reverse)
        joined = torch.stack([torch.view_as_real(part).flatten(-2) if pairs else part for part in last])
        return side_by_side(output), joined

    def step(self, x_BI: Tensor, state: State) -> State:
        """One time step."""
        return self.cell.step(self._input_product(x_BI), self._recurrence(None), state)

    def _input_product(self, x: Tensor) -> Tensor:
        return self.input.affine(x, self.cell.input_bias())

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
