"""All settings of a run. The command line, YAML files, run.json and Python share these classes."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from slimrnn.layers.options import OPTIONS
from slimrnn.training.importing import path_of
from slimrnn.training.task import Task


def option(name: str) -> Any:
    """An option of the layers on the command line, with the help that it has there."""
    return tyro.conf.arg(help=OPTIONS[name].help)


@dataclass(frozen=True)
class ModelConfig:
    """The net: recurrent layers and a linear read-out."""

    cell: str = "lstm"
    """rnn, gru, lstm, mgu, lem, cornn, unicornn, fastgrnn, slstm, mingru, minlstm, layer-norm-lstm, layer-norm-gru,
    antisymmetric-rnn, lipschitz-rnn, indrnn; module:name is one of your own; highway: layers without recurrence, for
    the task mnist-highway"""
    hidden: int = 128
    """units of each layer"""
    structure: str = "dense"
    """of the recurrent matrices: dense, diagonal, low-rank, block-diagonal, kronecker, sparse(0.05), permutation,
    shift(1), shuffle(4), circulant, householder(8), antisymmetric, legendre(100), complex-diagonal, full-unitary,
    unitary-product; with + and @ between them: low-rank(8)@shift(1)+diagonal; module:name is one of your own. unicornn and
    indrnn are diagonal unless another is named"""
    rank: int | None = None
    """low-rank: numbers that a gate's matrix passes through"""
    tied: bool = False
    """low-rank: all gates share the way down"""
    blocks: int | None = None
    """block-diagonal: number of blocks"""
    factors: tuple[int, ...] | None = None
    """kronecker: sizes of the factors; by default all 2"""
    input_structure: str = "dense"
    """of the input matrices, from the same names"""
    layers: int = 1
    bidirectional: bool = False
    residual: Annotated[bool, option("residual")] = OPTIONS["residual"].default
    nonlinearity: Literal["tanh", "relu", "modrelu", "identity"] = "tanh"
    """rnn, highway (tanh or relu); modrelu has a complex state"""
    reset: Literal["before", "after"] = "after"
    """gru: the reset gate acts before or after the recurrent product"""
    update_bias: float | tuple[float, ...] = 0.0
    """gru, mingru, layer-norm-gru: initial bias of the update gate; positive: keep the state (mingru: negative); two
    numbers are spread over the units"""
    forget_bias: float | tuple[float, ...] = 0.0
    """lstm, mgu, slstm, minlstm, layer-norm-lstm: initial bias of the forget gate (of mgu, negative keeps the state);
    two numbers are spread over the units"""
    peephole: bool = False
    """lstm: gates see the cell state"""
    cell_options: tuple[str, ...] = ()
    """other options of the cell, as name=value: dt=0.5"""
    transition_depth: Annotated[int, option("transition_depth")] = OPTIONS["transition_depth"].default
    leak: float | None = None
    """h = leak h_before + (1 - leak) what the cell gives, the same in all units"""
    time_constants: tuple[float, float] | None = None
    """instead of leak: 1 / (1 - leak) spread over the units from the first to the second"""
    learn_leak: bool = False
    """leak or time_constants are where it begins"""
    delays: Annotated[tuple[int, ...], option("delays")] = OPTIONS["delays"].default
    skip: Annotated[int | None, option("skip")] = OPTIONS["skip"].default
    context_switching: Literal["none", "inputs", "outputs", "both"] = "none"
    """block-diagonal: an auxiliary net switches the blocks"""
    learn_initial_state: Annotated[bool, option("learn_initial_state")] = OPTIONS["learn_initial_state"].default
    dropout: float = 0.0
    """between layers"""
    recurrent_dropout: Annotated[float, option("recurrent_dropout")] = OPTIONS["recurrent_dropout"].default
    weight_norm: Annotated[bool, option("weight_norm")] = OPTIONS["weight_norm"].default
    max_row_norm: float | None = OPTIONS["max_row_norm"].default
    """rows of the matrices are clipped to this norm after each update"""
    checkpoint_every: Annotated[int | None, option("checkpoint_every")] = OPTIONS["checkpoint_every"].default
    backend: Literal["auto", "native", "reference"] = "auto"


@dataclass(frozen=True)
class OptimConfig:
    """The optimizer and what surrounds it."""

    optimizer: Literal["rmsprop", "adam", "adamw", "adagrad", "sgd"] = "adam"
    lr: float = 1e-3
    decay: float = 0.9
    """rmsprop: of the running mean of squared gradients"""
    accumulator_start: float = 0.0
    """rmsprop: first value of that mean (the low-rank authors: 1e-3)"""
    momentum: float = 0.0
    """rmsprop, sgd"""
    eps: float = 1e-8
    eps_inside: bool = False
    """rmsprop: divide by √(v + eps), as the low-rank authors do, instead of √v + eps"""
    weight_decay: float = 0.0
    recurrent_rate: float = 1.0
    """factor on the learning rate of the recurrent matrices; 0 leaves them as they began"""
    clip_norm: float | None = None
    """largest norm of the gradient"""
    clip_value: float | None = None
    """largest absolute value of a component of the gradient"""
    penalty: float = 0.0
    """weight of the structures' penalty (Kronecker: departure from unitarity)"""
    schedule: Literal["constant", "cosine", "step", "plateau"] = "constant"
    schedule_every: int = 10_000
    """step: updates between reductions"""
    schedule_patience: int = 3
    """plateau: evaluations without gain before a reduction"""
    schedule_factor: float = 0.3
    """step, plateau: what a reduction multiplies the rate by"""
    max_recoveries: int = 3
    """times that a run may return to its last good state, at half the rate, after a gradient that is not finite"""


@dataclass(frozen=True)
class Config:
    """A run: what to train on what, how long, and where to keep it."""

    task: Task
    model: ModelConfig = field(default_factory=ModelConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    updates: int = 1000
    """updates to train for"""
    batch_size: int = 20
    """sequences in an update, over all processes"""
    train_size: int | None = None
    """train on a fixed set of that many sequences, reshuffled in every epoch; by default every sequence is new"""
    valid_size: int = 1000
    """sequences of the validation set"""
    test_size: int | None = None
    """sequences of each test set; by default the task's"""
    eval_every: int = 100
    """updates between evaluations"""
    checkpoint_every: int = 100
    """updates between checkpoints"""
    bptt: int | None = None
    """cut sequences into pieces of that many steps, one update each, and carry the state over"""
    stop_at: float | None = None
    """end training once the validation score that the task watches is as good as this"""
    seed: int = 0
    """of the initial weights and of the data"""
    dtype: Literal["float32", "float64"] = "float32"
    devices: int = 1
    """processes to train in"""
    workers: int = 0
    """processes that prepare data"""
    threads: int | None = None
    """threads of each process; by default torch's"""
    out: Path | None = None
    """directory of the run; by default a new one in runs/"""
    tensorboard: bool = True


def plain(value: Any) -> Any:
    """Settings in numbers, texts, lists and dicts; a task is its name and its options, and one that is not ours also
    the class to import."""
    if is_dataclass(value):
        name = {"name": value.name} if isinstance(value, Task) else {}
        if isinstance(value, Task) and not type(value).__module__.startswith("slimrnn."):
            name["class"] = path_of(type(value))
        return name | {part.name: plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
