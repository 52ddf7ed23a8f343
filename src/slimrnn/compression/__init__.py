"""Models smaller: torch's recurrent layers replaced by ours, with the same outputs or with a structure."""

from slimrnn.compression.compressing import Compressed, compress
from slimrnn.compression.replace import replace
from slimrnn.compression.replacements import Replacement, Replacements, replacements
from slimrnn.compression.report import CompressionReport

__all__ = ["Compressed", "CompressionReport", "Replacement", "Replacements", "compress", "replace", "replacements"]
