"""A native scan as ONNX: RNN, GRU or LSTM where ONNX has the cell, else Scan with the cell's traced step inside."""
