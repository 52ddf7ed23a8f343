"""RTNeural's JSON: a chain of layers with their weights, as its loader takes it (RTNeural/model_loader.h).

RTNeural runs nets in real time, on audio, one step after the other. Matrices are as in Keras, (in, gates · out),
with the gates of a GRU in the order update, reset, candidate and those of an LSTM in torch's. A recurrent matrix with a
structure is written out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from slimrnn.errors import ExportError
from slimrnn.exporting import rtneural_reader
from slimrnn.exporting.exporter import Exporter, Request
from slimrnn.layers import ReadOut, RecurrentStack

ACTIVATIONS: dict[type[nn.Module], str] = {
    nn.Tanh: "tanh",
    nn.ReLU: "relu",
    nn.Sigmoid: "sigmoid",
    nn.Softmax: "softmax",
    nn.ELU: "elu",
}
KNOWN = "GRU (reset='after'), LSTM, Linear, ReadOut, Tanh, ReLU, Sigmoid, ELU, Softmax, PReLU"
Layer = dict[str, Any]


def write(request: Request, path: Path) -> None:
    """The layers of a model in the order in which it has them: the proof finds out whether they run in that order."""
    leaves = request.example.leaves
    if request.step:
        raise ExportError("expected no step=True for RTNeural, which runs step by step in any case, got it")
    if len(leaves) != 1 or not leaves[0].is_floating_point():
        raise ExportError(f"expected one sequence of vectors as the example for RTNeural, got {request.example.names}")
    layers: list[Layer] = []
    for layer in _layers(request.model, "", leaves[0].dim()):
        _append(layers, layer, int(leaves[0].shape[-1]))
    if not layers:
        raise ExportError(f"expected layers that RTNeural has ({KNOWN}), got none")
    result = request.model(**request.example.values)
    firsts = {m.batch_first for m in request.model.modules() if isinstance(m, RecurrentStack | nn.RNNBase)}
    form = {"batch_first": firsts == {True}, "states": not isinstance(result, Tensor)}
    content = {"in_shape": [None, None, leaves[0].shape[-1]], "layers": layers, "slimrnn": form}
    path.write_text(json.dumps(content, allow_nan=False))


def _append(layers: list[Layer], layer: Layer, width: int) -> None:
    """Put a layer behind the others, whose output it reads; an activation behind a dense layer becomes a part of it."""
    before = layers[-1]["shape"][-1] if layers else width
    reads = layer.pop("reads", before)
    if reads != before:
        raise ExportError(f"expected a layer that reads the {before} outputs of the one before, got one of {reads}")
    layer.setdefault("shape", [None, None, before])
    if layer["type"] == "prelu":
        layer["weights"] = [[layer["weights"] * before]]
    if layer["type"] == "activation" and layers and layers[-1]["type"] == "dense" and not layers[-1]["activation"]:
        layers[-1]["activation"] = layer["activation"]
    else:
        layers.append(layer)


def _layers(module: nn.Module, at: str, axes: int) -> Iterator[Layer]:
    kind = type(module)
    if isinstance(module, RecurrentStack | nn.GRU | nn.LSTM):
        yield from _recurrent(module, at)
    elif isinstance(module, nn.Linear):
        if isinstance(module, ReadOut) and module.at != "every":
            raise ExportError(f"expected a ReadOut at='every' step, as RTNeural gives outputs, got at={module.at!r}")
        bias = torch.zeros(module.out_features) if module.bias is None else module.bias
        yield _layer("dense", [module.weight.T, bias], activation="")
    elif kind in ACTIVATIONS:
        if isinstance(module, nn.Softmax) and module.dim not in (-1, axes - 1):
            raise ExportError(f"expected Softmax(dim=-1) for RTNeural, got dim={module.dim}")
        if isinstance(module, nn.ELU) and module.alpha != 1:
            raise ExportError(f"expected ELU(alpha=1) for RTNeural, got alpha={module.alpha}")
        yield {"type": "activation", "activation": ACTIVATIONS[kind], "weights": []}
    elif isinstance(module, nn.PReLU) and module.num_parameters == 1:
        yield {"type": "prelu", "activation": "", "weights": module.weight.tolist()}
    elif not isinstance(module, nn.Identity | nn.Dropout):
        children = list(module.named_children())
        is_chain = children or isinstance(module, nn.Sequential)
        if not is_chain or next(module.parameters(recurse=False), None) is not None:
            raise ExportError(f"expected layers that RTNeural has ({KNOWN}), got {kind.__name__} {at}".rstrip())
        for name, child in children:
            yield from _layers(child, f"{at}.{name}".lstrip("."), axes)


def _recurrent(module: RecurrentStack | nn.RNNBase, at: str) -> Iterator[Layer]:
    try:
        there = module.to_torch() if isinstance(module, RecurrentStack) else module
        found = f"{type(there).__name__}, bidirectional" if there.bidirectional else type(there).__name__
    except ValueError as error:  # torch lacks it, too
        raise ExportError(f"expected layers that RTNeural has ({KNOWN}): {error}") from None
    if not isinstance(there, nn.GRU | nn.LSTM) or there.bidirectional or there.proj_size:
        raise ExportError(f"expected layers that RTNeural has ({KNOWN}), in one direction, got {found} {at}".rstrip())
    for depth in range(there.num_layers):
        w_i, w_h = (getattr(there, f"weight_{end}_l{depth}") for end in ("ih", "hh"))
        none = w_i.new_zeros(len(w_i))
        b_i, b_h = (getattr(there, f"bias_{end}_l{depth}") if there.bias else none for end in ("ih", "hh"))
        if isinstance(there, nn.LSTM):
            yield _layer("lstm", [w_i.T, w_h.T, b_i + b_h], units=there.hidden_size)
        else:
            matrices = [_update_first(w_i).T, _update_first(w_h).T, torch.stack([_update_first(b) for b in (b_i, b_h)])]
            yield _layer("gru", matrices, units=there.hidden_size)


def _update_first(gates: Tensor) -> Tensor:
    """Torch's order of gates is reset, update, candidate."""
    reset, update, candidate = gates.chunk(3)
    return torch.cat([update, reset, candidate])


def _layer(kind: str, weights: list[Tensor], *, units: int | None = None, activation: str = "") -> Layer:
    reads, columns = weights[0].shape
    shape = [None, None, units or columns]
    return {
        "type": kind,
        "activation": activation,
        "shape": shape,
        "weights": [weight.tolist() for weight in weights],
        "reads": reads,
    }


EXPORTER = Exporter(suffix=".json", runtime=rtneural_reader.runtime, write=write, open=rtneural_reader.opened)
