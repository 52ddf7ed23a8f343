"""The stages of a model in C, in pieces of two kinds: those that read one place and write another, and those that
change what lies in a place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torch import nn

from slimrnn.errors import ExportError
from slimrnn.exporting.c.float_layers import FloatWriter
from slimrnn.exporting.c.int8_layers import Int8Writer, rounded
from slimrnn.exporting.c.layers import Core, LayerWriter
from slimrnn.exporting.c.source import Body, Source, at
from slimrnn.exporting.frozen import FrozenLayer
from slimrnn.exporting.int8.embedding import Int8Embedding
from slimrnn.exporting.int8.layer import Int8Layer
from slimrnn.exporting.int8.linear import Int8Linear
from slimrnn.layers import RecurrentStack
from slimrnn.layers.group import LayerGroup

TOKEN = "token"  # the place of an input that is one
ELEMENTWISE: dict[type[nn.Module], str] = {nn.ReLU: "relu", nn.Tanh: "tanh", nn.Sigmoid: "sigmoid"}
OVER_ALL: dict[type[nn.Module], str] = {nn.Softmax: "softmax", nn.LogSoftmax: "log_softmax"}


@dataclass(frozen=True)
class Piece:
    """emit(body, from, to) writes its statements; in place both are the same."""

    emit: Callable[[Body, str, str], None]
    width: int  # of what it gives
    in_place: bool = False
    cores: tuple[Core, ...] = ()


class Pieces:
    """Makes them, for an input of this width, or for tokens."""

    def __init__(self, source: Source, inputs: int | None) -> None:
        self.source, self.width, self.tokens = source, inputs or 0, inputs is None
        self.vocabulary = 0
        self.layers = 0  # so far
        self.others = 0

    def of(self, stages: Sequence[nn.Module]) -> Iterator[Piece]:
        vectors: nn.Module | None = None
        for number, stage in enumerate(stages):
            if isinstance(stage, nn.Embedding | Int8Embedding):
                vectors = self._vectors(stage)
                follows = stages[number + 1] if number + 1 < len(stages) else None
                if not isinstance(follows, RecurrentStack):
                    raise ExportError("expected a recurrent layer behind an embedding, got another module")
                continue
            if isinstance(stage, RecurrentStack):
                for piece in self._stack(stage, vectors):
                    self.width = piece.width
                    yield piece
                vectors = None
            else:
                yield self._other(stage)

    # --- recurrent layers ----------------------------------------------------------------------------------------

    def _stack(self, stack: RecurrentStack, vectors: nn.Module | None) -> Iterator[Piece]:
        if self.tokens and vectors is None:
            if not stack.takes_tokens:
                raise ExportError("expected inputs of floating numbers, got integers for a layer that reads vectors")
            vectors = None if stack.embedding is None else self._vectors(stack.embedding)
            self.vocabulary = self.vocabulary or stack.input_size
        if not self.tokens and self.width != stack.input_size:
            raise ExportError(f"expected inputs of {stack.input_size} numbers, got {self.width}")
        for depth, layer in enumerate(stack.layers):
            members = layer.cores if isinstance(layer, LayerGroup) else [layer]
            residual = bool(stack.residual and depth)
            yield self._layer(members, vectors if depth == 0 else None, residual)
            self.tokens = False

    def _layer(self, members: Sequence[nn.Module], vectors: nn.Module | None, residual: bool) -> Piece:
        """Layers side by side that read the same."""
        number, cores = self.layers, []
        self.layers += 1
        for k, member in enumerate(members):
            own = f"layer_{number}" if len(members) == 1 else f"layer_{number}_{k}"
            cores.append(self._writer(own, member, vectors).write())
        width = sum(core.output for core in cores)

        def emit(body: Body, of: str, to: str) -> None:
            offset = 0
            for core in cores:
                position = f"&state->{core.own}_position, " if core.rings else ""
                body.line(f"{core.name}(state->{core.own}, {position}{of}, {at(to, offset)});")
                offset += core.output
            if residual:
                with body.loop(width):
                    body.line(f"{to}[k] += {of}[k];")

        return Piece(emit, width, cores=tuple(cores))

    def _writer(self, own: str, layer: nn.Module, vectors: nn.Module | None) -> LayerWriter:
        if isinstance(layer, Int8Layer):
            return Int8Writer(self.source, own, layer, self.tokens, vectors)
        if isinstance(layer, FrozenLayer):
            if isinstance(vectors, Int8Embedding):
                raise ExportError("expected an int8 layer behind an int8 embedding, got one in float32: quantize both")
            return FloatWriter(self.source, own, layer, self.tokens, vectors)
        cell = type(getattr(layer, "cell", layer)).__name__
        raise ExportError(
            f"expected a cell whose step can be traced for C, got {cell}: its first call warns of what cannot be traced"
        )

    def _vectors(self, embedding: nn.Module) -> nn.Module:
        plain = type(embedding) is nn.Embedding and embedding.max_norm is None
        if not plain and not isinstance(embedding, Int8Embedding):
            raise ExportError(f"expected a plain nn.Embedding, got {type(embedding).__name__} or one with max_norm")
        if not self.tokens:
            raise ExportError("expected tokens, which are integers, for an embedding, got floating numbers")
        self.vocabulary = int(embedding.num_embeddings)  # type: ignore[arg-type]
        return embedding

    # --- others --------------------------------------------------------------------------------------------------

    def _other(self, stage: nn.Module) -> Piece:
        if self.tokens:
            raise ExportError(f"expected a layer that reads tokens first, got {type(stage).__name__}")
        if isinstance(stage, nn.Linear | Int8Linear):
            return self._linear(stage)
        kind, width = type(stage), self.width
        if kind in ELEMENTWISE:
            function = self.source.common(ELEMENTWISE[kind])

            def each(body: Body, of: str, to: str) -> None:
                with body.loop(width):
                    body.line(f"{to}[k] = {function}({of}[k]);")

            return Piece(each, width, in_place=True)
        return Piece(lambda body, of, to: body.call(OVER_ALL[kind], width, to), width, in_place=True)

    def _linear(self, stage: nn.Linear | Int8Linear) -> Piece:
        rows, columns = stage.out_features, stage.in_features
        if columns != self.width:
            raise ExportError(f"expected a linear layer of {self.width} inputs, got one of {columns}")
        own = f"linear_{self.others}"
        self.others += 1
        if isinstance(stage, Int8Linear):
            w = self.source.whole(f"{own}_weight", stage.numbers, f"{own}: weight, int8", "int8_t")
            scales = self.source.floats(f"{own}_scales", stage.scale, f"{own}: scales")
        else:
            w = self.source.floats(f"{own}_weight", stage.weight, f"{own}: weight")
        b = None if stage.bias is None else self.source.floats(f"{own}_bias", stage.bias, f"{own}: bias")
        self.width = rows

        def emit(body: Body, of: str, to: str) -> None:
            if b is None:
                body.clear(rows, to)
            else:
                body.call("copy", b, rows, to)
            if isinstance(stage, Int8Linear):
                body.call("int8_dense", w, scales, rows, columns, *rounded(body, of, columns), to)
            else:
                body.call("dense", w, rows, columns, of, to)

        return Piece(emit, rows)
