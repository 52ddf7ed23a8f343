"""Packages of AOTInductor, .pt2: compiled by a C++ compiler for this kind of machine, run by torch with slimrnn."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import torch

from slimrnn.exporting.exporter import Exporter, Request, Run
from slimrnn.exporting.fresh_process import in_fresh_process
from slimrnn.exporting.programs import captured, reason_of
from slimrnn.exporting.torch_program import runtime


def write(request: Request, path: Path) -> None:
    """As torch._inductor.aoti_load_package reads it."""
    program = captured(request.model, request.example)
    try:
        torch._inductor.aoti_compile_and_package(program, package_path=str(path))
    except Exception as error:
        raise reason_of(error, "AOTInductor") from error


def open_package(path: Path) -> AbstractContextManager[Run]:
    return in_fresh_process("aoti", path)


EXPORTER = Exporter(suffix=".pt2", runtime=runtime, write=write, open=open_package)
