"""The native library: found beside the package, loaded once, every call checked."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_uint64, c_void_p
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ABI = 12
STATUS = {
    1: "bad argument",
    2: "out of memory",
    3: "no thread could be started",
    4: "a mistake in the core itself, which you should report",
}

CHANGED = 5  # of slimrnn_step: the memory is not as it was

SUFFIXES = {"win32": ".dll", "darwin": ".dylib"}  # of the library's file; elsewhere .so
LIMITS = ("terms", "phases", "dims", "gates", "states", "products", "registers")  # as slimrnn_limit
MOST_DIMS, MOST_PRODUCTS = 4, 8  # the length of arrays within structs


@dataclass
class Limits:
    """Of one call; told by the library when it is loaded. An object, not a function: torch.compile can look into it."""

    terms: int = 0  # of a phase
    phases: int = 0


limits = Limits()


class TensorStruct(ctypes.Structure):
    """slimrnn_tensor"""

    _fields_ = (("data", c_void_p), ("gradient", c_void_p), ("dims", c_int32), ("shape", c_int64 * MOST_DIMS))


class TermStruct(ctypes.Structure):
    """slimrnn_term"""

    _fields_ = (("structure", c_int32), ("tensor_count", c_int32), ("tensors", POINTER(TensorStruct)))


class ProductSpecStruct(ctypes.Structure):
    """slimrnn_product_spec"""

    _fields_ = tuple((name, c_int32) for name in ("x", "first", "last", "of_gates"))


class PlaceStruct(ctypes.Structure):
    """slimrnn_place"""

    _fields_ = tuple((name, c_int32) for name in ("kind", "index", "part", "parts"))


class InstructionStruct(ctypes.Structure):
    """slimrnn_instruction"""

    _fields_ = tuple((name, c_int32) for name in ("op", "to", "a", "b", "c"))


class ProgramStruct(ctypes.Structure):
    """slimrnn_program"""

    _fields_ = (("code", POINTER(InstructionStruct)), ("count", c_int32))


class CellStruct(ctypes.Structure):
    """slimrnn_cell"""

    held: tuple[Any, ...]  # what its pointers need alive
    _fields_ = (
        *((name, c_int32) for name in ("code", "gates", "matrices", "states", "own_rows", "slots", "kept", "spares")),
        *((name, c_int32) for name in ("row_sums", "product_count", "place_count", "constant_count", "register_count")),
        ("products", ProductSpecStruct * MOST_PRODUCTS),
        ("places", POINTER(PlaceStruct)),
        ("constants", POINTER(c_double)),
        ("forward", ProgramStruct),
        ("backward", ProgramStruct),
    )


class ScanStruct(ctypes.Structure):
    """slimrnn_scan"""

    _fields_ = (
        *((name, c_int32) for name in ("dtype", "is_complex", "reverse", "threads", "term_count", "phases", "masks")),
        *((name, c_int64) for name in ("time", "batch", "width", "input_size", "vocabulary", "first_step")),
        ("seed", c_uint64),
        ("cell", POINTER(CellStruct)),
        ("terms", POINTER(TermStruct)),
        *((name, c_void_p) for name in ("x", "tokens", "u", "u_scale", "bias", "state", "own", "mask", "lengths")),
        *((name, c_void_p) for name in ("resets", "reset_state", "out", "gate_history", "state_history", "last")),
        *((name, c_void_p) for name in ("d_out", "d_last", "d_state", "d_wx", "d_u", "d_bias", "d_own")),
        ("d_reset_state", c_void_p),
    )


class MemoryStruct(ctypes.Structure):
    """slimrnn_memory"""

    _fields_ = (("data", c_void_p), ("bytes", c_void_p), ("count", c_int32), ("checksum", c_uint64))


class PoolOptionsStruct(ctypes.Structure):
    """slimrnn_pool_options"""

    _fields_ = (
        *((name, c_int64) for name in ("capacity", "max_tickets", "max_batch")),
        *((name, c_int32) for name in ("threads", "takes_nan")),
        ("max_delay", c_double),
    )


class PoolStatsStruct(ctypes.Structure):
    """slimrnn_pool_stats"""

    _fields_ = (
        *((name, c_int64) for name in ("input_size", "output_size", "saved_bytes")),
        ("dtype", c_int32),
        *((name, c_int64) for name in ("capacity", "open", "waiting", "frames", "failed", "batches", "largest_batch")),
        ("batch_sizes", c_int64 * 12),
        *((name, c_double) for name in ("seconds", "p50", "p90", "p99", "p999", "longest")),
    )


@cache
def native_library() -> ctypes.CDLL | None:
    """The loaded library, or None where the package was installed without one (see `missing_reason`)."""
    found = _load()
    return None if isinstance(found, str) else found


@cache
def missing_reason() -> str:
    """Why there is no native library."""
    found = _load()
    return found if isinstance(found, str) else ""


def library_path() -> Path | None:
    """The library's file, or None where the package was installed without one."""
    override = os.environ.get("SLIMRNN_LIBRARY")  # another build, such as one with sanitizers
    if override:
        return Path(override)
    name = "libslimrnn" + SUFFIXES.get(sys.platform, ".so")
    places = (Path(folder) / name for folder in sys.modules["slimrnn"].__path__)  # it imports us, so it is there
    return next((file for file in places if file.is_file()), None)


@cache
def _load() -> ctypes.CDLL | str:
    file = library_path()
    if file is None:
        return "the package was installed without a C++ compiler (install g++ or clang++, then reinstall slimrnn)"
    try:
        lib = ctypes.CDLL(str(file))
        if stale := _why_stale(lib):
            return f"{file} {stale}: reinstall slimrnn"
        _declare(lib)
        told = (c_int32 * len(LIMITS))()
        if lib.slimrnn_limits(told, len(LIMITS)) != len(LIMITS):
            return f"{file} tells other limits than {', '.join(LIMITS)}: reinstall slimrnn"
        limits.terms, limits.phases = told[0], told[1]
    except (OSError, AttributeError) as error:
        return f"{file} could not be loaded: {error}"
    wanted = os.environ.get("SLIMRNN_ISA")
    if wanted and lib.slimrnn_use_isa(wanted.encode()):
        available = ", ".join(instruction_sets(lib))
        raise ValueError(f"expected SLIMRNN_ISA to be one of {available}, got {wanted!r}")
    return lib


def _why_stale(lib: ctypes.CDLL) -> str:
    """Asked before anything else, which another version may lack."""
    abi = int(lib.slimrnn_abi())
    if abi != ABI:
        return f"has interface version {abi}, expected {ABI}"
    lib.slimrnn_version.restype = c_char_p
    version, expected = lib.slimrnn_version().decode(), sys.modules["slimrnn"].__version__
    return "" if version == expected else f"was built for slimrnn {version}, expected {expected}"


def _declare(lib: ctypes.CDLL) -> None:
    signatures: dict[str, tuple[list[Any], Any]] = {
        "abi": ([], c_int32),
        "version": ([], c_char_p),
        "compiler": ([], c_char_p),
        "structure": ([c_int32], c_char_p),
        "limits": ([POINTER(c_int32), c_int32], c_int32),
        "cell_code": ([c_int32], c_char_p),
        "isa": ([c_int32], c_char_p),
        "use_isa": ([c_char_p], c_int32),
        "forward": ([POINTER(ScanStruct)], c_int32),
        "backward": ([POINTER(ScanStruct)], c_int32),
        "product": ([POINTER(ScanStruct), c_int32, c_int64, c_int32, c_int32, c_void_p, c_void_p], c_int32),
        "open": ([POINTER(ScanStruct), POINTER(c_void_p)], c_int32),
        "close": ([c_void_p], None),
        "checksum": ([POINTER(c_void_p), POINTER(c_int64), c_int32], c_uint64),
        "step": ([c_void_p, c_void_p, c_int64, c_char_p], c_int32),  # slimrnn_places as bytes, the cheapest struct
    }
    for name, (arguments, result) in (signatures | _of_pools()).items():
        function = getattr(lib, "slimrnn_" + name)
        function.argtypes, function.restype = arguments, result


def _of_pools() -> dict[str, tuple[list[Any], Any]]:
    pool, number, status = c_void_p, c_int64, c_int32
    return {
        "pool_open": ([c_char_p, c_int64, POINTER(PoolOptionsStruct), POINTER(c_void_p)], status),
        "pool_shut_down": ([pool], status),
        "pool_free": ([pool], None),
        "pool_stats_of": ([pool, c_int32, POINTER(PoolStatsStruct)], status),
        "stream_open": ([pool, POINTER(c_int64)], status),
        "stream_close": ([pool, number], status),
        "stream_save": ([pool, number, c_char_p], status),
        "stream_load": ([pool, c_char_p, c_int64, POINTER(c_int64)], status),
        "pool_step": ([pool, c_int64, c_void_p, c_void_p, c_void_p, c_void_p], status),
        "pool_submit": ([pool, number, c_void_p, c_int32, POINTER(c_int64)], status),
        "pool_take": ([pool, number, c_double, c_void_p], status),
        "pool_collect": ([pool, c_int64, c_double, c_void_p, c_void_p, c_void_p, POINTER(c_int64)], status),
    }


def instruction_sets(lib: ctypes.CDLL) -> list[str]:
    """The instruction sets of the build that this machine has, best first."""
    return _names(lib.slimrnn_isa)


@cache
def structures() -> dict[str, int]:
    """The structures that the native core has, and their numbers."""
    lib = native_library()
    return {} if lib is None else {name: number for number, name in enumerate(_names(lib.slimrnn_structure))}


@cache
def cell_codes() -> dict[str, int]:
    """The fingerprints of the cells that the library has C++ for, and their numbers."""
    lib = native_library()
    return {} if lib is None else {name: number for number, name in enumerate(_names(lib.slimrnn_cell_code))}


def _names(function: Callable[[int], bytes | None]) -> list[str]:
    names: list[str] = []
    while (name := function(len(names))) is not None:
        names.append(name.decode())
    return names


def check(status: int) -> None:
    """Raise for a status other than 0."""
    if status == 2:
        raise MemoryError("the native core ran out of memory")
    if status:
        raise RuntimeError(f"the native core failed: {STATUS.get(status, f'status {status}')}")
