"""Python's garbage collector in the command `slimrnn`.

The imports of a command make 200,000 objects, nearly all of which stay to the end. To look through them again and again
takes a third of a second while they are made, and half a second when the process ends."""

from __future__ import annotations

import gc

from slimrnn._interrupts import is_command


def pause_while_importing() -> None:
    """Collect nothing for now; a program that uses the library decides for itself."""
    if is_command():
        gc.disable()


def collect_again() -> None:
    """Only what has been made since then."""
    if is_command():
        gc.freeze()
        gc.enable()


def end() -> None:
    """The process ends: nothing is worth looking for."""
    if is_command():
        gc.freeze()
