"""What is in the wheels: a library for the right machine, which shows nothing but our own names."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import lief

from platforms import PLATFORMS, Platform
from runs import CheckError, Setting, run
from wheels import PROJECT

MACHINES = {
    ("Linux", "x86_64"): "ELF X86_64",
    ("Linux", "aarch64"): "ELF AARCH64",
    ("Darwin", "arm64"): "MACHO ARM64",
    ("Darwin", "x86_64"): "MACHO X86_64",
    ("Windows", "AMD64"): "PE AMD64",
}
# What zig's linker adds to every library for macOS: two names of the address of its header, which nothing binds to.
LINKERS_OWN = {"__dso_handle", "_mh_dylib_header"}


def check_contents(setting: Setting) -> Iterator[str]:
    """Format, machine, exported names, and for Linux what auditwheel says of the C library that it needs."""
    wanted = sorted(set(re.findall(r"\b(slimrnn_\w+)\(", (PROJECT / "csrc/include/slimrnn.h").read_text())))
    for platform in PLATFORMS:
        machine, names = described(setting.library(platform))
        expected = MACHINES[platform.system, platform.processor]
        if machine != expected:
            raise CheckError(f"{platform.name}: expected {expected}, got {machine}")
        if names != wanted:
            raise CheckError(f"{platform.name}: expected {wanted} to be exported and nothing else, got {names}")
        size = setting.wheel(platform).stat().st_size / 1e6
        yield f"{platform.name}: {machine}, exports the {len(names)} names of slimrnn.h; wheel {size:.1f} MB"
        if platform.system == "Linux":
            yield f"{platform.name}: auditwheel says {audited(setting, platform)}"


def described(library: Path) -> tuple[str, list[str]]:
    """-> format and machine, and the exported names"""
    parsed = lief.parse(str(library))
    if isinstance(parsed, lief.ELF.Binary):
        return f"ELF {parsed.header.machine_type.name}", sorted(str(s.name) for s in parsed.exported_symbols)
    if isinstance(parsed, lief.MachO.Binary):
        names = {str(s.name).removeprefix("_") for s in parsed.exported_symbols} - LINKERS_OWN
        return f"MACHO {parsed.header.cpu_type.name}", sorted(names)
    if isinstance(parsed, lief.PE.Binary):
        return f"PE {parsed.header.machine.name}", sorted(str(e.name) for e in parsed.get_export().entries)
    raise CheckError(f"{library.name} is neither ELF, Mach-O nor PE")


def audited(setting: Setting, platform: Platform) -> str:
    told = run([sys.executable, "-m", "auditwheel", "show", setting.wheel(platform)])
    found = re.search(r'consistent\s+with\s+the\s+following\s+platform\s+tag:\s+"([^"]+)"', told)
    if not found or found[1] != platform.tag:
        raise CheckError(f"{platform.name}: expected auditwheel to agree with {platform.tag}, got\n{told}")
    return found[1]
