"""Runs a torch program in a process of its own, which has nothing but the file.

`python -m slimrnn.exporting.fresh_process KIND FILE THREADS`. Tensors go in and out as torch.save writes them, each
message after its length."""

from __future__ import annotations

import contextlib
import io
import json
import struct
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from slimrnn.errors import ExportError
from slimrnn.exporting.exporter import Run, timed

LENGTH = struct.Struct("<q")
SIGNATURE = "signature.json"  # in the directory of an int8 model: how it is called


class _Asking:
    """A Run in another process; `seconds` are those of its last call, without the way there."""

    def __init__(self, to: IO[bytes], back: IO[bytes]) -> None:
        self.to, self.back, self.seconds = to, back, 0.0

    def __call__(self, leaves: Sequence[Tensor]) -> list[Tensor]:
        try:
            _send(self.to, {"inputs": list(leaves)})
            found = _receive(self.back)
        except (EOFError, BrokenPipeError):
            raise ExportError("expected a torch program that runs, got one whose process ended") from None
        if "error" in found:
            raise ExportError(f"expected a torch program that runs, got: {found['error']}")
        self.seconds = found["seconds"]
        outputs: list[Tensor] = found["outputs"]
        return outputs


@contextlib.contextmanager
def in_fresh_process(kind: str, path: Path) -> Iterator[Run]:
    """A program that runs there."""
    command = [sys.executable, "-m", __name__, kind, str(path), str(torch.get_num_threads())]
    with talking_to(command) as (to, back):
        yield _Asking(to, back)


@contextlib.contextmanager
def talking_to(command: Sequence[str]) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The pipes into a process and back from it, which ends when the first one is closed."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        to, back = process.stdin, process.stdout
        try:
            yield to, back
        finally:
            with contextlib.suppress(BrokenPipeError):
                to.close()
            process.wait()


def load(kind: str, path: str) -> Callable[..., Any]:
    """A program as a function of tensors, one after the other."""
    from torch.utils import _pytree as pytree

    if kind == "int8":
        return _saved_model(Path(path))
    if kind == "torch":
        exported = torch.export.load(path)
        spec, call = exported.call_spec.in_spec, exported.module()
    else:
        package: Any = torch._inductor.aoti_load_package(path)
        spec, call = pytree.treespec_loads(package.loader.get_call_spec()[0]), package

    def run(leaves: list[Tensor]) -> list[Tensor]:
        args, kwargs = pytree.tree_unflatten(leaves, spec)
        return [leaf for leaf in pytree.tree_leaves(call(*args, **kwargs)) if isinstance(leaf, Tensor)]

    return run


def _saved_model(directory: Path) -> Callable[..., Any]:
    from torch.utils import _pytree as pytree

    from slimrnn.exporting.saving import load as load_model
    from slimrnn.exporting.stepping import Stepping

    model, signature = load_model(directory), json.loads((directory / SIGNATURE).read_bytes())
    call = Stepping(model) if signature["step"] else model
    spec = pytree.treespec_loads(signature["arguments"])

    def run(leaves: list[Tensor]) -> list[Tensor]:
        outputs = pytree.tree_leaves(call(**pytree.tree_unflatten(leaves, spec)))
        return [leaf for leaf in outputs if isinstance(leaf, Tensor)]

    return run


def main(kind: str, path: str, threads: str) -> None:
    """Answer until nobody asks."""
    warnings.simplefilter("ignore")  # of torch's own formats
    torch.set_num_threads(int(threads))
    to, back = sys.stdin.buffer, sys.stdout.buffer
    try:
        program, failed = load(kind, path), ""
    except Exception as error:
        program, failed = None, str(error)
    with contextlib.suppress(EOFError), torch.no_grad():
        while True:
            inputs = _receive(to)["inputs"]
            if program is None:
                _send(back, {"error": failed})
                continue
            try:
                outputs, seconds = timed(lambda inputs=inputs: program(inputs))  # type: ignore[misc]
                _send(back, {"outputs": [one.contiguous() for one in outputs], "seconds": seconds})
            except Exception as error:
                _send(back, {"error": str(error)})


def _send(pipe: IO[bytes], message: dict[str, Any]) -> None:
    data = io.BytesIO()
    torch.save(message, data)
    pipe.write(LENGTH.pack(len(data.getvalue())) + data.getvalue())
    pipe.flush()


def _receive(pipe: IO[bytes]) -> dict[str, Any]:
    head = pipe.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    found: dict[str, Any] = torch.load(io.BytesIO(pipe.read(LENGTH.unpack(head)[0])), weights_only=True)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
