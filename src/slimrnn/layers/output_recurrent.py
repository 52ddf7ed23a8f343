"""OutputRecurrent: connections from the output at t to the state at t + 1 (lecture, design pattern 2 and figure 13).

Shape suffixes: T time, B batch, I input width, O output width, H hidden units, G = 1 gate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from slimrnn._checks import check_choice, check_count
from slimrnn.cells import ElmanCell
from slimrnn.layers.backend import OnBackend
from slimrnn.layers.inputs import check_input, check_lengths, check_state, full_precision, without_padding
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.ops.reference import check_length_is_fixed, valid_steps
from slimrnn.structures import LowRank, Structure
from slimrnn.structures.base import ALL, StructuredMap
from slimrnn.structures.low_rank import LowRankMap
from slimrnn.structures.sum import SumMap

OutputState = tuple[Tensor, Tensor]  # (B, H) the state, (B, O) the output that comes back


class OutputRecurrent(OnBackend):
    """h_t = f(U x_t + R o_{t−1} + b [+ W h_{t−1}]),   o_t = V h_t + c.

    `hidden_recurrence` is the structure of W; without it the output is all that comes back. Given `targets`, it is
    trained with teacher forcing: y_{t−1} takes the place of o_{t−1}, and without W all steps are computed at once.
    Left to itself, R o = R V h + R c, so that it is an Elman net whose matrix W + R V runs in the native core.
    `feedback`, a function of o such as a softmax, may come between; then steps are taken one by one."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        output_size: int,
        *,
        nonlinearity: str = "tanh",
        hidden_recurrence: Structure | None = None,
        feedback: Callable[[Tensor], Tensor] | None = None,
        batch_first: bool = False,
        backend: str = "auto",
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        for name, count in (("input_size", input_size), ("hidden_size", hidden_size), ("output_size", output_size)):
            check_count(name, count)
        check_choice("nonlinearity", nonlinearity, ["tanh", "relu", "identity"])
        self.input_size, self.hidden_size, self.output_size = input_size, hidden_size, output_size
        self.nonlinearity, self.hidden_recurrence = nonlinearity, hidden_recurrence
        self.feedback, self.batch_first = feedback, batch_first
        options: dict[str, Any] = {"backend": backend, "dtype": dtype, "device": device}
        through_output = LowRank(output_size, tied=True)
        whole = through_output if hidden_recurrence is None else hidden_recurrence + through_output
        cell = ElmanCell(hidden_size, nonlinearity=nonlinearity, dtype=dtype, device=device)
        self.layer = RecurrentLayer(input_size, cell, structure=whole, **options)
        self.output_bias = nn.Parameter(torch.zeros(output_size, dtype=dtype, device=device))
        self._forced: RecurrentLayer | None = None
        if hidden_recurrence is not None:
            # The same net without R V, for teacher forcing. All its parameters are the layer's: it is no submodule.
            self.__dict__["_forced"] = forced = RecurrentLayer(input_size, cell, structure=hidden_recurrence, **options)
            forced.input, recurrent = self.layer.input, self.layer.recurrent
            assert isinstance(recurrent, SumMap)
            if isinstance(forced.recurrent, SumMap):
                forced.recurrent.parts = recurrent.parts[:-1]
            else:
                forced.recurrent = cast(StructuredMap, recurrent.parts[0])

    def _on_backend(self) -> list[RecurrentLayer]:
        return [self.layer] if self._forced is None else [self.layer, self._forced]

    @property
    def _through(self) -> LowRankMap:
        """R V, whose way down V is the read-out."""
        recurrent = self.layer.recurrent
        found = recurrent.parts[-1] if isinstance(recurrent, SumMap) else recurrent
        assert isinstance(found, LowRankMap)
        return found

    def forward(
        self,
        input: Tensor,
        state: OutputState | None = None,
        *,
        targets: Tensor | None = None,
        lengths: Tensor | Sequence[int] | None = None,
    ) -> tuple[Tensor, OutputState]:
        """Outputs (T, B, O) and the state to go on from; with targets (T, B, O), by teacher forcing."""
        self.layer.renew_cells()
        x = check_input(input, (3,), self.input_size, self.output_bias.dtype, "input")
        x_TBI = x.transpose(0, 1) if self.batch_first else x
        if x_TBI.shape[0] == 0:
            raise RuntimeError("expected sequences of at least one step, got zero length")
        time, batch = x_TBI.shape[:2]
        ragged = None if lengths is None else check_lengths(lengths, time, batch, x.device)
        x_TBI = without_padding(x_TBI, ragged)
        h, o = self._checked(state, batch)
        if targets is not None:
            y = check_input(targets, (3,), self.output_size, self.output_bias.dtype, "targets")
            y_TBO = y.transpose(0, 1) if self.batch_first else y
            if y_TBO.shape[:2] != x_TBI.shape[:2]:
                raise ValueError(f"expected targets of shape {(time, batch)}, got {tuple(y_TBO.shape[:2])}")
            with full_precision(x.device.type):
                outputs, state = self._teacher_forced(x_TBI, without_padding(y_TBO, ragged), h, o, ragged)
        else:
            run = self._linear if self.feedback is None else self._one_by_one
            with full_precision(x.device.type):
                outputs, state = run(x_TBI, h, o, ragged)
        return outputs.transpose(0, 1) if self.batch_first else outputs, state

    def step(self, x_t: Tensor, state: OutputState | None = None) -> tuple[Tensor, OutputState]:
        """One step, (B, I) to (B, O); what comes back is in the state."""
        self.layer.renew_cells()
        x_BI = check_input(x_t, (2,), self.input_size, self.output_bias.dtype, "x_t")
        h, fed = self._checked(state, x_BI.shape[0])
        with full_precision(x_BI.device.type):
            _, right = self._through.prepare()
            # W h is what the whole map gives less R V h.
            wx = self._products(x_BI, fed - h @ right.mT)
            (h,) = self.layer.advance()(wx, (h,))
            o = self._read(h)
            return o, (h, o if self.feedback is None else self.feedback(o))

    def initial_state(self, batch: int) -> OutputState:
        """Nothing has come back yet."""
        return self.output_bias.new_zeros(batch, self.hidden_size), self.output_bias.new_zeros(batch, self.output_size)

    def _checked(self, state: OutputState | None, batch: int) -> OutputState:
        if state is None:
            return self.initial_state(batch)
        if not isinstance(state, tuple | list) or len(state) != 2:
            raise TypeError(f"expected the state and the output that comes back, got {type(state).__name__}")
        (h,) = check_state(state[0], 1, (batch, self.hidden_size), self.output_bias.dtype)
        (o,) = check_state(state[1], 1, (batch, self.output_size), self.output_bias.dtype)
        return h, o

    def _products(self, x: Tensor, fed: Tensor) -> Tensor:
        """U x + b + R · what comes back, (..., G, H)."""
        left, _ = self._through.prepare()
        return self.layer.input_product(x) + (fed @ left[0].mT).unsqueeze(-2)

    def _read(self, h: Tensor) -> Tensor:
        _, right = self._through.prepare()
        return h @ right.mT + self.output_bias

    def _linear(self, x_TBI: Tensor, h: Tensor, o: Tensor, lengths_B: Tensor | None) -> tuple[Tensor, OutputState]:
        """The matrix brings R V h; the rest of R o is R c, and at the start what the given o has beside V h."""
        _, right = self._through.prepare()
        beside = self.output_bias.expand(x_TBI.shape[0], h.shape[0], -1)
        fed = torch.cat([(o - h @ right.mT).unsqueeze(0), beside[1:]])
        h_TBH, (last,) = self.layer.scan(None, self._products(x_TBI, fed), (h,), lengths_B=lengths_B)
        return self._ended(self._read(h_TBH), last, lengths_B)

    def _teacher_forced(
        self, x_TBI: Tensor, y_TBO: Tensor, h: Tensor, o: Tensor, lengths_B: Tensor | None
    ) -> tuple[Tensor, OutputState]:
        wx = self._products(x_TBI, torch.cat([o.unsqueeze(0), y_TBO[:-1]]))
        if self._forced is not None:
            h_TBH, (last,) = self._forced.scan(None, wx, (h,), lengths_B=lengths_B)
        else:
            (h_TBH,) = self.layer.cell.step(wx, lambda h, gates=ALL: h.new_zeros(()), (h,))
            last = h_TBH[-1] if lengths_B is None else h_TBH[lengths_B - 1, torch.arange(h.shape[0], device=h.device)]
        outputs, (last, _) = self._ended(self._read(h_TBH), last, lengths_B)
        ends = y_TBO[-1] if lengths_B is None else y_TBO[lengths_B - 1, torch.arange(h.shape[0], device=h.device)]
        return outputs, (last, ends)

    def _one_by_one(self, x_TBI: Tensor, h: Tensor, o: Tensor, lengths_B: Tensor | None) -> tuple[Tensor, OutputState]:
        check_length_is_fixed(x_TBI.shape[0])
        outputs, state = [], (h, o)
        valid = None if lengths_B is None else valid_steps(len(x_TBI), lengths_B).unbind(0)
        for t, x in enumerate(x_TBI.unbind(0)):
            output, new = self.step(x, state)
            if valid is not None:
                new = (torch.where(valid[t], new[0], state[0]), torch.where(valid[t], new[1], state[1]))
                output = torch.where(valid[t], output, output.new_zeros(()))
            outputs.append(output)
            state = new
        return torch.stack(outputs), state

    def _ended(self, outputs: Tensor, last: Tensor, lengths_B: Tensor | None) -> tuple[Tensor, OutputState]:
        if lengths_B is not None:
            outputs = outputs.masked_fill(~valid_steps(outputs.shape[0], lengths_B), 0)
        return outputs, (last, self._read(last))
