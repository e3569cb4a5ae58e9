"""Python lines in what numba-cuda compiles, so that a fault names the line it is at.

Numba writes lines for ``lineinfo=True``, which few programs say. Here each kernel gets them when it
is compiled, whoever decorated it, and whenever that was.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_MODULE = "numba.cuda.dispatcher"
"""Where numba-cuda compiles kernels and the functions that they call."""


@cache
def add_lines() -> None:
    """Have numba-cuda compile lines from now on, in this process and permanently.

    Imports nothing: options of Numba count that a program sets before its own import.
    """
    if _MODULE in sys.modules:
        _change(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds the module where Python does, and changes it once it is loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        load = loader.exec_module

        def load_and_change(module: ModuleType) -> None:
            load(module)
            _change(module)

        loader.exec_module = load_and_change
        return spec


def _change(module: Any) -> None:
    """Have dispatchers of this module ask for lines when they compile."""
    dispatcher: Any = module.CUDADispatcher
    compile_kernel, compile_function = dispatcher.compile, dispatcher.compile_device

    def ask_for_lines(one: Any) -> None:
        options = one.targetoptions
        # Debug information has lines too, and Numba takes only one of the two.
        options["lineinfo"] = not options.get("debug")
        one._cache = module.NullCache()  # what is kept on disk may have been compiled without

    def compile_with_lines(one: Any, sig: Any) -> Any:
        ask_for_lines(one)
        return compile_kernel(one, sig)

    def compile_device_with_lines(one: Any, *arguments: Any, **named: Any) -> Any:
        ask_for_lines(one)
        return compile_function(one, *arguments, **named)

    dispatcher.compile = compile_with_lines
    dispatcher.compile_device = compile_device_with_lines
