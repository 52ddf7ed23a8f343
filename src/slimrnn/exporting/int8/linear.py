"""Int8Linear, and Int8ReadOut: W x + b with W in int8."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from slimrnn._checks import check_choice
from slimrnn.errors import ExportError
from slimrnn.exporting.int8 import native
from slimrnn.exporting.int8.checked import CheckedNumbers
from slimrnn.exporting.int8.layer import check_inference
from slimrnn.exporting.int8.rows import MOST_COLUMNS, affine, as_floats, check_finite, rounded_rows
from slimrnn.layers.readout import Reading, ReadOut
from slimrnn.ops.stepping import Changed


class Int8Linear(CheckedNumbers):
    """y = W x + b: `numbers` int8 (out_features, in_features), their `scale` (out_features) and `bias`."""

    scale: Tensor
    numbers: Tensor
    bias: Tensor | None

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None) -> None:
        super().__init__()
        if in_features > MOST_COLUMNS:
            raise ExportError(
                f"expected at most {MOST_COLUMNS:,} columns, whose products fit in int32, got {in_features:,}"
            )
        self.in_features, self.out_features = in_features, out_features
        self.scale = _fixed(torch.zeros(out_features, device=device))
        self.numbers = _fixed(torch.zeros(out_features, in_features, dtype=torch.int8, device=device))
        self.register_parameter("bias", _fixed(torch.zeros(out_features, device=device)) if bias else None)
        self._backend = "auto"

    @classmethod
    def of(cls, linear: nn.Linear) -> Int8Linear:
        made = cls(linear.in_features, linear.out_features, linear.bias is not None, "meta")
        made._fill(linear)
        return made

    @torch.no_grad()
    def _fill(self, linear: nn.Linear) -> None:
        numbers, scale = rounded_rows(linear.weight)
        check_finite(scale, "a linear layer")
        self.numbers, self.scale = _fixed(numbers), _fixed(scale)
        if linear.bias is not None:
            self.bias = _fixed(linear.bias.detach().clone())
        self.train(linear.training)

    @property
    def backend(self) -> str:
        """ "auto": the native core where there is one; "reference": plain torch. Both give the same bits."""
        return self._backend

    @backend.setter
    def backend(self, wanted: str) -> None:
        check_choice("backend", wanted, ["auto", "native", "reference"])
        self._backend = wanted

    @property
    def weight(self) -> Tensor:
        """What the numbers stand for."""
        return as_floats(self.numbers, self.scale)

    def product(self, x: Tensor) -> Tensor:
        """W x + b"""
        check_inference(self, x)
        if x.shape[-1] != self.in_features:
            raise ValueError(f"expected vectors of {self.in_features} numbers, got shape {tuple(x.shape)}")
        tensors = (self.numbers, self.scale, self.bias)
        if self._backend == "reference" or not native.can_serve(x):
            return affine(x, *tensors)
        if x.numel() > native.FEW * self.in_features:
            return native.affine(x, *tensors)
        packed: native.PackedProduct | None = self.__dict__.get("_packed")
        try:
            return packed(x) if packed is not None and packed.is_of(*tensors) else self._pack()(x)
        except Changed:
            return self._pack()(x)

    def _pack(self) -> native.PackedProduct:
        made = self.__dict__["_packed"] = native.PackedProduct(self.numbers, self.scale, self.bias)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Without packed weights, which belong to this process."""
        return {name: value for name, value in self.__dict__.items() if name != "_packed"}

    def forward(self, x: Tensor) -> Tensor:
        return self.product(x)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class Int8ReadOut(Reading, Int8Linear):
    """A ReadOut in int8."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        at: str = "every",
        bias: bool = True,
        batch_first: bool = False,
        bidirectional: bool = False,
        device: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, device)
        self.at, self.batch_first, self.bidirectional = at, batch_first, bidirectional

    @classmethod
    def of(cls, linear: nn.Linear) -> Int8ReadOut:
        assert isinstance(linear, ReadOut)
        form = (linear.at, linear.bias is not None, linear.batch_first, linear.bidirectional)
        made = cls(linear.in_features, linear.out_features, *form, device="meta")
        made._fill(linear)
        return made


def _fixed(tensor: Tensor) -> nn.Parameter:
    return nn.Parameter(tensor, requires_grad=False)
