"""One native scan as an ONNX model of its own, without torch.onnx, which takes seconds for each."""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir as ir
import onnxruntime
import torch
from torch import Tensor

from slimrnn.exporting.onnx.nodes import Nodes
from slimrnn.exporting.onnx.scan import Operands
from slimrnn.exporting.onnx.table import emit
from slimrnn.ops.calls import Inputs

OPSET = 18
SYMBOLS = {
    **{name: {0: "T", 1: "B"} for name in ("x", "tokens", "resets")},
    **{name: {1: "B"} for name in ("state", "reset_state")},
    "lengths": {0: "B"},
}


class OneScan:
    """The inputs of a scan that vary as inputs of the graph, its parameters as initializers."""

    def __init__(self, inputs: Inputs, single: bool = False) -> None:
        fixed = {"u": inputs.u, "bias": inputs.bias, "own": inputs.own}
        names = ("state", "lengths", "tokens", "resets", "reset_state")
        varying: dict[str, Tensor | None] = {name: getattr(inputs, name) for name in names}
        (fixed if inputs.tokens is not None else varying)["x"] = inputs.x
        self.names = [name for name, tensor in varying.items() if tensor is not None]
        given: dict[str, Any] = {
            name: None if t is None else _input(name, t, single) for name, t in varying.items()
        } | {name: None if t is None else _constant(name, t) for name, t in fixed.items()}
        weights = [_constant(f"weight_{k}", w) for k, w in enumerate(inputs.weights)]
        graph_inputs = [given[name] for name in self.names]
        constants = [v for name, v in given.items() if name in fixed and v is not None] + weights
        nodes = Nodes([], given["state"].dtype, OPSET)
        out, last = emit(nodes, Operands(**given, weights=weights, plan=inputs.plan, reverse=inputs.reverse))
        for value, name in ((out, "out"), (last, "last")):
            value.name, value.type, value.shape = name, ir.TensorType(given["state"].dtype), ir.Shape([None] * 3)
        graph = ir.Graph(
            graph_inputs, [out, last], nodes=nodes.made, initializers=constants, opset_imports={"": OPSET}, name="scan"
        )
        self.ops = [node.op_type for node in nodes.made]
        proto = ir.serde.serialize_model(ir.Model(graph, ir_version=9))
        onnx.checker.check_model(proto, full_check=True)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])

    def __call__(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        values = {name: getattr(inputs, name).contiguous().numpy() for name in self.names}
        out, last = self.session.run(["out", "last"], values)
        return torch.from_numpy(out), torch.from_numpy(last)


def _input(name: str, tensor: Tensor, single: bool) -> ir.Value:
    symbols: dict[int, Any] = dict(SYMBOLS[name])
    if single:
        symbols.pop(0, None) if name in ("x", "tokens", "resets") else None
    shape = ir.Shape([symbols.get(axis, size) for axis, size in enumerate(tensor.shape)])
    return ir.Value(name=name, shape=shape, type=ir.TensorType(ir.tensor(tensor.numpy()).dtype))


def _constant(name: str, tensor: Tensor) -> ir.Value:
    found = ir.tensor(tensor.detach().contiguous().numpy(), name=name)
    return ir.Value(name=name, shape=ir.Shape(found.shape), type=ir.TensorType(found.dtype), const_value=found)
