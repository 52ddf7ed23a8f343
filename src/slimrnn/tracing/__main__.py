"""`python -m slimrnn.tracing FILE`: write the C++ of the built-in cells."""

from __future__ import annotations

import sys
from pathlib import Path

from slimrnn.tracing.built_in import generated_header

Path(sys.argv[1]).write_text(generated_header())
