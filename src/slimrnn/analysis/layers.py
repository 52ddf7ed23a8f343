"""For `slimrnn.training.memory_log`, until it imports from `slimrnn.analysis.model.layers`."""

from slimrnn.analysis.model.layers import find_layers

__all__ = ["find_layers"]
