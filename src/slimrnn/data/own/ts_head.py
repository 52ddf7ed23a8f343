"""The head of a `.ts` file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slimrnn._texts import shown, whole_number
from slimrnn.errors import DataError

TAGS = (
    *("problemname", "timestamps", "missing", "univariate", "dimension", "dimensions"),
    *("equallength", "serieslength", "classlabel", "targetlabel", "data"),
)


@dataclass(frozen=True)
class TsHead:
    """What the tags say; None where they do not."""

    timed: bool = False
    labelled: bool = False
    classes: tuple[str, ...] = ()
    channels: int | None = None
    equal: bool = False
    length: int | None = None

    @classmethod
    def read(cls, lines: Iterator[tuple[int, str]], path: Path) -> TsHead:
        """Lines up to @data."""
        tags: dict[str, tuple[list[str], str]] = {}
        for number, text in lines:
            place = f"line {number:,} of {path}"
            if not text.startswith("@"):
                raise DataError(f"expected a @tag or @data in {place}, got {shown(text)}")
            name, *words = text[1:].split() or [""]
            if name.lower() not in TAGS:
                raise DataError(f"expected a tag of a .ts file in {place}, got {shown(text)}")
            if name.lower() == "data":
                return cls._of(tags)
            if name.lower() in tags and name.lower() != "problemname":
                raise DataError(f"expected @{name} once, got it again in {place}")
            tags[name.lower()] = words, place
        raise DataError(f"expected @data in {path}, got its end: it is truncated, or no .ts file")

    @classmethod
    def _of(cls, tags: dict[str, tuple[list[str], str]]) -> TsHead:
        classes, place = tags.get("classlabel", ([], ""))
        labelled = _truth(tags, "classlabel") or _truth(tags, "targetlabel")
        if _truth(tags, "classlabel") and len(classes) < 2:
            raise DataError(f"expected the classes after @classLabel true in {place}, got none")
        channels = 1 if _truth(tags, "univariate") else _count(tags, "dimensions") or _count(tags, "dimension")
        equal = _truth(tags, "equallength")
        length = _count(tags, "serieslength") if equal else None
        return cls(_truth(tags, "timestamps"), labelled, tuple(classes[1:]), channels, equal, length)


def _truth(tags: dict[str, tuple[list[str], str]], name: str) -> bool:
    words, place = tags.get(name, (["false"], ""))
    word = words[0].lower() if words else ""
    if word not in ("true", "false"):
        raise DataError(f"expected true or false after @{name} in {place}, got {shown(word)}")
    return word == "true"


def _count(tags: dict[str, tuple[list[str], str]], name: str) -> int | None:
    if name not in tags:
        return None
    words, place = tags[name]
    number = whole_number(words[0]) if words else None
    if not number:
        raise DataError(f"expected a number from 1 on after @{name} in {place}, got {shown(' '.join(words))}")
    return number
