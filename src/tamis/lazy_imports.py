"""Imports that run on first use, so that ``import tamis.table`` loads only what a scan needs.

Each name is also imported under ``TYPE_CHECKING``, for type checkers and for the tests of layers and circles.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


class _LazyModule:
    """Stands for a module until one of its attributes is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # pickle and hasattr ask for such names, of the stand-in itself
            raise AttributeError(f"{self!r} has no attribute {attribute!r}")
        return getattr(importlib.import_module(self._name), attribute)

    def __repr__(self) -> str:
        return f"<lazy module {self._name!r}>"


def lazy_module(name: str) -> Any:
    """Return a stand-in for the module, which is imported when an attribute is read; patches of it are seen."""
    return _LazyModule(name)


def lazy_attributes(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` that imports each name from its home when it is read."""

    def __getattr__(name: str) -> Any:  # noqa: N807  # the name that Python asks a module for
        if name in homes:
            return getattr(importlib.import_module(homes[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return __getattr__
