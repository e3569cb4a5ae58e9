"""Local arrays of Numba's kernels (``cuda.local.array``) that hold nothing until they are written.

CUDA promises nothing of their contents. Numba happens to fill them with zeros where a kernel
begins, so that a read of what nothing has written seems right until Numba leaves that out. Without
that fill the sanitizer sees such a read (``native/sanitizer.c``).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from softcuda.importing import change_on_import

_MODULE = "numba.cuda.cudaimpl"
"""Where numba-cuda makes local arrays."""
_KEEP = "prefetch.L1 [$0];"
"""PTX without an effect. The compiler does not know that, so it neither moves the array into
registers nor takes a read of it for undefined."""

_is_unwritten = False


def leave_unwritten(on: bool) -> None:
    """Leave local arrays unwritten in kernels that Numba compiles from now on, or no more."""
    global _is_unwritten
    _is_unwritten = on
    if on:
        _change_when_imported()


@cache
def _change_when_imported() -> None:
    change_on_import(_MODULE, _change)


def _change(module: Any) -> None:
    make_array = module._generic_array

    def make_unwritten(context: Any, builder: Any, *given: Any, **named: Any) -> Any:
        array = make_array(context, builder, *given, **named)
        if _is_unwritten and named.get("addrspace") == module.nvvm.ADDRSPACE_LOCAL:
            _drop_fill(builder.function.entry_basic_block, named["symbol_name"])
        return array

    module._generic_array = make_unwritten


def _drop_fill(entry: Any, name: str) -> None:
    """Put ``_KEEP`` in place of the zeros that Numba's ``alloca_once`` stores into the newest local
    array."""
    ir: Any = import_module("llvmlite.ir")
    stores = [
        one
        for one in entry.instructions
        if isinstance(one, ir.instructions.StoreInstr)
        and isinstance(one.operands[1], ir.instructions.AllocaInstr)
        and one.operands[1].name.startswith(name)
    ]
    if not stores:
        return  # this Numba fills nothing
    array = stores[-1].operands[1]
    builder = ir.IRBuilder(entry)
    builder.position_before(stores[-1])
    pointer = builder.bitcast(array, ir.IntType(8).as_pointer())
    function = ir.FunctionType(ir.VoidType(), [pointer.type])
    builder.asm(function, _KEEP, "l,~{memory}", [pointer], side_effect=True)
    entry.instructions.remove(stores[-1])
