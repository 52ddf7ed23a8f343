"""Whether a module still is what it was: its weights by their contents, its attributes and children one by one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from operator import getitem, is_, itemgetter
from typing import Any

from torch import Tensor, nn

from slimrnn._watched import Watched, latest
from slimrnn.ops.library import MemoryStruct, native_library

WHOLE = 1 << 20  # bytes that are read at every step: what the second-level cache holds beside the packed weights
LINE, EVERY, SLICE = 64, 1 << 12, 1 << 17  # of more: a line of every 4 KiB, and a slice in turn
BOOKKEEPING = frozenset({*nn.Module().__dict__, "_stream"})  # torch's own entries, and where a stack keeps its stream
NO_OWN_MODE = (nn.ModuleList, nn.ModuleDict)  # whether these are in training changes nothing


class Fingerprint:
    """What a module was made of at one moment. Compared before every streaming step, so written for speed.

    Torch's version counters do not see `parameter.data.add_(...)`, writes through numpy or a fused optimizer; a
    checksum of the memory does. Reading more than a MiB would take longer than the step, so it then reads a sample and,
    in turn, a slice: a few single numbers changed behind torch's back are seen only some steps later. What stays
    unseen: lists and other objects in attributes that are changed in place, and attributes of our own modules that are
    written past `setattr`, into `__dict__`."""

    def __init__(self, module: nn.Module) -> None:
        self.module, self.training = module, module.training
        self.change = latest.change  # before looking: a change in between is then seen
        self.attributes, self.foreign = Attributes(), Attributes()
        held: list[tuple[dict[str, Any], str, object]] = []
        for m in module.modules():
            own = {name: value for name, value in m.__dict__.items() if name not in BOOKKEEPING}
            if not isinstance(m, NO_OWN_MODE):
                own["training"] = m.training
            self.attributes.add(m.__dict__, own)
            if not isinstance(m, Watched):
                self.foreign.add(m.__dict__, own)
            tables: list[dict[str, Any]] = [m._parameters, m._buffers, m._modules]
            held += [(table, name, value) for table in tables for name, value in table.items()]
            held += [(m.__dict__, name, value) for name, value in own.items() if isinstance(value, Tensor)]
        self.hooks = [m._forward_pre_hooks for m in module.modules()]  # they may compute tensors: see _hooks
        self.hooked = [*map(len, self.hooks)]
        self.held: Any = list(zip(*held, strict=True)) or [(), (), ()]  # tables, names, values
        tensors = list({id(t): t for _, _, t in held if isinstance(t, Tensor)}.values())
        self.looks: list[Callable[[], Any]] = [look for t in tensors for look in (t.data_ptr, t.stride)]
        self.layouts = [look() for look in self.looks]
        self.versions = [(t, t._version) for t in tensors if not t.is_inference()]
        self.kept = [t.detach() for t in tensors]  # so that no other tensor gets memory that was theirs
        spans = [(t.data_ptr(), _span(t) * t.element_size()) for t in tensors if t.device.type == "cpu"]
        self.is_large = sum(size for _, size in spans) > WHOLE
        self.memory = Memory(list(_lines(spans)) if self.is_large else spans)
        self.slices = cycle([Memory([one]) for one in _slices(spans)] if self.is_large else [])

    def has_same_parts(self) -> bool:
        """Whether attributes, children and tensors are the same ones, and the tensors are where they were.

        Then `memory` is that of the tensors, and tells whether they hold what they held."""
        if self.module.training is not self.training or (self.change is not latest.change and not self._look_again()):
            return False
        tables, names, values = self.held
        try:
            if not all(map(is_, map(getitem, tables, names), values)):
                return False
        except KeyError:  # one is gone
            return False
        if [look() for look in self.looks] != self.layouts or [*map(len, self.hooks)] != self.hooked:
            return False
        return (not self.foreign.modules or self.foreign.are_same()) and (not self.is_large or self._has_same_slice())

    def _look_again(self) -> bool:
        """After a change of some attribute of some module: whether it was none of these."""
        change = latest.change
        if not self.attributes.are_same():
            return False
        self.change = change
        return True

    def _has_same_slice(self) -> bool:
        """What `memory` does not see of a large module: versions, and the slice whose turn it is."""
        return all(t._version == version for t, version in self.versions) and next(self.slices).is_unchanged()


class Attributes:
    """Of some modules: all but tensors and torch's own, as they were."""

    def __init__(self) -> None:
        self.modules: list[tuple[dict[str, Any], Callable[[dict[str, Any]], Any], Any, int]] = []

    def add(self, entries: dict[str, Any], own: dict[str, Any]) -> None:
        plain = [name for name, value in own.items() if not isinstance(value, Tensor)]
        if plain:
            find = itemgetter(*plain)
            self.modules.append((entries, find, find(own), len(entries)))

    def are_same(self) -> bool:
        try:
            for entries, find, values, count in self.modules:
                if len(entries) != count or find(entries) != values:
                    return False
        except (KeyError, ValueError, RuntimeError):  # one is gone, or cannot be compared with what it was
            return False
        return True


class Memory:
    """Pieces of memory, each an address and a number of bytes, and what they held."""

    def __init__(self, pieces: Sequence[tuple[int, int]]) -> None:
        library = native_library()
        self.checksum = None if library is None else library.slimrnn_checksum
        self.count = len(pieces)
        self.data = (ctypes.c_void_p * self.count)(*(address for address, _ in pieces))
        self.bytes = (ctypes.c_int64 * self.count)(*(size for _, size in pieces))
        self.contents = self._read()
        data, sizes = ctypes.addressof(self.data), ctypes.addressof(self.bytes)
        self.struct = MemoryStruct(data, sizes, self.count, self.contents)
        self.address = ctypes.addressof(self.struct)

    def _read(self) -> int:
        return 0 if self.checksum is None else int(self.checksum(self.data, self.bytes, self.count))

    def is_unchanged(self) -> bool:
        return self._read() == self.contents


def _lines(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """A line of every 4 KiB, not always at the same place, which would see some columns of a matrix only."""
    for address, size in spans:
        for k, start in enumerate(range(0, size, EVERY)):
            at = start + (k * 2654435761 >> 16) % (EVERY // LINE) * LINE
            if at < size:
                yield address + at, min(LINE, size - at)


def _slices(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for address, size in spans:
        for start in range(0, size, SLICE):
            yield address + start, min(SLICE, size - start)


def _span(t: Tensor) -> int:
    """Numbers from the first to the last in memory, gaps included."""
    return 1 + sum((n - 1) * step for n, step in zip(t.shape, t.stride(), strict=True)) if t.numel() else 0
