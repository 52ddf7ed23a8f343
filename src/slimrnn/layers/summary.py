"""A table of where the parameters and the multiply-adds of a model are."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from slimrnn.cells import LSTMCell
from slimrnn.layers.highway_layer import HighwayLayer
from slimrnn.layers.recurrent_layer import RecurrentLayer

HEADINGS = ("layer", "structure", "recurrent", "input", "bias", "total", "multiply-adds", "dense", "ratio")


@dataclass(frozen=True)
class LayerSummary:
    """One recurrent layer in one direction, or one highway layer: real parameters, and real multiply-adds per step and
    sequence."""

    name: str
    structure: str
    recurrent: int  # from the state to itself: with peepholes; of a highway layer, its matrices
    input: int
    bias: int  # with a learned initial state, learned leaks, or the scales of a batch normalisation
    macs: int
    dense_macs: int

    @property
    def total(self) -> int:
        return self.recurrent + self.input + self.bias


@dataclass(frozen=True)
class Summary:
    """What `summary` found; `print` shows it as a table."""

    layers: tuple[LayerSummary, ...]
    other: int  # parameters outside these layers, such as a read-out
    total: int  # of the model, each parameter once, however often it is used

    def __str__(self) -> str:
        rows = [HEADINGS]
        for x in self.layers:
            counts = (x.recurrent, x.input, x.bias, x.total, x.macs, x.dense_macs)
            rows.append((x.name, x.structure, *(f"{c:,}" for c in counts), f"{x.macs / x.dense_macs:.2f}"))  # type: ignore[arg-type]
        if self.other:
            rows.append(("(other)", "", "", "", "", f"{self.other:,}", "", "", ""))
        rows.append(("total", "", "", "", "", f"{self.total:,}", "", "", ""))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for row in rows:
            cells = [c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)


def summary(module: nn.Module) -> Summary:
    """Parameters (recurrent / input / bias) and multiply-adds per step of every recurrent or highway layer in `module`,
    against the dense layer of the same size."""
    layers: list[LayerSummary] = []
    inside: set[int] = set()
    for name, layer in module.named_modules():
        if isinstance(layer, RecurrentLayer | HighwayLayer):
            shown = name or type(layer).__name__
            if isinstance(layer, HighwayLayer):
                layers.append(_summarise_highway(shown, layer))
            else:
                layers.append(_summarise(shown, layer))
            inside.update(id(p) for p in layer.parameters())
    other = sum(p.numel() for p in module.parameters() if id(p) not in inside)
    return Summary(tuple(layers), other, sum(p.numel() for p in module.parameters()))


def _summarise(name: str, layer: RecurrentLayer) -> LayerSummary:
    cell, inputs, cells = layer.cell, layer.input, [transition.cell for transition in layer.transitions]
    peepholes = sum(c.peephole.numel() for c in cells if isinstance(c, LSTMCell) and c.peephole is not None)
    recurrent = sum(map.num_parameters for map in layer.maps) + peepholes
    total = sum(p.numel() for p in layer.parameters())
    hidden, width = cell.hidden_size, inputs.shape.in_size
    products = cell.matrices * len(layer.maps) * hidden + len(cell.gates) * width
    return LayerSummary(
        name=name,
        structure=repr(layer.recurrent.spec),
        recurrent=recurrent,
        input=inputs.num_parameters,
        bias=total - recurrent - inputs.num_parameters,
        macs=sum(map.macs for map in layer.maps) + inputs.macs,
        dense_macs=hidden * products * (4 if cell.complex else 1),
    )


def _summarise_highway(name: str, layer: HighwayLayer) -> LayerSummary:
    matrices = layer.matrices
    return LayerSummary(
        name=name,
        structure=repr(matrices.spec),
        recurrent=matrices.num_parameters,
        input=0,
        bias=sum(p.numel() for p in layer.parameters()) - matrices.num_parameters,
        macs=matrices.macs,
        dense_macs=2 * layer.size**2,
    )
