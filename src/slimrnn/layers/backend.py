"""The backend of a module is that of the recurrent layers inside it, which alone hold it."""

from __future__ import annotations

from collections.abc import Sequence

from slimrnn._watched import Watched
from slimrnn.layers.recurrent_layer import RecurrentLayer


class OnBackend(Watched):
    """A module with recurrent layers."""

    @property
    def backend(self) -> str:
        """The layers' backend: "native", "reference" or "torch". Setting it, also to "auto", sets that of all."""
        found = {layer.backend for layer in self._on_backend()}
        return found.pop() if len(found) == 1 else "mixed"

    @backend.setter
    def backend(self, backend: str) -> None:
        layers = self._on_backend()
        for layer in layers:
            layer.check_backend(backend)
        for layer in layers:
            layer.backend = backend

    @property
    def wanted_backend(self) -> str:
        """As it was chosen: "auto" also where it stands for another; "mixed" where the layers' differ."""
        found = {layer.wanted_backend for layer in self._on_backend()}
        return found.pop() if len(found) == 1 else "mixed"

    @property
    def runs_as(self) -> str:
        """What the layers' time loop is: "compiled", "bytecode", "reference" or "torch"; "mixed" where they differ."""
        found = {layer.runs_as for layer in self._on_backend()}
        return found.pop() if len(found) == 1 else "mixed"

    def _on_backend(self) -> Sequence[RecurrentLayer]:
        return [module for module in self.modules() if isinstance(module, RecurrentLayer)]
