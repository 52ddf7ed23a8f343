"""A recurrent layer in C: its input products, its transitions and its line of states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from slimrnn.exporting.c.given import Product
from slimrnn.exporting.c.source import Body, Source, at
from slimrnn.exporting.c.step import Places, StepEmitter, literal
from slimrnn.exporting.constant_layer import ConstantLayer, Terms
from slimrnn.tracing.trace import Trace


@dataclass(frozen=True)
class Core:
    """A layer that was written: a function of its state, x or a token, and y."""

    name: str  # of the function
    own: str  # of its part of the state
    output: int  # numbers of y
    state: Tensor  # the numbers of its state before the first step
    rings: bool  # the state is a line of several, and has a position
    bytes: int  # of arrays while it runs


class LayerWriter(ABC):
    """Writes one layer as a function. What a float layer and an int8 one differ in is left to the two below."""

    def __init__(
        self, source: Source, own: str, layer: ConstantLayer, trace: Trace, tokens: bool, vectors: nn.Module | None
    ) -> None:
        self.source, self.own, self.line = source, own, layer.line
        self.layer, self.trace, self.tokens, self.vectors = layer, trace, tokens, vectors
        self.units, self.pairs = layer.cell.hidden_size, 2 if layer.cell.complex else 1
        self.width = self.units * self.pairs
        self.count = trace.gates * self.width
        self.body = Body(source)

    def write(self) -> Core:
        body, width, states = self.body, self.width, self.trace.states
        gates = body.array("gates", self.count)
        after = body.array("after", states * width)
        self._input_products(gates)
        oldest, newest = self._line_of_states()
        self._skip(oldest[0], gates)
        before = oldest if self.layer.skip is None else newest
        for phase, product in enumerate(self._products()):
            if phase:
                self._start_with_bias(phase, gates)
                before = self._set_aside(after)
            places = Places(gates, before, [at(after, k * width) for k in range(states)], self._rows(phase))
            StepEmitter(self.trace, self.units, product)(body, places)
        self._keep(after, oldest)
        self._show(after)
        self._write_function()
        return Core(self.source.name(self.own), self.own, width, self._first_state(), self.line > 1, body.bytes)

    # --- of a float layer or an int8 one -------------------------------------------------------------------------

    @abstractmethod
    def _input_products(self, gates: str) -> None:
        """U x + b into the gates; x is a vector, or `token` a number."""

    @abstractmethod
    def _product(self, own: str, terms: Terms) -> Product:
        """Of a recurrent matrix."""

    @abstractmethod
    def _skip(self, oldest: str, gates: str) -> None:
        """Add what connections from several steps before bring."""

    @abstractmethod
    def _described(self) -> str: ...

    def _products(self) -> list[Product]:
        """Of the recurrent matrices of each transition."""
        phases = range(self.layer.plan.phases)
        owns = [f"{self.own}_recurrent" if len(phases) == 1 else f"{self.own}_recurrent_{k}" for k in phases]
        return [self._product(own, self.layer.terms_of(k)) for k, own in zip(phases, owns, strict=True)]

    def _own(self, phase: int) -> Tensor | None:
        """(rows, units)"""
        own = self.layer.own
        return None if own is None else own[phase][:, :: self.pairs]  # of a complex cell each number stands twice

    # --- state ---------------------------------------------------------------------------------------------------

    def _start_with_bias(self, phase: int, gates: str) -> None:
        bias = self.layer.bias_of(phase)
        if bias is None:
            self.body.clear(self.count, gates)
        else:
            name = self.source.floats(f"{self.own}_bias_{phase}", bias, f"{self.own}: bias")
            self.body.call("copy", name, self.count, gates)

    def _line_of_states(self) -> tuple[list[str], list[str]]:
        """The oldest state of the line and the newest, which are the same if there is one only. The position is that of
        the oldest, where the next one goes."""
        width, line, count = self.width, self.line, self.trace.states
        if line == 1:
            states = [at("state", k * width) for k in range(count)]
            return states, states
        self.body.line("const size_t oldest = *position;")
        if self.layer.skip is not None:
            self.body.line(f"const size_t newest = oldest == 0 ? {line - 1} : oldest - 1;")
        oldest, newest = (
            [f"{at('state', k * line * width)} + {end} * {width}" for k in range(count)] for end in ("oldest", "newest")
        )
        return oldest, newest

    def _set_aside(self, after: str) -> list[str]:
        """The state between two transitions."""
        count = self.trace.states
        between = self.body.array("between", count * self.width)
        self.body.call("copy", after, count * self.width, between)
        return [at(between, k * self.width) for k in range(count)]

    def _keep(self, after: str, oldest: Sequence[str]) -> None:
        for k, place in enumerate(oldest):
            self.body.call("copy", at(after, k * self.width), self.width, place)
        if self.line > 1:
            self.body.line(f"*position = (uint32_t)(oldest + 1 == {self.line} ? 0 : oldest + 1);")

    def _show(self, after: str) -> None:
        """Of a complex state real parts, then imaginary ones."""
        if self.pairs == 1:
            self.body.call("copy", after, self.width, "y")
            return
        with self.body.loop(self.units):
            self.body.line(f"y[k] = {after}[2 * k];")
            self.body.line(f"y[{self.units} + k] = {after}[2 * k + 1];")

    def _first_state(self) -> Tensor:
        return torch.stack([part[0] for part in self.layer.initial_state(1)]).detach().reshape(-1)

    def _rows(self, phase: int) -> list[str]:
        """Of the cell's parameters; what is the same for all units is one number in the code."""
        rows, found = self._own(phase), []
        for number, row in enumerate([] if rows is None else rows.unbind(0)):
            if bool((row == row[0]).all() and row[0].isfinite()):
                found.append(literal(float(row[0])))
            else:
                own = f"{self.own}_own_{phase}_{number}"
                found.append(self.source.floats(own, row, f"{self.own}: parameters of the cell"))
        return found

    def _write_function(self) -> None:
        position = "uint32_t *position, " if self.line > 1 else ""
        given = "int32_t token" if self.tokens else "const float *x"
        head = f"void {self.source.name(self.own)}(float *state, {position}{given}, float *y)"
        what = f"{type(self.layer.cell).__name__}, {self.units} units, {self._described()}"
        self.source.function(head, self.body, what)
