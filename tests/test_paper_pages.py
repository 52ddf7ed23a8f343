"""The pages about the papers: their examples run, they leave nothing out, and every name on them exists."""

from __future__ import annotations

import ast
import fnmatch
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import slimrnn
import slimrnn.analysis
import slimrnn.papers
import slimrnn.sequence
import slimrnn.tasks
import slimrnn.training
from pages import DOCS, check_examples
from slimrnn.cli import COMMANDS
from slimrnn.layers.options import StackOptions
from slimrnn.papers import paper_rows
from slimrnn.tasks import TASKS

MODULES = (slimrnn, slimrnn.sequence, slimrnn.analysis, slimrnn.tasks, slimrnn.papers, slimrnn.training)
ROWS = paper_rows()


def numbered(kind: str, last: int) -> set[str]:
    return {f"{kind} {number}" for number in range(1, last + 1)}


@dataclass(frozen=True)
class Page:
    """A page, the first word of its rows' `paper`, and what the paper counts or gives a title."""

    name: str
    paper: str
    parts: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return self.name


PAGES = [
    Page(
        "paper-factorized.md",
        "factorized",
        numbered("eq", 14) | numbered("figure", 5) | numbered("table", 2)
        | {"definition 1.1", "lemma 1.1", "lemma 1.2", "theorem 1.1", "theorem 1.2"}
        | {f"prop 1.{k}" for k in range(1, 5)}
        | {"§1.4.3", "§2.2.1", "§2.2.2", "§2.2.3", "§3.1", "§3.2", "§3.3"},
    ),
    Page(
        "paper-kru.md",
        "KRU",
        numbered("eq", 7) | numbered("figure", 5) | numbered("table", 2)
        | {"§2.1", "§2.3", "§3", "§4.1", "§4.2", "§4.3", "§4.4", "§4.5", "uRNN", "full-capacity uRNN"},
    ),
    Page(
        "paper-low-rank.md",
        "low-rank",
        numbered("eq", 9) | numbered("figure", 2) | numbered("table", 2)
        | {"§2.2", "§3.0.1", "§3.0.2", "§3.0.3", "§3.0.4", "A.1", "A.2", "A.3"},
    ),
    Page(
        "paper-lecture.md",
        "lecture",
        numbered("figure", 20)
        | {
            "Recurrent Neural Networks",
            "Unfolding Computational Graphs",
            "Teacher Forcing",
            "Computing Gradient in RNNs",
            "RNNs as Directed Graphical Models",
            "Drawing samples from an RNN model",
            "Modeling Sequences Conditioned on Context with RNNs",
            "Bidirectional RNNs",
            "Encoder-Decoder Sequence-to-Sequence Architectures",
            "Deep Recurrent Networks",
            "The Challenge of Long-Term Dependencies",
            "Leaky Units and Multiple Time Scales",
            "Skip Connections Through Time",
            "Leaky Units and Spectrum of Different Time Scales",
            "Removing Connections",
            "Gated RNNs",
            "Long Short-Term Memory",
            "Gated Recurrent Unit",
            "Optimization for Long-Term Dependencies",
        },
    ),
]  # fmt: skip
every_page = pytest.mark.parametrize("page", PAGES, ids=str)


def tables(page: Page, header: str) -> list[list[str]]:
    """The cells of all tables with that header, line by line."""
    found = re.findall(
        rf"^{re.escape(header)}\n\|[-|]+\|\n((?:\|.*\n?)+)", (DOCS / page.name).read_text(), re.MULTILINE
    )
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for table in found for line in table.splitlines()]


def mapping(page: Page) -> list[list[str]]:
    source = "lecture" if page.paper == "lecture" else "paper"
    return tables(page, f"| in the {source} | where | here |") + tables(page, "| in their papers | where | here |")


def places(where: str) -> Iterator[str]:
    """`eqs. 4–6` is eq 4, eq 5 and eq 6; a section or a title is itself."""
    for part in where.split(", "):
        yield part
        found = re.fullmatch(r"([a-z]+?)s?\.? (\d+(?:\.\d+)?)(?:(?:–| and )(\d+))?", part)
        if found and found[3] and "–" in part:
            yield from (f"{found[1]} {number}" for number in range(int(found[2]), int(found[3]) + 1))
        elif found:
            yield from (f"{found[1]} {number}" for number in (found[2], found[3]) if number)


def names(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


@every_page
def test_the_examples_print_what_they_say(page: Page, capsys: pytest.CaptureFixture[str]) -> None:
    check_examples(page.name, capsys)


@every_page
def test_nothing_of_the_paper_is_left_out(page: Page) -> None:
    lines = mapping(page)
    assert all(len(line) == 3 for line in lines)
    assert page.parts <= {place for _, where, _ in lines for place in places(where)}


@every_page
def test_every_line_names_something_or_says_that_there_is_nothing(page: Page) -> None:
    for line in mapping(page):
        assert names(line[2]) or "not implemented" in line[2] or "next four lines" in line[2], line


@every_page
def test_every_name_exists(page: Page) -> None:
    for _, _, here in mapping(page):
        for name in names(here):
            check_name(name)


@every_page
def test_every_row_is_listed_with_its_claim(page: Page) -> None:
    listed = tables(page, "| row | the paper says |")
    expected = {f"`{row.name}`": row.claim for row in ROWS.values() if row.paper.split()[0] == page.paper}
    assert dict(listed) == expected
    assert len(listed) == len(expected)


@every_page
def test_rows_with_settings_of_ours_exist(page: Page) -> None:
    for rows, _ in tables(page, "| rows | ours |"):
        for pattern in names(rows):
            assert fnmatch.filter(ROWS, pattern), pattern


@pytest.mark.parametrize(
    "name",
    ["LSTMM", "GRU(rset='before')", "LowRank(24, 3, 4)", "LSTM.leap", "copy-1000-gru", "slimrnn fly", "GRU(", "a-*"],
)
def test_a_dead_name_is_found(name: str) -> None:
    with pytest.raises((AssertionError, SyntaxError)):
        check_name(name)


# --- names ------------------------------------------------------------------------------------------------


def check_name(name: str) -> None:
    """A row, rows by a pattern, a task, a command, or Python in which all names and arguments exist."""
    if name in ROWS or name in TASKS:
        return
    if name.startswith("slimrnn "):
        _, command, *words = name.split()
        assert command in COMMANDS, name
        assert command != "train" or words[0] in TASKS, name
        return
    if "*" in name and "-" in name:
        assert fnmatch.filter(ROWS, name), name
        return
    for node in ast.walk(ast.parse(name, mode="eval")):
        if isinstance(node, ast.Name | ast.Attribute):
            resolve(node)
        elif isinstance(node, ast.Call):
            check_call(resolve(node.func), node)


def resolve(node: ast.expr) -> Any:
    """What a dotted name stands for; a field of a dataclass, which has no value yet, for its annotation."""
    if isinstance(node, ast.Attribute):
        owner = resolve(node.value)
        fields = getattr(owner, "__dataclass_fields__", {})
        assert hasattr(owner, node.attr) or node.attr in fields, ast.unparse(node)
        return getattr(owner, node.attr, None)
    assert isinstance(node, ast.Name), ast.unparse(node)
    homes = [module for module in MODULES if node.id in module.__all__]
    assert homes, node.id
    return getattr(homes[0], node.id)


def check_call(function: Callable[..., Any], node: ast.Call) -> None:
    keywords = [keyword.arg for keyword in node.keywords if keyword.arg]
    signature = inspect.signature(function)
    known = set(signature.parameters)
    if any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        known |= set(StackOptions.__annotations__)
    assert set(keywords) <= known, ast.unparse(node)
    try:
        signature.bind_partial(*node.args, **dict.fromkeys(keywords))
    except TypeError as error:
        raise AssertionError(f"{ast.unparse(node)}: {error}") from error
