"""A model as a C file and its header: its stages one after the other in one function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from slimrnn._version import __version__
from slimrnn.exporting.c import text
from slimrnn.exporting.c.pieces import TOKEN, Pieces
from slimrnn.exporting.c.source import Body, Source


@dataclass(frozen=True)
class Net:
    """What was written, and its sizes."""

    header: str
    source: str
    sizes: dict[str, int]  # in bytes


class NetWriter:
    """Writes stages whose recurrent layers are frozen; `inputs` None: the input is a token."""

    def __init__(self, prefix: str, header: str, stages: Sequence[nn.Module], inputs: int | None) -> None:
        self.prefix, self.header_name, self.inputs = prefix, header, inputs
        self.source = Source(prefix)
        self.maker = Pieces(self.source, inputs)
        self.pieces = list(self.maker.of(stages))
        self.cores = [core for piece in self.pieces for core in piece.cores]
        self.init, self.step = self._init(), self._step()

    def write(self) -> Net:
        return Net(self._header(), self._source(), self.sizes)

    # --- functions -----------------------------------------------------------------------------------------------

    def _init(self) -> Body:
        body = Body(self.source)
        for core in self.cores:
            count, place = core.state.numel(), f"state->{core.own}"
            if bool(core.state.any()):
                start = self.source.floats(f"{core.own}_start", core.state, f"{core.own}: initial state")
                body.call("copy", start, count, place)
            else:
                body.clear(count, place)
            if core.rings:
                body.line(f"state->{core.own}_position = 0;")
        return body

    def _step(self) -> Body:
        body = Body(self.source)
        moving = [piece for piece in self.pieces if not piece.in_place]
        starts_in_place = self.pieces[0].in_place
        between = [self.pieces[0]] * starts_in_place + moving[:-1]
        places = [body.array("between", max(p.width for p in between[k::2])) for k in range(min(2, len(between)))]
        turns = iter([*(places[k % 2] for k in range(len(between))), "y"])
        here = TOKEN if self.inputs is None else "x"
        if starts_in_place:
            there = next(turns)
            body.call("copy", here, self.pieces[0].width, there)
            here = there
        if self.inputs is None:
            body.line(f"if (token < 0 || token >= {self.prefix.upper()}_VOCABULARY) {{")
            body.line("    return -1;")
            body.line("}")
        for piece in self.pieces:
            there = here if piece.in_place else next(turns)
            piece.emit(body, here, there)
            here = there
        if self.inputs is None:
            body.line("return 0;")
        return body

    # --- texts ---------------------------------------------------------------------------------------------------

    @property
    def outputs(self) -> int:
        return self.pieces[-1].width

    @property
    def sizes(self) -> dict[str, int]:
        state = sum(4 * core.state.numel() + 4 * core.rings for core in self.cores)
        stack = self.step.bytes + max(core.bytes for core in self.cores)
        return {"weights": self.source.weight_bytes, "state": state, "stack": stack}

    @property
    def _step_head(self) -> str:
        if self.inputs is None:
            return f"int {self.prefix}_step({self.prefix}_state *state, int32_t token, float *y)"
        return f"void {self.prefix}_step({self.prefix}_state *state, const float *x, float *y)"

    def _header(self) -> str:
        upper, sizes = self.prefix.upper(), self.sizes
        given = ("VOCABULARY", self.maker.vocabulary) if self.inputs is None else ("INPUTS", self.inputs)
        macros = [given, ("OUTPUTS", self.outputs), *((f"{name.upper()}_BYTES", size) for name, size in sizes.items())]
        defines = "\n".join(f"#define {upper}_{name} {value}" for name, value in macros)
        fields = []
        for core in self.cores:
            fields.append(f"    float {core.own}[{core.state.numel()}];")
            fields += [f"    uint32_t {core.own}_position;"] * core.rings
        input_text = "a token from 0" if self.inputs is None else f"{upper}_INPUTS numbers"
        result = " It returns 0, or -1 and changes nothing for a token that is none." if self.inputs is None else ""
        return HEADER.format(
            version=text.comment(f"Written by slimrnn {__version__}. {self._described()}"),
            upper=upper,
            prefix=self.prefix,
            defines=defines,
            fields="\n".join(fields),
            input=input_text,
            result=result,
            step=self._step_head,
        )

    def _described(self) -> str:
        units = ", ".join(str(core.output) for core in self.cores)
        return f"Recurrent layers that give {units} numbers."

    def _source(self) -> str:
        init = f"void {self.prefix}_init({self.prefix}_state *state)\n{{\n{self.init}}}\n"
        step = f"{self._step_head}\n{{\n{self.step}}}\n"
        head = SOURCE.format(version=text.comment(f"Written by slimrnn {__version__}."), header=self.header_name)
        return "\n".join([head, self.source.text(), init, step])


HEADER = """\
{version}
#ifndef {upper}_H
#define {upper}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* STATE_BYTES are those of a state, STACK_BYTES of arrays on the stack while a step runs; weights are constants. */
{defines}

typedef struct {{
{fields}
}} {prefix}_state;

/* Before the first step of a sequence. */
void {prefix}_init({prefix}_state *state);

/* One step: {input} in, {upper}_OUTPUTS numbers out, which must not overlap.{result} */
{step};

#ifdef __cplusplus
}}
#endif

#endif
"""

SOURCE = """\
{version}
#include "{header}"

#include <float.h>
#include <stddef.h>

/* Every operation is rounded to float by itself, so that the bits are the same on every machine. */
#if defined(__FAST_MATH__)
#error "expected no -ffast-math"
#endif
#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16
#error "expected float arithmetic in float; on 32-bit x86: -msse2 -mfpmath=sse"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#if !defined(__STRICT_ANSI__)
#pragma GCC optimize("fp-contract=off")
#endif
#if defined(__FMA__) /* gcc 12 -O3 on x86 fuses alternating sums and differences whatever it is told */
#pragma GCC optimize("no-tree-slp-vectorize")
#endif
#endif
"""
