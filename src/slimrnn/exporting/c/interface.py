"""What the header of an exported net tells of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from slimrnn.errors import ExportError


@dataclass(frozen=True)
class Interface:
    """The prefix of its names and its sizes; inputs is None where a token is the input."""

    prefix: str
    header: str  # the name of the file
    inputs: int | None
    outputs: int
    bytes: dict[str, int]  # weights, state, stack

    @property
    def call(self) -> str:
        """A step from `x` to `y`, which are arrays."""
        return f"{self.prefix}_step(&state, {'x[0]' if self.inputs is None else 'x'}, y)"


def read_interface(path: Path) -> Interface:
    """Of a header, or of the C file beside it; ExportError for one that is none of ours."""
    header = path.with_suffix(".h")
    try:
        content = header.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ExportError(f"expected an exported header in {header}, which cannot be read: {error}") from None
    found = re.search(r"^\} ([A-Za-z]\w*)_state;$", content, re.MULTILINE)
    macros = {name: int(value) for name, value in re.findall(r"^#define (\w+) (\d+)$", content, re.MULTILINE)}
    prefix = found[1] if found else ""
    own = {name.removeprefix(f"{prefix.upper()}_"): value for name, value in macros.items()}
    if "OUTPUTS" not in own or ("INPUTS" in own) == ("VOCABULARY" in own):
        raise ExportError(f"expected an exported header in {header}, got another file")
    sizes = {name.removesuffix("_BYTES").lower(): value for name, value in own.items() if name.endswith("_BYTES")}
    return Interface(prefix, header.name, own.get("INPUTS"), own["OUTPUTS"], sizes)
