"""For `slimrnn.training.memory_log`, until it imports from `slimrnn.analysis.gradients.state_reach`."""

from slimrnn.analysis.gradients.state_reach import state_reach

__all__ = ["state_reach"]
