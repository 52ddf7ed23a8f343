"""Layers: `RecurrentLayer` in one direction, the stacks RNN, GRU and LSTM with torch.nn's interface, and Highway."""

from slimrnn.layers.context_switching import ContextSwitching
from slimrnn.layers.deep import Deep
from slimrnn.layers.gru import GRU
from slimrnn.layers.highway import Highway
from slimrnn.layers.lstm import LSTM
from slimrnn.layers.output_recurrent import OutputRecurrent
from slimrnn.layers.readout import ReadOut
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.layers.rnn import RNN
from slimrnn.layers.sizing import hidden_size_for
from slimrnn.layers.stack import RecurrentStack
from slimrnn.layers.summary import summary

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "ContextSwitching",
    "Deep",
    "Highway",
    "OutputRecurrent",
    "ReadOut",
    "RecurrentLayer",
    "RecurrentStack",
    "hidden_size_for",
    "summary",
]
