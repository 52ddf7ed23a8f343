"""The libraries of the wheels, run without Python: recorded calls, repeated by release/driver.c on other platforms."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import wheels
from installs import fresh_python
from platforms import LINUX, LINUX_ARM, WINDOWS, Platform
from runs import Setting, clean_environment, run
from wheels import PROJECT, ZIG

RUNNERS: dict[Platform, Sequence[str]] = {
    LINUX: [],
    LINUX_ARM: ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"],
    WINDOWS: ["wine"],
}


def check_drivers(setting: Setting) -> Iterator[str]:
    """Every instruction set that this machine has, against what Python got from the library on Linux x86-64."""
    python, calls = fresh_python(setting), setting.work / "calls"
    told = run([python, PROJECT / "release/calls.py", "record", calls], clean_environment(), setting.work)
    yield f"recorded on {LINUX.name}: {told.strip()}"
    for platform, runner in RUNNERS.items():
        driver, where = compiled(setting, platform), f"{platform.name} {'under ' + runner[0] if runner else ''}".strip()
        for isa in instruction_sets(setting, platform, runner, driver):
            results = setting.work / f"results-{platform.tag}-{isa}"
            given: list[str | Path] = [driver, setting.library(platform), calls / "calls.bin", results, isa]
            told = last_line(run([*runner, *given], environment(setting)))
            differences = run([python, PROJECT / "release/calls.py", "compare", calls, results], clean_environment())
            yield f"{where}: {told}; off by {differences.strip()}"
    # The one of our own home, which outlives the programs; by now it may have ended by itself, which is an error to it.
    subprocess.run(["wineserver", "-k"], env=environment(setting), check=False)


def compiled(setting: Setting, platform: Platform) -> Path:
    """The driver."""
    out = setting.work / f"driver-{platform.tag}{'.exe' if platform is WINDOWS else ''}"
    source = PROJECT / "release/driver.c"
    options: list[str | Path] = ["-O3", "-g0", "-s", "-std=gnu11", "-Wall", "-I", PROJECT / "csrc/include"]
    libraries = [] if platform is WINDOWS else ["-ldl"]
    run([ZIG, "cc", "-target", platform.target, *options, source, *libraries, "-o", out], wheels.environment())
    return out


def instruction_sets(setting: Setting, platform: Platform, runner: Sequence[str], driver: Path) -> list[str]:
    """Of the library that can be run here, as it says itself after no calls at all."""
    none = setting.work / "no-calls"
    none.write_bytes(bytes(8))
    told = run([*runner, driver, setting.library(platform), none, setting.work / "no-results"], environment(setting))
    return last_line(told).rpartition(" of ")[2].split()


def last_line(text: str) -> str:
    return text.strip().splitlines()[-1]


def environment(setting: Setting) -> dict[str, str]:
    """For wine: a home of its own, and no words about itself."""
    prefix = str(setting.work / "wine")
    return {**clean_environment(), "WINEPREFIX": prefix, "WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml="}
