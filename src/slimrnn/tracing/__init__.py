"""A cell's step, written once in python, as a program of the native core: traced, with its way back derived from it."""

from slimrnn.tracing.native_cells import Traced, find

__all__ = ["Traced", "find"]
