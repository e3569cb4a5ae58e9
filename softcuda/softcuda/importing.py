"""Changes to modules of others at the moment when they are imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def change_on_import(name: str, change: Callable[[Any], None]) -> None:
    """Call ``change`` with a module once it is loaded; now where it is. Imports nothing."""
    if name in sys.modules:
        change(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, change))


class _Finder(MetaPathFinder):
    """Finds the module where Python does, and changes it once it is loaded."""

    def __init__(self, name: str, change: Callable[[Any], None]) -> None:
        self._name, self._change = name, change
        self._is_asking = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name or self._is_asking:
            return None
        self._is_asking = True  # the finders behind this one
        try:
            spec = find_spec(name)
        finally:
            self._is_asking = False
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        load = loader.exec_module

        def load_and_change(module: ModuleType) -> None:
            load(module)
            self._change(module)

        loader.exec_module = load_and_change
        return spec
