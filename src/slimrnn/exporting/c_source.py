"""C99 with all weights in it: a header and a source of a model's step, compiled and run for the proof."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from slimrnn.exporting.c import text
from slimrnn.exporting.c.compiled import compiler_version, open_compiled
from slimrnn.exporting.c.interface import read_interface
from slimrnn.exporting.c.net import NetWriter
from slimrnn.exporting.exporter import Exporter, Request
from slimrnn.exporting.frozen import freeze
from slimrnn.exporting.stages import Unrolled


@dataclass(frozen=True)
class COptions:
    """Further arguments of slimrnn.export for to="c"."""

    prefix: str | None = None  # what all names begin with: by default the name of the file
    merge: bool | None = None  # recurrent matrices written out: by default where that takes no more memory


def write(request: Request, path: Path) -> None:
    """NAME.c and NAME.h"""
    text.check_file_name(path.name)
    prefix = text.prefix_of(path.stem, request.options.prefix)
    model = freeze(request.model, request.options.merge, step=True)
    assert isinstance(model, Unrolled)
    (x,) = request.example.leaves
    header = path.with_suffix(".h")
    net = NetWriter(prefix, header.name, model.parts, x.shape[-1] if x.is_floating_point() else None).write()
    path.write_text(net.source)
    header.write_text(net.header)


def _sizes(path: Path) -> dict[str, float]:
    return {f"bytes of {name}": size for name, size in read_interface(path).bytes.items()}


EXPORTER = Exporter(
    suffix=".c",
    others=(".h",),
    runtime=compiler_version,
    write=write,
    open=open_compiled,
    options=COptions,
    sizes=_sizes,
    takes_int8=True,
    steps_only=True,
)
