"""The reference has every public name, and docstrings come out as they were meant. `make docs` builds the pages."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest
from docstring_markup import PUBLIC_MODULES, documented_names, to_rst

import slimrnn
from pages import DOCS

WITHOUT_REFERENCE = {"slimrnn.cli", "slimrnn.ops", "slimrnn.tracing"}  # docs/command-line.md and docs/native.md


def in_reference() -> list[str]:
    text = "\n".join(page.read_text() for page in (DOCS / "api").glob("*.md"))
    return re.findall(r"^\.\. (?:auto\w+|py:data):: (\S+)$", text, re.MULTILINE)


def test_every_package_is_public_or_named_as_internal() -> None:
    packages = {found.name for found in pkgutil.iter_modules(slimrnn.__path__, "slimrnn.") if found.ispkg}
    assert packages | {"slimrnn"} == set(PUBLIC_MODULES) | WITHOUT_REFERENCE


def test_every_public_name_is_in_the_reference_once() -> None:
    listed = in_reference()
    assert len(listed) == len(set(listed))
    assert set(documented_names().values()) - set(listed) == set()


def test_a_name_means_the_same_in_every_module() -> None:
    for full, documented in documented_names().items():
        module, _, name = full.rpartition(".")
        if module and full != documented:
            first = importlib.import_module(documented.rpartition(".")[0])
            assert getattr(importlib.import_module(module), name) is getattr(first, name)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("`rank` of W_g, |v| or nearest_", r"``rank`` of W\ :sub:`g`\ , \|v\| or nearest\_"),
        ("h_{t-1} and ∇_{h_t} L, max_norm", r"h\ :sub:`t-1`\  and ∇\ :sub:`h\_t`\  L, max\_norm"),
        ("see `LowRank(24)`", "see :py:obj:`LowRank(24) <slimrnn.LowRank>`"),
        ("(B) numbers", r"\(B) numbers"),
        ("where\n\n    y = W h*\n\nholds", "where\n\n::\n\n    y = W h*\n\nholds"),
        (
            "Options:\nleak, skip -- of h,\nor none;\nbias",
            "Options:\n\n``leak``, ``skip``\n    of h,\n    or none;\n    bias",
        ),
        ("One of\n- a_1,\n  or so;\n- b", "One of\n\n- a\\ :sub:`1`\\ ,\n  or so;\n- b"),
        (">>> f(*x_)\n3", ">>> f(*x_)\n3"),
    ],
)
def test_docstrings_become_restructured_text(written: str, shown: str) -> None:
    assert "\n".join(to_rst(written.split("\n"))) == shown
