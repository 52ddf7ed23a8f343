"""The processes of a distributed run, started by torchrun or by `launch`."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import multiprocessing
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Any

import torch

from slimrnn._texts import shown, whole_number
from slimrnn.errors import LostProcess, TrainingError


@dataclass(frozen=True)
class Place:
    """Rank of this process, and number of processes."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0  # on this machine
    local_world: int = 1


ALONE = Place()


def my_place() -> Place:
    """From the environment variables that torchrun and `launch` set."""
    world = _from_environment("WORLD_SIZE", 1)
    rank = _from_environment("RANK", 0)
    return Place(rank, world, _from_environment("LOCAL_RANK", rank), _from_environment("LOCAL_WORLD_SIZE", world))


def _from_environment(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    number = whole_number(text.strip())
    if number is None:
        raise TrainingError(f"expected the environment variable {name} to be a whole number, got {shown(text)}")
    return number


@contextlib.contextmanager
def joined(place: Place) -> Iterator[torch.device]:
    """Join the process group; yields the device to train on, a GPU if there is one for each process."""
    has_gpu = torch.cuda.device_count() >= place.local_world
    device = torch.device("cuda", place.local_rank) if has_gpu else torch.device("cpu")
    if has_gpu:
        torch.cuda.set_device(device)  # the one that nccl takes
    if place.world == 1:
        yield device
        return
    # Before there is a group: the functions of this module have the one at its import as a default, and keep it.
    importlib.import_module("torch.distributed.nn")
    with telling_of_lost_processes(place):
        torch.distributed.init_process_group("nccl" if has_gpu else "gloo")
        group = [torch.distributed.group.WORLD]
        yield device
        torch.distributed.barrier()  # none may leave while another still communicates
        torch.distributed.destroy_process_group()
        atexit.register(_end_threads, group)


def _end_threads(group: list[Any]) -> None:
    """Drop the last reference to torch's group, whose destructor ends its threads.

    They need Python's lock to let go of tensors. Once the interpreter is being finalized they cannot have it, and torch
    aborts. DistributedDataParallel, which drops the last one in C++, would wait for them and hold the lock."""
    gc.collect()  # what is left of DistributedDataParallel
    group.clear()


@contextlib.contextmanager
def telling_of_lost_processes(place: Place) -> Iterator[None]:
    """Raise LostProcess if another process, or its machine, died."""
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, torch.distributed.DistError) and "gloo" not in str(error):  # which has no class for it
            raise
        reason = re.sub(r"^\[[^]]*\] ", "", str(error)).split(". ")[0]
        lost = "the other process" if place.world == 2 else f"one of the {place.world - 1} other processes"
        raise LostProcess(f"lost contact with {lost}, which may say why: {reason}") from None


def from_first(value: Any, place: Place) -> Any:
    """Broadcast from the first process; all processes must call this."""
    if place.world == 1:
        return value
    shared = [value]
    torch.distributed.broadcast_object_list(shared)
    return shared[0]


def in_any_process(is_so: bool, place: Place, device: torch.device) -> bool:
    """Whether it is so in some process; all processes must call this."""
    if place.world == 1:
        return is_so
    count = torch.tensor(int(is_so), device=device)
    torch.distributed.all_reduce(count)
    return bool(count)


def launch(work: Callable[..., object], arguments: tuple[Any, ...], devices: int) -> None:
    """Call `work(*arguments)` in `devices` new processes, with torchrun's environment variables."""
    context = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    errors = context.SimpleQueue()
    place = {
        "WORLD_SIZE": devices,
        "LOCAL_WORLD_SIZE": devices,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": free_port(),
    }
    threads = max(1, torch.get_num_threads() // devices)
    processes = [
        context.Process(
            target=_begin, args=(work, arguments, place | {"RANK": rank, "LOCAL_RANK": rank}, threads, errors)
        )
        for rank in range(devices)
    ]
    try:
        for process in processes:
            process.start()
        _wait(processes)
    finally:
        for process in processes:
            if process.is_alive():
                process.kill()
                process.join()
    if not errors.empty():
        raise errors.get()
    codes = [process.exitcode for process in processes]
    if any(codes):
        raise TrainingError(f"expected {devices} processes to end well, got exit codes {', '.join(map(str, codes))}")


def _begin(
    work: Callable[..., object], arguments: tuple[Any, ...], place: dict[str, object], threads: int, errors: Any
) -> None:
    os.environ |= {name: str(value) for name, value in place.items()}
    torch.set_num_threads(threads)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        work(*arguments)
    except TrainingError as error:
        errors.put(error)
        raise SystemExit(1) from None


def _end_with_parent() -> None:
    """Exit when the parent is killed, instead of training on unnoticed."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # `launch` started this one
    parent.join()
    os.kill(os.getpid(), signal.SIGKILL)


def _wait(processes: Sequence[BaseProcess]) -> None:
    """Wait until all have ended, or one has failed: the others would wait for it forever.

    Ctrl-C reaches the processes by itself; SIGTERM is passed on."""
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: _terminate(processes))
    try:
        while any(process.is_alive() for process in processes):
            if any(process.exitcode for process in processes):
                time.sleep(1)  # the others may be about to fail for the same reason
                return
            time.sleep(0.05)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _terminate(processes: Sequence[BaseProcess]) -> None:
    for process in processes:
        if process.is_alive():
            process.terminate()


def free_port() -> int:
    """A free TCP port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
