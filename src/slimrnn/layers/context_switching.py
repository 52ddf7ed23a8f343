"""Context switching: a small auxiliary net decides which blocks of a factorized layer are in use.

Factorized paper §2.2.3. Shape suffixes: T time, B batch, K blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from slimrnn._checks import check_choice, check_count
from slimrnn.layers.backend import OnBackend
from slimrnn.layers.gru import GRU
from slimrnn.layers.inputs import refuse_packed, without_padding
from slimrnn.layers.stack import RecurrentStack, States
from slimrnn.structures import BlockDiagonal

SwitchingStates = tuple[States, States]  # of the layer and of the auxiliary net


class ContextSwitching(OnBackend):
    """m_t = normalise(V a_t + c) in R^K, where a_t is the state of an auxiliary GRU that reads the same input;

    on="inputs": block k of the layer's input is multiplied by m_tk; on="outputs": block k of its output; on="both".

    `layer` is an RNN, GRU or LSTM with structure BlockDiagonal(K). normalise="softmax" or "sigmoid": σ(z)/Σσ(z). With
    `mean_one` the masks are K times that, so that a uniform one leaves the layer as it is instead of scaling it by 1/K.
    The interface is the layer's; the state is that of the layer and that of the auxiliary net."""

    def __init__(
        self,
        layer: RecurrentStack,
        on: str = "outputs",
        *,
        normalise: str = "softmax",
        mean_one: bool = False,
        auxiliary_size: int = 32,
    ) -> None:
        super().__init__()
        check_choice("on", on, ["inputs", "outputs", "both"])
        check_choice("normalise", normalise, ["softmax", "sigmoid"])
        check_count("auxiliary_size", auxiliary_size)
        if not isinstance(layer, RecurrentStack):
            raise TypeError(f"expected an RNN, GRU or LSTM, got {type(layer).__name__}")
        if not isinstance(layer.structure, BlockDiagonal):
            raise ValueError(f"expected a layer of structure BlockDiagonal, got {layer.structure!r}")
        if layer.bidirectional:
            raise ValueError("expected a layer of one direction, got a bidirectional one")
        if layer.vocabulary is not None:
            raise ValueError(f"expected a layer that reads vectors, got vocabulary={layer.vocabulary}")
        self.blocks = blocks = layer.structure.blocks * len(layer.delays)  # those of each group of units
        if on != "outputs" and layer.input_size % blocks:
            raise ValueError(f"expected input_size divisible by the {blocks} blocks, got {layer.input_size}")
        some = next(layer.parameters())
        options: dict[str, Any] = {"dtype": some.dtype, "device": some.device}
        self.layer, self.on, self.normalise, self.mean_one = layer, on, normalise, mean_one
        self.copies = 2 if layer.cell.complex else 1
        self.auxiliary = GRU(layer.input_size, auxiliary_size, batch_first=layer.batch_first, **options)
        self.switch = nn.Linear(auxiliary_size, blocks, **options)

    @property
    def input_size(self) -> int:
        return self.layer.input_size

    @property
    def output_size(self) -> int:
        return self.layer.output_size

    @property
    def batch_first(self) -> bool:
        return self.layer.batch_first

    @property
    def auxiliary_size(self) -> int:
        return self.auxiliary.hidden_size

    @property
    def extra_parameters(self) -> int:
        """What the switching adds to the layer's parameters."""
        return sum(p.numel() for part in (self.auxiliary, self.switch) for p in part.parameters())

    @property
    def extra_macs(self) -> int:
        """Multiply-adds that it adds to a step: the auxiliary net's, its read-out and the masks."""
        core = self.auxiliary.cores[0]
        masked = {"inputs": self.input_size, "outputs": self.output_size, "both": self.input_size + self.output_size}
        return core.recurrent.macs + core.input.macs + self.switch.weight.numel() + masked[self.on]

    def forward(
        self, input: Tensor, hx: SwitchingStates | None = None, *, lengths: Tensor | Sequence[int] | None = None
    ) -> tuple[Tensor, SwitchingStates]:
        """As the layer's: padded or unbatched, `lengths=` for a ragged batch, or a jagged nested tensor."""
        refuse_packed(input)
        layer_state, auxiliary_state = (None, None) if hx is None else _pair(hx)
        if isinstance(input, Tensor) and input.is_nested and input.layout != torch.jagged:
            raise TypeError(f"expected a padded input, or a nested one of layout torch.jagged, got {input.layout}")
        input = without_padding(input, lengths, self.batch_first)
        context, auxiliary_state = self.auxiliary(input, auxiliary_state, lengths=lengths)
        mask = self._mask(context)
        if self.on != "outputs":
            input = _masked(input, mask)
        output, layer_state = self.layer(input, layer_state, lengths=lengths)
        return output if self.on == "inputs" else _masked(output, mask, self.copies), (layer_state, auxiliary_state)

    def step(self, x_t: Tensor, state: SwitchingStates | None = None) -> tuple[Tensor, SwitchingStates]:
        """One step of a sequence, (B, I) or (I)."""
        layer_state, auxiliary_state = (None, None) if state is None else _pair(state)
        context, auxiliary_state = self.auxiliary.step(x_t, auxiliary_state)
        mask = self._mask(context)
        if self.on != "outputs":
            x_t = _masked(x_t, mask)
        y_t, layer_state = self.layer.step(x_t, layer_state)
        return y_t if self.on == "inputs" else _masked(y_t, mask, self.copies), (layer_state, auxiliary_state)

    def initial_state(self, batch: int | None = None) -> SwitchingStates:
        """The state before the first step."""
        return self.layer.initial_state(batch), self.auxiliary.initial_state(batch)

    def contexts(self, input: Tensor, *, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """The masks m_t of a sequence, (T, B, K) or (B, T, K): which blocks were in use when."""
        refuse_packed(input)
        context, _ = self.auxiliary(input, lengths=lengths)
        return self._mask(context)

    def _mask(self, context: Tensor) -> Tensor:
        scores: Tensor = self.switch(context)
        if self.normalise == "softmax":
            shares = scores.softmax(-1)
        else:
            open = torch.sigmoid(scores)
            shares = open / open.sum(-1, keepdim=True)
        return shares * self.blocks if self.mean_one else shares

    def extra_repr(self) -> str:
        mean = ", mean_one=True" if self.mean_one else ""
        return f"on={self.on!r}, normalise={self.normalise!r}{mean}, extra_parameters={self.extra_parameters:,}"


def _masked(x: Tensor, mask: Tensor, copies: int = 1) -> Tensor:
    """Block k of the last axis times m_k; of `copies` of the blocks, such as real and imaginary parts, all alike."""
    blocks: Tensor = x.unflatten(-1, (copies, mask.shape[-1], -1)) * mask[..., None, :, None]
    return blocks.flatten(-3)


def _pair(state: object) -> SwitchingStates:
    if not isinstance(state, tuple | list) or len(state) != 2:
        raise TypeError(f"expected the states of the layer and of the auxiliary net, got {type(state).__name__}")
    layer, auxiliary = state
    return layer, auxiliary
