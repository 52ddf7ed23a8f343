"""TorchInterface: what makes a stack stand in for torch.nn.RNN, GRU and LSTM, beside `forward`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from torch import nn

from slimrnn.errors import ExportError
from slimrnn.layers import torch_weights
from slimrnn.layers.torch_names import TorchNames
from slimrnn.layers.torch_state import take_torch_keys
from slimrnn.ops.onnx_exports import check_exporter
from slimrnn.structures import Structure

if TYPE_CHECKING:
    from typing_extensions import Self


class TorchInterface(TorchNames):
    """Weights from and to torch's layers, and answers to the tools that ask for them."""

    torch_type: ClassVar[type[nn.RNNBase] | None] = None  # of torch.nn, where it has such a layer

    @classmethod
    def from_torch(
        cls, module: nn.RNNBase, structure: Structure | Sequence[Structure] | None = None, **options: Any
    ) -> Self:
        """A layer with the weights of torch's; with a structure, its member nearest to them."""
        stack_type: Any = cls
        made: Self = torch_weights.from_torch(stack_type, module, structure, options)
        return made

    def to_torch(self) -> nn.RNNBase:
        """A torch.nn layer that computes the same, where one exists."""
        stack: Any = self
        return torch_weights.to_torch(stack)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, metadata: Any, strict: bool, missing: Any, *others: Any
    ) -> None:
        stack: Any = self
        take_torch_keys(stack, state_dict, prefix, missing, errors=others[-1])
        super()._load_from_state_dict(state_dict, prefix, metadata, strict, missing, *others)

    def _slow_forward(self, *input: Any, **kwargs: Any) -> Any:
        """What torch.jit's tracer calls: torch.onnx's old exporter gives all arguments by position, keywords, too."""
        check_exporter()
        return super()._slow_forward(*input, **kwargs)  # type: ignore[no-untyped-call]

    def __prepare_scriptable__(self) -> Any:
        """What torch.jit.script asks for first."""
        raise ExportError(
            "torch.jit.script cannot read slimrnn's layers: use slimrnn.export(model, example, 'net.pt2') or "
            "torch.export, or torch.jit.trace"
        )

    def flatten_parameters(self) -> None:
        """Nothing to do; present because code written for torch.nn calls it."""
