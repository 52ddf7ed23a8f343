"""Calls of the native library, recorded while layers run, for release/driver.c to repeat on other platforms.

    python release/calls.py record DIRECTORY           # writes the calls, and what they gave here
    python release/calls.py compare DIRECTORY RESULTS  # RESULTS: what a driver wrote

All platforms are little-endian, with 64-bit pointers and the same layout of structs. So a call is recorded as it lies
in memory, every pointer as an offset, with a list of where the pointers are.
"""

from __future__ import annotations

import ctypes
import json
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from slimrnn.ops.calls import Call
from slimrnn.ops.library import CellStruct, InstructionStruct, ScanStruct, TensorStruct, TermStruct
from slimrnn.ops.stepping import Stepper
from slimrnn.tracing.program import MOST_STATES

FORWARD, BACKWARD, STEP = range(3)
WRITTEN = {
    "slimrnn_forward": ("out", "last", "gate_history", "state_history"),
    "slimrnn_backward": ("d_state", "d_wx", "d_u", "d_bias", "d_own"),
}
THREADS = 2
TOLERANCES = {"float64": 1e-12, "float32": 1e-5, "int8": 0.0}  # of the largest number of a result


class Image:
    """A piece of memory that is put together from other pieces."""

    def __init__(self) -> None:
        self.memory = bytearray()
        self.pointers: list[int] = []  # where they are

    def add(self, raw: bytes) -> int:
        """-> where it is"""
        self.memory += bytes(-len(self.memory) % 64)
        self.memory += raw
        return len(self.memory) - len(raw)

    def point(self, at: int, to: int) -> None:
        """From the eight bytes there."""
        self.memory[at : at + 8] = struct.pack("<q", to)
        self.pointers.append(at)

    def add_struct(self, value: ctypes.Structure, targets: dict[str, int]) -> int:
        """A struct whose pointers lead to `targets`, or nowhere."""
        at = self.add(bytes(value))
        self.repoint(at, value, targets)
        return at

    def repoint(self, at: int, value: ctypes.Structure, targets: dict[str, int]) -> None:
        for name, kind, *_ in value._fields_:
            if kind is ctypes.c_void_p or issubclass(kind, ctypes._Pointer):
                place = at + getattr(type(value), name).offset
                self.memory[place : place + 8] = bytes(8)
                if name in targets:
                    self.point(place, targets[name])


class Recorder:
    """The calls so far, and the results of each."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []
        self.expected: list[bytes] = []
        self.names: list[dict[str, Any]] = []  # of the results, in the order that a driver writes them
        self.case = ""
        self.precision = ""  # of what is recorded now, where that is not the type of its results

    def scan(self, call: Call, function: str, run: Any) -> None:
        image = Image()
        tensors = dict(call.held)
        places, gradients, scan = put_scan(image, call)
        run()
        written = [(name, places[name], tensors[name]) for name in WRITTEN[function] if name in tensors]
        if function == "slimrnn_backward":
            for number, (at, address) in enumerate(gradients):
                weight = call.terms.weights[number]
                if at is not None and weight.is_floating_point():
                    written.append((f"gradient {number}", at, seen(address, weight)))
        self.keep(FORWARD if function == "slimrnn_forward" else BACKWARD, image, scan, 0, 0, written)

    def step(self, stepper: Stepper, arguments: tuple[Any, ...], run: Any) -> Tensor:
        _, batch, x, strides, like, states = arguments
        image = Image()
        _, _, scan = put_scan(image, stepper.call)
        size, half = like.shape[-1] * batch * like.element_size(), len(states) // 2
        before = [image.add(ctypes.string_at(address, size)) for address in states[:half]]
        after = [image.add(bytes(size)) for _ in states[half:]]
        reach = sum((n - 1) * s for n, s in zip(x.shape, strides, strict=True)) + 1
        put_x, out = image.add(ctypes.string_at(x.data_ptr(), reach * x.element_size())), image.add(bytes(size))
        places = image.add(struct.pack("<3q", 0, *strides) + bytes(8 * (1 + 2 * MOST_STATES)))  # slimrnn_places
        image.point(places, put_x)
        for number, target in enumerate([out, *before, *after]):
            image.point(places + 8 * (3 + number), target)
        y: Tensor = run()
        results = [("step", out, y)]
        results += [(f"state {k}", at, seen(a, y)) for k, (at, a) in enumerate(zip(after, states[half:], strict=True))]
        self.keep(STEP, image, scan, places, batch, results)
        return y

    def keep(
        self, kind: int, image: Image, scan: int, places: int, batch: int, results: list[tuple[str, int, Tensor]]
    ) -> None:
        head = [kind, len(image.memory), len(image.pointers), len(results), scan, ctypes.sizeof(ScanStruct), places]
        parts = [n for _, at, tensor in results for n in (at, tensor.nbytes)]
        numbers = [*head, batch, *image.pointers, *parts]
        self.calls.append(struct.pack(f"<{len(numbers)}q", *numbers) + image.memory)
        for name, _, tensor in results:
            self.expected.append(raw(tensor))
            kind_of = str(tensor.dtype).removeprefix("torch.")
            told = {"case": self.case, "name": name, "dtype": kind_of, "bytes": tensor.nbytes}
            self.names.append({**told, "precision": self.precision or kind_of})

    def write(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "calls.bin").write_bytes(struct.pack("<q", len(self.calls)) + b"".join(self.calls))
        (directory / "results.bin").write_bytes(b"".join(self.expected))
        (directory / "results.json").write_text(json.dumps(self.names))


def raw(tensor: Tensor) -> bytes:
    return ctypes.string_at(tensor.data_ptr(), tensor.nbytes)


def seen(address: int, like: Tensor) -> Tensor:
    """A copy of the numbers there."""
    copy = torch.empty(like.shape, dtype=like.dtype)
    ctypes.memmove(copy.data_ptr(), address, copy.nbytes)
    return copy


def put_scan(image: Image, call: Call) -> tuple[dict[str, int], list[tuple[int | None, int]], int]:
    """A scan and all it points to. -> where its tensors are, where the terms' gradients are (and were), where it is"""
    places = {name: image.add(raw(tensor)) for name, tensor in call.held.items()}
    gradients: list[tuple[int | None, int]] = []
    tensors = image.add(bytes(call.terms.tensors))
    for number, (weight, tensor) in enumerate(zip(call.terms.weights, call.terms.tensors, strict=True)):
        targets = {"data": image.add(raw(weight))}
        if tensor.gradient:
            targets["gradient"] = image.add(ctypes.string_at(tensor.gradient, weight.nbytes))
        gradients.append((targets.get("gradient"), tensor.gradient or 0))
        image.repoint(tensors + number * ctypes.sizeof(TensorStruct), tensor, targets)
    terms, first = image.add(bytes(call.terms.structs)), 0
    for number, term in enumerate(call.terms.structs):
        target = tensors + first * ctypes.sizeof(TensorStruct)
        image.repoint(terms + number * ctypes.sizeof(TermStruct), term, {"tensors": target})
        first += term.tensor_count
    copy = ScanStruct.from_buffer_copy(call.struct)
    copy.threads = THREADS
    return places, gradients, image.add_struct(copy, {**places, "cell": put_cell(image, call.cell), "terms": terms})


def put_cell(image: Image, cell: CellStruct) -> int:
    """A cell with its places, constants and programs."""
    places, constants = (image.add(bytes(held)) for held in cell.held[:2])
    at = image.add_struct(cell, {"places": places, "constants": constants})
    for name in ("forward", "backward"):
        program = getattr(cell, name)
        size = program.count * ctypes.sizeof(InstructionStruct)
        code = image.add(ctypes.string_at(program.code, size) if size else b"")
        image.repoint(at + getattr(CellStruct, name).offset, program, {"code": code})
    return at


@contextmanager
def recording() -> Iterator[Recorder]:
    """Every call of the library inside is recorded."""
    recorder, run, step = Recorder(), Call.run, Stepper.__call__

    def recorded_run(self: Call, function: str) -> None:
        recorder.scan(self, function, lambda: run(self, function))

    def recorded_step(self: Stepper, *arguments: Any) -> Tensor:
        return recorder.step(self, arguments, lambda: step(self, *arguments))

    Call.run, Stepper.__call__ = recorded_run, recorded_step  # type: ignore[method-assign, assignment]
    try:
        yield recorder
    finally:
        Call.run, Stepper.__call__ = run, step  # type: ignore[method-assign]


def differences(directory: Path, results: bytes) -> dict[str, tuple[float, str]]:
    """The largest difference of each precision, as a part of the largest number of its result, and where it is."""
    expected, at, worst = (directory / "results.bin").read_bytes(), 0, dict[str, tuple[float, str]]()
    if len(expected) != len(results):
        raise ValueError(f"expected {len(expected)} bytes of results, got {len(results)}")
    for told in json.loads((directory / "results.json").read_text()):
        dtype, size = getattr(torch, told["dtype"]), told["bytes"]
        if size:
            here, there = (torch.frombuffer(bytearray(b[at : at + size]), dtype=dtype) for b in (expected, results))
            off = float((here.double() - there.double()).abs().max() / here.double().abs().max().clamp(min=1e-30))
            off = float("inf") if off != off else off  # NaN
            kind = told["precision"]
            worst[kind] = max(worst.get(kind, (0.0, "")), (off, f"{told['case']}, {told['name']}"))
        at += size
    return worst


def main(arguments: Sequence[str]) -> None:
    command, directory, *rest = arguments
    if command == "record":
        from recorded_layers import run_all  # the layers of the tests

        with recording() as recorder:
            run_all(recorder)
        recorder.write(Path(directory))
        print(f"{len(recorder.calls)} calls")
        return
    found = differences(Path(directory), Path(rest[0]).read_bytes())
    print("; ".join(f"{dtype} {off:.1e} ({where})" for dtype, (off, where) in found.items()))
    if set(found) != set(TOLERANCES) or any(off > TOLERANCES[dtype] for dtype, (off, _) in found.items()):
        raise SystemExit(f"expected {', '.join(TOLERANCES)} within {TOLERANCES}")


if __name__ == "__main__":
    main(sys.argv[1:])
