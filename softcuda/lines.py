"""Python lines in what numba-cuda compiles, so that a fault names the line it is at.

Numba writes lines for ``lineinfo=True``, which few programs say. Here each kernel gets them when it
is compiled, whoever decorated it, and whenever that was.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from softcuda.importing import change_on_import

_MODULE = "numba.cuda.dispatcher"
"""Where numba-cuda compiles kernels and the functions that they call."""


@cache
def add_lines() -> None:
    """Have numba-cuda compile lines from now on, in this process and permanently.

    Imports nothing: options of Numba count that a program sets before its own import.
    """
    change_on_import(_MODULE, _change)


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
