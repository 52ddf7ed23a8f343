"""Files with damage: what disks, editors, half-finished copies and people who mean harm make of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

NUMBERS = (
    *("", "-1", "0", "1e400", "nan", "inf", "1_0", "²", "٣", "0x10", str(2**31), str(2**63), str(2**64)),
    *("9" * 19, "9" * 400, "9" * 5000, "1,5", " 7 ", "null", "[]", "{}", '"', "\0"),
)
EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**40, 2**63 - 1, 2**64 - 1)
Change = Callable[[bytes, Random], bytes]


def mutant(content: bytes, random: Random, others: tuple[bytes, ...] = ()) -> bytes:
    """The content with one to three changes; a splice goes on with the end of one of the others."""
    for _ in range(random.choice((1, 1, 2, 3))):
        if others and random.random() < 0.1:
            other = random.choice(others)
            content = content[: _place(content, random)] + other[_place(other, random) :]
        else:
            content = random.choice(CHANGES)(content, random)
    return content


def _flip(content: bytes, random: Random) -> bytes:
    """A bit: at the beginning or the end, where headers and footers are, as often as anywhere."""
    changed, place = bytearray(content), _place(content, random)
    if place < len(changed):
        changed[place] ^= 1 << random.randrange(8)
    return bytes(changed)


def _truncate(content: bytes, random: Random) -> bytes:
    return content[: _place(content, random)]


def _drop(content: bytes, random: Random) -> bytes:
    place = _place(content, random)
    return content[:place] + content[place + random.choice((1, 2, 4, 8, 64)) :]


def _repeat(content: bytes, random: Random) -> bytes:
    """A piece, or a line, once or many times more."""
    first, last = sorted((_place(content, random), _place(content, random)))
    if random.random() < 0.5:
        first, last = content.rfind(b"\n", 0, first) + 1, content.find(b"\n", last) + 1 or len(content)
    piece = content[first:last]
    return content[:last] + piece * random.choice((1, 1, 2, 1 + 2000 // (1 + len(piece)))) + content[last:]


def _insert(content: bytes, random: Random) -> bytes:
    place = _place(content, random)
    return content[:place] + random.randbytes(random.choice((1, 2, 8))) + content[place:]


def _replace_number(content: bytes, random: Random) -> bytes:
    """One that is written in digits."""
    found = list(re.finditer(rb"[-+]?[0-9][0-9.eE+-]*", content[:100_000]))
    if not found:
        return _flip(content, random)
    one = random.choice(found)
    return content[: one.start()] + random.choice(NUMBERS).encode() + content[one.end() :]


def _replace_integer(content: bytes, random: Random) -> bytes:
    """One of 1, 2, 4 or 8 bytes, in either order."""
    size, place = random.choice((1, 2, 4, 8)), _place(content, random)
    number = random.choice(EXTREMES).to_bytes(8, "little")[:size]
    return content[:place] + random.choice((number, number[::-1])) + content[place + size :]


def _replace_word(content: bytes, random: Random) -> bytes:
    """A name or a text by another of the same file, or by nothing."""
    words: list[re.Match[bytes]] = list(re.finditer(rb"[A-Za-z_#]{2,}", content[:100_000]))
    if not words:
        return _flip(content, random)
    one = random.choice(words)
    other: bytes = random.choice((random.choice(words)[0], b"", b"a" * 3000, b"\xff\xfe"))
    changed: bytes = content[: one.start()] + other + content[one.end() :]
    return changed


def _place(content: bytes, random: Random) -> int:
    if random.random() < 0.5:
        return random.randrange(len(content) + 1)
    near = random.randrange(min(len(content), 64) + 1)
    return near if random.random() < 0.6 else len(content) - near


CHANGES: tuple[Change, ...] = (
    _flip,
    _flip,
    _truncate,
    _drop,
    _repeat,
    _insert,
    _replace_number,
    _replace_number,
    _replace_integer,
    _replace_word,
)
