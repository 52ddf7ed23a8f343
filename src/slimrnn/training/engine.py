"""A run in one process, which may be one of several: Lightning's Trainer, and what surrounds it."""

from __future__ import annotations

import contextlib
import logging
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.pytorch import Trainer
from lightning.pytorch.strategies import DDPStrategy

from slimrnn.training.checkpoints import SafetensorsIO, newest_checkpoint
from slimrnn.training.conductor import Conductor, evaluated_sizes, final_sizes
from slimrnn.training.config import Config, plain
from slimrnn.training.curve import Curve
from slimrnn.training.errors import CheckpointError, RunDirectoryError, TrainingError, is_out_of_memory
from slimrnn.training.evaluation import EvaluationBatches, measure
from slimrnn.training.files import remove_leftovers, write_tensors, writing
from slimrnn.training.interrupts import Interrupts
from slimrnn.training.launch import Place, my_place
from slimrnn.training.locking import locked
from slimrnn.training.module import SequenceModule
from slimrnn.training.nets import WEIGHTS, read_net
from slimrnn.training.plots import plot_run
from slimrnn.training.progress import Progress
from slimrnn.training.record import Result, Run, Scores, fingerprint

REMARKS = (  # on what Lightning and torch's loader do
    r"`isinstance\(treespec, LeafSpec\)` is deprecated",
    r"This process \(pid=\d+\) is multi-threaded, use of fork\(\)",
)


@dataclass(frozen=True)
class Job:
    """What to do; `config.out` is the directory of the run."""

    config: Config
    budget: float | None = None
    quiet: bool = False
    command: str | None = None  # what resumed the run


def work(job: Job) -> Result:
    """Train from the newest checkpoint there is, or from the beginning."""
    config, place = job.config, my_place()
    progress = Progress(config, job.quiet, speaks=place.rank == 0)
    with _settings(config), locked(config.out) if place.rank == 0 and config.out else contextlib.nullcontext():
        module = SequenceModule(config)
        with Interrupts() as interrupts:
            conductor = Conductor(config, progress, interrupts, job.budget)
            _fit(job, place, conductor, module)
        result = _finish(config, conductor, module, progress) if place.rank == 0 else None
        if place.world > 1:
            shared = [result]
            torch.distributed.broadcast_object_list(shared)
            result = shared[0]
            torch.distributed.barrier()  # so that none leaves while another still listens
            torch.distributed.destroy_process_group()
    assert result is not None
    return result


def score_weights(path: Path, config: Config) -> Scores:
    """The scores of the net whose weights are in a file."""
    model, _ = read_net(path, config)
    return _scores(model, config, final_sizes(config))


def _fit(job: Job, place: Place, conductor: Conductor, module: SequenceModule) -> None:
    config, start, progress = job.config, None, conductor.progress
    if config.out is not None:
        start = newest_checkpoint(config.out / "checkpoints", fingerprint(config), progress.say)
    if place.rank == 0:
        assert config.out is not None  # this process gave it its name
        remove_leftovers(config.out)
        with writing(config.out):
            (config.out / "checkpoints").mkdir(exist_ok=True)
        board = config.out / "tensorboard" if config.tensorboard else None
        conductor.directory = config.out
        conductor.curve = Curve(config.out / "curve.csv", -1 if start is None else start[1], board)
        run = Run(config.out)
        resumed = run.record.get("resumed", []) + ([] if start is None else [start[1]])
        commands = run.record.get("resumed_by", []) + ([] if job.command is None else [job.command])
        run.write(status="running", result=None, resumed=resumed, resumed_by=commands, config=plain(config))
    try:
        trainer = _trainer(config, place, conductor)
        trainer.fit(module, ckpt_path=None if start is None else str(start[0]), weights_only=True)
    except SystemExit:  # what Lightning makes of a second Ctrl-C
        _note_failure(conductor, "interrupted")
        raise KeyboardInterrupt from None
    except RunDirectoryError as error:
        _note_failure(conductor, f"failed: {error}")
        raise RunDirectoryError(f"{error}; to go on when that is mended: slimrnn resume {config.out}") from None
    except Exception as error:
        _note_failure(conductor, f"failed: {error}")
        if is_out_of_memory(error):
            raise TrainingError(f"expected a run that fits into the memory, got: {error}") from None
        raise
    finally:
        progress.end()
        if conductor.curve is not None:
            conductor.curve.close()


def _trainer(config: Config, place: Place, conductor: Conductor) -> Trainer:
    """One epoch of as many batches as there are updates. The conductor evaluates, writes and shows."""
    plugins: list[Any] = [SafetensorsIO(fingerprint(config))]
    strategy: Any = "auto"
    if place.world > 1:
        plugins.append(TorchElasticEnvironment())
        strategy = DDPStrategy()
    return Trainer(
        max_steps=config.updates,
        accelerator="cuda" if torch.cuda.device_count() >= place.local_world else "cpu",
        devices=place.local_world,
        num_nodes=place.world // place.local_world,
        strategy=strategy,
        plugins=plugins,
        callbacks=[conductor],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        limit_val_batches=0,
        use_distributed_sampler=False,
        default_root_dir=str(config.out or "."),
    )


def _finish(config: Config, conductor: Conductor, module: SequenceModule, progress: Progress) -> Result:
    """Score the best and the final net, and write it all down."""
    directory, update, start = config.out, conductor.update, time.perf_counter()
    assert directory is not None
    write_tensors(directory / "final.safetensors", WEIGHTS, module.model.state_dict(), {"update": update})
    # A run that is to go on is scored as on the way: who stops it, or gives it a budget, does not want to wait.
    sizes = final_sizes(config) if conductor.ended in ("finished", "target") else evaluated_sizes(config)
    final = _scores(module.model, config, sizes)
    best_update, best = _best(config, conductor, final, sizes)
    result = Result(
        directory,
        conductor.ended,
        update,
        round(conductor.seconds_done, 3),
        best_update,
        best,
        final,
        tuple(module.recoveries),
    )
    run = Run(directory)
    values = {name: value for name, value in asdict(result).items() if name != "directory"}
    timings = {
        "training": conductor.seconds_done - conductor.evaluating,
        "evaluations on the way": conductor.evaluating,
        "final evaluation": time.perf_counter() - start,
    }
    run.write(status=result.ended, result=values, timings={name: round(value, 3) for name, value in timings.items()})
    plot_run(run, config.task)
    if result.ended in ("budget", "interrupted"):
        progress.say(f"stopped after update {update:,}; to go on: slimrnn resume {directory}")
    return result


def _best(config: Config, conductor: Conductor, final: Scores, sizes: dict[str, int]) -> tuple[int | None, Scores]:
    """The best net's update and scores: the last net's, if the run was stopped before it could be evaluated and it is
    better. The file of the best may be from beyond the checkpoint that a killed run went on from."""
    sign = 1 if config.task.lower_is_better else -1
    if conductor.best_update == conductor.update or sign * final["valid"][config.task.monitor] < conductor.best:
        return conductor.update, final
    if conductor.best_update < 0:  # no score was a number
        return None, final
    assert config.out is not None
    try:
        model, update = read_net(config.out / "best.safetensors", config)
    except CheckpointError as error:
        conductor.progress.say(f"{error}; the last net is taken for the best")
        return conductor.update, final
    return update, _scores(model, config, sizes)


def _note_failure(conductor: Conductor, status: str) -> None:
    if conductor.directory is not None:
        with contextlib.suppress(RunDirectoryError):  # the disk may be what failed
            Run(conductor.directory).write(status=status)


def _scores(model: torch.nn.Module, config: Config, sizes: dict[str, int]) -> Scores:
    return {split: measure(model, config.task, EvaluationBatches(config, split, size)) for split, size in sizes.items()}


@contextlib.contextmanager
def _settings(config: Config) -> Iterator[None]:
    """The threads asked for, the caller's random numbers untouched, and no remarks from Lightning."""
    threads = torch.get_num_threads()
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [logger.level for logger in loggers]
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        for message in REMARKS:
            warnings.filterwarnings("ignore", message)
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        if config.threads is not None:
            torch.set_num_threads(config.threads)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
