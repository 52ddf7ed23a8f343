"""Encoder: a sequence as one vector, the context.

Shape suffixes: T time, B batch, C width of the context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from slimrnn._checks import check_count
from slimrnn.layers.inputs import check_lengths
from slimrnn.sequence._core import Core, check_core, last_output, output_size, scan
from slimrnn.sequence.symbols import Symbols, SymbolTable, check_symbols


class Encoder(nn.Module):
    """c = h_τ, the last output of the top layer; of two directions, both side by side.

    core -- makes the recurrent layers for an input width: `lambda width: GRU(width, 128, bidirectional=True)`;
    source -- `Symbols(count)`, or the size of real vectors."""

    def __init__(
        self,
        core: Callable[[int], Core],
        source: Symbols | int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        where: dict[str, Any] = {"device": device, "dtype": dtype}
        self.table: SymbolTable | None = None
        if isinstance(source, Symbols):
            self.table = SymbolTable(source.count, source.embedding, **where)
            width = self.table.width
        else:
            check_count("source", source)
            width = source
        self.core = check_core(core(width), width, causal=False)

    @property
    def context_size(self) -> int:
        """Width of the context."""
        return output_size(self.core)

    def forward(self, source: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """(T, B) symbols or (T, B, I) vectors to (B, C)."""
        axes = 3 if self.table is None else 2
        if not isinstance(source, Tensor) or source.dim() != axes:
            got = tuple(source.shape) if isinstance(source, Tensor) else type(source).__name__
            raise ValueError(f"expected a source of {axes} axes, (T, B{', I' * (axes - 2)}), got {got}")
        time, batch = source.shape[:2]  # len() would fix the length of an export
        if not time:
            raise ValueError("expected a source of at least one step, got an empty one")
        lengths_B = None if lengths is None else check_lengths(lengths, time, batch, source.device)
        if self.table is not None:
            steps = torch.arange(time, device=source.device).unsqueeze(1)
            inside = None if lengths_B is None else steps < lengths_B
            source = self.table(check_symbols(source, len(self.table.weight), inside, 0))
        output, _ = scan(self.core, source, None, lengths_B)
        return last_output(self.core, output, lengths_B)
