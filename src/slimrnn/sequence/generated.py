"""What a decoder wrote.

Shape suffixes: T time, B sequences, K hypotheses of each.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Generated:
    """Sequences, time first: (T, B) symbols or (T, B, D) values, padded with −1 or with zeros.

    Of a beam search there are K of each, best first: (T, B, K). `finished` says which sequences ended by themselves;
    the others reached the largest length. `log_probs` are the model's, also where it was sampled at another
    temperature: of a finished sequence the one that `log_prob` gives, of another that of its elements, which may go on.
    """

    sequences: Tensor
    lengths: Tensor
    finished: Tensor
    log_probs: Tensor
    scores: Tensor | None = None  #: of a beam search: log-probabilities over length penalties

    def best(self) -> Generated:
        """The first hypothesis of each sequence of a beam search."""
        if self.scores is None:
            return self
        return Generated(
            self.sequences[:, :, 0], self.lengths[:, 0], self.finished[:, 0], self.log_probs[:, 0], self.scores[:, 0]
        )

    def lists(self) -> list[list[int]]:
        """Symbols without padding, a list for each sequence."""
        if self.sequences.dim() != 2 or self.sequences.is_floating_point():
            raise ValueError(f"expected symbols of shape (T, B), got {tuple(self.sequences.shape)}; see best()")
        rows = zip(self.sequences.T.tolist(), self.lengths.tolist(), strict=True)
        return [row[:length] for row, length in rows]
