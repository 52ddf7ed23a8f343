"""The figures of docs/doctor.md: the nets of its example, side by side."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from slimrnn.analysis.doctor.figures import layer_figures

SHOWN = ("reach", "spectrum")


def main(directory: Path) -> None:
    page = Path(__file__).parents[1] / "doctor.md"
    first = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)[0]
    names: dict[str, Any] = {}
    exec(first, names)
    gru, unitary = (names["diagnose"](names[name], names["x"]) for name in ("gru", "unitary"))
    (group,) = layer_figures(gru, unitary, ("GRU", "unitary"))
    for picture in group:
        if picture.name.removeprefix("layer-0-") in SHOWN:
            (directory / f"doctor-{picture.name.removeprefix('layer-0-')}.png").write_bytes(picture.rendered("png"))


if __name__ == "__main__":
    main(Path(__file__).parent)
