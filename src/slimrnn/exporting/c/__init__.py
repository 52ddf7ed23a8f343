"""A model's step as C99: the graph of the cell, the structures of its matrices and the read-out, with all weights."""
