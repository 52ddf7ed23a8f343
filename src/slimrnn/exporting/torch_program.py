"""Programs of torch.export, .pt2: run by torch, with slimrnn imported for its operator."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import torch

from slimrnn.exporting.exporter import Exporter, Request, Run
from slimrnn.exporting.fresh_process import in_fresh_process
from slimrnn.exporting.programs import captured, reason_of


def write(request: Request, path: Path) -> None:
    """As torch.export.load reads it."""
    program = captured(request.model, request.example)
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:  # which tell of the folders that the model came from
                node.meta.pop("stack_trace", None)
    try:
        torch.export.save(program, path)
    except Exception as error:
        raise reason_of(error, "torch.export") from error


def open_program(path: Path) -> AbstractContextManager[Run]:
    return in_fresh_process("torch", path)


def runtime() -> str:
    return f"torch {torch.__version__}"


EXPORTER = Exporter(suffix=".pt2", runtime=runtime, write=write, open=open_program)
