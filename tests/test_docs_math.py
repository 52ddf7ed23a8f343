"""Formulas of the documentation are MathML in the pages themselves: nothing is fetched, and no TeX is left to read."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from math_core import LatexError
from mathml import to_mathml
from mdit_py_plugins.dollarmath import dollarmath_plugin
from sphinx.application import Sphinx
from sphinx.errors import SphinxError

from pages import DOCS

PAGES = sorted([*DOCS.rglob("*.md"), *DOCS.parent.glob("*.md")])
PARSER = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin)
TEX = re.compile(r"\\[A-Za-z]+|[\^_]\{")


class Page(HTMLParser):
    """What a built page shows, what it fetches, and its number of formulas."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.fetched, self.formulas = "", [""], 0
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.formulas += tag == "math"
        if tag in ("script", "img", "iframe", "source") or (tag == "link" and ("rel", "stylesheet") in attrs):
            self.fetched += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not {"script", "style", "pre", "code"} & set(self.open):
            self.text += data


def formulas(page: Path) -> Iterator[tuple[str, bool]]:
    for block in PARSER.parse(page.read_text()):
        for token in (block, *(block.children or ())):
            if token.type.startswith("math_"):
                yield token.content, token.type.startswith("math_block")


def build(directory: Path, markdown: str) -> str:
    (directory / "index.md").write_text(markdown)
    settings = {
        "extensions": ["myst_parser", "mathml"],
        "html_math_renderer": "mathml",
        "myst_enable_extensions": ["dollarmath"],
    }
    out = directory / "out"
    app = Sphinx(directory, None, out, out, "html", settings, status=None, warning=io.StringIO(), warningiserror=True)
    app.build()
    return (out / "index.html").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_formula_becomes_mathml(page: Path) -> None:
    for tex, display in formulas(page):
        found = Page(to_mathml(tex, display))
        assert found.formulas == 1
        assert not TEX.search(found.text), tex


def test_formulas_are_found() -> None:
    assert sum(1 for page in PAGES for _ in formulas(page)) > 300


@pytest.mark.parametrize("tex", [r"\nosuchcommand x", r"\frac{a", "a_", r"\begin{aligned} a"])
def test_broken_tex_is_an_error(tex: str) -> None:
    with pytest.raises(LatexError):
        to_mathml(tex)


def test_a_page_has_its_formulas_and_fetches_nothing(tmp_path: Path) -> None:
    html = build(tmp_path, "# Page\n\nInline $h_t^2$.\n\n$$\\frac{a}{b}$$ (half)\n\nSee {eq}`half`.\n")
    page = Page(html)
    assert page.formulas == 2
    assert "(1)" in page.text
    assert not TEX.search(page.text)
    assert not [address for address in page.fetched if "//" in address]


def test_a_page_with_broken_tex_is_not_built(tmp_path: Path) -> None:
    with pytest.raises(SphinxError, match=r"index\.md.*expected TeX that becomes MathML, got '.*nosuchcommand'"):
        build(tmp_path, "# Page\n\nHere $\\nosuchcommand$.\n")


def test_the_built_documentation_fetches_nothing() -> None:
    """Of `make docs`, which `make test` runs before the tests; without it there are no pages to read."""
    for path in (DOCS.parent / "build/docs").rglob("*.html"):
        page = Page(path.read_text())
        assert not [address for address in page.fetched if "//" in address], path
        assert not TEX.search(page.text), path
