"""Cells: one file each. A cell is a pointwise update that asks for the recurrent products it needs."""

from slimrnn.cells.base import Cell
from slimrnn.cells.elman import ElmanCell
from slimrnn.cells.gru import GRUCell
from slimrnn.cells.leaky import Leaky
from slimrnn.cells.lstm import LSTMCell

__all__ = ["Cell", "ElmanCell", "GRUCell", "LSTMCell", "Leaky"]
