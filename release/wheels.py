"""`make wheels`: a source distribution and a wheel for every platform, from the last commit, the same bytes every time.

python release/wheels.py DIRECTORY
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import ziglang

from platforms import PLATFORMS, Platform

PROJECT = Path(__file__).parents[1]
ZIG = Path(ziglang.__file__).parent / "zig"
SETTINGS = ("CXX", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "SKBUILD_", "CMAKE_")  # variables that would change a build


class ReleaseError(Exception):
    """A release that must not be made."""


def main(arguments: Sequence[str]) -> None:
    """Build everything, or end with one line that says why not."""
    if len(arguments) != 1:
        raise SystemExit(__doc__)
    try:
        for file in build(Path(arguments[0])):
            print(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.stat().st_size:>9,}  {file.name}")
    except ReleaseError as error:
        raise SystemExit(f"make wheels: {error}") from None


def build(directory: Path) -> list[Path]:
    """The files, which replace all of slimrnn's in the directory: first the sources, then a wheel for each platform."""
    if changed := git("status", "--porcelain").decode().strip():
        raise ReleaseError(f"expected a tree without changes, since the last commit is built, got\n{changed}")
    for old in directory.glob("slimrnn-*"):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="slimrnn-") as folder:
        work = Path(folder)
        sources = build_sources(work, directory)
        unpack(sources, work)
        tree = work / sources.name.removesuffix(".tar.gz")
        return [sources, *(build_wheel(platform, tree, work, directory) for platform in PLATFORMS)]


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", "-C", PROJECT, *arguments], check=True, capture_output=True).stdout


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
    set_here = {
        "SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct").decode().strip(),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "ZIG_GLOBAL_CACHE_DIR": os.environ.get("ZIG_GLOBAL_CACHE_DIR", str(PROJECT / "build" / "zig")),
    }
    return {**kept, **set_here, **more}


def unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")


def build_sources(work: Path, directory: Path) -> Path:
    """Of the commit, not of what lies about in the tree. The wheels are built from these: nothing can be missing."""
    (work / "commit.tar").write_bytes(git("archive", "--prefix=commit/", "HEAD"))
    unpack(work / "commit.tar", work)
    run_build("--sdist", work / "commit", directory, work / "sources.log", environment())
    return only(directory.glob("slimrnn-*.tar.gz"))


def build_wheel(platform: Platform, tree: Path, work: Path, directory: Path) -> Path:
    """A wheel with its library in it."""
    own = work / platform.tag
    own.mkdir()
    # Also for what CMake tries: zig compiles its C++ library anew for other options, which takes minutes.
    flags, stripped = f"-O3 -g0 -ffile-prefix-map={work}=.", "-s"
    defines = {
        "SLIMRNN_REQUIRE_NATIVE": "ON",
        "SLIMRNN_ISAS": platform.isas,
        "SLIMRNN_OWN_NEW": "ON" if platform.system == "Darwin" else "OFF",
        "CMAKE_SYSTEM_NAME": platform.system,
        "CMAKE_SYSTEM_PROCESSOR": platform.processor,
        "CMAKE_CXX_COMPILER": str(script(own / "c++", f'exec {ZIG} c++ -target {platform.target} "$@"')),
        "CMAKE_CXX_FLAGS": flags,
        "CMAKE_EXE_LINKER_FLAGS": stripped,
        "CMAKE_SHARED_LINKER_FLAGS": stripped,
        "CMAKE_MODULE_LINKER_FLAGS": stripped,
        "CMAKE_INSTALL_NAME_TOOL": "true",  # of the Mac: a library that is loaded by path needs none
        "CMAKE_OSX_SYSROOT": "",
        "CMAKE_OSX_ARCHITECTURES": "",
    }
    if platform.gcc_kernels:  # faster than clang's; the rest, and old versions of the C library, are zig's
        defines["SLIMRNN_KERNEL_LAUNCHER"] = str(script(own / "with-gcc", 'shift; exec g++ "$@"'))
    settings = {"build-dir": str(own / "build"), "install.strip": "false"}
    settings |= {f"cmake.define.{name}": value for name, value in defines.items()}
    options = [f"-C{name}={value}" for name, value in settings.items()]
    env = environment(_PYTHON_HOST_PLATFORM=platform.tag)
    run_build("--wheel", tree, directory, own / "log", env, *options)
    wheel = only(directory.glob(f"slimrnn-*-py3-none-{platform.tag}.whl"))
    libraries = [name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("slimrnn/libslimrnn")]
    if libraries != [f"slimrnn/{platform.library}"]:
        raise ReleaseError(f"expected {platform.library} in {wheel.name}, got {libraries}")
    return wheel


def script(path: Path, line: str) -> Path:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


def only(found: object) -> Path:
    files = list(found)  # type: ignore[call-overload]
    if len(files) != 1:
        raise ReleaseError(f"expected one file, got {files}")
    return Path(files[0])


def run_build(kind: str, tree: Path, directory: Path, log: Path, env: dict[str, str], *options: str) -> None:
    """Without isolation: the tools are those of release/requirements.txt, and none that came out since."""
    command: list[str | Path] = [sys.executable, "-m", "build", "--no-isolation", kind, "--outdir", directory]
    command += [*options, tree]
    with log.open("wb") as file:
        code = subprocess.run(command, env=env, stdout=file, stderr=subprocess.STDOUT).returncode
    if code:
        kept = Path(shutil.copy(log, PROJECT / "build" / "release-failed.log"))
        raise ReleaseError(f"{' '.join(map(str, command))} failed; see {kept}\n" + log.read_text()[-2000:])


if __name__ == "__main__":
    main(sys.argv[1:])
