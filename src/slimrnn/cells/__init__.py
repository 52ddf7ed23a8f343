"""Cells: one file each. A cell is a pointwise update that asks for the recurrent products it needs."""

from slimrnn.cells.antisymmetric_rnn import AntisymmetricRNNCell
from slimrnn.cells.base import Cell
from slimrnn.cells.biases import Chrono, UniformGate
from slimrnn.cells.cornn import CoRNNCell
from slimrnn.cells.deep_transition_rnn import DeepTransitionRNNCell
from slimrnn.cells.elman import ElmanCell
from slimrnn.cells.fastgrnn import FastGRNNCell
from slimrnn.cells.gru import GRUCell
from slimrnn.cells.layer_norm_gru import LayerNormGRUCell
from slimrnn.cells.layer_norm_lstm import LayerNormLSTMCell
from slimrnn.cells.leaky import Leaky
from slimrnn.cells.lem import LEMCell
from slimrnn.cells.lipschitz_rnn import LipschitzRNNCell
from slimrnn.cells.lstm import LSTMCell
from slimrnn.cells.mgu import MGUCell
from slimrnn.cells.mingru import MinGRUCell
from slimrnn.cells.minlstm import MinLSTMCell
from slimrnn.cells.slstm import SLSTMCell
from slimrnn.cells.unicornn import UnICORNNCell

__all__ = [
    "AntisymmetricRNNCell",
    "Cell",
    "Chrono",
    "CoRNNCell",
    "DeepTransitionRNNCell",
    "ElmanCell",
    "FastGRNNCell",
    "GRUCell",
    "LEMCell",
    "LSTMCell",
    "LayerNormGRUCell",
    "LayerNormLSTMCell",
    "Leaky",
    "LipschitzRNNCell",
    "MGUCell",
    "MinGRUCell",
    "MinLSTMCell",
    "SLSTMCell",
    "UnICORNNCell",
    "UniformGate",
]
