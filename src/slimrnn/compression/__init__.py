"""Models smaller: torch's recurrent layers replaced by ours, with the same outputs or with a structure."""

from slimrnn.compression.replace import replace

__all__ = ["replace"]
