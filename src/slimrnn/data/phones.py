"""The phones of TIMIT: its 61 symbols, the foldings to 48 and 39 classes of Lee and Hon (1989), and `.phn` files."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slimrnn._texts import DIGITS, shown, whole_number
from slimrnn.data.files import reading
from slimrnn.errors import DataError

_SYMBOLS = (
    "aa ae ah ao aw ax ax-h axr ay b bcl ch d dcl dh dx eh el em en eng epi er ey f g gcl h# hh hv ih ix iy jh k kcl l "
    "m n ng nx ow oy p pau pcl q r s sh t tcl th uh uw ux v w y z zh"
)
PHONES = tuple(_SYMBOLS.split())
NUMBERS = {phone: number for number, phone in enumerate(PHONES)}
UNLABELLED = 255  # number of the phone of a frame that no segment covers
COUNTS = (61, 48, 39)

# Table 1 of Lee & Hon 1989 trains on 48 classes: allophones go together, the closures of stops are voiced or not, and
# the glottal stop q is left out.
_TO_48 = {
    "ax-h": "ax",
    "axr": "er",
    "em": "m",
    "eng": "ng",
    "hv": "hh",
    "nx": "n",
    "ux": "uw",
    **dict.fromkeys(("pcl", "tcl", "kcl"), "cl"),
    **dict.fromkeys(("bcl", "dcl", "gcl"), "vcl"),
    **dict.fromkeys(("h#", "pau"), "sil"),
}
# It scores on 39: confusions within these groups do not count.
_TO_39 = {
    "ao": "aa",
    "ax": "ah",
    "ix": "ih",
    "el": "l",
    "en": "n",
    "zh": "sh",
    **dict.fromkeys(("cl", "vcl", "epi"), "sil"),
}


class Segment(NamedTuple):
    """A phone, by number, from sample `start` up to the one before `end`."""

    start: int
    end: int
    phone: int


def folded(phone: str, count: int) -> str | None:
    """The class of a phone among 61, 48 or 39; None for q where it is left out."""
    if count == 61:
        return phone
    if phone == "q":
        return None
    broad = _TO_48.get(phone, phone)
    return broad if count == 48 else _TO_39.get(broad, broad)


def classes(count: int) -> tuple[str, ...]:
    """The names of the classes, in the order of their numbers."""
    if count not in COUNTS:
        raise ValueError(f"expected 61, 48 or 39 phones, got {count}")
    names = {folded(phone, count) for phone in PHONES}
    return tuple(sorted(name for name in names if name is not None))


def folding(count: int) -> NDArray[np.int64]:
    """The class of each phone by its number, and of UNLABELLED; −1 for what has none."""
    numbers = {name: number for number, name in enumerate(classes(count))}
    table = np.full(UNLABELLED + 1, -1, dtype=np.int64)
    for number, phone in enumerate(PHONES):
        name = folded(phone, count)
        table[number] = -1 if name is None else numbers[name]
    return table


def read_phones(path: Path) -> list[Segment]:
    """The segments of a `.phn` file, whose lines are `start end phone`, in samples and in the order of time."""
    with reading(path):
        lines = path.read_bytes().decode("latin-1").split("\n")
    segments: list[Segment] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"in line {number} of {path}"
        start, end, phone = _words(line, where)
        if phone not in NUMBERS:
            raise DataError(f"expected one of the 61 phones {where}, got {shown(phone)}")
        if end <= start:
            raise DataError(f"expected a segment that ends after its start {where}, got {shown(line.strip())}")
        if segments and start < segments[-1].end:
            raise DataError(
                f"expected a start of at least {segments[-1].end}, where the last ended, {where}, got {start}"
            )
        segments.append(Segment(start, end, NUMBERS[phone]))
    if not segments:
        raise DataError(f"expected lines of start, end and phone in {path}, got none")
    return segments


def _words(line: str, where: str) -> tuple[int, int, str]:
    words = line.split()
    if len(words) != 3:
        raise DataError(f"expected start, end and phone {where}, got {shown(line.strip())}")
    start, end = (whole_number(word) for word in words[:2])
    if start is None or end is None:
        wrong = words[0] if start is None else words[1]
        raise DataError(f"expected a sample by number, of at most {DIGITS} digits, {where}, got {shown(wrong)}")
    return start, end, words[2].lower()


def frame_phones(segments: list[Segment], centres: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The phone at each of these samples; UNLABELLED where there is none."""
    starts, ends, phones = np.array(segments, dtype=np.int64).T
    place = np.searchsorted(starts, centres, side="right") - 1
    inside = (place >= 0) & (centres < ends[place])
    return np.where(inside, phones[place], UNLABELLED).astype(np.uint8)
