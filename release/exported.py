"""Exports from an installed wheel: every export format of docs/deployment.md, and the lowest versions of the extra."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator

from packaging.requirements import Requirement

from installs import fresh_python, tested
from platforms import LINUX
from runs import CheckError, Setting, clean_environment, run
from wheels import PROJECT

TESTS = ["tests/exporting"]
RUNTIMES = ("onnx", "onnxruntime", "onnxscript")


def check_exports(setting: Setting) -> Iterator[str]:
    """With the newest versions, in an empty directory; with a compiler, which AOTInductor needs."""
    python = fresh_python(setting, "exports", "[export]")
    folder = setting.work / "ways-out"
    folder.mkdir(exist_ok=True)
    told = run([python, PROJECT / "release/export_formats.py"], clean_environment(), folder)
    place, *seen = re.findall(r"^tried: (.*)$", told, re.MULTILINE)  # between warnings of torch
    if str(python.parents[1]) not in place:
        raise CheckError(f"expected the package of the wheel, got {place}")
    yield versions(setting, "exports")
    yield from seen
    yield tested(setting, python, TESTS, clean_environment())


def check_lowest_versions(setting: Setting) -> Iterator[str]:
    """Of the packages of the extra, as the wheel allows them for this version of Python."""
    with zipfile.ZipFile(setting.wheel(LINUX)) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        lines = re.findall(r"^Requires-Dist: (.*)$", wheel.read(name).decode(), re.MULTILINE)
    wanted = [one for one in map(Requirement, lines) if one.name in RUNTIMES]
    here = [one for one in wanted if one.marker is None or one.marker.evaluate({"extra": "export"})]
    lowest = [f"{one.name}=={bound.version}" for one in here for bound in one.specifier if bound.operator == ">="]
    if len(lowest) != len(RUNTIMES):
        raise CheckError(f"expected a lowest version of each of {', '.join(RUNTIMES)}, got {lowest}")
    python = fresh_python(setting, "lowest", "[export]", lowest)
    yield versions(setting, "lowest")
    yield tested(setting, python, TESTS, clean_environment())


def versions(setting: Setting, name: str) -> str:
    """Of what the exports run in."""
    told = run([setting.work / name / "bin/python", "-m", "pip", "list", "--disable-pip-version-check"])
    return ", ".join(" ".join(line.split()) for line in told.splitlines() if line.split()[0] in ("torch", *RUNTIMES))
