"""Many nets in one C program, so that one call of a compiler serves for all of them."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from slimrnn.exporting.c.net import NetWriter
from slimrnn.exporting.frozen import freeze
from slimrnn.exporting.stages import Unrolled

STRICT = (
    *("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2"),
    *("-Wshadow", "-Wconversion", "-Wdouble-promotion", "-Wstrict-prototypes", "-Wno-sign-conversion"),
)
SANITIZE = ("-O0", "-fsanitize=undefined,address,float-cast-overflow", "-fno-sanitize-recover=all")
DRIVER = """\
#include <stdio.h>
#include <stdlib.h>
{includes}

{runs}
static void (*const runs[])(int32_t, const float *, float *) = {{{names}}};
static const size_t inputs[] = {{{inputs}}}, outputs[] = {{{outputs}}};

int main(void)
{{
    int32_t head[2];
    while (fread(head, sizeof head, 1, stdin) == 1) {{
        const size_t n = (size_t)head[0], steps = (size_t)head[1];
        float *const x = malloc(steps * inputs[n] * sizeof *x), *const y = malloc(steps * outputs[n] * sizeof *y);
        if (!x || !y || fread(x, inputs[n] * sizeof *x, steps, stdin) != steps) {{
            return 1;
        }}
        runs[n](head[1], x, y);
        fwrite(y, outputs[n] * sizeof *y, steps, stdout);
        fflush(stdout);
        free(x);
        free(y);
    }}
    return 0;
}}
"""
RUN = """\
static void run_{k}(int32_t steps, const float *x, float *y)
{{
    n{k}_state state;
    n{k}_init(&state);
    for (int32_t t = 0; t < steps; t++) {{
        {step};
    }}
}}
"""


class ManyNets:
    """Models by name, each from its initial state on for one sequence. Tokens come as floats, which hold small whole
    numbers exactly."""

    def __init__(self, models: dict[str, nn.Module], examples: dict[str, Tensor]) -> None:
        self.models = {name: Unrolled(model.eval()) for name, model in models.items()}
        self.examples, self.names = examples, list(models)
        self.nets, self.inputs, self.outputs = [], [], []
        for k, (name, model) in enumerate(self.models.items()):
            x = examples[name]
            frozen = freeze(model, step=True)
            assert isinstance(frozen, Unrolled)
            width = x.shape[-1] if x.is_floating_point() else None
            writer = NetWriter(f"n{k}", f"n{k}.h", frozen.parts, width)
            self.nets.append(writer.write())
            self.inputs.append(width)
            self.outputs.append(writer.outputs)

    def compile(self, folder: Path, command: Sequence[str]) -> Path:
        """The program."""
        numbers = range(len(self.nets))
        for k, net in enumerate(self.nets):
            (folder / f"n{k}.h").write_text(net.header)
            (folder / f"n{k}.c").write_text(net.source)
        (folder / "all.c").write_text("".join(f'#include "n{k}.c"\n' for k in numbers))
        runs = [RUN.format(k=k, step=self._step(k)) for k in numbers]
        driver = DRIVER.format(
            includes="\n".join(f'#include "n{k}.h"' for k in numbers),
            runs="\n".join(runs),
            names=", ".join(f"run_{k}" for k in numbers),
            inputs=", ".join(str(width or 1) for width in self.inputs),
            outputs=", ".join(map(str, self.outputs)),
        )
        (folder / "driver.c").write_text(driver)
        program = folder / "nets"
        done = subprocess.run(
            [*command, "driver.c", "all.c", "-o", str(program)], cwd=folder, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[:2000]
        return program

    def _step(self, k: int) -> str:
        width, y = self.inputs[k], f"y + t * {self.outputs[k]}"
        return f"n{k}_step(&state, (int32_t)x[t], {y})" if width is None else f"n{k}_step(&state, x + t * {width}, {y})"

    def run(self, program: Path, given: dict[str, Tensor]) -> dict[str, Tensor]:
        """Sequences (T, I) or (T) by the names of nets -> outputs (T, O)."""
        message = b"".join(
            torch.tensor([self.names.index(name), len(x)], dtype=torch.int32).numpy().tobytes()
            + x.float().contiguous().numpy().tobytes()
            for name, x in given.items()
        )
        done = subprocess.run([str(program)], input=message, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()[:2000]
        numbers = torch.frombuffer(bytearray(done.stdout), dtype=torch.float32)
        sizes = [len(x) * self.outputs[self.names.index(name)] for name, x in given.items()]
        parts = zip(given.items(), numbers.split(sizes), strict=True)
        return {name: part.view(len(x), -1) for (name, x), part in parts}

    def expected(self, name: str, x: Tensor) -> Tensor:
        """By torch."""
        with torch.no_grad():
            y: Tensor = self.models[name](x.unsqueeze(1)).squeeze(1)
        return y
