"""Proof: what came out when an exported artefact was run beside the model that it was made from."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from typing_extensions import Self

from slimrnn._disk import disk_errors, whole_file
from slimrnn.errors import ExportError

FORMAT = "slimrnn proof 1"


@dataclass(frozen=True)
class Case:
    """One call, or a sequence in steps. Differences are those of the outputs, the relative one with regard to the
    largest number of each output."""

    inputs: str  # shapes, by name
    way: str  # "whole" or "in steps"
    given: bool  # a user's own sequences, not random ones
    largest: float
    mean: float
    relative: float
    seconds: float  # in its own runtime
    our_seconds: float


@dataclass(frozen=True)
class Proof:
    """An artefact, and how far it is from the model."""

    to: str
    artefact: str  # the name of its file
    sha256: str
    bytes: int
    runtime: str  # with its version
    versions: dict[str, str]
    step: bool
    tolerance: float  # of the largest relative difference
    largest: float
    mean: float
    relative: float
    cases: tuple[Case, ...]

    def write(self, path: Path) -> None:
        """As JSON."""
        with disk_errors(ExportError, "write", path), whole_file(path) as file:
            file.write((json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n").encode())

    def __str__(self) -> str:
        lines = [f"{self.artefact}: {self.bytes:,} bytes, run in {self.runtime}"]
        for case in self.cases:
            kind = "your sequences" if case.given else "random"
            times = f"{1e3 * case.seconds:.2f} ms (slimrnn {1e3 * case.our_seconds:.2f} ms)"
            lines.append(f"  {case.inputs}, {case.way}, {kind}: relative difference {case.relative:.1e}, {times}")
        lines.append(
            f"largest difference {self.largest:.1e}, mean {self.mean:.1e}, "
            f"relative {self.relative:.1e} (at most {self.tolerance:.0e})"
        )
        return "\n".join(lines)

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """ExportError for a file that is no proof."""
        try:
            found: Any = json.loads(Path(path).read_bytes())
            if found.pop("format") != FORMAT:
                raise ValueError("another format")
            cases = tuple(_typed(Case, case) for case in found.pop("cases"))
            proof: Self = _typed(cls, {**found, "cases": cases})
            return proof
        except OSError as error:
            raise ExportError(f"expected a proof in {path}, which cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ExportError(f"expected a proof ({FORMAT}) in {path}, got something else or a damaged file") from error


_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "dict[str, str]": (dict,),
    "tuple[Case, ...]": (tuple,),
}


def _typed(kind: Any, values: dict[str, Any]) -> Any:
    """With every field of its type; ValueError or TypeError where one is not."""
    for field in fields(kind):
        if not isinstance(values[field.name], _TYPES[str(field.type)]):
            raise ValueError(f"{field.name} is a {type(values[field.name]).__name__}")
    return kind(**values)
