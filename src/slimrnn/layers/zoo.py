"""Layers of the cells that torch does not have; each is described where its cell is."""

from __future__ import annotations

from slimrnn.cells import (
    AntisymmetricRNNCell,
    CoRNNCell,
    DeepTransitionRNNCell,
    FastGRNNCell,
    LayerNormGRUCell,
    LayerNormLSTMCell,
    LEMCell,
    LipschitzRNNCell,
    MGUCell,
    MinGRUCell,
    MinLSTMCell,
    SLSTMCell,
)
from slimrnn.layers.recurrent import layer_of
from slimrnn.structures import Antisymmetric

AntisymmetricRNN = layer_of(AntisymmetricRNNCell, structure=Antisymmetric(0.0))  # the cell has the γ
CoRNN = layer_of(CoRNNCell)
DeepTransitionRNN = layer_of(DeepTransitionRNNCell)
FastGRNN = layer_of(FastGRNNCell)
LayerNormGRU = layer_of(LayerNormGRUCell)
LayerNormLSTM = layer_of(LayerNormLSTMCell)
LEM = layer_of(LEMCell)
LipschitzRNN = layer_of(LipschitzRNNCell, structure=Antisymmetric(0.0))
MGU = layer_of(MGUCell)
MinGRU = layer_of(MinGRUCell)
MinLSTM = layer_of(MinLSTMCell)
SLSTM = layer_of(SLSTMCell)
