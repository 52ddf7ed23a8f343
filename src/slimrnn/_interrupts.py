"""Ctrl-C while the command `slimrnn` is being imported, which takes seconds: one line and exit code 130.

An exception in the middle of an import can be swallowed or changed by whoever imports, and ends in a long traceback."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import PurePath
from types import FrameType

EXIT_CODE = 130  # as a shell has it


def interrupt(number: int, frame: FrameType | None) -> None:
    """End at once if anything is being imported, where there is nothing to save; else KeyboardInterrupt."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os.write(2, b"slimrnn: interrupted\n")
            os._exit(EXIT_CODE)
        frame = frame.f_back
    raise KeyboardInterrupt


def is_command() -> bool:
    """Whether this process is `slimrnn ...` or `python -m slimrnn ...`, and not a program that uses the library."""
    given = iter(sys.orig_argv[1:])
    first = next((one for one in given if one == "-m" or not one.startswith("-")), "")
    return next(given, "") == "slimrnn" if first == "-m" else PurePath(first).stem == "slimrnn"


def take_over() -> None:
    """Unless somebody else has."""
    is_ours = threading.current_thread() is threading.main_thread() and is_command()
    if is_ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
