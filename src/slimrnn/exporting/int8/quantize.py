"""`slimrnn.quantize`: a model for inference whose matrices are int8."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.utils import _pytree as pytree

from slimrnn.errors import ExportError
from slimrnn.exporting.int8.conversion import to_int8_
from slimrnn.exporting.int8.embedding import Int8Embedding
from slimrnn.exporting.int8.linear import Int8Linear, Int8ReadOut
from slimrnn.exporting.int8.report import Difference, Int8Report, Part
from slimrnn.layers.affine import Affine
from slimrnn.layers.output_recurrent import OutputRecurrent
from slimrnn.layers.readout import ReadOut
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.layers.tokens import EMBEDDING_OPTIONS

CONVERTED: dict[type[nn.Module], Callable[[Any], nn.Module]] = {
    nn.Linear: Int8Linear.of,
    Affine: Int8Linear.of,
    ReadOut: Int8ReadOut.of,
    nn.Embedding: Int8Embedding.of,
}


@torch.no_grad()
def quantize(
    model: nn.Module, data: Iterable[Any] | None = None, *, skip: Sequence[str] = (), tolerance: float | None = None
) -> nn.Module:
    """A copy of a model for inference, in eval() and without gradients, with matrices in int8: a quarter of the size,
    and faster steps.

    Recurrent layers of slimrnn, linear layers, read-outs and embeddings become int8; biases, gates, states and all
    other modules stay in float32. What became what is in the copy's `int8_report`.

    data -- batches, each a tensor, a tuple of arguments or a dict of them: both models run on them, and the report
    tells how far the outputs are apart. No calibration is needed: scales of activations are found at run time;
    skip -- names of modules that stay in float32, as `model.named_modules()` gives them;
    tolerance -- ExportError where an output's difference, rms over rms, is larger than this on the data.

    A recurrent layer that has no int8 form is an ExportError that says why; `skip` leaves it as it is."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"expected a torch module, got {type(model).__name__}")
    if tolerance is not None and data is None:
        raise ValueError("expected data to measure the tolerance on, got none")
    found = copy.deepcopy(model).eval().requires_grad_(False)
    _check_names(found, skip)
    before = {name: _bytes(module) for name, module in found.named_modules()}
    parts: list[Part] = []
    converted = _in_int8(found, skip)
    for name, kind in converted:
        module = found.get_submodule(name)
        if isinstance(module, RecurrentLayer):
            to_int8_(module, name)
        else:
            found = _put(found, name, CONVERTED[type(module)](module))
        parts.append(Part(name or type(model).__name__, kind, before[name], _bytes(found.get_submodule(name))))
    if not parts:
        raise ExportError(f"expected recurrent or linear layers to quantize, got none in {type(model).__name__}")
    report = Int8Report(tuple(parts), tuple(_kept(found, [name for name, _ in converted])))
    if data is not None:
        report = replace(report, differences=tuple(_measured(copy.deepcopy(model).eval(), found, data)))
        _check_tolerance(report, tolerance)
    found.int8_report = report  # type: ignore[assignment]
    return found


def _in_int8(model: nn.Module, skip: Sequence[str]) -> list[tuple[str, str]]:
    """Names and kinds of the modules to convert; ExportError for what has no int8 form."""
    found: list[tuple[str, str]] = []
    shared: dict[int, str] = {}
    for name, module in model.named_modules():
        if any(name == one or name.startswith(f"{one}.") for one in skip):
            continue
        if isinstance(module, OutputRecurrent):
            raise ExportError(
                f"expected layers without feedback for int8, got {_called(module, name)}: skip=({name!r},)"
            )
        if isinstance(module, nn.RNNBase):
            instead = f"slimrnn.{type(module).__name__}.from_torch(...) makes a layer that can be"
            raise ExportError(f"expected layers of slimrnn, got {_called(module, name)}, of torch.nn: {instead}")
        if isinstance(module, RecurrentLayer):
            found.append((name, repr(module.cell)))
        elif type(module) in CONVERTED and _is_plain(module) and id(module.weight) not in shared:
            shared[id(module.weight)] = name
            found.append((name, type(module).__name__))
    tied = {shared[id(m.weight)] for n, m in model.named_modules() if _shares(m, n, shared)}
    return [(name, kind) for name, kind in found if name not in tied]  # what is one tensor stays so, in float32


def _shares(module: nn.Module, name: str, shared: Mapping[int, str]) -> bool:
    """Whether its weight is that of another module, too."""
    weight = getattr(module, "weight", None)
    return isinstance(weight, nn.Parameter) and shared.get(id(weight), name) != name


def _is_plain(module: nn.Module) -> bool:
    if parametrize.is_parametrized(module) or module._forward_hooks or module._forward_pre_hooks:
        return False
    if not isinstance(getattr(module, "weight", None), nn.Parameter) or module.weight.dtype != torch.float32:
        return False
    return all(getattr(module, name, None) in (None, False) for name in EMBEDDING_OPTIONS[1:])


def _called(module: nn.Module, name: str) -> str:
    return f"{type(module).__name__}{f' at {name}' if name else ''}"


def _put(model: nn.Module, name: str, module: nn.Module) -> nn.Module:
    """In place of the module of this name, wherever the model holds that."""
    if not name:
        return module
    old = model.get_submodule(name)
    for parent in list(model.modules()):
        for own in [own for own, child in parent._modules.items() if child is old]:
            setattr(parent, own, module)
    return model


def _kept(model: nn.Module, converted: Sequence[str]) -> Iterable[Part]:
    """Modules with float numbers of their own that are not part of a converted one."""
    for name, module in model.named_modules():
        if any(f"{name}.".startswith(f"{one}." if one else "") for one in converted):
            continue
        size = sum(t.nbytes for t in module.parameters(recurse=False) if t.is_floating_point())
        if size:
            yield Part(name or type(module).__name__, type(module).__name__, size, size)


def _bytes(module: nn.Module) -> int:
    return sum(t.nbytes for t in (*module.parameters(), *module.buffers()))


def _check_names(model: nn.Module, skip: Sequence[str]) -> None:
    if isinstance(skip, str):
        raise TypeError(f"expected skip to be names in a tuple, got the text {skip!r}: skip=({skip!r},)")
    names = dict(model.named_modules())
    for name in skip:
        if name not in names:
            raise ValueError(
                f"expected names of modules in skip, got {name!r}; there are {', '.join(list(names)[1:8])}"
            )


# --- how far apart the outputs are ------------------------------------------------------------------------


def _measured(model: nn.Module, int8: nn.Module, data: Iterable[Any]) -> list[Difference]:
    sums: dict[int, list[float]] = {}  # of each output: largest, sum of |d|, sum of d², sum of y², count
    for batch in data:
        ours, theirs = (pytree.tree_leaves(_called_with(one, batch)) for one in (model, int8))
        for k, (y, other) in enumerate(zip(ours, theirs, strict=True)):
            if isinstance(y, Tensor) and y.is_floating_point():
                _add(sums.setdefault(k, [0.0] * 5), y.double(), other.double())
    if not sums:
        raise ValueError("expected batches in data whose outputs are tensors, got none")
    names = {k: "the output" if len(sums) == 1 else f"output {k}" for k in sums}
    return [
        Difference(names[k], most, total / max(count, 1), (squares / norm) ** 0.5 if norm else squares**0.5)
        for k, (most, total, squares, norm, count) in sums.items()
    ]


def _add(sums: list[float], y: Tensor, other: Tensor) -> None:
    difference = (y - other).abs()
    if y.numel():
        found = float(difference.max())
        sums[0] = found if found != found else max(sums[0], found)
        for k, value in enumerate((difference.sum(), difference.square().sum(), y.square().sum())):
            sums[k + 1] += float(value)
        sums[4] += y.numel()


def _called_with(model: nn.Module, batch: Any) -> Any:
    if isinstance(batch, Mapping):
        return model(**batch)
    plain = type(batch) in (tuple, list)  # a PackedSequence is a tuple, too
    return model(*batch) if plain else model(batch)


def _check_tolerance(report: Int8Report, tolerance: float | None) -> None:
    for one in report.differences:
        if tolerance is not None and not one.relative <= tolerance:
            raise ExportError(
                f"expected a relative rms difference of at most {tolerance:.2%} in int8, got {one.relative:.2%} of "
                f"{one.output}: leave sensitive layers in float32 with skip="
            )
