"""A model as the bytes that csrc/pool_model.h reads: all numbers little-endian, tensors as they lie in memory."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import torch
from torch import Tensor

from slimrnn.ops.calls import DTYPES, in_memory
from slimrnn.ops.programs import CellProgram
from slimrnn.ops.terms import kind_of
from slimrnn.serving.stages import Stage

MAGIC, VERSION = b"SLIMPOOL", 1


def model_bytes(stages: Sequence[Stage]) -> bytes:
    dtype = DTYPES[stages[0].inputs.state.dtype]
    body = struct.pack("<i", dtype) + b"".join(map(_stage, stages))
    return MAGIC + struct.pack("<iiQ", VERSION, len(stages), fnv(body)) + body


def fnv(data: bytes) -> int:
    """FNV-1a with 64 bits, of words of eight bytes."""
    found = 0xCBF29CE484222325 ^ len(data)
    words = data + bytes(-len(data) % 8)
    for word in struct.unpack(f"<{len(words) // 8}Q", words):
        found = ((found ^ word) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return found


def _stage(stage: Stage) -> bytes:
    inputs = stage.inputs
    assert inputs.u is not None
    program, width = inputs.plan.cell.program, inputs.u.shape[1]
    flags = (stage.initial is not None, stage.residual, inputs.plan.complex)
    pieces = [struct.pack("<3i2q", *flags, width, inputs.u.shape[2]), _cell(program, width)]
    pieces.append(struct.pack("<i", len(inputs.plan.terms)))
    first = 0
    for name, count in inputs.plan.terms:
        pieces += [_text(kind_of(name)), struct.pack("<i", count)]
        pieces += [_tensor(weight, inputs.plan.complex) for weight in inputs.weights[first : first + count]]
        first += count
    pieces += [_raw(inputs.u), struct.pack("<i", inputs.bias is not None)]
    pieces += [_raw(tensor) for tensor in (inputs.bias, inputs.own, stage.initial) if tensor is not None]
    return b"".join(pieces)


def _cell(program: CellProgram, width: int) -> bytes:
    first = (program.gates, program.matrices, program.states, program.own_rows, program.slots, program.kept)
    sizes = (*first, program.spares, program.row_sums, program.registers)
    constants = [1.0 / width if value is None else value for value in program.constants]
    return b"".join(
        [
            _text(program.fingerprint),
            struct.pack("<9i", *sizes),
            _table(program.products),
            _table(program.places),
            struct.pack(f"<i{len(constants)}d", len(constants), *constants),
            _table(program.forward),
        ]
    )


def _table(rows: Sequence[tuple[int, ...]]) -> bytes:
    numbers = [number for row in rows for number in row]
    return struct.pack(f"<i{len(numbers)}i", len(rows), *numbers)


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<i", len(raw)) + raw


def _tensor(tensor: Tensor, pairs: bool) -> bytes:
    shape = tensor.shape[:-1] if pairs and tensor.is_floating_point() else tensor.shape  # a pair is no axis
    raw = _raw(tensor)
    return struct.pack(f"<i{len(shape)}qq", len(shape), *shape, len(raw)) + raw


def _raw(tensor: Tensor) -> bytes:
    flat = in_memory(tensor.detach()).flatten()
    return bytes(flat.view(torch.uint8).numpy().data) if flat.numel() else b""
