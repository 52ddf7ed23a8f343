"""The platforms that wheels are built for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Platform:
    """One of them, in the words of zig, CMake and pip."""

    target: str
    system: str
    processor: str
    tag: str
    library: str
    isas: str = ""  # beside the generic kernels
    gcc_kernels: bool = False  # compiled by g++, which must then be a compiler for this platform

    @property
    def name(self) -> str:
        return f"{self.system} {self.processor}"


LINUX = Platform(
    "x86_64-linux-gnu.2.17",
    "Linux",
    "x86_64",
    "manylinux_2_17_x86_64",
    "libslimrnn.so",
    "avx2;avx512",
    gcc_kernels=True,
)
LINUX_ARM = Platform("aarch64-linux-gnu.2.17", "Linux", "aarch64", "manylinux_2_17_aarch64", "libslimrnn.so")
MAC_ARM = Platform("aarch64-macos.11.0", "Darwin", "arm64", "macosx_11_0_arm64", "libslimrnn.dylib")
MAC = Platform("x86_64-macos.10.13", "Darwin", "x86_64", "macosx_10_13_x86_64", "libslimrnn.dylib", "avx2")
WINDOWS = Platform("x86_64-windows-gnu", "Windows", "AMD64", "win_amd64", "libslimrnn.dll", "avx2")
PLATFORMS = (LINUX, LINUX_ARM, MAC_ARM, MAC, WINDOWS)
