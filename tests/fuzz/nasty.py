"""Damage that people, spreadsheets and exports do to files of numbers."""

from __future__ import annotations

import io
import re
import zipfile
from random import Random

from mutants import Change, mutant

CELLS = (
    *(
        "",
        "NA",
        "NaN",
        "nan",
        "?",
        "null",
        "inf",
        "-inf",
        "Infinity",
        "1e39",
        "1e400",
        "-1",
        "9" * 400,
        "0x1F",
        "1,5",
        "1_0",
    ),
    *(
        "2026-01-31",
        "31/01/2026",
        "12:30",
        "true",
        "abc",
        '"',
        '""',
        '"a',
        'a"b',
        "'",
        " 7 ",
        "\t",
        "1e-400",
        "+5",
        "--5",
        "٣",
    ),
    *("1;2", "\r", "é", "-0", "1e5", ".5", "5.", "NULL", "#N/A", "=1+1", "$5", "5%", "1 000", "\u00a05", "−5"),
)


def nasty(content: bytes, random: Random) -> bytes:
    """One to three of these, or of the damage that all files get."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        change: Change = mutant if random.random() < 0.2 else random.choice(CHANGES)
        content = change(content, random)
    return content


def _cell(content: bytes, random: Random) -> bytes:
    """Another value between two separators."""
    found = list(re.finditer(rb"(?<=[,;\t|:\n])[^,;\t|:\n]*(?=[,;\t|:\n])", content))
    if not found:
        return content
    one = random.choice(found)
    return content[: one.start()] + random.choice(CELLS).encode() + content[one.end() :]


def _separators(content: bytes, random: Random) -> bytes:
    """Of one line, or of all of them."""
    old, new = random.choice(b",;\t|:"), random.choice(b",;\t| :")
    lines = content.split(b"\n")
    place = random.randrange(len(lines))
    table = bytes.maketrans(bytes([old]), bytes([new]))
    if random.random() < 0.3:
        return content.translate(table)
    lines[place] = lines[place].translate(table)
    return b"\n".join(lines)


def _line(content: bytes, random: Random) -> bytes:
    """Twice, elsewhere, cut, or gone; or the header again."""
    lines = content.split(b"\n")
    place, other = random.randrange(len(lines)), random.randrange(len(lines))
    kind = random.randrange(6)
    if kind == 0:
        lines.insert(other, lines[place])
    elif kind == 1:
        lines.insert(other, lines.pop(place))
    elif kind == 2:
        lines[place] = lines[place][: random.randrange(len(lines[place]) + 1)]
    elif kind == 3:
        lines.pop(place)
    elif kind == 4:
        lines.insert(other, lines[0])
    else:
        lines.insert(other, b"")
    return b"\n".join(lines)


def _column(content: bytes, random: Random) -> bytes:
    """One more value, or one less, in a line."""
    lines = content.split(b"\n")
    place = random.randrange(len(lines))
    parts = re.split(rb"([,;\t|])", lines[place])
    lines[place] = b"".join(parts[:-2]) if random.random() < 0.5 else lines[place] + b",7"
    return b"\n".join(lines)


def _encoding(content: bytes, random: Random) -> bytes:
    text = content.decode("utf-8", errors="replace")
    kind = random.choice(("utf-16", "utf-16-le", "latin-1", "utf-8-sig", "utf-32"))
    return text.replace("a", "é", 1).encode(kind, errors="replace")


def _line_ends(content: bytes, random: Random) -> bytes:
    return content.replace(b"\n", random.choice((b"\r\n", b"\r", b"\n\n", b"\n\r")), random.choice((-1, 1, 3)))


def _nothing(content: bytes, random: Random) -> bytes:
    first = content.partition(b"\n")[0]
    return random.choice((b"", b"\n", b"\n" * 50, first, first + b"\n", b"\0" * 100, b" ", b'"', b",", b",\n,\n"))


def _names(content: bytes, random: Random) -> bytes:
    """A name twice, empty, or a number."""
    first, end, rest = content.partition(b"\n")
    words = first.split(b",")
    words[random.randrange(len(words))] = random.choice((words[0], b"", b"7", b"1.5", b" a ", b'"b"', b"t"))
    return b",".join(words) + end + rest


def _nul(content: bytes, random: Random) -> bytes:
    place = random.randrange(len(content) + 1)
    return content[:place] + b"\0" + content[place:]


def _quotes(content: bytes, random: Random) -> bytes:
    place = random.randrange(len(content) + 1)
    return content[:place] + random.choice((b'"', b'""', b'"\n"', b"'")) + content[place:]


def bomb(size: int = 2**27) -> bytes:
    """An .npz of few bytes that promises many."""
    buffer = io.BytesIO()
    archive = zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with archive, archive.open("values.npy", "w") as file:
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({size // 8}, 1), }}\n".encode()
        file.write(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header)
        for _ in range(size // 2**20):
            file.write(bytes(2**20))
    return buffer.getvalue()


CHANGES: tuple[Change, ...] = (
    *(_cell, _cell, _cell, _separators, _line, _line, _column, _encoding, _line_ends, _nothing, _names, _nul, _quotes),
)
