"""Names of the form module:name, for users' tasks and structures."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

from slimrnn.errors import ConfigError


def imported(name: str, what: str) -> object:
    """What a module has under a name; modules of the working directory are found too, after all others.

    `what` says in messages what the name is for."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise ConfigError(f"expected {what} as module:name, got {name!r}")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # and left there: processes that help to train import the module too
        importlib.invalidate_caches()
    try:
        main = sys.modules["__main__"]
        module = main if module_name == _name_of_main() else importlib.import_module(module_name)
        return getattr(module, attribute)
    except ModuleNotFoundError as error:
        where = "in the working directory or among the installed packages"
        raise ConfigError(f"expected {what} that can be imported, got {name!r}: {error} {where}") from error
    except Exception as error:  # whatever a module does when it is imported
        reason = str(error) if isinstance(error, AttributeError) else f"{type(error).__name__}: {error}"
        raise ConfigError(f"expected {what} that can be imported, got {name!r}: {reason}") from error


def path_of(cls: type) -> str:
    """The name to import a class by: module:name."""
    module = _name_of_main() if cls.__module__ == "__main__" else cls.__module__
    return f"{module}:{cls.__qualname__}"


def _name_of_main() -> str:
    """The name by which others can import what runs as the main program."""
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None:
        return str(spec.name)
    return "__main__" if file is None else Path(file).stem
