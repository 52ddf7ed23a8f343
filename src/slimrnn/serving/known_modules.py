"""What a pool would pass over without a word: hooks, and methods that users wrote in place of ours or torch's."""

from __future__ import annotations

from torch import nn

from slimrnn.cells.base import Cell
from slimrnn.layers import ReadOut, RecurrentLayer, RecurrentStack
from slimrnn.layers.affine import Affine
from slimrnn.structures.base import StructuredMap

# What a pool does in its own way, and so must know.
METHODS: dict[type[nn.Module], tuple[str, ...]] = {
    RecurrentStack: ("forward", "step"),
    RecurrentLayer: ("forward", "step"),
    ReadOut: ("forward", "product"),
    Affine: ("forward", "product"),
    nn.Linear: ("forward",),
    nn.Sequential: ("forward",),
    nn.ModuleList: ("forward",),
    nn.Identity: ("forward",),
    nn.Dropout: ("forward",),
}


def check_methods(module: nn.Module) -> None:
    """TypeError if a class that the pool knows was given other methods. Of others, such as activations, it traces the
    forward that they have."""
    kind = type(module)
    known = next((base for base in kind.__mro__ if base in METHODS), kind)
    for name in METHODS.get(known, ()):
        if name in module.__dict__ or getattr(kind, name) is not getattr(known, name):
            raise TypeError(
                f"expected {known.__name__} with its own {name}, got {kind.__name__} with another, which a pool "
                "would not run"
            )


def check_hooks(model: nn.Module) -> None:
    """TypeError if a part has hooks. Cells and maps are not called: theirs, say of torch.nn.utils.prune, compute a
    tensor when it is read, also for a pool."""
    for module in model.modules():
        if isinstance(module, Cell | StructuredMap):
            continue
        if module._forward_hooks or module._forward_pre_hooks:
            raise TypeError(
                f"expected modules without hooks, got {type(module).__name__} with some, which a pool would not "
                "run: remove them; torch.nn.utils.parametrizations are taken"
            )
