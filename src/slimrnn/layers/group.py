"""Layers side by side: groups of units of one layer, each with a delay of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

from slimrnn.cells.base import Cell, State
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.ops.reference import Resets


class LayerGroup(nn.Module):
    """Several layers that read the same input; their outputs and states lie side by side."""

    def __init__(self, members: Iterable[RecurrentLayer]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    @property
    def cores(self) -> list[RecurrentLayer]:
        return [member for member in self.members if isinstance(member, RecurrentLayer)]

    @property
    def cell(self) -> Cell:
        """The first group's; all are of one kind."""
        return self.cores[0].cell

    @property
    def state_size(self) -> int:
        return sum(core.state_size for core in self.cores)

    def initial_state(self, batch: int) -> State:
        return _beside([core.initial_state(batch) for core in self.cores])

    def forward(
        self,
        x_TBI: Tensor,
        state: State,
        lengths_B: Tensor | None = None,
        reverse: bool = False,
        vectors_VI: Tensor | None = None,
        resets: Resets | None = None,
    ) -> tuple[Tensor, State]:
        """As RecurrentLayer."""
        anew = [None] * len(self.members) if resets is None else [part for _, part in self._shares(resets.state)]
        found = []
        for (core, part), begin in zip(self._shares(state), anew, strict=True):
            own = None if resets is None or begin is None else resets._replace(state=begin)
            found.append(core(x_TBI, part, lengths_B, reverse, vectors_VI, own))
        outputs = [output for output, _ in found]
        if self.cell.complex:  # all real parts, then all imaginary ones
            halves = [output.chunk(2, -1) for output in outputs]
            outputs = [half[which] for which in (0, 1) for half in halves]
        return torch.cat(outputs, -1), _beside([last for _, last in found])

    def step(self, x_BI: Tensor, state: State) -> State:
        """One time step."""
        return _beside([core.step(x_BI, part) for core, part in self._shares(state)])

    def shown(self, state: State) -> Tensor:
        """The output that belongs to a state: the newest h of every group."""
        return torch.cat([core.shown(part) for core, part in self._shares(state)], -1)

    def _shares(self, state: State) -> Iterator[tuple[RecurrentLayer, State]]:
        """Every layer with its part of the state."""
        cores = self.cores
        pieces = (part.split([core.state_size for core in cores], -1) for part in state)
        return zip(cores, zip(*pieces, strict=True), strict=True)


def _beside(states: list[State]) -> State:
    return tuple(torch.cat(parts, -1) for parts in zip(*states, strict=True))
