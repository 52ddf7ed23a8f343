"""Our layers side by side with torch's: benchmarks/run.py of a checkout."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import slimrnn
from slimrnn.errors import UsageError

USAGE = """usage: slimrnn bench [OPTIONS]

Run benchmarks/run.py of the checkout that slimrnn is used from, or of the working directory.
  --section NAME ...  only these tables
  --only SUBSTRING    only rows with this text
  --threads N ...     threads of torch and ours
  --quick             short sequences and small states
  --json FILE         write all numbers there too"""


def run(arguments: Sequence[str]) -> int:
    """Pass the arguments on to the script."""
    if list(arguments[:1]) in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    checkout = Path(slimrnn.__file__).parents[2]  # where src/slimrnn is used as it lies there
    for directory in (checkout, Path.cwd()):
        script = directory / "benchmarks" / "run.py"
        if script.is_file() and (directory / "src" / "slimrnn").is_dir():
            return subprocess.run([sys.executable, str(script), *arguments], check=False).returncode
    raise UsageError(
        "expected a checkout of the repository around the working directory, got none: "
        "the benchmark scripts are not part of the installed package"
    )
