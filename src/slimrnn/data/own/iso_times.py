"""Times in ISO 8601, as 2026-01-31, 2026-01, 2026-01-31 12:00 or 2026-01-31T12:00:00.5+01:00, to microseconds of UTC.

No other form is taken: 01/02/2026 is one day here and another there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FORM = re.compile(
    r"[0-9]{4}-[0-9]{2}(-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?)?"
)
_ZONE = re.compile(r"(Z|[+-][0-9]{2}:?[0-9]{2})$")
EXAMPLE = "2026-01-31 or 2026-01-31 12:00:00"


def is_time(text: str) -> bool:
    """Whether a text has the form; a day such as 2026-02-31 has it as well."""
    return _FORM.fullmatch(text) is not None


def iso_times(texts: Sequence[str]) -> NDArray[Any] | int:
    """datetime64[us] of all texts, or the place of the first that is no time."""
    for place, text in enumerate(texts):
        if not is_time(text):
            return place
    zoned = any(len(text) > 16 and _ZONE.search(text) for text in texts)
    try:
        if not zoned:
            return np.array(texts, dtype="datetime64[us]")
        plain, shifts = zip(*map(_in_utc, texts), strict=True)
        utc: NDArray[Any] = np.array(plain, dtype="datetime64[us]") - np.array(shifts, dtype="timedelta64[m]")
        return utc
    except ValueError:
        return next(place for place, text in enumerate(texts) if not _exists(_in_utc(text)[0]))


def _in_utc(text: str) -> tuple[str, int]:
    """Without its zone, and the minutes that this is ahead."""
    found = _ZONE.search(text) if len(text) > 16 else None
    if found is None:
        return text, 0
    zone = found[0].replace(":", "")
    minutes = 0 if zone == "Z" else int(zone[0] + "1") * (60 * int(zone[1:3]) + int(zone[3:]))
    return text[: found.start()], minutes


def _exists(text: str) -> bool:
    try:
        np.datetime64(text)
    except ValueError:
        return False
    return True
