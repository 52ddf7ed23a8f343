"""What all estimators share: parameters, training, and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from slimrnn._checks import check_number
from slimrnn.errors import DataError
from slimrnn.estimators import files
from slimrnn.estimators.long_frames import is_frame
from slimrnn.estimators.reading import Given
from slimrnn.estimators.settings import changed, of_length
from slimrnn.layers import SequenceNet
from slimrnn.structures import Structure
from slimrnn.tasks.own.own_task import OwnTask
from slimrnn.training.config import Config
from slimrnn.training.curve import Row
from slimrnn.training.in_memory import train_in_memory
from slimrnn.training.task import Task

if TYPE_CHECKING:
    from typing_extensions import Self

LARGEST_SEED = 2**31 - 1
PLACES = {  # of parameters among the settings of a run
    "cell": "model.cell",
    "structure": "model.structure",
    "hidden": "model.hidden",
    "layers": "model.layers",
    "bidirectional": "model.bidirectional",
    "dropout": "model.readout_dropout",
    "frame": "task.frame",
    "noise": "task.noise",
    "validation_fraction": "task.valid_share",
    "batch_size": "batch_size",
    "lr": "optim.lr",
    "patience": "patience",
    "threads": "threads",
}


@dataclass(kw_only=True, eq=False, repr=False)
class SequenceEstimator(BaseEstimator):
    """Parameters of all estimators. Those that are None are chosen for the data, as `slimrnn train` does."""

    cell: str | None = None
    """gru, lstm, rnn and all others of `slimrnn train`; module:name is one of your own"""
    structure: Structure | str | None = None
    """of the recurrent matrices: LowRank(8) + Diagonal(), or a text such as "low-rank(8)+diagonal" """
    hidden: int | None = None
    """hidden units per layer and direction"""
    layers: int | None = None
    """number of recurrent layers"""
    bidirectional: bool | None = None
    """read the sequences in both directions"""
    dropout: float | None = None
    """dropout on what the read-out sees"""
    noise: float | None = None
    """standard deviation of noise that training adds to the scaled inputs"""
    updates: int | None = None
    """number of updates (optimizer steps)"""
    epochs: float | None = None
    """instead of updates: number of times through the training set"""
    batch_size: int | None = None
    """sequences per update"""
    lr: float | None = None
    """learning rate"""
    patience: int | None = None
    """stop after this many evaluations in a row without a better validation score"""
    validation_fraction: float | None = None
    """share of the data for validation, which says which net is best; 0: none is held out. By default 0.2, or 0 for a
    classifier of few sequences"""
    budget: float | None = None
    """time limit of the training, in seconds"""
    settings: Mapping[str, Any] | None = None
    """any other setting of `slimrnn train` by its name: {"model.pooling": "last", "optim.weight_decay": 0.0}"""
    sequence: str | None = None
    """frames with a row for each step: the column that says which sequence a row belongs to"""
    time: str | None = None
    """such frames: the column with the time of a step; without it, rows are in order"""
    columns: Sequence[str] | None = None
    """such frames: the columns that the net reads; default: all others of numbers"""
    random_state: int | np.random.RandomState | None = None
    """seed of the initial weights, the order of the data and the validation part"""
    threads: int | None = None
    """threads of torch and the core; default: torch's"""
    verbose: int = 0
    """1 prints what was chosen, and a line for each evaluation"""

    # After `fit`:
    model_: SequenceNet = field(init=False)
    """the net, which slimrnn.save and slimrnn.export take"""
    task_: Task = field(init=False)
    """scales, classes and all else that the net needs to read sequences, without the data"""
    history_: list[Row] = field(init=False)
    """losses and scores of all evaluations: update, seconds, train/loss, valid/loss, ..."""
    ended_: str = field(init=False)
    """finished, patience, budget or interrupted"""
    n_iter_: int = field(init=False)
    """number of updates that were done"""
    best_update_: int = field(init=False)
    """after which the net was best"""
    seed_: int = field(init=False)
    """that was taken: with it as random_state, `fit` gives the same again"""
    n_features_in_: int = field(init=False)
    """number of columns"""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = tags.input_tags.allow_nan = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    # --- training ---------------------------------------------------------------------------------------

    def _train(self, task: OwnTask, given: Given, seed: int, learned: Mapping[str, Any]) -> Self:
        """Fit the net of a task on what was given. Ctrl-C is passed on, with the net as good as it was until then.

        `learned` are further attributes by name. All are set after the training, so that one that fails leaves an
        estimator as it was."""
        with _as_value_errors():
            config = replace(self._config(task), seed=seed, tensorboard=False)
            found = train_in_memory(config, budget=self.budget, quiet=not self.verbose)
        net: Any = found.model
        self.model_ = SequenceNet(net.rnn, net.readout, net.output).eval()
        known = config.task
        assert isinstance(known, OwnTask)
        self.task_ = replace(known).restored(known.facts())  # without the data
        self.n_features_in_ = len(given.sequences.columns)
        names = given.steps if given.names is None else given.names
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.history_, self.ended_ = found.history, found.ended
        self.n_iter_, self.best_update_, self.seed_ = found.updates, found.best_update, config.seed
        for name, value in learned.items():
            setattr(self, name, value)
        self._keep(given)
        if found.ended == "interrupted":
            raise KeyboardInterrupt
        return self

    def _keep(self, given: Given) -> None:
        """What an estimator needs of the data later."""
        return

    def _config(self, task: OwnTask) -> Config:
        """Settings that suit the data, but for those that are given."""
        config, why = task.suited_config()
        given = {PLACES[name]: value for name, value in self._own_settings().items() if value is not None}
        config = changed(config, given | dict(self.settings or {}))
        config = of_length(config, self.updates, self.epochs)
        if self.verbose:
            print(why.rpartition("\n")[2])
        return config

    def _own_settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in PLACES if hasattr(self, name)}

    def _begin(self) -> int:
        """The seed that `random_state` stands for, after what no task checks."""
        fraction = self.validation_fraction
        if fraction is not None:
            check_number("validation_fraction", fraction)
            if not 0 <= fraction < 0.9:
                raise ValueError(f"expected validation_fraction from 0 to 0.9, got {fraction}")
        drawn = check_random_state(self.random_state).randint(LARGEST_SEED)
        return int(self.random_state if isinstance(self.random_state, int | np.integer) else drawn)

    @property
    def _held_out(self) -> float:
        """Unless the task chooses another share."""
        return OwnTask.valid_share if self.validation_fraction is None else self.validation_fraction

    # --- predictions ------------------------------------------------------------------------------------

    def _known(self, given: Given) -> Given:
        """With the columns that `fit` has seen, by their number."""
        count = len(given.sequences.columns)
        if count != self.n_features_in_:
            raise ValueError(f"expected {self.n_features_in_} columns, as in fit, got {count}")
        names = getattr(self, "feature_names_in_", ())
        names = names if len(names) == count else range(count)  # those of a row for each sequence are of steps
        return replace(given, sequences=replace(given.sequences, columns=tuple(map(str, names))))

    def _known_columns(self, X: Any) -> Sequence[str] | None:
        """Of a frame, by the names that `fit` has seen."""
        names = getattr(self, "feature_names_in_", None)
        return tuple(names) if names is not None and is_frame(X) else self.columns

    # --- files ------------------------------------------------------------------------------------------

    def save(self, directory: str | PathLike[str]) -> None:
        """Write the fitted estimator to a directory: the net as `slimrnn.save` does, and estimator.json. No pickle."""
        check_is_fitted(self)
        files.save(self, directory)

    @classmethod
    def load(cls, directory: str | PathLike[str], *, custom_objects: Iterable[Any] = ()) -> Self:
        """The estimator that `save` wrote; SavedModelError if it is damaged or of another class.

        `custom_objects` are the classes of your own cells and structures: nothing is imported because a file says
        so."""
        estimator = cls()
        files.load(estimator, directory, custom_objects)
        return estimator

    def _remember(self, fitted: Mapping[str, Any]) -> None:
        """Set what `_fitted` told."""
        for name, value in fitted.items():
            setattr(self, name, value)

    def _fitted(self) -> dict[str, Any]:
        """Fitted attributes as plain data, but for the net and the task."""
        names = ("history_", "ended_", "n_iter_", "best_update_", "seed_", "n_features_in_")
        return {name: getattr(self, name) for name in names}


@contextmanager
def _as_value_errors() -> Iterator[None]:
    """What is wrong with the data is a ValueError here, as scikit-learn's users expect."""
    try:
        yield
    except DataError as error:
        raise ValueError(str(error)) from None
