"""What all checks share: where things are, and commands whose output is told when they fail."""

from __future__ import annotations

import os
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from platforms import Platform


class CheckError(Exception):
    """A check that has failed."""


@dataclass(frozen=True)
class Setting:
    """The files of the release, a directory to work in, and the version of torch to install."""

    files: Path
    work: Path
    torch: str

    def wheel(self, platform: Platform) -> Path:
        return self.only(f"slimrnn-*-py3-none-{platform.tag}.whl")

    def sources(self) -> Path:
        return self.only("slimrnn-*.tar.gz")

    def only(self, pattern: str) -> Path:
        found = list(self.files.glob(pattern))
        if len(found) != 1:
            raise CheckError(f"expected one file {pattern} in {self.files}, got {len(found)}: run make wheels")
        return found[0]

    def library(self, platform: Platform) -> Path:
        """As it is in the wheel."""
        folder = self.work / "libraries" / platform.tag
        with zipfile.ZipFile(self.wheel(platform)) as wheel:
            return Path(wheel.extract(f"slimrnn/{platform.library}", folder))


def run(command: Sequence[str | Path], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """-> what it printed"""
    try:
        done = subprocess.run(command, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except FileNotFoundError as error:
        raise CheckError(f"{error.filename} is not installed") from None
    if done.returncode:
        raise CheckError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout


def clean_environment(path: str | None = None) -> dict[str, str]:
    """Without what would lead Python, pip, make or the package elsewhere; only with programs that are in `path`."""
    foreign = ("SLIMRNN_", "PYTHON", "SKBUILD", "CMAKE", "CXX", "VIRTUAL_ENV", "MAKE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return kept if path is None else {**kept, "PATH": path}
