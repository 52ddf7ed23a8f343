"""For `slimrnn.training.memory_log`, until it imports from `slimrnn.analysis.model.layer_inputs`."""

from slimrnn.analysis.model.layer_inputs import LayerInput, layer_calls, layer_inputs

__all__ = ["LayerInput", "layer_calls", "layer_inputs"]
