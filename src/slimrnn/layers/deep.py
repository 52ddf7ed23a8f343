"""Deep: perceptrons before and after a recurrent layer (lecture, figure 18 b and c).

Depth between h_{t−1} and h_t is the layer's own: its `transition_depth`; depth of layers on layers is `num_layers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from torch import Tensor, nn

from slimrnn._checks import check_choice, check_count
from slimrnn.layers.backend import OnBackend
from slimrnn.layers.inputs import refuse_packed, without_padding
from slimrnn.layers.stack import RecurrentStack, States

NONLINEARITIES: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}


class Deep(OnBackend):
    """x_t → perceptron → recurrent layer → perceptron → o_t.

    input_depth, output_depth -- matrices of the perceptrons; 1 is a single one, 0 (input only) none;
    width -- of their hidden layers (default: what they lead to, and what they come from);
    skip -- a linear path from each perceptron's input to its output, so that depth does not lengthen the shortest path.
    """

    def __init__(
        self,
        input_size: int,
        layer: RecurrentStack,
        output_size: int,
        *,
        input_depth: int = 2,
        output_depth: int = 2,
        width: int | None = None,
        nonlinearity: str = "tanh",
        skip: bool = True,
    ) -> None:
        super().__init__()
        for name, count in (("input_size", input_size), ("output_size", output_size), ("output_depth", output_depth)):
            check_count(name, count)
        if width is not None:
            check_count("width", width)
        if input_depth != 0:
            check_count("input_depth", input_depth)
        if not isinstance(layer, RecurrentStack):
            raise TypeError(f"expected an RNN, GRU or LSTM, got {type(layer).__name__}")
        if input_depth == 0 and layer.input_size != input_size:
            raise ValueError(f"expected a layer of input_size={input_size} with input_depth=0, got {layer.input_size}")
        check_choice("nonlinearity", nonlinearity, list(NONLINEARITIES))
        some = next(layer.parameters())
        options: dict[str, Any] = {"nonlinearity": nonlinearity, "skip": skip, "like": some}
        inward, outward = layer.input_size, layer.output_size
        self.input_size, self.output_size, self.batch_first = input_size, output_size, layer.batch_first
        self.input_depth, self.output_depth, self.width = input_depth, output_depth, width
        self.nonlinearity, self.skip = nonlinearity, skip
        self.before: nn.Module = nn.Identity()
        if input_depth:
            # Its last nonlinearity is the layer's to take: the layer multiplies by a matrix first.
            self.before = Perceptron(input_size, inward, input_depth, inward if width is None else width, **options)
        self.layer = layer
        self.after = Perceptron(outward, output_size, output_depth, outward if width is None else width, **options)

    def forward(
        self, input: Tensor, hx: States | None = None, *, lengths: Tensor | Sequence[int] | None = None
    ) -> tuple[Tensor, States]:
        """Inputs in the layer's form to outputs at every step, and the layer's last state."""
        refuse_packed(input)
        before = self.before(without_padding(input, lengths, self.batch_first))
        hidden, state = self.layer(before, hx, lengths=lengths)
        return self.after(hidden), state

    def step(self, x_t: Tensor, state: States | None = None) -> tuple[Tensor, States]:
        """One step of a sequence."""
        hidden, state = self.layer.step(self.before(x_t), state)
        return self.after(hidden), state

    def initial_state(self, batch: int | None = None) -> States:
        return self.layer.initial_state(batch)


class Perceptron(nn.Module):
    """`depth` matrices with a nonlinearity between them, and a linear skip past them."""

    def __init__(
        self, input_size: int, output_size: int, depth: int, width: int, *, nonlinearity: str, skip: bool, like: Tensor
    ) -> None:
        super().__init__()
        check_count("width", width)
        options: dict[str, Any] = {"dtype": like.dtype, "device": like.device}
        sizes = [input_size, *[width] * (depth - 1), output_size]
        parts: list[nn.Module] = []
        for here, there in pairwise(sizes):
            parts += [nn.Linear(here, there, **options), NONLINEARITIES[nonlinearity]()]
        self.path = nn.Sequential(*parts[:-1])
        self.skip = nn.Linear(input_size, output_size, bias=False, **options) if skip and depth > 1 else None

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.path(x)
        return y if self.skip is None else y + self.skip(x)
