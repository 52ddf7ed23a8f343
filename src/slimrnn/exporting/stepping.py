"""A model's `step` as its forward."""

from __future__ import annotations

from typing import Any

from torch import nn

from slimrnn.errors import ExportError


class Stepping(nn.Module):
    """(x_t, state) -> (y_t, state)"""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        if not callable(getattr(model, "step", None)):
            raise ExportError(
                f"expected a model with step(x_t, state) for step=True, got a {type(model).__name__} without: write "
                "one that calls the step of its recurrent layers"
            )
        self.model: Any = model

    def forward(self, x_t: Any, state: Any) -> Any:
        return self.model.step(x_t, state)

    def initial_state(self, batch: int | None) -> Any:
        """For an example that has none."""
        return self.model.initial_state(batch)
