"""Which time loop a recurrent layer takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from slimrnn._watched import Watched
from slimrnn.layers import torch_scan
from slimrnn.layers.traced import runs_as
from slimrnn.ops import resolve_backend
from slimrnn.ops.library import native_library

if TYPE_CHECKING:
    from slimrnn.layers.recurrent_layer import RecurrentLayer


class ChosenBackend(Watched):
    """The part of RecurrentLayer that knows its backend."""

    @property
    def _layer(self) -> RecurrentLayer:
        return cast("RecurrentLayer", self)

    @property
    def backend(self) -> str:
        """ "native", "reference" or "torch"; "auto" may be set as well, and on a GPU stands for "torch" where torch has
        such a layer."""
        if self._wanted_backend == "auto" and torch_scan.is_preferred(self._layer):
            return "torch"
        return self._backend

    @backend.setter
    def backend(self, wanted: str) -> None:
        self._backend, self._wanted_backend = self.check_backend(wanted), wanted

    @property
    def wanted_backend(self) -> str:
        """As it was chosen: "auto" also where it stands for another."""
        return self._wanted_backend

    def check_backend(self, wanted: str) -> str:
        """What it stands for; an error where this layer or this installation lacks it."""
        found = resolve_backend(wanted)
        if found == "torch":
            torch_scan.check_layer(self._layer)
        return found

    @property
    def runs_as(self) -> str:
        """ "compiled": C++ of its own for this cell; "bytecode": the native core runs the cell's program; "reference":
        a loop in plain torch; "torch": torch's fused operator."""
        return runs_as(self._layer)

    def choose_backend_again(self) -> None:
        """As it was chosen, in a process where that may stand for something else."""
        wanted = self._wanted_backend
        self.backend = "auto" if wanted == "native" and native_library() is None else wanted
