"""Texts as symbols by number: the Penn Treebank's characters, and any text file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slimrnn.data.directory import find_file
from slimrnn.errors import DataError

END = "\n"  # of a sentence
PTB_SYMBOLS = END + " #$&'*-./0123456789<>N\\abcdefghijklmnopqrstuvwxyz"
PTB_SIZES = {"train": 5_017_482, "valid": 393_042, "test": 442_423}
SHARES = {"train": (0, 90), "valid": (90, 95), "test": (95, 100)}  # of a text file, in percent
_SPACE, _WRITTEN_SPACE = ord(" "), ord("_")

Tokens = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class Text:
    """A text as places in its alphabet. A sentence ends with its END; what follows the last one is a sentence too."""

    tokens: Tokens
    symbols: str

    @property
    def end(self) -> int:
        """The number of END, which is also what a net reads before the first character."""
        return self.symbols.index(END)

    def sentences(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where each sentence begins, and its number of characters with its END."""
        ends = np.flatnonzero(self.tokens == self.end) + 1
        if len(ends) == 0 or ends[-1] < len(self.tokens):
            ends = np.append(ends, len(self.tokens))
        starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]])
        return starts, ends - starts

    def __str__(self) -> str:
        return "".join(self.symbols[token] for token in self.tokens)


def read_ptb(split: str) -> Text:
    """The Penn Treebank's "train", "valid" or "test" characters, in Mikolov's version."""
    path = find_file("ptb", f"ptb.char.{split}.txt")
    text = _read_ptb(path, *_stamp(path))
    if len(text.tokens) != PTB_SIZES[split]:
        raise DataError(f"expected {PTB_SIZES[split]:,} characters in {path}, got {len(text.tokens):,}")
    return text


def read_text(path: Path, split: str) -> Text:
    """A part of a text file, by position: the first 90 % is "train", 5 % each are "valid" and "test"."""
    try:
        stamp = _stamp(path)
    except OSError as error:
        raise DataError(f"expected a text file, got {path}: {error.strerror}") from None
    whole = _read_text(path, *stamp)
    first, last = (share * len(whole.tokens) // 100 for share in SHARES[split])
    return Text(whole.tokens[first:last], whole.symbols)


def parse_ptb(raw: bytes, path: Path) -> Text:
    """Symbols of one byte, each with a space after it; `_` stands for a space, a new line for the end of a sentence."""
    pairs = np.frombuffer(raw[: len(raw) // 2 * 2], dtype=np.uint8).reshape(-1, 2)
    known = np.full(256, -1, dtype=np.int16)
    for number, symbol in enumerate(PTB_SYMBOLS):
        known[_WRITTEN_SPACE if symbol == " " else ord(symbol)] = number
    tokens = known[pairs[:, 0]]
    wrong = np.flatnonzero((tokens < 0) | (pairs[:, 1] != _SPACE))
    if len(wrong) or len(raw) % 2:
        offset = 2 * int(wrong[0]) if len(wrong) else len(raw) - 1
        found = raw[offset : offset + 2]
        raise DataError(
            f"expected a symbol of the Penn Treebank and a space at byte {offset:,} of {path}, got {found!r}"
        )
    if len(tokens) == 0 or tokens[-1] != PTB_SYMBOLS.index(END):
        raise DataError(f"expected the end of a sentence at byte {len(raw):,} of {path}, got the end of the file")
    return Text(tokens.astype(np.uint8), PTB_SYMBOLS)


@lru_cache(maxsize=8)
def _read_ptb(path: Path, size: int, changed: int) -> Text:
    return parse_ptb(_read(path), path)


@lru_cache(maxsize=8)
def _read_text(path: Path, size: int, changed: int) -> Text:
    """A whole file, whose symbols are the characters in it and END."""
    try:
        characters = np.frombuffer(_read(path).decode().encode("utf-32-le"), dtype=np.uint32)
    except UnicodeDecodeError as error:
        raise DataError(
            f"expected UTF-8 at byte {error.start:,} of {path}, got {error.object[error.start]:#04x}"
        ) from None
    if len(characters) < 100:
        raise DataError(f"expected a text of at least 100 characters, got {len(characters)} in {path}")
    codes = np.union1d(characters, np.array([ord(END)], dtype=np.uint32))
    tokens = np.searchsorted(codes, characters).astype(np.min_scalar_type(len(codes)))
    return Text(tokens, "".join(map(chr, codes)))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None


def _stamp(path: Path) -> tuple[int, int]:
    """What changes when a file does."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns
