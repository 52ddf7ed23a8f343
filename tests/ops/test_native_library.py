"""The C interface refuses bad arguments, and the package does without a library that it cannot use."""

from __future__ import annotations

import _ctypes
import ctypes
import multiprocessing
import pickle
import struct
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import slimrnn
from registry import needs_library, numbers
from slimrnn import ops
from slimrnn.cells import LSTMCell
from slimrnn.layers.fingerprint import Memory
from slimrnn.ops import library, resolve_backend
from slimrnn.ops.library import CHANGED, CellStruct, ScanStruct, TensorStruct, TermStruct, native_library, structures
from slimrnn.ops.programs import NativeCell
from slimrnn.tracing import Around, find

TIME, BATCH, SIZE, INPUT = 3, 2, 6, 2
TERMS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("block_diagonal", [(4, 2, 3, 3)]),
    ("diagonal", [(4, 6)]),
    ("low_rank", [(4, 6, 2), (2, 6)]),
    ("kronecker", [(4, 2, 3), (4, 3, 2)]),
]
BLOCK, DIAGONAL, LOW_RANK, KRONECKER = range(4)


@cache
def leaky_lstm() -> NativeCell:
    found = find(LSTMCell(SIZE, peephole=True), Around(leaky=True))
    assert not isinstance(found, str)
    return found.native


class Arguments:
    """A sound call of a leaky LSTM with peepholes, for a test to spoil."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []  # kept alive
        self.terms = (TermStruct * len(TERMS))(*(self.term(*term) for term in TERMS))
        self.held = leaky_lstm().struct(SIZE)
        self.cell = CellStruct.from_buffer_copy(self.held)
        width = {"state": (2, BATCH, SIZE), "own": (4, SIZE), "x": (TIME, BATCH, INPUT), "u": (4, SIZE, INPUT)}
        outs = {"out": (TIME, BATCH, SIZE), "gate_history": (TIME, BATCH, 4, SIZE), "last": (2, BATCH, SIZE)}
        shapes = {**width, **outs, "bias": (4, SIZE), "state_history": (1, *outs["out"]), "mask": (BATCH, SIZE)}
        shapes |= {f"d_{name}": shapes[name] for name in ("out", "last", "state", "u", "bias", "own")}
        self.scan = ScanStruct(
            dtype=1,
            cell=ctypes.pointer(self.cell),
            threads=1,
            term_count=len(self.terms),
            phases=1,
            masks=1,
            time=TIME,
            batch=BATCH,
            width=SIZE,
            input_size=INPUT,
            terms=self.terms,
            **{name: self.address(numbers(*shape)) for name, shape in shapes.items()},
            d_wx=self.address(numbers(*shapes["gate_history"])),
            lengths=self.address(torch.tensor([3, 1])),
        )

    def address(self, tensor: Tensor) -> int:
        self.tensors.append(tensor)
        return tensor.data_ptr()

    def term(self, structure: str, shapes: list[tuple[int, ...]]) -> TermStruct:
        tensors = (TensorStruct * len(shapes))()
        for tensor, shape in zip(tensors, shapes, strict=True):
            tensor.data, tensor.gradient = self.address(numbers(*shape)), self.address(numbers(*shape))
            tensor.dims, tensor.shape[: len(shape)] = len(shape), shape
        return TermStruct(structure=structures()[structure], tensor_count=len(shapes), tensors=tensors)


Spoil = Callable[[Arguments], Any]


def field(name: str, value: Any) -> Spoil:
    return lambda a: setattr(a.scan, name, value)


def of_cell(name: str, value: Any) -> Spoil:
    return lambda a: setattr(a.cell, name, value)


def of_term(kind: int, name: str, value: Any) -> Spoil:
    return lambda a: setattr(a.terms[kind], name, value)


def of_tensor(kind: int, index: int, name: str, value: Any) -> Spoil:
    return lambda a: setattr(a.terms[kind].tensors[index], name, value)


def shaped(kind: int, index: int, *shape: int) -> Spoil:
    def spoil(a: Arguments) -> None:
        tensor = a.terms[kind].tensors[index]
        tensor.dims, tensor.shape[: len(shape)] = len(shape), shape

    return spoil


BAD: dict[str, Spoil] = {
    **{f"{name}={value}": field(name, value) for name, value in [("dtype", 2), ("dtype", -1), ("time", 0)]},
    **{f"{name}={value}": field(name, value) for name, value in [("batch", -1), ("width", 0), ("width", 5)]},
    **{f"code={value}": of_cell("code", value) for value in (-2, 0, 1000)},  # none, and those of other cells
    **{f"gates={value}": of_cell("gates", value) for value in (0, 3, 33)},
    **{f"matrices={value}": of_cell("matrices", value) for value in (-1, 0, 3, 33)},
    **{f"states={value}": of_cell("states", value) for value in (0, 1, 9)},
    **{f"{name}={value}": of_cell(name, value) for name in ("own_rows", "slots") for value in (-1, 0, 1 << 11)},
    **{f"{name}=-1": of_cell(name, -1) for name in ("kept", "spares", "row_sums", "product_count", "place_count")},
    **{f"{name}={value}": of_cell(name, value) for name in ("constant_count", "register_count") for value in (-1, 65)},
    **{f"no {name} of the cell": of_cell(name, None) for name in ("places", "constants")},
    **{f"{name}={value}": field(name, value) for name, value in [("term_count", 0), ("term_count", -1)]},
    **{f"{name}={value}": field(name, value) for name, value in [("phases", 0), ("phases", 3), ("phases", 2)]},
    **{f"masks={value}": field("masks", value) for value in (-1, 0, 2, 5)},
    **{f"no {name}": field(name, None) for name in ("cell", "terms", "state", "out", "own")},
    **{f"{name} alone": field(name, ctypes.addressof(ctypes.c_int64())) for name in ("resets", "reset_state")},
    "too many terms": lambda a: (
        field("term_count", 400)(a),
        field("terms", (TermStruct * 400)(*a.terms[:1] * 400))(a),
    ),
    "unknown structure": of_term(BLOCK, "structure", 99),
    "negative structure": of_term(BLOCK, "structure", -1),
    "blocks of fewer gates": shaped(BLOCK, 0, 3, 2, 3, 3),
    "blocks of another size": shaped(BLOCK, 0, 4, 2, 2, 2),
    "blocks that are not square": shaped(BLOCK, 0, 4, 2, 3, 2),
    "no blocks": shaped(BLOCK, 0, 4, 0, 3, 3),
    "blocks that do not divide": shaped(BLOCK, 0, 4, 4, 1, 1),
    "a dense matrix of another size": shaped(BLOCK, 0, 4, 6, 5),
    "too few axes": shaped(BLOCK, 0, 4, 6),
    "a diagonal of another size": shaped(DIAGONAL, 0, 4, 5),
    "no rank": shaped(LOW_RANK, 0, 4, 6, 0),
    "factors of different ranks": shaped(LOW_RANK, 1, 3, 6),
    "a right factor of fewer gates": shaped(LOW_RANK, 1, 3, 2, 6),
    "one factor of two": of_term(LOW_RANK, "tensor_count", 1),
    "a tensor too many": of_term(DIAGONAL, "tensor_count", 2),
    "no factors": of_term(KRONECKER, "tensor_count", 0),
    "too many factors": of_term(KRONECKER, "tensor_count", 65),
    "factors of another size": shaped(KRONECKER, 0, 4, 3, 3),
    "factor of no size": shaped(KRONECKER, 0, 4, 0, 3),
    "factors beyond all numbers": shaped(KRONECKER, 0, 4, 2**62, 2**62),
    **{f"no tensors {kind}": of_term(kind, "tensors", None) for kind in range(len(TERMS))},
    **{f"no first data {kind}": of_tensor(kind, 0, "data", None) for kind in range(len(TERMS))},
    **{f"no second data {kind}": of_tensor(kind, 1, "data", None) for kind in (LOW_RANK, KRONECKER)},
}
BAD_FORWARD = {
    **{f"no {name}": field(name, None) for name in ("x", "last")},
    "I": field("input_size", 0),
}
BAD_BACKWARD = {
    **{f"no {name}": field(name, None) for name in ("gate_history", "state_history", "d_last", "d_state")},
    **{f"no {name}": field(name, None) for name in ("d_u", "d_bias", "d_own")},
    **{f"no first gradient {kind}": of_tensor(kind, 0, "gradient", None) for kind in range(len(TERMS))},
    **{f"no second gradient {kind}": of_tensor(kind, 1, "gradient", None) for kind in (LOW_RANK, KRONECKER)},
}
CASES = [
    *[("forward", name, spoil) for name, spoil in {**BAD, **BAD_FORWARD}.items()],
    *[("backward", name, spoil) for name, spoil in {**BAD, **BAD_BACKWARD}.items()],
]

NULLS: dict[str, Callable[[Any], Any]] = {
    "forward": lambda lib: lib.slimrnn_forward(None),
    "backward": lambda lib: lib.slimrnn_backward(None),
    "open without a scan": lambda lib: lib.slimrnn_open(None, ctypes.byref(ctypes.c_void_p())),
    "open without a handle": lambda lib: lib.slimrnn_open(ctypes.byref(Arguments().scan), None),
    "step": lambda lib: lib.slimrnn_step(None, None, 1, None),
    "instruction set": lambda lib: lib.slimrnn_use_isa(b""),
}


def status_of(function: str, spoil: Spoil) -> int:
    arguments, lib = Arguments(), native_library()
    spoil(arguments)
    status: int = getattr(lib, f"slimrnn_{function}")(ctypes.byref(arguments.scan))
    return status


def send_all(to: Connection, calls: list[Callable[[], int]]) -> None:
    for call in calls:
        to.send(call())


def in_children(calls: dict[str, Callable[[], int]]) -> dict[str, int | str]:
    """What the calls return, or how a child process died of one: this process must live on."""
    context, found = multiprocessing.get_context("fork"), dict[str, int | str]()
    while left := [name for name in calls if name not in found]:
        receive, send = context.Pipe(duplex=False)
        process = context.Process(target=send_all, args=(send, [calls[name] for name in left]))
        process.start()
        send.close()
        for name in left:
            try:
                found[name] = receive.recv()
            except EOFError:
                process.join()
                found[name] = f"died, {process.exitcode}"
                break
        process.join()
    return found


@cache
def statuses() -> dict[str, int | str]:
    calls = {f"{function}-{name}": partial(status_of, function, spoil) for function, name, spoil in CASES}
    return in_children(calls | {name: partial(call, native_library()) for name, call in NULLS.items()})


@needs_library
@pytest.mark.parametrize("function", ["forward", "backward"])
def test_sound_arguments_are_taken(function: str) -> None:
    assert status_of(function, lambda _: None) == 0
    assert status_of(function, field("batch", 0)) == 0
    assert status_of(function, field("threads", -5)) == 0


@needs_library
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("name", [*(f"{function}-{name}" for function, name, _ in CASES), *NULLS])
def test_bad_arguments_are_refused(name: str) -> None:
    assert statuses()[name] == 1


@needs_library
def test_there_are_no_more_instruction_sets_than_named() -> None:
    lib = native_library()
    assert lib is not None
    assert lib.slimrnn_isa(-1) is lib.slimrnn_isa(1000) is None


@needs_library
def test_single_steps_refuse_what_is_missing() -> None:
    lib, arguments, handle = native_library(), Arguments(), ctypes.c_void_p()
    assert lib is not None
    assert lib.slimrnn_open(ctypes.byref(arguments.scan), ctypes.byref(handle)) == 0
    places = [arguments.address(numbers(BATCH, size)) for size in (INPUT, *[SIZE] * 5)]

    def pack(x: int, *others: int) -> bytes:
        return struct.pack("=Q2q5Q", x, INPUT, 1, *others)

    assert lib.slimrnn_step(handle, None, BATCH, pack(*places)) == 0
    assert lib.slimrnn_step(handle, None, 0, pack(*places)) == 0
    assert lib.slimrnn_step(handle, None, -1, pack(*places)) == 1
    assert lib.slimrnn_step(handle, None, BATCH, None) == 1
    for k in range(len(places)):
        assert lib.slimrnn_step(handle, None, BATCH, pack(*places[:k], 0, *places[k + 1 :])) == 1
    lib.slimrnn_close(handle)
    lib.slimrnn_close(None)


@needs_library
def test_single_steps_refuse_changed_memory() -> None:
    lib, arguments, handle = native_library(), Arguments(), ctypes.c_void_p()
    assert lib is not None
    assert lib.slimrnn_open(ctypes.byref(arguments.scan), ctypes.byref(handle)) == 0
    watched, out = numbers(SIZE), numbers(BATCH, SIZE)
    addresses = [arguments.address(numbers(BATCH, size)) for size in (INPUT, *[SIZE] * 4)]
    places = struct.pack("=Q2q5Q", addresses[0], INPUT, 1, arguments.address(out), *addresses[1:])
    memory = Memory([(watched.data_ptr(), watched.nbytes)])
    assert lib.slimrnn_step(handle, memory.address, BATCH, places) == 0
    before = out.clone()
    watched[-1] += 1
    out.zero_()
    assert lib.slimrnn_step(handle, memory.address, BATCH, places) == CHANGED
    assert not out.any()
    assert lib.slimrnn_step(handle, None, BATCH, places) == 0
    assert torch.equal(out, before)
    lib.slimrnn_close(handle)


def test_statuses_are_explained() -> None:
    library.check(0)
    with pytest.raises(RuntimeError, match="the native core failed: bad argument"):
        library.check(1)
    with pytest.raises(MemoryError, match="out of memory"):
        library.check(2)
    with pytest.raises(RuntimeError, match="status 77"):
        library.check(77)


# --- a library that cannot be used ----------------------------------------------------------------------------------


@pytest.fixture
def reload(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Forgets the loaded library, and at the end what the test has loaded instead."""

    def forget() -> None:
        answers: list[Any] = [library.native_library, library.missing_reason, library._load, ops._tell_once]
        for cached in [*answers, library.structures, library.cell_codes]:
            cached.cache_clear()

    yield forget
    monkeypatch.undo()
    forget()


def check_unusable(reason: str) -> None:
    """ "auto" does without, "native" explains."""
    assert native_library() is None
    with pytest.warns(RuntimeWarning, match=f"slimrnn runs in plain torch, many times slower: .*{reason}"):
        assert resolve_backend("auto") == "reference"
    assert resolve_backend("auto") == "reference"  # told once
    layer = slimrnn.GRU(2, 3)
    assert layer.backend == layer.layer(0).backend == "reference"
    assert layer(torch.zeros(2, 1, 2))[0].shape == (2, 1, 3)
    for build in (lambda: resolve_backend("native"), lambda: slimrnn.GRU(2, 3, backend="native")):
        with pytest.raises(RuntimeError, match=f"expected a native library for backend='native', got none: .*{reason}"):
            build()


@needs_library
def test_another_interface_version_is_refused(reload: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    built, wanted = library.ABI, library.ABI + 98
    monkeypatch.setattr(library, "ABI", wanted)
    reload()
    check_unusable(f"interface version {built}, expected {wanted}")


@needs_library
def test_library_of_another_version_is_refused(reload: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    built = slimrnn.__version__
    monkeypatch.setattr(slimrnn, "__version__", "99.0")
    reload()
    check_unusable(f"was built for slimrnn {built}, expected 99.0: reinstall slimrnn")


@pytest.mark.parametrize(("platform", "suffix"), [("linux", "so"), ("darwin", "dylib"), ("win32", "dll")])
def test_library_has_the_name_of_its_platform(
    platform: str, suffix: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for other in ("so", "dylib", "dll"):
        (tmp_path / f"libslimrnn.{other}").touch()
    monkeypatch.delenv("SLIMRNN_LIBRARY", raising=False)
    monkeypatch.setattr(slimrnn, "__path__", [str(tmp_path)])
    monkeypatch.setattr(sys, "platform", platform)
    found = library.library_path()
    monkeypatch.undo()
    assert found == tmp_path / f"libslimrnn.{suffix}"


def test_missing_library(reload: Callable[[], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pickled = pickle.dumps(slimrnn.GRU(2, 3))
    monkeypatch.delenv("SLIMRNN_LIBRARY", raising=False)
    monkeypatch.setattr(slimrnn, "__path__", [str(tmp_path)])
    reload()
    check_unusable("without a C.. compiler")
    assert pickle.loads(pickled).layer(0).backend == "reference"


def test_broken_library(reload: Callable[[], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "libslimrnn.so").write_bytes(b"no library")
    monkeypatch.delenv("SLIMRNN_LIBRARY", raising=False)
    monkeypatch.setattr(slimrnn, "__path__", [str(tmp_path)])
    reload()
    check_unusable("libslimrnn.so could not be loaded")


@pytest.mark.parametrize("name", ["nowhere.so", _ctypes.__file__], ids=["missing", "foreign"])
def test_library_of_the_environment(name: str, reload: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIMRNN_LIBRARY", name)
    reload()
    check_unusable(Path(name).name)


def test_backends_are_named() -> None:
    with pytest.raises(ValueError, match="expected backend to be one of"):
        resolve_backend("fast")
    assert resolve_backend("reference") == "reference"
    assert "backend='reference'" in repr(slimrnn.GRU(2, 3, backend="reference"))
