"""YAML that may be anything: what is not plain values of a sensible size is refused in one line, with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from slimrnn._texts import shown
from slimrnn.errors import UsageError

LARGEST = 2**20  # bytes of a file of settings
MERGED = 10_000  # pairs that `<<` may bring in all: merges of merges grow without end
_UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)  # by PyYAML's constructors


class _Loader(yaml.SafeLoader):
    def __init__(self, stream: bytes) -> None:
        super().__init__(stream)
        self.merged = 0

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The same, but values that are not what their form or tag says have their place in the message."""
        try:
            return super().construct_object(node, deep)
        except _UNREADABLE:
            kind = node.tag.rpartition(":")[2]
            problem = f"expected a value of type {shown(kind)}, got {shown(node.value)}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        self.merged += len(node.value)
        if self.merged > MERGED:
            problem = f"expected at most {MERGED:,} pairs of names and values, got more by merging"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def read_yaml(file: Path) -> Any:
    """The values of the only document of a file."""
    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"expected a file of settings, got {file}: {getattr(error, 'strerror', None) or error}"
        ) from None
    if len(content) > LARGEST:
        raise UsageError(f"expected a file of settings of at most {LARGEST:,} bytes, got {file}, which has more")
    try:
        loader = _Loader(content)
        return loader.get_single_data()
    except yaml.reader.ReaderError as error:
        raise UsageError(
            f"expected a file of settings, got {file}: not a text from byte {error.position:,} on"
        ) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise UsageError(f"expected YAML, got {file}{place}: {error.problem}") from None
    except RecursionError:
        raise UsageError(f"expected YAML, got {file}, whose values are nested too deeply") from None
