"""Proof: what came out when an exported artefact was run beside the model that it was made from."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import asdict, dataclass, field, fields
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
    others: dict[str, str]  # further files that belong to it, with their sha256
    bytes: int  # of all files
    runtime: str  # with its version
    versions: dict[str, str]
    step: bool
    tolerance: float  # of the largest relative difference
    largest: float
    mean: float
    relative: float
    cases: tuple[Case, ...]
    measured: dict[str, float] = field(default_factory=dict)  # such as what int8 changed, or bytes of weights

    def write(self, path: Path) -> None:
        """As JSON."""
        with disk_errors(ExportError, "write", path), whole_file(path) as file:
            file.write((json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n").encode())

    def __str__(self) -> str:
        names = ", ".join([self.artefact, *self.others])
        lines = [f"{names}: {self.bytes:,} bytes, run in {self.runtime}"]
        for case in self.cases:
            kind = "your sequences" if case.given else "random"
            times = f"{1e3 * case.seconds:.2f} ms (slimrnn {1e3 * case.our_seconds:.2f} ms)"
            lines.append(f"  {case.inputs}, {case.way}, {kind}: relative difference {case.relative:.1e}, {times}")
        lines.append(
            f"largest difference {self.largest:.1e}, mean {self.mean:.1e}, "
            f"relative {self.relative:.1e} (at most {self.tolerance:.0e})"
        )
        lines += [f"{name}: {value:.6g}" for name, value in self.measured.items()]
        return "\n".join(lines)

    def check(self, artefact: Path | str) -> None:
        """ExportError for files that are not those that were proven: damaged ones, or another export."""
        path = Path(artefact)
        wanted = {path: self.sha256} | {path.with_name(name): checksum for name, checksum in self.others.items()}
        for file, checksum in wanted.items():
            with disk_errors(ExportError, "read", file):
                found = sha256_of(content_of(file))
            if found != checksum:
                raise ExportError(
                    f"expected {self.artefact} as it was proven, got another file in {file}: export again"
                )

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """ExportError for a file that is no proof, or whose numbers contradict each other."""
        try:
            found: Any = json.loads(Path(path).read_bytes())
            if found.pop("format") != FORMAT:
                raise ValueError("another format")
            cases = tuple(_typed(Case, case) for case in found.pop("cases"))
            proof: Self = _typed(cls, {**found, "cases": cases})
            proof._check_numbers()
            return proof
        except OSError as error:
            raise ExportError(f"expected a proof in {path}, which cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ExportError(f"expected a proof ({FORMAT}) in {path}, got something else or a damaged file") from error

    def _check_numbers(self) -> None:
        """ValueError where they cannot be those of an export that was kept."""
        for name in ("largest", "relative"):
            if getattr(self, name) != max(getattr(case, name) for case in self.cases):
                raise ValueError(f"{name} is not that of any case")
        differences = [one for case in self.cases for one in (case.largest, case.mean, case.relative)]
        if not all(0 <= one < math.inf for one in (*differences, self.tolerance)) or not 0 <= self.mean <= self.largest:
            raise ValueError("no differences")
        checksums = [self.sha256, *self.others.values()]
        named = all(name == Path(name).name for name in (self.artefact, *self.others))
        if not (self.relative <= self.tolerance and self.bytes > 0 and named):
            raise ValueError("no proof of any file")
        if not all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum in checksums):
            raise ValueError("no checksums")


def content_of(path: Path) -> bytes:
    """Of a file, or of all files of a directory."""
    return b"".join(file.read_bytes() for file in (sorted(path.iterdir()) if path.is_dir() else [path]))


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "dict[str, str]": (dict,),
    "dict[str, float]": (dict,),
    "tuple[Case, ...]": (tuple,),
}


def _typed(kind: Any, values: dict[str, Any]) -> Any:
    """With every field of its type; ValueError or TypeError where one is not."""
    for one in fields(kind):
        value = values[one.name]
        if not isinstance(value, _TYPES[str(one.type)]) or (isinstance(value, bool) and one.type != "bool"):
            raise ValueError(f"{one.name} is a {type(value).__name__}")
    return kind(**values)
