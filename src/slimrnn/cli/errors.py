"""What a user can do wrong, told in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class UsageError(Exception):
    """Input that no work can begin with. The message reads "expected …, got …"."""


@contextmanager
def refusing(*kinds: type[Exception]) -> Iterator[None]:
    """Around what only looks at the user's input: there such an exception is the user's to mend."""
    try:
        yield
    except kinds as error:
        raise UsageError(str(error)) from error
