"""Models smaller: torch's recurrent layers replaced by ours, with the same outputs or with a structure."""

from slimrnn.compression.replace import replace
from slimrnn.compression.replacements import Replacement, Replacements, replacements

__all__ = ["Replacement", "Replacements", "replace", "replacements"]
