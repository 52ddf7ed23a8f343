"""A cell's step, written once in python, as a program of the native core: traced, with its way back derived from it."""

from slimrnn.tracing.native_cells import Around, Traced, explain_once, find

__all__ = ["Around", "Traced", "explain_once", "find"]
