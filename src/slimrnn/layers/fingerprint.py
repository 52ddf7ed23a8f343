"""Whether a module still is what it was: its weights by their contents, its attributes and children one by one."""

from __future__ import annotations

import ctypes
from operator import itemgetter
from typing import Any

from torch import Tensor, nn

from slimrnn.ops.library import native_library

BOOKKEEPING = frozenset({*nn.Module().__dict__, "_stream"})  # torch's own entries, and where a stack keeps its stream


class Fingerprint:
    """What a module was made of at one moment. Compared before every streaming step, so written for speed.

    Torch's version counters do not see `parameter.data.add_(...)`, writes through numpy or a fused optimizer; a
    checksum of the memory does. What stays unseen: lists and other objects in attributes that are changed in place."""

    def __init__(self, module: nn.Module) -> None:
        self.module, self.training = module, module.training
        self.attributes: list[tuple[dict[str, Any], Any, Any, int]] = []
        self.held: list[tuple[dict[str, Any], str, object]] = []
        for m in module.modules():
            own = {name: value for name, value in m.__dict__.items() if name not in BOOKKEEPING}
            plain = [name for name, value in own.items() if not isinstance(value, Tensor)]
            if plain:
                find = itemgetter(*plain)
                self.attributes.append((m.__dict__, find, find(own), len(m.__dict__)))
            tables: list[dict[str, Any]] = [m._parameters, m._buffers, m._modules]
            self.held += [(table, name, value) for table in tables for name, value in table.items()]
            self.held += [(m.__dict__, name, value) for name, value in own.items() if isinstance(value, Tensor)]
        tensors = list({id(t): t for _, _, t in self.held if isinstance(t, Tensor)}.values())
        self.places = [(t.data_ptr, t.data_ptr(), t.stride, t.stride()) for t in tensors]
        self.kept = [t.detach() for t in tensors]  # so that no other tensor gets memory that was theirs
        self._watch([t for t in tensors if t.device.type == "cpu"])

    def _watch(self, tensors: list[Tensor]) -> None:
        library = native_library()
        self.checksum = None if library is None else library.slimrnn_checksum
        self.count = len(tensors)
        self.data = (ctypes.c_void_p * self.count)(*(t.data_ptr() for t in tensors))
        self.bytes = (ctypes.c_int64 * self.count)(*(_span(t) * t.element_size() for t in tensors))
        self.contents = self._read()

    def _read(self) -> int:
        return 0 if self.checksum is None else int(self.checksum(self.data, self.bytes, self.count))

    def has_same_parts(self) -> bool:
        """Whether attributes, children and tensors are the same ones, and the tensors are where they were."""
        if self.module.training is not self.training:
            return False
        for table, name, value in self.held:
            if table.get(name, self) is not value:
                return False
        for find_pointer, pointer, find_stride, stride in self.places:
            if find_pointer() != pointer or find_stride() != stride:
                return False
        try:
            for entries, find, values, count in self.attributes:
                if len(entries) != count or find(entries) != values:
                    return False
        except (KeyError, ValueError, RuntimeError):  # one is gone, or cannot be compared with what it was
            return False
        return True

    def has_same_contents(self) -> bool:
        """Whether the tensors' memory holds what it held. To be asked only while the parts are the same."""
        return self._read() == self.contents


def _span(t: Tensor) -> int:
    """Numbers from the first to the last in memory, gaps included."""
    return 1 + sum((n - 1) * step for n, step in zip(t.shape, t.stride(), strict=True)) if t.numel() else 0
