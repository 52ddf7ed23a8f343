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
    antisymmetric-rnn, lipschitz-rnn, indrnn, deep-transition-rnn; module:name is one of your own; highway: layers
    without recurrence, for the task mnist-highway"""
    hidden: int = 128
    """hidden units per layer"""
    structure: str = "dense"
    """of the recurrent matrices: dense, diagonal, low-rank, block-diagonal, kronecker, sparse(0.05), permutation,
    shift(1), shuffle(4), circulant, householder(8), antisymmetric, legendre(100), complex-diagonal, full-unitary,
    unitary-product; with + and @ between them: low-rank(8)@shift(1)+diagonal; with commas one for each layer and
    direction: low-rank(24), tied-low-rank(30); module:name is one of your own;
    unless one is named, unicornn and indrnn are diagonal, antisymmetric-rnn and lipschitz-rnn antisymmetric"""
    rank: int | None = None
    """low-rank: rank of each gate's matrix"""
    tied: bool = False
    """low-rank: all gates share the right factor R"""
    blocks: int | None = None
    """block-diagonal: number of blocks"""
    factors: tuple[int, ...] | None = None
    """kronecker: sizes of the factors; by default all 2"""
    input_structure: str = "dense"
    """structure of the input matrices, from the same names"""
    layers: int = 1
    bidirectional: bool = False
    residual: Annotated[bool, option("residual")] = OPTIONS["residual"].default
    nonlinearity: Literal["tanh", "relu", "modrelu", "identity"] = "tanh"
    """rnn, highway (tanh or relu); modrelu has a complex state"""
    reset: Literal["before", "after"] = "after"
    """gru: the reset gate acts before or after the recurrent product"""
    update_bias: float | tuple[float, ...] | str = 0.0
    """gru, mingru, layer-norm-gru: initial bias of the update gate; positive: keep the state (mingru: negative); two
    numbers are spread over the units; chrono(784) and uniform draw it"""
    forget_bias: float | tuple[float, ...] | str = 0.0
    """lstm, mgu, slstm, minlstm, layer-norm-lstm: initial bias of the forget gate (of mgu, negative keeps the state);
    two numbers are spread over the units; chrono(784) and uniform draw it"""
    peephole: bool = False
    """lstm: gates see the cell state"""
    cell_options: tuple[str, ...] = ()
    """other options of the cell, as name=value: dt=0.5; of an rnn, modrelu_bias=-0.05"""
    transition_depth: Annotated[int, option("transition_depth")] = OPTIONS["transition_depth"].default
    leak: float | None = None
    """leaky units: h = leak * h_before + (1 - leak) * output of the cell"""
    time_constants: tuple[float, float] | None = None
    """instead of leak: smallest and largest time constant 1 / (1 - leak), spread over the units"""
    learn_leak: bool = False
    """train the leak; leak or time_constants are its initial values"""
    delays: Annotated[tuple[int, ...], option("delays")] = OPTIONS["delays"].default
    skip: Annotated[int | None, option("skip")] = OPTIONS["skip"].default
    context_switching: Literal["none", "inputs", "outputs", "both"] = "none"
    """block-diagonal: a small auxiliary net weights the blocks at every step"""
    learn_initial_state: Annotated[bool, option("learn_initial_state")] = OPTIONS["learn_initial_state"].default
    dropout: float = 0.0
    """dropout between layers"""
    recurrent_dropout: Annotated[float | tuple[float, float], option("recurrent_dropout")] = OPTIONS[
        "recurrent_dropout"
    ].default
    mask_per_gate: Annotated[bool, option("mask_per_gate")] = OPTIONS["mask_per_gate"].default
    readout_dropout: float = 0.0
    """dropout on what the read-out sees, one mask per sequence"""
    weight_norm: Annotated[bool, option("weight_norm")] = OPTIONS["weight_norm"].default
    max_row_norm: float | None = OPTIONS["max_row_norm"].default
    """clip the rows of the matrices to this norm after each update"""
    pooling: Literal["last", "mean", "max"] = "last"
    """tasks with one output per sequence: what the read-out sees, the last state or the mean or maximum over all"""
    readout_hidden: int = 0
    """hidden ReLU units of the read-out; 0: it is linear"""
    checkpoint_every: Annotated[int | None, option("checkpoint_every")] = OPTIONS["checkpoint_every"].default
    backend: Literal["auto", "native", "reference", "torch"] = "auto"


@dataclass(frozen=True)
class OptimConfig:
    """The optimizer, gradient clipping, the learning-rate schedule and recovery."""

    optimizer: Literal["rmsprop", "adam", "adamw", "adagrad", "sgd"] = "adam"
    lr: float = 1e-3
    decay: float = 0.9
    """rmsprop: decay of the running mean of squared gradients"""
    accumulator_start: float = 0.0
    """rmsprop: initial value of that mean (the low-rank authors: 1e-3)"""
    momentum: float = 0.0
    """rmsprop, sgd"""
    eps: float = 1e-8
    eps_inside: bool = False
    """rmsprop: divide by √(v + eps), as the low-rank authors do, instead of √v + eps"""
    weight_decay: float = 0.0
    recurrent_rate: float = 1.0
    """multiplies the learning rate of the recurrent matrices; 0 freezes them"""
    scale_rate: float = 1.0
    """weight_norm: multiplies the learning rate of the rows' scales"""
    readout_only: bool = False
    """train the read-out only: the recurrent layers stay what they are at the start"""
    clip_norm: float | None = None
    """clip the norm of all gradients to this value"""
    clip_value: float | None = None
    """clip each component of the gradients to this absolute value"""
    penalty: float = 0.0
    """weight of the structures' penalty in the loss (Kronecker: distance from unitary)"""
    schedule: Literal["constant", "cosine", "step", "plateau"] = "constant"
    schedule_every: int = 10_000
    """step: number of updates between reductions"""
    schedule_patience: int = 3
    """plateau: number of evaluations without improvement before a reduction"""
    schedule_factor: float = 0.3
    """step, plateau: factor of a reduction"""
    max_recoveries: int = 3
    """how often to restore the last checkpoint and halve the learning rate after an infinite or NaN gradient"""


@dataclass(frozen=True)
class Config:
    """All settings of a run."""

    task: Task
    model: ModelConfig = field(default_factory=ModelConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    updates: int = 1000
    """number of updates (optimizer steps)"""
    batch_size: int = 20
    """sequences per update, over all processes"""
    train_size: int | None = None
    """size of a fixed training set, reshuffled every epoch; default: all
    sequences of the data, or, where the task makes them, new ones all the time"""
    valid_size: int = 1000
    """size of the validation set"""
    test_size: int | None = None
    """size of each test set; default: the task's"""
    eval_every: int = 100
    """updates between evaluations"""
    checkpoint_every: int = 100
    """updates between checkpoints"""
    bptt: int | None = None
    """truncated BPTT: cut sequences into pieces of this many steps, one update each, and carry the state over"""
    restart_every: int | None = None
    """truncated BPTT: begin anew from the initial state after this many pieces"""
    stop_at: float | None = None
    """stop as soon as the validation score reaches this value"""
    start_from: Path | None = None
    """begin with the weights of this file, the best.safetensors or final.safetensors of a run with the same net"""
    teacher: Path | None = None
    """distillation: learn the outputs of the best net of this run instead of the targets"""
    patience: int | None = None
    """stop after this many evaluations in a row without a better validation score"""
    seed: int = 0
    """random seed of the initial weights and of the data"""
    dtype: Literal["float32", "float64"] = "float32"
    devices: int = 1
    """number of processes"""
    workers: int = 0
    """number of data-loading processes"""
    threads: int | None = None
    """threads per process; default: torch's"""
    out: Path | None = None
    """run directory; default: a new one in runs/"""
    tensorboard: bool = True


def plain(value: Any) -> Any:
    """Settings as numbers, strings, lists and dicts; a task becomes its name and its options, and a user's task also
    the class to import."""
    if is_dataclass(value):
        name = {"name": value.name} if isinstance(value, Task) else {}
        if isinstance(value, Task) and not type(value).__module__.startswith("slimrnn."):
            name["class"] = path_of(type(value))
        return name | {part.name: plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
