"""The head of an `.arff` file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slimrnn._texts import listed, shown
from slimrnn.errors import DataError

NUMERIC = ("numeric", "real", "integer")
LABELS = ("class", "label", "target")  # names of numeric labels

_ATTRIBUTE = re.compile(r"""@attribute\s+(?:'([^']*)'|"([^"]*)"|(\S+))\s+(.+)""", re.IGNORECASE)
_CLASS = re.compile(r"""\s*(?:'([^']*)'|"([^"]*)"|([^,'"]*?))\s*(?:,|$)""")


@dataclass(frozen=True)
class ArffHead:
    """The attributes: "numeric", "relational" or "nominal" each; the steps of the relational one; the label."""

    kinds: tuple[str, ...]
    inner: int | None
    label: str | None
    label_place: int | None
    classes: tuple[str, ...]

    @classmethod
    def read(cls, lines: Iterator[tuple[int, str]], path: Path, label: str | None) -> ArffHead:
        """Lines up to @data. `label` is the name that was given, if one was."""
        names: list[str] = []
        kinds: list[str] = []
        classes: dict[str, tuple[str, ...]] = {}
        inner, inside = None, ""
        for number, text in lines:
            place, word = f"line {number:,} of {path}", text.split()[0].lower()
            if word == "@data" and not inside:
                return cls._of(names, kinds, inner, classes, label, path)
            if word == "@end" and inside:
                inside = ""
            elif word == "@attribute":
                name, kind, values = _attribute(text, place)
                if inside:
                    inner = (inner or 0) + 1
                    if kind != "numeric":
                        raise DataError(f"expected numbers inside {inside} in {place}, got {shown(text)}")
                    continue
                if kind == "relational" and "relational" in kinds:
                    raise DataError(f"expected one relational attribute in {path}, got another in {place}")
                inside = name if kind == "relational" else ""
                names, kinds, classes[name] = [*names, name], [*kinds, kind], values
            elif word != "@relation":
                raise DataError(f"expected @attribute or @data in {place}, got {shown(text)}")
        raise DataError(f"expected @data in {path}, got its end: it is truncated, or no .arff file")

    @classmethod
    def _of(
        cls,
        names: list[str],
        kinds: list[str],
        inner: int | None,
        classes: dict[str, tuple[str, ...]],
        label: str | None,
        path: Path,
    ) -> ArffHead:
        if len(set(names)) < len(names):
            again = next(name for name in names if names.count(name) > 1)
            raise DataError(f"expected different names of attributes in {path}, got {shown(again)} twice")
        if label not in names:
            nominal = [name for name, kind in zip(names, kinds, strict=True) if kind == "nominal"]
            called = [name for name in names if name.lower() in LABELS]
            label = next(reversed(nominal or called), None)
        place = None if label is None else names.index(label)
        others = [(name, kind) for name, kind in zip(names, kinds, strict=True) if name != label]
        wanted = "relational" if "relational" in kinds else "numeric"
        for name, kind in others:
            if kind != wanted:
                raise DataError(f"expected {wanted} attributes and a label in {path}, got {name}, which is {kind}")
        if not others or (wanted == "relational" and inner is None):
            raise DataError(f"expected attributes of numbers in {path}, got {listed(names) or 'none'}")
        return cls(tuple(kinds), inner, label, place, classes.get(label, ()) if label is not None else ())


def _attribute(text: str, place: str) -> tuple[str, str, tuple[str, ...]]:
    """Name, kind and classes."""
    found = _ATTRIBUTE.fullmatch(text)
    if found is None:
        raise DataError(f"expected @attribute with a name and a type in {place}, got {shown(text)}")
    name = next(name for name in found.groups()[:3] if name is not None)
    kind = found[4].strip()
    if kind.lower() in NUMERIC:
        return name, "numeric", ()
    if kind.lower() == "relational":
        return name, "relational", ()
    if kind.startswith("{") and kind.endswith("}"):
        return name, "nominal", tuple(_classes(kind[1:-1].strip(), place))
    raise DataError(f"expected numeric, relational or {{a,b}} as the type of {name} in {place}, got {shown(kind)}")


def _classes(text: str, place: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        found = _CLASS.match(text, start)
        if found is None or found.end() == start:
            raise DataError(f"expected classes between commas in {place}, got {shown(text[start:])}")
        yield next(value for value in found.groups() if value is not None)
        start = found.end()
