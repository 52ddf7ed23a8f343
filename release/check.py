"""`make release-check`: what is too slow for every change, on the files that `make wheels` has made.

    python release/check.py DIRECTORY [--only WORD ...] [--torch VERSION]

Needs make, cmake, g++, Debian's packages qemu-user, libc6-arm64-cross, wine64, gcc-arm-none-eabi and qemu-system-arm,
and about a gigabyte. Every check says what it saw; one that cannot be made has failed.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from contents import check_contents
from drivers import check_drivers
from exported import check_exports, check_lowest_versions
from installs import check_fresh_install, check_sources
from microcontrollers import check_microcontrollers
from pools import check_pools
from runs import CheckError, Setting
from wheels import PROJECT, build


def check_reproducibility(setting: Setting) -> Iterator[str]:
    """The same bytes from another directory."""
    again = build(setting.work / "again")
    for file in again:
        if file.read_bytes() != (setting.files / file.name).read_bytes():
            raise CheckError(f"{file.name} has other bytes when it is built again")
    yield f"{len(again)} files have the same bytes when they are built again in another directory"


CHECKS: dict[str, Callable[[Setting], Iterator[str]]] = {
    "contents": check_contents,
    "install": check_fresh_install,
    "exports": check_exports,
    "lowest": check_lowest_versions,
    "drivers": check_drivers,
    "sources": check_sources,
    "mcu": check_microcontrollers,
    "stress": check_pools,
    "same-bytes": check_reproducibility,
}


def main() -> None:
    """Every check, also after one has failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--only", nargs="+", choices=CHECKS, default=list(CHECKS))
    parser.add_argument("--torch", default=pinned("torch"), help="the version to install beside the wheel")
    given = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory(prefix="slimrnn-check-") as folder:
        setting = Setting(given.directory.resolve(), Path(folder), given.torch)
        for name in given.only:
            start = time.monotonic()
            try:
                for line in CHECKS[name](setting):
                    print(f"ok      {name}: {line}", flush=True)
            except CheckError as error:
                failed.append(name)
                print(f"FAILED  {name}: {error}", flush=True)
            print(f"        {name}: {time.monotonic() - start:.0f} s", flush=True)
    print(f"{len(given.only) - len(failed)} passed, {len(failed)} failed")
    sys.exit(bool(failed))


def pinned(package: str) -> str:
    """The version in requirements.txt."""
    found = re.search(rf"^{package}==(\S+)$", (PROJECT / "requirements.txt").read_text(), re.MULTILINE)
    assert found
    return found[1]


if __name__ == "__main__":
    main()
