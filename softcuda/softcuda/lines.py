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
_DEBUG_MODULE = "numba.cuda.debuginfo"
"""Where numba-cuda writes lines into LLVM's code."""
_OVERRIDE = 4
"""LLVM Language Reference, "Module Flags Metadata": the flag of this module counts, whatever
behaviour the flag of another module has."""


@cache
def add_lines() -> None:
    """Have numba-cuda compile lines from now on, in this process and permanently.

    Imports nothing: options of Numba count that a program sets before its own import.
    """
    change_on_import(_MODULE, _change)


@cache
def link_lines_with_c() -> None:
    """Have kernels with lines link CUDA C (``declare_device(link=...)``, and Numba's own for arrays
    that a kernel makes).

    numba-cuda marks the version of its debug information as a *warning*, NVRTC as an *error*, and
    LLVM's linker refuses modules whose marks differ.
    """
    change_on_import(_DEBUG_MODULE, _change_debug_information)


def _change_debug_information(module: Any) -> None:
    builder: Any = module.DIBuilder
    finalize = builder.finalize

    def set_module_flags(one: Any) -> None:
        flags = one.module.add_named_metadata("llvm.module.flags")
        number = one._const_int
        for name, version in (
            ("Dwarf Version", one.DWARF_VERSION),
            ("Debug Info Version", one.DEBUG_INFO_VERSION),
        ):
            flag = one.module.add_metadata([number(_OVERRIDE), name, number(version)])
            if version is not None and flag not in flags.operands:
                flags.add(flag)

    def finalize_with_places(one: Any) -> None:
        _place_calls(one.module)
        finalize(one)

    builder._set_module_flags = set_module_flags
    builder.finalize = finalize_with_places


def _place_calls(module: Any) -> None:
    """Give calls without a place the line of their function.

    Numba takes and gives back what arguments refer to before any statement. LLVM refuses a module
    with a call that it inlines and that has no place (LLVM, "Source Level Debugging").
    """
    for function in module.functions:
        if (subprogram := function.metadata.get("dbg")) is None:
            continue
        line = dict(subprogram.operands)["line"]
        at = {"line": line, "column": 1, "scope": subprogram}
        for block in function.blocks:
            for one in block.instructions:
                if one.opname in ("call", "invoke") and "dbg" not in one.metadata:
                    one.set_metadata("dbg", module.add_debug_info("DILocation", at))


def _change(module: Any) -> None:
    """Have dispatchers of this module ask for lines when they compile."""
    dispatcher: Any = module.CUDADispatcher
    compile_kernel, compile_function = dispatcher.compile, dispatcher.compile_device

    def ask_for_lines(one: Any) -> None:
        options = one.targetoptions
        # Debug information has lines too, and Numba takes only one of the two.
        options["lineinfo"] = not options.get("debug")
        one._cache = module.NullCache()  # what is kept on disk may have been compiled without

    def compile_either_way(compile_it: Any, one: Any, *arguments: Any, **named: Any) -> Any:
        ask_for_lines(one)
        try:
            return compile_it(one, *arguments, **named)
        except ZeroDivisionError:
            # numba-cuda 0.30.4 divides by the size of an empty tuple where it describes its type.
            one.targetoptions["lineinfo"] = False
            return compile_it(one, *arguments, **named)

    def compile_with_lines(one: Any, sig: Any) -> Any:
        return compile_either_way(compile_kernel, one, sig)

    def compile_device_with_lines(one: Any, *arguments: Any, **named: Any) -> Any:
        return compile_either_way(compile_function, one, *arguments, **named)

    dispatcher.compile = compile_with_lines
    dispatcher.compile_device = compile_device_with_lines
