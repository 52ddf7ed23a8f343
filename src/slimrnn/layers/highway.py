"""Highway: deep feed-forward nets whose layers carry their input on (Srivastava, Greff & Schmidhuber 2015)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from slimrnn._checks import check_choice, check_count, check_number, check_probability, check_real_dtype
from slimrnn.layers.highway_layer import NONLINEARITIES, HighwayLayer
from slimrnn.layers.inputs import in_autocast
from slimrnn.structures import Dense, Structure

DEFAULTS = {"nonlinearity": "relu", "transform_bias": -1.0, "batch_norm": False, "dropout": 0.0}


class Highway(nn.Module):
    """`num_layers` times h ← t ⊙ f(W h + b) + (1 − t) ⊙ h with t = σ(W_t h + b_t), each layer with its own matrices.

    structure -- of W and W_t (default: Dense()), the same specs as for recurrent layers;
    nonlinearity -- f: "relu" or "tanh";
    transform_bias -- initial b_t; negative: the layers begin by carrying their input on;
    batch_norm -- normalise the products W h and W_t h over all vectors of the input;
    dropout -- on the h that the matrices multiply; what is carried stays whole.
    A LowRank matrix counts as two here: what is between its factors is normalised and dropped too.

    Low-rank paper, eqs. 3 to 5 and A.1: `Highway(1024, 5, structure=LowRank(256), batch_norm=True, dropout=0.3)`."""

    def __init__(
        self,
        size: int,
        num_layers: int = 1,
        *,
        structure: Structure | None = None,
        nonlinearity: str = "relu",
        transform_bias: float = -1.0,
        batch_norm: bool = False,
        dropout: float = 0.0,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        structure = Dense() if structure is None else structure
        check_count("size", size)
        check_count("num_layers", num_layers)
        if not isinstance(structure, Structure):
            raise TypeError(f"expected structure to be a structure such as LowRank(24), got {structure!r}")
        check_choice("nonlinearity", nonlinearity, list(NONLINEARITIES))
        check_number("transform_bias", transform_bias)
        if not isinstance(batch_norm, bool):
            raise TypeError(f"expected batch_norm to be True or False, got {batch_norm!r}")
        check_probability("dropout", dropout)
        if dtype is not None:
            check_real_dtype(dtype)
        self.size, self.num_layers, self.structure = size, num_layers, structure
        self.nonlinearity, self.transform_bias = nonlinearity, transform_bias
        self.batch_norm, self.dropout = batch_norm, dropout
        self.layers = nn.ModuleList(
            HighwayLayer(
                size,
                structure,
                nonlinearity=nonlinearity,
                transform_bias=transform_bias,
                batch_norm=batch_norm,
                dropout=dropout,
                dtype=dtype,
                device=device,
            )
            for _ in range(num_layers)
        )

    def forward(self, input: Tensor) -> Tensor:
        """(..., size) to the same shape."""
        h = self._checked(input)
        for layer in self.layers:
            h = layer(h)
        return h

    def _checked(self, x: Tensor) -> Tensor:
        dtype = next(self.parameters()).dtype
        if not isinstance(x, Tensor):
            raise TypeError(f"expected input to be a tensor, got {type(x).__name__}")
        if x.dim() == 0 or x.shape[-1] != self.size:
            raise ValueError(f"expected input of shape (..., {self.size}), got {tuple(x.shape)}")
        if x.dtype != dtype and not (in_autocast(x.device.type) and x.is_floating_point()):
            raise TypeError(
                f"expected input of dtype {dtype}, got {x.dtype}; convert it with .to({dtype}) or move the layer"
            )
        return x.to(dtype)

    @property
    def num_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters())

    def __repr__(self) -> str:
        layers = f", {self.num_layers}" if self.num_layers > 1 else ""
        options = [
            f"{name}={getattr(self, name)!r}" for name, usual in DEFAULTS.items() if getattr(self, name) != usual
        ]
        parts = [f"{self.size}{layers}", f"structure={self.structure!r}", *options]
        return f"Highway({', '.join(parts)}, parameters={self.num_parameters:,})"
