"""The interface of a task: where batches come from, how outputs are scored, what to compare the scores with.

Shape suffixes: T time, B sequences of a batch, I input width, O output width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

if TYPE_CHECKING:
    from slimrnn.training.config import Config, ModelConfig

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Sequences, time first, with everything needed to score them."""

    inputs: Tensor  #: (T, B, I), or what else the task's net takes, time first: (T, B) symbols by number
    targets: Tensor  #: (T, B) or (T, B, O) where there is an output at every step, else (B) or (B, O)
    weights: Tensor | None = None  #: of the targets in the loss: (T, B) or (B); absent: all one
    lengths: Tensor | None = None  #: (B) steps of each sequence; absent: all T
    first: bool = True  #: the sequences begin here; else they go on from where the batch before ended
    update: int = 0  #: of training: how many came before

    def to(self, device: object) -> Batch:
        """The same on another device; lengths stay on the CPU."""
        moved = {
            name: value.to(device)  # type: ignore[call-overload]
            for name, value in vars(self).items()
            if isinstance(value, Tensor) and name != "lengths"
        }
        return replace(self, **moved)

    def segments(self, steps: int, restart_every: int | None = None) -> Iterator[Batch]:
        """Consecutive pieces of `steps` steps for truncated backpropagation; needs an output at every step. After every
        `restart_every` pieces, the next one is as if its sequences began there."""
        again = steps * restart_every if restart_every else len(self.inputs)
        for start in range(0, len(self.inputs), steps):
            piece = slice(start, start + steps)
            yield replace(
                self,
                inputs=self.inputs[piece],
                targets=self.targets[piece],
                weights=None if self.weights is None else self.weights[piece],
                lengths=None,  # a piece may lie beyond the end of a sequence, where weights of zero say so
                first=self.first and start % again == 0,
            )


class Samples(Protocol):
    """Sequences by number. `size` is None where there is no end of them.

    Where they differ much in length, a method `lengths(indices)` gives the steps of each, and batches are then made of
    sequences of similar length."""

    @property
    def size(self) -> int | None: ...

    def fetch(self, indices: Indices) -> Batch:
        """These sequences, each a function of its number alone."""
        ...


class Score(NamedTuple):
    """A sum over sequences or steps and what to divide it by, so that parts of a batch add up."""

    total: Tensor
    weight: Tensor | float


class Outcome(NamedTuple):
    """Scores of a batch, and rows for `Task.pooled`."""

    scores: dict[str, Score]
    kept: dict[str, Tensor] = {}  # noqa: RUF012 -- never changed


@dataclass(frozen=True)
class Task(ABC):
    """A task: its options are the fields of a subclass, which `slimrnn train NAME` shows as its own."""

    name: ClassVar[str]
    every_step: ClassVar[bool]  #: an output at every step, or one after the last
    monitor: ClassVar[str] = "loss"  #: the score that says which net is best
    lower_is_better: ClassVar[bool] = True  #: of that score
    #: whether its loss needs the net's output alone, so that a net can learn the outputs of another; None: if it leaves
    #: `run` as it is
    distils: ClassVar[bool | None] = None
    test_sets: ClassVar[Mapping[str, int]] = {"test": 10_000}  #: beside "train" and "valid", with their default sizes

    @property
    @abstractmethod
    def input_size(self) -> int: ...

    @property
    @abstractmethod
    def output_size(self) -> int: ...

    @property
    def baselines(self) -> dict[str, float]:
        """Losses to compare with, by what reaches them: {"memoryless": 0.0204}."""
        return {}

    def rivals(self, split: str) -> dict[str, dict[str, float]]:
        """Scores on a set to compare with, by what reaches them: {"popularity": {"map_at_20": 0.01}}. Unless a task
        says more, the baselines' losses, which are those on any set."""
        return {name: {"loss": loss} for name, loss in self.baselines.items()}

    @abstractmethod
    def samples(self, split: str, seed: int) -> Samples:
        """The sequences of "train", "valid" or one of `test_sets`. No two splits share any."""

    @abstractmethod
    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """ "loss", whose gradient is followed, and whatever else is worth watching.

        `output` is (T, B, O), or (B, O) where there is one output only."""

    def run(self, model: nn.Module, batch: Batch, state: Any = None) -> tuple[Outcome, Any]:
        """Run the net on a batch: the outcome, and the state to continue from.

        For tasks whose loss needs more of the net than its output; `model.training` tells an update from an
        evaluation. The others define `scores`, and `kept` where a score is not a mean."""
        output, state = model(batch.inputs, state, batch.lengths)
        kept = {} if model.training else self.kept(output, batch)
        return Outcome(self.scores(output, batch), kept), state

    def kept(self, output: Tensor, batch: Batch) -> dict[str, Tensor]:
        """What `pooled` needs of a batch, a row of numbers for each sequence: {"confidence": (B, 20)}."""
        return {}

    def pooled(self, kept: Mapping[str, Tensor]) -> dict[str, float]:
        """Scores of a whole set that are not means over its sequences, such as those of a common ranking. The rows of
        all batches and processes come in one, in no particular order."""
        return {}

    def derived(self, means: Mapping[str, float]) -> dict[str, float]:
        """Scores that are functions of the means of others, such as a perplexity of a loss."""
        return {}

    def check(self, config: Config) -> None:
        """Refuse, by a ValueError, settings of a run that do not go with the task."""
        return

    def check_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Raise a ValueError for the weights of a net that was trained on other data than the task has now."""
        return

    def default_model(self) -> ModelConfig:
        """What the command line begins with."""
        from slimrnn.training.config import ModelConfig

        return ModelConfig()

    def default_config(self) -> Config:
        """All settings that the command line begins with."""
        from slimrnn.training.config import Config

        return Config(self, self.default_model())

    def suited_config(self) -> tuple[Config, str]:
        """Settings that suit the data, which has been found by now, and a text for the user that says why; by default
        those of `default_config`, and nothing to say."""
        return self.default_config(), ""

    def variants(self, config: Config) -> list[Config]:
        """Settings to try where there is time to choose by validation, the most promising first; none: only these."""
        return []

    def facts(self) -> dict[str, Any]:
        """What run.json keeps of the data under "data", such as the names of classes: numbers, texts, lists, dicts."""
        return {}

    def check_data(self, facts: Mapping[str, Any]) -> None:
        """Raise a ValueError or a DataError if the data are no longer those that `facts` recorded."""
        return

    def illustrate(self, model: nn.Module, directory: Path) -> None:
        """Write files and figures that show what the best net does into the directory of its run."""
        return

    def model(self, config: ModelConfig) -> nn.Module:
        """The net: called as model(inputs, state, lengths), it returns the output and the state to continue from."""
        from slimrnn.training.models.sequence_model import SequenceModel

        return SequenceModel(self.input_size, self.output_size, config, every_step=self.every_step)
