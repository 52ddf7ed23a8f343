"""Exported files as subjects: proofs, ONNX and RTNeural's JSON."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from subject import Subject

import slimrnn
from slimrnn import GRU
from slimrnn.exporting import Proof
from slimrnn.exporting.exporter import Run
from slimrnn.exporting.onnx_file import open_session
from slimrnn.exporting.proof import FORMAT, Case
from slimrnn.exporting.rtneural_reader import opened

X = torch.zeros(4, 2, 3)


def _proof() -> bytes:
    case = Case("input 7x3x5", "whole", True, 1e-7, 1e-8, 2e-7, 0.001, 0.002)
    proof = Proof(
        to="onnx",
        artefact="net.onnx",
        sha256="0123456789abcdef" * 4,
        others={"net.h": "fedcba9876543210" * 4},
        bytes=3456,
        runtime="onnxruntime 1.31.1",
        versions={"python": "3.11.7", "torch": "2.13.0"},
        step=False,
        tolerance=1e-5,
        largest=case.largest,
        mean=case.mean,
        relative=case.relative,
        cases=(case, case),
        measured={"bytes of weights": 1234.0},
    )
    return json.dumps({"format": FORMAT, **asdict(proof)}, indent=1).encode()


def _onnx() -> bytes:
    """A GRU of 4 units, by hand."""
    weights = {"w": (1, 12, 3), "r": (1, 12, 4), "b": (1, 24)}
    tensors = [numpy_helper.from_array(np.full(shape, 0.25, np.float32), name) for name, shape in weights.items()]
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("input", ("length", "batch", 3)), ("output", ("length", 1, "batch", 4)))
    ]
    node = helper.make_node("GRU", ["input", *weights], ["output"], hidden_size=4, linear_before_reset=1)
    graph = helper.make_graph([node], "net", ends[:1], ends[1:], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return bytes(model.SerializeToString())


def _rtneural() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        slimrnn.export(GRU(3, 4), X, Path(folder) / "net", to="rtneural", quiet=True, fixed=True)
        return (Path(folder) / "net.json").read_bytes()


def _run(open: Callable[[Path], AbstractContextManager[Run]], path: Path) -> None:
    with open(path) as run:
        run([X])


def subjects() -> list[Subject]:
    return [
        Subject("net.proof.json", (_proof(),), Proof.read),
        Subject("net.onnx", (_onnx(),), partial(_run, open_session)),
        Subject("net.json", (_rtneural(),), partial(_run, opened)),
    ]
