"""A program in CUDA C++: its constants, and its kernels' arguments as their declaration has them.

Neither CuPy nor PyCUDA asks the compiler for a kernel's parameters: both pass a number of Python in
64 bits, or refuse it. So the types are read from the source's text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.backends.opencl_program import Parameter, argument, constant
from gpubench.errors import KernelError
from gpubench.names import Value

_SIGNED = ("char", "short", "int", "long")
_ELEMENT_TYPES = {
    "signed char": "char",
    "unsigned char": "uchar",
    "unsigned short": "ushort",
    "unsigned": "uint",
    "unsigned int": "uint",
    "long int": "long",
    "long long": "long",
    "long long int": "long",
    "unsigned long": "ulong",
    "unsigned long int": "ulong",
    "unsigned long long": "ulong",
    "unsigned long long int": "ulong",
    "size_t": "ulong",
    "ptrdiff_t": "long",
    "__half": "half",
    "bool": "uchar",
    **dict(zip(("int8_t", "int16_t", "int32_t", "int64_t"), _SIGNED, strict=True)),
    **{f"uint{8 << i}_t": f"u{name}" for i, name in enumerate(_SIGNED)},
}
"""Types of CUDA C++ by OpenCL's names, which say how many bits they have; those that are the same
in both are left out. ``long`` has 64 bits on Linux, and 32 on Windows."""

_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_QUALIFIERS = re.compile(r"\b(?:const|volatile|__restrict__|__restrict|__grid_constant__)\b")


def parameters_of(
    source: str, entry: str, constants: Mapping[str, Value]
) -> list[Parameter] | None:
    """Return the parameters of a kernel as its text declares them, ``None`` where the text has no
    such kernel (a macro makes it).

    A type that is a constant of the suite is looked up there.
    """
    text = _COMMENTS.sub(" ", source)
    bounds = r"(?:\s*__launch_bounds__\s*\([^)]*\))?"
    found = re.search(
        rf"__global__{bounds}\s+void{bounds}\s+{re.escape(entry)}\s*\(([^)]*)\)", text
    )
    if found is None:
        return None
    made = []
    for number, declared in enumerate(filter(str.strip, found[1].split(",")), 1):
        words = " ".join(_QUALIFIERS.sub(" ", declared).replace("*", " * ").split())
        type_, _, name = words.rpartition(" ")
        given = constants.get(type_)
        c_name = constant(given) if isinstance(given, str) else type_
        kind = "pointer*" if "*" in words or "[" in name else _ELEMENT_TYPES.get(c_name, c_name)
        made.append((f"parameter {number} of {entry}, '{' '.join(declared.split())}'", kind))
    return made


def program_arguments(
    source: str, entry: str, constants: Mapping[str, Value], given: Sequence[Any]
) -> tuple[Any, ...]:
    """Return what ``call`` gives, with numbers in the types that the kernel declares.

    Raises ``KernelError`` for what does not fit them.
    """
    parameters = parameters_of(source, entry, constants)
    if parameters is None:
        parameters = [(f"parameter {n} of {entry}", "") for n in range(1, len(given) + 1)]
    if len(parameters) != len(given):
        raise KernelError(
            f"{entry} has {len(parameters)} parameters and 'call' gives {len(given)}; make them "
            "agree"
        )
    return tuple(map(argument, given, parameters))
