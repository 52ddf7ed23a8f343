"""Frozen layers of float32 in C.

Shape suffixes: G gates, W numbers of a state vector, I input width, V vocabulary.
"""

from __future__ import annotations

from torch import nn

from slimrnn.errors import ExportError
from slimrnn.exporting.c.given import Product, Sizes
from slimrnn.exporting.c.layers import LayerWriter
from slimrnn.exporting.c.source import Source
from slimrnn.exporting.c.terms import total
from slimrnn.exporting.constant_layer import Terms
from slimrnn.exporting.frozen import FrozenLayer
from slimrnn.structures.base import StructuredMap
from slimrnn.tracing.native_cells import step_of_program


class FloatWriter(LayerWriter):
    """Writes a FrozenLayer; `vectors` is the nn.Embedding of its tokens, None where they are one-hot."""

    layer: FrozenLayer

    def __init__(self, source: Source, own: str, layer: FrozenLayer, tokens: bool, vectors: nn.Module | None) -> None:
        trace = step_of_program(layer.plan.cell.text, layer.plan.complex)
        if trace is None:
            raise ExportError("expected a layer of this process, got a program that another one exported")
        super().__init__(source, own, layer, trace, tokens, vectors)

    def _input_products(self, gates: str) -> None:
        """A token's product is looked up where the table is no larger than what makes it."""
        if self.tokens:
            vectors_VI = self.vectors.weight.detach() if isinstance(self.vectors, nn.Embedding) else None
            table = self.layer.token_table(vectors_VI).detach()
            if vectors_VI is None or table.numel() <= vectors_VI.numel() + self._input_numbers():
                rows = table.reshape(len(table), self.count)
                name = self.source.floats(f"{self.own}_table", rows, f"{self.own}: products of tokens")
                self.body.call("copy", f"{name} + (size_t)token * {self.count}", self.count, gates)
                return
            name = self.source.floats(f"{self.own}_embedding", vectors_VI, f"{self.own}: embedding")
            self.body.line(f"const float *const x = {name} + (size_t)token * {vectors_VI.shape[1]};")
        self._start_with_bias(0, gates)
        self._input_map()(self.body, 0, self.trace.gates, "x", gates)

    def _input_numbers(self) -> int:
        u = self.layer.u
        return u.numel() if u is not None else sum(tensor.numel() for tensor in self.layer.input.prepare())

    def _input_map(self) -> Product:
        u_GWI, own, what = self.layer.u, f"{self.own}_input", f"{self.own}: input"
        if u_GWI is None:
            return self._real_map(self.layer.input, own, what)
        return total(self.source, own, what, Sizes(self.width, u_GWI.shape[-1]), [("block_diagonal", [u_GWI])])

    def _real_map(self, map: StructuredMap, own: str, what: str) -> Product:
        """One that was not frozen; written out where it has no terms."""
        terms = map.terms(map.prepare())
        named = [("block_diagonal", [map.dense()])] if terms is None else [(t.structure, [*t.tensors]) for t in terms]
        return total(self.source, own, what, Sizes(self.width, map.shape.in_size), named)

    def _skip(self, oldest: str, gates: str) -> None:
        if self.layer.skipped is not None:
            product = self._real_map(self.layer.skipped, f"{self.own}_skip", f"{self.own}: skip through time")
            product(self.body, 0, self.trace.gates, oldest, gates)

    def _product(self, own: str, terms: Terms) -> Product:
        return total(self.source, own, f"{self.own}: recurrent", Sizes(self.units, self.units, self.pairs), terms)

    def _described(self) -> str:
        return f"structure {self.layer.recurrent.spec!r}"
