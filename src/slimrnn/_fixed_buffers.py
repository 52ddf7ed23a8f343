"""Buffers that no file holds, since they follow from a module's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from typing_extensions import Self


class FixedBuffers(nn.Module):
    """A module whose buffers that are not saved are computed again when it is moved or loaded: `to_empty` leaves
    anything in them, `load_state_dict(..., assign=True)` leaves them on "meta", and a change of dtype may have rounded
    them."""

    def fixed_buffers(self) -> dict[str, Tensor]:
        """The buffers by name, in any precision, on the CPU."""
        raise NotImplementedError(f"{type(self).__name__} does not define its fixed buffers")

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        before = dict(self._buffers)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._fill([name for name in self._fixed if self._buffers[name] is not before[name]])
        return self

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *others: Any
    ) -> None:
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *others)
        if local_metadata.get("assign_to_params_buffers", False):
            given = (value.device for value in state_dict.values() if isinstance(value, Tensor))
            device = next(given, torch.get_default_device())  # of a module that has nothing else
            for name in self._fixed:
                if self._buffer(name).is_meta:
                    self._buffers[name] = torch.empty_like(self._buffer(name), device=device)
        self._fill(self._fixed)

    @property
    def _fixed(self) -> list[str]:
        return [name for name in self._buffers if name in self._non_persistent_buffers_set]

    def _buffer(self, name: str) -> Tensor:
        found = self._buffers[name]
        assert found is not None  # registered with numbers
        return found

    @torch.no_grad()
    def _fill(self, names: list[str]) -> None:
        empty = [name for name in names if not self._buffer(name).is_meta]
        if empty:
            with torch.device("cpu"):
                values = self.fixed_buffers()
            for name in empty:
                self._buffer(name).copy_(values[name])
