"""What a structure saves: parameters, multiply-adds and state of recurrent layers against dense ones."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from slimrnn.analysis.model.layers import LayerView, find_layers
from slimrnn.layers import summary


@dataclass(frozen=True)
class LayerCost:
    """One layer in one direction, beside the layer of the same cell and size whose matrices are all dense."""

    layer: str  #: LayerView.name
    structure: str  #: of the recurrent matrices
    parameters: int  #: real numbers, biases and all
    dense_parameters: int
    macs: int  #: real multiply-adds in the matrices, per step and sequence
    dense_macs: int
    state_size: int  #: real numbers that it carries from step to step: h, an LSTM's c, with delays the line of states

    @property
    def parameter_ratio(self) -> float:
        return self.parameters / self.dense_parameters

    @property
    def mac_ratio(self) -> float:
        return self.macs / self.dense_macs

    def summary(self) -> str:
        """One line of text."""
        return (
            f"{self.layer} {self.structure}: {self.parameters:,} parameters ({self.parameter_ratio:.3g} of dense), "
            f"{self.macs:,} multiply-adds a step ({self.mac_ratio:.3g} of dense), state of {self.state_size:,} numbers"
        )


def layer_costs(model: nn.Module) -> list[LayerCost]:
    """The costs of every recurrent layer, ours or torch.nn's; `slimrnn.summary` has the table by kind of matrix."""
    return [_cost(view) for view in find_layers(model)]


def _cost(view: LayerView) -> LayerCost:
    core, cell = view.core, view.core.cell
    (counted,) = summary(core).layers
    hidden, width, parts = cell.hidden_size, core.input.shape.in_size, 2 if cell.complex else 1
    matrices = sum(map.num_parameters for map in core.maps) + core.input.num_parameters
    other = counted.total - matrices
    if view.of_torch and view.stack is not None and view.stack.bias:
        other = 2 * len(cell.gates) * hidden  # torch keeps two biases per gate
    return LayerCost(
        layer=view.name,
        structure=view.structure,
        parameters=matrices + other,
        dense_parameters=hidden * (cell.matrices * len(core.maps) * hidden + len(cell.gates) * width) * parts + other,
        macs=counted.macs,
        dense_macs=counted.dense_macs,
        state_size=cell.states * core.state_size * parts,
    )
