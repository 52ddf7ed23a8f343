"""C files compiled for this machine and run in a process of their own."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import torch
from torch import Tensor

from slimrnn.errors import ExportError
from slimrnn.exporting.c.interface import Interface, read_interface
from slimrnn.exporting.exporter import Run
from slimrnn.exporting.fresh_process import talking_to

FLAGS = ("-std=c99", "-O2")  # a warning of some compiler is no reason to refuse an export
DRIVER = """\
#include "{header}"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define INPUTS {inputs}
#define OUTPUTS {outputs}

int main(void)
{{
    static {prefix}_state state;
    int32_t steps;
    while (fread(&steps, sizeof steps, 1, stdin) == 1 && steps > 0) {{
        {kind} *const all_x = malloc((size_t)steps * INPUTS * sizeof *all_x);
        float *const all_y = malloc((size_t)steps * OUTPUTS * sizeof *all_y);
        double seconds;
        clock_t start;
        if (!all_x || !all_y || fread(all_x, INPUTS * sizeof *all_x, (size_t)steps, stdin) != (size_t)steps) {{
            return 1;
        }}
        start = clock();
        {prefix}_init(&state);
        for (int32_t t = 0; t < steps; t++) {{
            {kind} *const x = all_x + (size_t)t * INPUTS;
            float *const y = all_y + (size_t)t * OUTPUTS;
            {call};
        }}
        seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        fwrite(&seconds, sizeof seconds, 1, stdout);
        fwrite(all_y, OUTPUTS * sizeof *all_y, (size_t)steps, stdout);
        fflush(stdout);
        free(all_x);
        free(all_y);
    }}
    return 0;
}}
"""
SECONDS = struct.Struct("=d")
COUNT = struct.Struct("=i")


def compiler() -> list[str]:
    """$CC, or what is found of cc, gcc and clang."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    found = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if found is None:
        raise ExportError(
            "expected a C compiler to run the exported file for its proof, got none: install gcc or clang, or set CC"
        )
    return [found]


def compiler_version() -> str:
    """The first line of what it says of itself, and how it is called."""
    command = compiler()
    said = _called([*command, "--version"]).splitlines()
    return f"{said[0] if said else command[0]} {' '.join(FLAGS)}"


def _called(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ExportError(f"expected a C compiler, got {command[0]}, which cannot be run: {error.strerror}") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()[-1:]
        raise ExportError(f"expected C that {command[0]} compiles, got: {' '.join(lines[:1])}")
    return done.stdout


class _Steps:
    """A Run: every sequence of (T, B, I) or of tokens (T, B) by itself; `seconds` are those of the last call."""

    def __init__(self, to: IO[bytes], back: IO[bytes], interface: Interface) -> None:
        self.to, self.back, self.interface, self.seconds = to, back, interface, 0.0

    def __call__(self, leaves: Sequence[Tensor]) -> list[Tensor]:
        (x,) = leaves
        self.seconds = 0.0
        return [torch.stack([self._sequence(one) for one in x.unbind(1)], 1)]

    def _sequence(self, x: Tensor) -> Tensor:
        tokens = self.interface.inputs is None
        numbers = x.to(torch.int32 if tokens else torch.float32).contiguous().numpy().tobytes()
        size = 4 * len(x) * self.interface.outputs
        try:
            self.to.write(COUNT.pack(len(x)) + numbers)
            self.to.flush()
            answer = self.back.read(SECONDS.size + size)
        except BrokenPipeError:
            answer = b""
        if len(answer) < SECONDS.size + size:
            raise ExportError("expected a C program that runs, got one whose process ended")
        self.seconds += SECONDS.unpack_from(answer)[0]
        return torch.frombuffer(bytearray(answer[SECONDS.size :]), dtype=torch.float32).view(len(x), -1)


@contextlib.contextmanager
def open_compiled(path: Path, flags: Sequence[str] = FLAGS) -> Iterator[Run]:
    """Compiled in a folder of its own."""
    interface = read_interface(path)
    with tempfile.TemporaryDirectory(prefix="slimrnn-c-") as folder:
        driver, program = Path(folder) / "driver.c", Path(folder) / "net"
        driver.write_text(
            DRIVER.format(
                header=interface.header,
                prefix=interface.prefix,
                call=interface.call,
                outputs=interface.outputs,
                inputs=interface.inputs or 1,
                kind="int32_t" if interface.inputs is None else "float",
            )
        )
        include = f"-I{path.parent.resolve()}"
        _called([*compiler(), *flags, include, str(driver), str(path.resolve()), "-o", str(program)])
        with talking_to([str(program)]) as (to, back):
            yield _Steps(to, back, interface)
