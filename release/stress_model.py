"""The model of pool_stress.cpp: python release/stress_model.py FILE"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn

from slimrnn import GRU, LSTM, LowRank, StreamPool


def main(path: Path) -> None:
    torch.manual_seed(0)
    model = [LSTM(3, 5), GRU(5, 8, num_layers=2, residual=True, structure=LowRank(2)), nn.Linear(8, 2), nn.Sigmoid()]
    with StreamPool(model, capacity=1) as pool:
        pool.write(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
