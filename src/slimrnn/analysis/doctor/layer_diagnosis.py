"""All measures of one recurrent layer, as far as its data allow them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slimrnn.analysis.gradients.reach import Reach
from slimrnn.analysis.matrices.spectrum import Spectrum
from slimrnn.analysis.memory.capacity import Capacity
from slimrnn.analysis.memory.gates import GateActivity
from slimrnn.analysis.memory.memory_range import MemoryRange
from slimrnn.analysis.model.costs import LayerCost
from slimrnn.analysis.model.layers import LayerView
from slimrnn.analysis.time_series.autocorrelation import AutocorrelationNorms
from slimrnn.analysis.time_series.convergence import Convergence
from slimrnn.analysis.time_series.long_memory import LongMemory

KINDS = {"rnn": "RNN", "gru": "GRU", "lstm": "LSTM"}
CANDIDATES = {"rnn": "h", "gru": "n", "lstm": "g"}


@dataclass(frozen=True, eq=False)
class LayerDiagnosis:
    """One layer in one direction. What could not be measured is None, or empty, and `left_out` says why."""

    view: LayerView
    steps: int  #: of the longest sequence it was measured on; 0 without data
    sequences: int  #: that it was measured on
    spectra: tuple[Spectrum, ...]  #: one for each gate
    cost: LayerCost
    reach: Reach | None = None  #: ∂s_T/∂s_t
    input_reach: Reach | None = None  #: ∂o_T/∂x_t
    gates: tuple[GateActivity, ...] = ()
    memory_range: MemoryRange | None = None
    autocorrelation: AutocorrelationNorms | None = None  #: of the states
    convergence: Convergence | None = None
    long_memory: LongMemory | None = None
    capacity: Capacity | None = None  #: of the outputs of all layers up to this one; only of the last one
    given: int = 0  #: sequences of the batch, of which `sequences` were read
    updates: int | None = None  #: that the net was trained for, where that is known
    overflows: bool = False  #: the states did not stay finite
    left_out: dict[str, str] = field(default_factory=dict)  #: by measure

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def description(self) -> str:
        """ "GRU of 128 units, LowRank(24) + Diagonal()"."""
        units = f"{self.view.hidden_size} {'complex ' if self.view.complex else ''}units"
        direction = ", backwards" if self.view.reverse else ""
        kind = KINDS.get(self.view.kind) or type(self.view.core.cell).__name__.removesuffix("Cell")
        return f"{kind} of {units}, {self.view.structure}{direction}"

    @property
    def recurrent_parameters(self) -> int:
        """Those of the recurrent matrices."""
        return sum(map.num_parameters for map in self.view.core.maps)

    @property
    def candidate(self) -> Spectrum | None:
        """The spectrum of the matrix that makes the new state; None where it is not known which one does."""
        return next((one for one in self.spectra if one.gate == CANDIDATES.get(self.view.kind)), None)

    @property
    def biases_are_new(self) -> bool:
        """Are the biases that training moves, but no option sets, all exactly 0 as in a new layer of ours? An optimizer
        that has made an update leaves no such number at 0. Of torch.nn's layers and of other cells it is not known."""
        bias = self.view.core.cell.bias
        if self.view.of_torch or self.view.kind == "other" or bias is None or not bias.requires_grad:
            return False
        carrying = {"gru": 1, "lstm": 1}.get(self.view.kind)
        return not any(bool(row.any()) for number, row in enumerate(bias) if number != carrying)

    @property
    def carrying(self) -> GateActivity | None:
        """The gate that keeps what was there before: update, forget, or a leak."""
        return next((gate for gate in self.gates if gate.forgetting_time is not None), None)

    @property
    def forgetting_times(self) -> NDArray[np.float64] | None:
        """Of the carrying gate, (H), the longest first."""
        gate = self.carrying
        return None if gate is None or gate.forgetting_time is None else np.sort(gate.forgetting_time)[::-1]

    @property
    def remembered(self) -> float:
        """How many past numbers the outputs tell: Σ max(r², 0), since what has no memory is below 0 by chance; of m
        symbols times m − 1. NaN where it was not measured."""
        if self.capacity is None:
            return math.nan
        return float(self.capacity.r2.clip(0).sum()) * self._directions

    @property
    def most_remembered(self) -> int:
        """What that can be at most: the outputs, or the numbers that went in."""
        assert self.capacity is not None
        return min(self.capacity.features, self.capacity.r2.size * self._directions)

    @property
    def _directions(self) -> int:
        """In which an input varies, for each column of r²."""
        symbols = self.capacity is not None and self.capacity.accuracy is not None
        return self.view.stack.input_size - 1 if symbols and self.view.stack is not None else 1

    @property
    def kept_at_the_end(self) -> float:
        """The gradient at the longest lag as a share of its peak; NaN where it was not measured."""
        if self.reach is None:
            return math.nan
        curve = self.reach.curve()
        return float(np.exp(curve[-1] - curve.max()))
