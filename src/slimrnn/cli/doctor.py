"""What this installation has: versions, backend, instruction sets, threads, data."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

import torch

import slimrnn
from slimrnn.data.directory import data_directory
from slimrnn.errors import UsageError
from slimrnn.ops.library import ABI, cell_codes, instruction_sets, library_path, missing_reason, native_library

PACKAGES = ("torch", "numpy")
TRAINING_PACKAGES = ("lightning", "safetensors", "tyro", "matplotlib", "tensorboard")
USAGE = """usage: slimrnn doctor

Versions, threads, backend, the native library and its instruction sets, compiled cells, and the data sets that are
there."""


def run(arguments: Sequence[str]) -> None:
    """Print a line for each thing worth knowing."""
    if arguments:
        if arguments[0] not in ("-h", "--help"):
            raise UsageError(f"expected no options after slimrnn doctor, got {arguments[0]}")
        print(USAGE)
        return
    facts = {**_versions(), **_machine(), "data": _data()}
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {value}")


def _versions() -> dict[str, str]:
    found = {"slimrnn": slimrnn.__version__, "python": platform.python_version()}
    for package in (*PACKAGES, *TRAINING_PACKAGES):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = 'none: pip install "slimrnn[train]"'
    return found


def _machine() -> dict[str, str]:
    library = native_library()
    facts = {
        "threads": f"{torch.get_num_threads()} (--threads or torch.set_num_threads changes it)",
        "backend": "native" if library else f"reference, in plain torch: {missing_reason()}",
    }
    if library:
        compiler = library.slimrnn_compiler().decode()
        facts["library"] = f"{library_path()} ({compiler}, interface version {ABI})"
        facts["instruction sets"] = ", ".join(instruction_sets(library)) + " (the first is used, or SLIMRNN_ISA)"
        facts["cells"] = f"{len(cell_codes())} compiled; all others run as bytecode (rnn.runs_as says which)"
    return facts


def _data() -> str:
    directory = data_directory()
    if not directory.exists():
        return f"none in {directory}: slimrnn data get NAME fetches some, or set SLIMRNN_DATA"
    if not directory.is_dir():
        return f"none: {directory} is not a directory"
    entries = sorted(entry.name + "/" * entry.is_dir() for entry in directory.iterdir())
    return f"{directory}: {', '.join(entries) or 'empty'}"
