"""Exported nets on emulated microcontrollers: compiled by arm-none-eabi-gcc, run by qemu-system-arm.

Debian: apt-get install gcc-arm-none-eabi qemu-system-arm
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from slimrnn.exporting.c.interface import Interface, read_interface

HERE = Path(__file__).parent
FLAGS = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2", "-ffreestanding")
LOOP = 20_000  # instructions, see main.c
RESULTS = struct.Struct("<3I")


@dataclass(frozen=True)
class Board:
    """A processor, and a machine of qemu that has it."""

    name: str
    machine: str
    options: tuple[str, ...]  # of the compiler
    flash: int
    ram: int


KIB, MIB = 1 << 10, 1 << 20
BOARDS = {
    board.name: board
    for board in (
        Board("Cortex-M0", "microbit", ("-mcpu=cortex-m0",), 256 * KIB, 16 * KIB),
        Board("Cortex-M3", "mps2-an385", ("-mcpu=cortex-m3",), 4 * MIB, 4 * MIB),
        Board(
            "Cortex-M4F", "mps2-an386", ("-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"), 4 * MIB, 4 * MIB
        ),
        Board("Cortex-M7", "mps2-an500", ("-mcpu=cortex-m7", "-mfloat-abi=hard", "-mfpu=fpv5-d16"), 4 * MIB, 4 * MIB),
    )
}


@dataclass(frozen=True)
class Answer:
    """What a board gave, (N, T, O), and what it took."""

    outputs: Tensor
    instructions: int  # of one step, on average: a count, not a time
    flash: int  # bytes of code and weights of the net, and of the functions of libgcc that it calls
    state: int  # bytes
    stack: int  # bytes while a step runs


def run_on(board: Board, net: Path, sequences: Tensor, folder: Path) -> Answer:
    """Run an exported net.c on sequences (N, T, I) or of tokens (N, T), each from the initial state on."""
    interface = read_interface(net)
    program = compiled(board, net, interface, folder)
    kind = torch.int32 if interface.inputs is None else torch.float32
    count, steps = sequences.shape[:2]
    head = struct.pack("<2I", count, steps)
    (folder / "inputs.bin").write_bytes(head + sequences.to(kind).contiguous().numpy().tobytes())
    emulated = ["-machine", board.machine, "-nographic", "-monitor", "none", "-serial", "null", "-icount", "shift=0"]
    semihosting = ["-semihosting-config", "enable=on,target=native"]
    _called(["qemu-system-arm", *emulated, *semihosting, "-kernel", program.name], folder)
    data = (folder / "outputs.bin").read_bytes()
    size = 4 * count * steps * interface.outputs
    if len(data) != size + RESULTS.size:
        raise RuntimeError(f"expected {size + RESULTS.size} bytes from {board.name}, got {len(data)}")
    ticks, of_loop, stack = RESULTS.unpack(data[size:])
    outputs = torch.frombuffer(bytearray(data[:size]), dtype=torch.float32).view(count, steps, -1)
    instructions = round(ticks * LOOP / of_loop / (count * steps))
    return Answer(outputs, instructions, _flash(folder), interface.bytes["state"], stack)


def compiled(board: Board, net: Path, interface: Interface, folder: Path) -> Path:
    """The program for a board; without a C library: only libgcc, which has float arithmetic where there is no unit."""
    x = "x[0]" if interface.inputs is None else "x"
    (folder / "net_under_test.h").write_text(
        f'#include "{interface.header}"\n'
        f"#define NET_STATE {interface.prefix}_state\n"
        f"#define NET_INIT {interface.prefix}_init\n"
        f"#define NET_STEP(state, x, y) {interface.prefix}_step(state, {x}, y)\n"
        f"#define NET_INPUT {'int32_t' if interface.inputs is None else 'float'}\n"
        f"#define NET_X {interface.inputs or 1}\n"
        f"#define NET_Y {interface.outputs}\n"
    )
    gcc = ["arm-none-eabi-gcc", "-mthumb", *board.options]
    for source in (net.resolve(), HERE / "main.c", HERE / "start.c"):
        own = () if source.suffix == ".c" and source.parent != HERE else ("-Wno-pedantic", "-fno-builtin")
        include = [f"-I{folder}", f"-I{net.resolve().parent}"]
        _called([*gcc, *FLAGS, *own, *include, "-c", str(source), "-o", f"{_object(source)}"], folder)
    memory = [f"-Wl,--defsym=FLASH_BYTES={board.flash}", f"-Wl,--defsym=RAM_BYTES={board.ram}"]
    objects = [_object(source) for source in (net, HERE / "main.c", HERE / "start.c")]
    linked = ["-nostdlib", "-T", str(HERE / "board.ld"), *memory, "-Wl,-Map=net.map", "-Wl,--gc-sections"]
    _called([*gcc, *objects, *linked, "-lgcc", "-o", "program.elf"], folder)
    return folder / "program.elf"


def _object(source: Path) -> str:
    return f"{'net' if source.parent != HERE else source.stem}.o"


def _flash(folder: Path) -> int:
    """Of the whole program, less what main.c and start.c have."""
    sizes = [
        int(_called(["arm-none-eabi-size", name], folder).splitlines()[1].split()[0])
        for name in ("program.elf", "main.o", "start.o")
    ]
    return sizes[0] - sum(sizes[1:])


def _called(command: Sequence[str], folder: Path) -> str:
    if shutil.which(command[0]) is None:
        raise RuntimeError(
            f"expected {command[0]}, got none: on Debian, apt-get install gcc-arm-none-eabi qemu-system-arm"
        )
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:3])} ... ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout
