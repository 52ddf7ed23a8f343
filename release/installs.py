"""Installing: the wheel where there is no compiler; the sources with one, without one, and where one is required."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from platforms import LINUX
from runs import CheckError, Setting, clean_environment, run
from wheels import unpack

TESTS = [
    "tests/ops",
    "tests/layers/test_citizenship.py",
    "tests/test_readme.py::test_first_example_prints_what_it_says",
]
NEEDED = ["pytest", "hypothesis", "pyyaml"]


def fresh_python(setting: Setting, name: str = "fresh", extra: str = "", pinned: Sequence[str] = ()) -> Path:
    """Of an environment with the wheel for this machine, torch, and versions of other packages."""
    folder = setting.work / name
    python = folder / "bin" / "python"
    if not python.exists():
        run([sys.executable, "-m", "venv", folder])
        pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        pip += ["--only-binary", ":all:", f"torch=={setting.torch}", f"{setting.wheel(LINUX)}{extra}"]
        run([*pip, *pinned, *NEEDED], without_compiler(folder))
    return python


def sources_without_package(setting: Setting) -> Path:
    """The source distribution without src, so that what is tested is what was installed."""
    folder = setting.work / "tested"
    if not folder.exists():
        unpack(setting.sources(), folder)
        shutil.rmtree(next(folder.iterdir()) / "src")
    return next(folder.iterdir())


def without_compiler(folder: Path) -> dict[str, str]:
    """Only the programs of the environment."""
    path = str(folder / "bin")
    for name in ("c++", "g++", "clang++", "cc", "gcc", "clang"):
        if shutil.which(name, path=path):
            raise CheckError(f"expected no compiler in {path}, got {name}")
    return clean_environment(path)


def check_fresh_install(setting: Setting) -> Iterator[str]:
    """README's example and the native tests, with the library of the wheel."""
    python = fresh_python(setting)
    env = without_compiler(python.parents[1])
    told = run([python, "-m", "slimrnn", "doctor"], env, setting.work)
    facts = dict(re.findall(r"^(\S.*?)  +(.*)$", told, re.MULTILINE))
    if not facts["backend"].startswith("native") or str(python.parents[1]) not in facts["library"]:
        raise CheckError(f"expected the library of the wheel, got\n{told}")
    yield f"torch {facts['torch']}; {facts['instruction sets']}; {facts['library']}"
    yield f"without a compiler: {tested(setting, python, TESTS, env)}"


def tested(setting: Setting, python: Path, tests: Sequence[str], env: Mapping[str, str]) -> str:
    """-> pytest's last line"""
    told = run([python, "-m", "pytest", "-p", "no:cacheprovider", *tests], env, sources_without_package(setting))
    return f"{' '.join(tests)}: {told.strip().splitlines()[-1]}"


def check_sources(setting: Setting) -> Iterator[str]:
    """pip wheel of the source distribution; of the instruction sets only the generic one, to save time."""
    tools = str(Path(sys.executable).parent)
    generic = {**clean_environment(), "PATH": f"{tools}:/usr/bin:/bin", "SKBUILD_CMAKE_DEFINE": "SLIMRNN_ISAS="}
    none = {**generic, "CXX": "/no/compiler"}
    required = {**none, "SKBUILD_CMAKE_DEFINE": "SLIMRNN_REQUIRE_NATIVE=ON"}
    for what, env, expected in (("with a compiler", generic, 1), ("without one", none, 0)):
        folder = setting.work / what.replace(" ", "-")
        run(pip_wheel(setting, folder), env, setting.work)
        (wheel,) = folder.glob("*.whl")
        found = [name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("slimrnn/libslimrnn")]
        if len(found) != expected:
            raise CheckError(f"{what}: expected {expected} libraries in {wheel.name}, got {found}")
        yield f"pip wheel of {setting.sources().name} {what}: {len(found)} library in the wheel"
    done = subprocess.run(
        pip_wheel(setting, setting.work / "required"), env=required, cwd=setting.work, capture_output=True, text=True
    )
    told = done.stdout + done.stderr
    if not done.returncode or "SLIMRNN_REQUIRE_NATIVE is on, but no C++ compiler was found" not in told:
        raise CheckError(f"expected SLIMRNN_REQUIRE_NATIVE to refuse a build without a compiler, got\n{told[-2000:]}")
    yield "SLIMRNN_REQUIRE_NATIVE=ON without a compiler is refused"


def pip_wheel(setting: Setting, folder: Path) -> list[str | Path]:
    options: list[str | Path] = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
    options += ["--wheel-dir", folder]
    return [sys.executable, "-m", "pip", "wheel", *options, setting.sources()]
