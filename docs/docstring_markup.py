"""Our docstrings are plain text with `code`, lists and indented formulas; sphinx reads reStructuredText."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from functools import cache

# In the order in which names are looked for: a name is documented where it is found first.
PUBLIC_MODULES = (
    "slimrnn",
    "slimrnn.layers",
    "slimrnn.structures",
    "slimrnn.cells",
    "slimrnn.sequence",
    "slimrnn.exporting",
    "slimrnn.compression",
    "slimrnn.serving",
    "slimrnn.training",
    "slimrnn.tasks",
    "slimrnn.estimators",
    "slimrnn.papers",
    "slimrnn.analysis",
    "slimrnn.data",
)
ITEM = re.compile(r'(?P<names>"?\w+"?(, "?\w+"?)*) -- (?P<text>.+)')  # structure -- of the recurrent matrices
INDEX = re.compile(r"(?<=\S)_(?:\{(?P<long>[^{}]+)\}|(?P<short>\w)(?!\w))")  # of W_g and h_{t-1}


def to_rst(lines: Iterable[str]) -> list[str]:
    """The same text in reStructuredText."""
    return list(_paragraphs(lines))


@cache
def documented_names() -> dict[str, str]:
    """Every public name, alone and with the modules that export it, and the name under which it is documented."""
    found: dict[str, str] = {}
    for module in PUBLIC_MODULES:
        for name in importlib.import_module(module).__all__:
            target = found.setdefault(name, f"{module}.{name}")
            found[f"{module}.{name}"] = target
    return found


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    kind = ""
    for line in lines:
        before, kind = kind, _kind(line, kind)
        if before and kind and kind != before:
            yield ""
        if kind == "formula" and before != kind:
            yield from ("::", "")
        if kind in ("formula", "doctest"):
            yield line
        elif item := ITEM.fullmatch(line):
            yield ", ".join(f"``{name}``" for name in item["names"].split(", "))
            yield "    " + _inline(item["text"])
        else:
            yield "    " + _inline(line.strip()) if kind == "items" else _inline(line)


def _kind(line: str, before: str) -> str:
    """What a line belongs to, after a line of the kind `before`; an empty line ends everything."""
    if not line.strip():
        return ""
    if line.startswith(">>> ") or before == "doctest":
        return "doctest"
    if ITEM.fullmatch(line):
        return "items"
    if line.startswith("- "):
        return "list"
    if before in ("list", "items"):
        return before
    return "formula" if line.startswith("    ") else "text"


def _inline(text: str) -> str:
    parts = text.split("`")
    marked = "".join(_code(part) if k % 2 else _prose(part) for k, part in enumerate(parts))
    return re.sub(r"^(\(?\w+[.)] )", r"\\\1", marked)  # "(B) log-probabilities" begins no list


def _prose(text: str) -> str:
    marked, end = "", 0
    for index in INDEX.finditer(text):
        marked += _escape(text[end : index.start()]) + f"\\ :sub:`{_escape(index['long'] or index['short'])}`\\ "
        end = index.end()
    return marked + _escape(text[end:])


def _escape(text: str) -> str:
    return re.sub(r"([\\*|_])", r"\\\1", text)


def _code(text: str) -> str:
    target = documented_names().get(re.sub(r"\(.*\)$", "", text))
    return f":py:obj:`{text} <{target}>`" if target else f"``{text}``"
