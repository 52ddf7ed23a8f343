"""Formulas become MathML when the pages are built: a browser shows them without a script and without a network."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.errors import ExtensionError
from sphinx.util.math import get_node_equation_number

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata
    from sphinx.writers.html5 import HTML5Translator

LONGEST_INLINE = 20  # characters; a longer formula scrolls where the window is narrower, since none is broken
CONVERTER = LatexToMathML(fancy_error=False)


def to_mathml(tex: str, display: bool = False) -> str:
    """The formula as a `<math>` element. Raises `LatexError` where TeX, or the converter, does not know a command."""
    return CONVERTER.convert_with_local_state(tex, displaystyle=display)


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_html_math_renderer("mathml", inline_renderers=(_visit_inline, None), block_renderers=(_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _visit_inline(writer: HTML5Translator, node: nodes.math) -> None:
    mathml = _converted(node, display=False)
    long = len(re.sub(r"<[^>]*>", "", mathml)) > LONGEST_INLINE
    writer.body.append(f'<span class="math long">{mathml}</span>' if long else mathml)
    raise nodes.SkipNode


def _visit_block(writer: HTML5Translator, node: nodes.math_block) -> None:
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    if node["number"]:
        number = get_node_equation_number(writer, node)
        writer.body.append(f'<span class="eqno">({number})')
        writer.add_permalink_ref(node, "Link to this equation")
        writer.body.append("</span>")
    writer.body.append(_converted(node, display=True) + "</div>\n")
    raise nodes.SkipNode


def _converted(node: nodes.math | nodes.math_block, display: bool) -> str:
    try:
        return to_mathml(node.astext(), display)
    except LatexError as error:
        place = f"{node.source}:{node.line}" if node.line else node.source
        raise ExtensionError(f"{place}: expected TeX that becomes MathML, got {node.astext()!r}: {error}") from error
