"""How sphinx builds these pages: `make docs` writes them to build/docs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike
from sphinx.util.typing import stringify_annotation

import slimrnn
from slimrnn.plotting import COLORS, PALE

sys.path.insert(0, str(Path(__file__).parent))
import docstring_markup

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "slimrnn"
version = release = slimrnn.__version__
html_title = f"slimrnn {version}"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["slimrnn.css"]
smartquotes = False  # "tanh" is a value to be typed
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": COLORS[0],
        "color-brand-content": COLORS[0],
        "code-font-size": "var(--font-size--small--3)",
    },
    "dark_css_variables": {"color-brand-primary": PALE, "color-brand-content": PALE},
}

extensions = ["myst_parser", "sphinx.ext.autodoc", "mathml"]
html_math_renderer = "mathml"
exclude_patterns = ["figures/*.py"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4  # links such as cells.md#gru, as on GitHub

autodoc_default_options = {"members": True, "exclude-members": "map_type, torch_type"}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False  # a method is shown where it is explained, not wherever it is defined again
python_use_unqualified_type_names = True
maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"

nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!slimrnn\.).*"),  # what other packages define
    ("py:class", r"slimrnn\.(data|ops|tracing)\..*"),  # readers and the native core, which have no reference
    ("py:class", r"slimrnn\.tasks\.own\.(scaling|series|windows)\..*"),  # parts of the tasks on own data
]
nitpick_ignore = [
    ("py:class", f"slimrnn.{name}")
    for name in (
        "cells.base.Matvec",
        "cells.biases.DrawnBias",
        "cells.leaky.Leak",
        "compression.replace.Model",
        "exporting.int8.report.Difference",
        "exporting.int8.report.Part",
        "layers.drawn.Drawn",
        "layers.readout.Readable",
        "layers.recurrent.CellLayer",
        "layers.summary.Summary",
        "layers.transition.Transition",
        "serving.native_pool.NativePool",
        "tasks.recommend_splits.Windows",
        "training.evaluation.EvaluationBatches",
    )
]

ARRAY_LIKE = stringify_annotation(ArrayLike, "smart")  # numpy's name for a long union


def _mark_up(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    lines[:] = docstring_markup.to_rst(lines)


def _shorten(
    app: Sphinx, what: str, name: str, thing: object, options: Any, signature: str | None, returns: str | None
) -> tuple[str, str] | None:
    if signature is None:
        return None
    if what == "class" and options.undoc_members:  # its fields are all listed below it
        return "", ""
    return signature.replace(ARRAY_LIKE, "ArrayLike"), returns or ""


def setup(app: Sphinx) -> None:
    app.add_config_value(
        "markup", Path(docstring_markup.__file__).read_text(), "env"
    )  # another one: read all pages again
    app.connect("autodoc-process-docstring", _mark_up)
    app.connect("autodoc-process-signature", _shorten)
