"""Times as people write them."""

from __future__ import annotations

import re
from typing import Annotated

import tyro

from slimrnn._texts import shown
from slimrnn.errors import UsageError

Budget = Annotated[str | None, tyro.conf.arg(metavar="TIME")]
SECONDS = (3600, 60, 1)


def seconds(text: str | None) -> float | None:
    """90s, 10m, 1h30m or a plain number of seconds."""
    if text is None:
        return None
    parts = re.fullmatch(r"(?:(\d+\.?\d*)h)?(?:(\d+\.?\d*)m)?(?:(\d+\.?\d*)s?)?", text, re.ASCII)
    numbers = [float(number or 0) for number in parts.groups()] if parts else [0.0]
    if not 0 < sum(numbers) < float("inf"):
        raise UsageError(f"expected a time such as 90s, 10m or 1h30m, got {shown(text)}")
    return sum(number * unit for number, unit in zip(numbers, SECONDS, strict=True))
