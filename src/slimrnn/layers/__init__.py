"""Layers: `RecurrentLayer` in one direction, the stacks with torch.nn's interface (RNN, GRU, LSTM, the zoo, `Recurrent`
for a cell of one's own), and Highway."""

from slimrnn.layers.context_switching import ContextSwitching
from slimrnn.layers.deep import Deep
from slimrnn.layers.gru import GRU
from slimrnn.layers.highway import Highway
from slimrnn.layers.independent import IndRNN, UnICORNN
from slimrnn.layers.lstm import LSTM
from slimrnn.layers.output_recurrent import OutputRecurrent
from slimrnn.layers.parameter_groups import parameter_groups
from slimrnn.layers.readout import ReadOut
from slimrnn.layers.recurrent import Recurrent, layer_of
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.layers.rnn import RNN
from slimrnn.layers.sequence_net import SequenceNet
from slimrnn.layers.sizing import hidden_size_for
from slimrnn.layers.stack import RecurrentStack
from slimrnn.layers.summary import summary
from slimrnn.layers.zoo import (
    LEM,
    MGU,
    SLSTM,
    AntisymmetricRNN,
    CoRNN,
    DeepTransitionRNN,
    FastGRNN,
    LayerNormGRU,
    LayerNormLSTM,
    LipschitzRNN,
    MinGRU,
    MinLSTM,
)

__all__ = [
    "GRU",
    "LEM",
    "LSTM",
    "MGU",
    "RNN",
    "SLSTM",
    "AntisymmetricRNN",
    "CoRNN",
    "ContextSwitching",
    "Deep",
    "DeepTransitionRNN",
    "FastGRNN",
    "Highway",
    "IndRNN",
    "LayerNormGRU",
    "LayerNormLSTM",
    "LipschitzRNN",
    "MinGRU",
    "MinLSTM",
    "OutputRecurrent",
    "ReadOut",
    "Recurrent",
    "RecurrentLayer",
    "RecurrentStack",
    "SequenceNet",
    "UnICORNN",
    "hidden_size_for",
    "layer_of",
    "parameter_groups",
    "summary",
]
