"""The part of a run that one process does: load the checkpoint, train, score the net, write the files."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from slimrnn._texts import shown
from slimrnn.errors import (
    CheckpointError,
    LostProcess,
    RunDirectoryError,
    TrainingError,
    is_out_of_memory,
)
from slimrnn.training.checkpoints import list_checkpoints, newest_checkpoint
from slimrnn.training.config import Config, plain
from slimrnn.training.curve import Curve
from slimrnn.training.evaluation import EvaluationBatches, evaluated_sizes, final_sizes, measure
from slimrnn.training.interrupts import Interrupts
from slimrnn.training.launch import Place, from_first, joined, my_place, telling_of_lost_processes
from slimrnn.training.learner import Learner, net_to_train
from slimrnn.training.locking import locked
from slimrnn.training.loop import Callback, Loop
from slimrnn.training.memory import kept_memory
from slimrnn.training.nets import WEIGHTS, load_weights_from, read_net
from slimrnn.training.plots import plot_run
from slimrnn.training.progress import Progress
from slimrnn.training.record import Result, Run, Scores, fingerprint
from slimrnn.training.run_files import remove_leftovers, write_tensors, writing


@dataclass(frozen=True)
class Job:
    """What to do; `config.out` is the directory of the run."""

    config: Config
    budget: float | None = None
    quiet: bool = False
    command: str | None = None  # what resumed the run
    callbacks: Sequence[Callback] = ()


def work(job: Job, model: nn.Module | None = None) -> Result:
    """Train from the newest checkpoint, or from the start; `model` is the net if it has been built already."""
    config, place = job.config, my_place()
    is_first = place.rank == 0  # the one that writes
    progress = Progress(config, job.quiet, speaks=is_first)
    with (
        run_settings(config),
        locked(config.out) if is_first and config.out else contextlib.nullcontext(),
        joined(place) as device,
    ):
        net = (_net(config, place) if model is None else model).to(device)
        learner = Learner(config, net, progress.say, place)
        if place.world > 1:
            learner.objective = DistributedDataParallel(learner.objective)
        with Interrupts() as interrupts:
            loop = Loop(config, learner, progress, interrupts, job.budget, job.callbacks)
            _prepare(job, loop)
            with _noting_failures(loop), _closing(loop), telling_of_lost_processes(place):
                loop.run()
        with _noting_failures(loop):
            result: Result = from_first(_finish(loop) if is_first else None, place)
    return result


def score_weights(path: Path, config: Config) -> Scores:
    """The scores of the net whose weights are in a file."""
    return _scores(read_net(path, config), config, final_sizes(config))


def _net(config: Config, place: Place) -> nn.Module:
    """The net as it was at the start, unless there is a checkpoint to load into it."""
    resumes = place.rank == 0 and config.out is not None and bool(list_checkpoints(config.out / "checkpoints"))
    return net_to_train(config, resumes=from_first(resumes, place))


def _prepare(job: Job, loop: Loop) -> None:
    """Load the newest checkpoint and open the directory."""
    config, place, checkpoint = job.config, loop.place, None
    if place.rank == 0:
        assert config.out is not None  # this process gave it its name
        checkpoint = newest_checkpoint(config.out / "checkpoints", fingerprint(config), loop.progress.say)
    checkpoint = from_first(checkpoint, place)
    if checkpoint is not None:
        try:
            loop.load(checkpoint)
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise CheckpointError(
                f"expected the state of this run in a checkpoint of {config.out}, got another form: {shown(error)}"
            ) from None
    if config.out is None or place.rank > 0:
        return
    remove_leftovers(config.out)
    with writing(config.out):
        (config.out / "checkpoints").mkdir(exist_ok=True)
    board = config.out / "tensorboard" if config.tensorboard else None
    loop.directory = config.out
    loop.curve = Curve(config.out / "curve.csv", -1 if checkpoint is None else loop.learner.update, board)
    run = Run(config.out)
    resumed = run.record.get("resumed", []) + ([] if checkpoint is None else [loop.learner.update])
    commands = run.record.get("resumed_by", []) + ([] if job.command is None else [job.command])
    run.write(status="running", result=None, resumed=resumed, resumed_by=commands, config=plain(config))


@contextlib.contextmanager
def _noting_failures(loop: Loop) -> Iterator[None]:
    """Record failures in run.json, and add to their messages how to continue."""
    status = None
    try:
        yield
    except KeyboardInterrupt:
        status = "interrupted"
        if loop.directory is not None:
            loop.progress.say(f"stopped; to continue: slimrnn resume {loop.directory}")
        raise
    except Exception as error:
        explained = _explained(error, loop)
        status = f"failed: {explained}"
        if explained is error:
            raise
        raise explained from None
    finally:
        if status is not None and loop.directory is not None:
            with contextlib.suppress(RunDirectoryError):  # the disk may be what failed
                run = Run(loop.directory)
                if run.result is None:  # else only a picture is missing
                    run.write(status=status)


@contextlib.contextmanager
def _closing(loop: Loop) -> Iterator[None]:
    try:
        yield
    finally:
        loop.progress.end()
        if loop.curve is not None:
            loop.curve.close()


def _explained(error: Exception, loop: Loop) -> Exception:
    """The error with advice, where there is some."""
    how = "" if loop.config.out is None else f"; to continue once that is fixed: slimrnn resume {loop.config.out}"
    if isinstance(error, RunDirectoryError | LostProcess):
        return type(error)(f"{error}{how}")
    if is_out_of_memory(error):
        return TrainingError(f"expected a run that fits into the memory, got: {error}")
    return error


def _finish(loop: Loop) -> Result:
    """Score the best and the final net, and write the result."""
    config, directory, model, start = loop.config, loop.directory, loop.learner.model, time.perf_counter()
    assert directory is not None
    write_tensors(directory / "final.safetensors", WEIGHTS, model.state_dict(), {"update": loop.update})
    # A run that was stopped is scored like an evaluation during training, so that it ends quickly.
    sizes = final_sizes(config) if loop.ended in ("finished", "target", "patience") else evaluated_sizes(config)
    final = _scores(model, config, sizes)
    best_update, best = _best(loop, final, sizes)
    result = Result(
        directory,
        loop.ended,
        loop.update,
        round(loop.seconds_done, 3),
        best_update,
        best,
        final,
        tuple(loop.learner.recoveries),
    )
    run = Run(directory)
    values = {name: value for name, value in asdict(result).items() if name != "directory"}
    timings = {
        "training": loop.seconds_done - loop.evaluating,
        "evaluations on the way": loop.evaluating,
        "final evaluation": time.perf_counter() - start,
    }
    run.write(status=result.ended, result=values, timings={name: round(value, 3) for name, value in timings.items()})
    plot_run(run, config.task)
    config.task.illustrate(model, directory)
    if result.ended in ("budget", "interrupted"):
        loop.progress.say(f"stopped after update {loop.update:,}; to continue: slimrnn resume {directory}")
    return result


def _best(loop: Loop, final: Scores, sizes: dict[str, int]) -> tuple[int | None, Scores]:
    """Update and scores of the best net: the last net, if the run was stopped between evaluations and it is better.
    best.safetensors may be newer than the checkpoint that a killed run was resumed from."""
    config, sign = loop.config, 1 if loop.config.task.lower_is_better else -1
    if loop.best_update == loop.update or sign * final["valid"][config.task.monitor] < loop.best:
        return loop.update, final
    if loop.best_update < 0:  # no score was a number
        return None, final
    assert loop.directory is not None
    try:
        update = load_weights_from(
            loop.learner.model, loop.directory / "best.safetensors"
        )  # the last net is on the disk
    except CheckpointError as error:
        loop.progress.say(f"{error}; the last net is taken for the best")
        return loop.update, final
    return update, _scores(loop.learner.model, config, sizes)


def _scores(model: nn.Module, config: Config, sizes: dict[str, int]) -> Scores:
    return {split: measure(model, config.task, EvaluationBatches(config, split, size)) for split, size in sizes.items()}


@contextlib.contextmanager
def run_settings(config: Config) -> Iterator[None]:
    """Set the number of threads, keep freed memory, and keep the caller's random state."""
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings(), kept_memory():
        # Of torch's loader with workers, from Python 3.12 on.
        warnings.filterwarnings("ignore", r"This process \(pid=\d+\) is multi-threaded, use of fork\(\)")
        if config.threads is not None:
            torch.set_num_threads(config.threads)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
