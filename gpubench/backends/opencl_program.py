"""A program in OpenCL C: its constants, its compilation, and the arguments of its kernels."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpubench.backends.opencl_devices import opencl
from gpubench.errors import KernelError
from gpubench.names import Value

LOG_LINES = 4
"""Lines of a build log that a message shows."""

C_TYPES: Mapping[str, type[np.generic]] = {
    "char": np.int8,
    "uchar": np.uint8,
    "short": np.int16,
    "ushort": np.uint16,
    "int": np.int32,
    "uint": np.uint32,
    "long": np.int64,
    "ulong": np.uint64,
    "half": np.float16,
    "float": np.float32,
    "double": np.float64,
}
"""Scalar types of OpenCL C (OpenCL C 3.0, "Built-in Scalar Data Types") as NumPy's."""

_C_NAMES = {np.dtype(type_).name: name for name, type_ in C_TYPES.items()} | {
    "bool": "uchar",
    "complex64": "float2",
    "complex128": "double2",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel, as its program declares it."""

    title: str
    """For messages: ``parameter 3 of vector_add, 'int n'``."""
    type: str
    """``float*``, ``int`` ...; empty where the driver does not tell."""


class CompiledKernel:
    """One kernel of a compiled program, shared by all that is bound to it.

    Making a ``pyopencl.Kernel`` costs more than a short kernel runs, so there is one, and it holds
    the arguments of the binding that was queued last.
    """

    def __init__(self, program: Any, entry: str) -> None:
        self.entry = entry
        self._kernel = opencl().Kernel(program, entry)
        self._held: object = None
        numbers = range(self._kernel.num_args)
        self._parameters = [_parameter(self._kernel, entry, number) for number in numbers]

    def arguments(self, given: Sequence[Any], shared_bytes: int) -> tuple[Any, ...]:
        """Arguments as ``clSetKernelArg`` takes them: buffers, numbers in the declared type, and
        last, unless it is 0, local memory of ``shared_bytes``.

        Raises ``KernelError`` for what does not fit the parameters.
        """
        local = [opencl().LocalMemory(shared_bytes)] if shared_bytes else []
        declared = len(self._parameters)
        if len(given) + len(local) != declared:
            shared = " and 'shared_bytes' one" if local else ""
            raise KernelError(
                f"{self.entry} has {declared} parameters and 'call' gives {len(given)}{shared}; "
                "make them agree"
            )
        taken = map(_argument, given, self._parameters[: len(given)])
        return (*taken, *local)

    def holding(self, arguments: tuple[Any, ...]) -> Any:
        """The ``pyopencl.Kernel`` with these arguments; queuing it takes them along."""
        if self._held is not arguments:
            self._held = None
            self._kernel.set_args(*arguments)
            self._held = arguments
        return self._kernel

    def most_threads(self, device: Any) -> int:
        """Most work-items of a group, as registers and local memory allow."""
        kind = opencl().kernel_work_group_info.WORK_GROUP_SIZE
        return int(self._kernel.get_work_group_info(kind, device))


def build_options(constants: Mapping[str, Value]) -> tuple[str, ...]:
    """Options for the compiler: every constant as ``-D NAME=VALUE``.

    Booleans become 1 and 0, NumPy's names of types those of OpenCL C (``float32`` becomes
    ``float``), and other text stays as it is.
    """
    return ("-cl-kernel-arg-info", *(f"-D{name}={_text(v)}" for name, v in constants.items()))


def compile_source(context: Any, text: str, entry: str, options: tuple[str, ...]) -> CompiledKernel:
    """Compile a program for the context's device, without PyOpenCL's cache on disk.

    Raises ``KernelError`` with the first errors of the build log, or with the kernels that there
    are when ``entry`` is none of them.
    """
    cl = opencl()
    program = cl.Program(context, text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the cache is defeated, and what compilers remark
        program.get_info(cl.program_info.REFERENCE_COUNT)  # asked first, it defeats the cache
        try:
            program.build(list(options))
        except cl.RuntimeError as error:
            if error.code != cl.status_code.BUILD_PROGRAM_FAILURE:
                raise
            (device,) = context.devices
            log = program.get_build_info(device, cl.program_build_info.LOG)
            raise KernelError(_failure(entry, log or str(error))) from error
    names = str(program.kernel_names).split(";")
    if entry not in names:
        raise KernelError(f"the source has no kernel {entry!r}; it has {', '.join(names)}")
    return CompiledKernel(program, entry)


def _failure(entry: str, log: str) -> str:
    """The log from its first error on, without the temporary file that PoCL names."""
    lines = [line.rstrip() for line in log.splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if "error" in line.lower()), 0)
    shown = lines[first : first + LOG_LINES]
    text = re.sub(r"/\S*tempfile_\w+\.cl:", "line ", "\n".join(shown))
    return f"the source of {entry} does not compile:\n{text}"


def _parameter(kernel: Any, entry: str, index: int) -> Parameter:
    cl = opencl()
    title = f"parameter {index + 1} of {entry}"
    try:
        type_ = kernel.get_arg_info(index, cl.kernel_arg_info.TYPE_NAME)
        name = kernel.get_arg_info(index, cl.kernel_arg_info.NAME)
    except cl.Error:  # a driver may leave this out (CL_KERNEL_ARG_INFO_NOT_AVAILABLE)
        return Parameter(title, "")
    return Parameter(f"{title}, '{type_} {name}'", type_)


def _argument(value: Any, parameter: Parameter) -> Any:
    """An argument as ``clSetKernelArg`` takes it."""
    is_number = isinstance(value, np.generic | int | float)
    if is_number == parameter.type.endswith("*") and parameter.type:
        raise KernelError(f"{parameter.title}: 'call' gives {_described(value)}")
    return _number(value, parameter) if is_number else getattr(value, "base_data", value)


def _number(value: Any, parameter: Parameter) -> np.generic:
    """A number in the declared type. NumPy's have to be of that type already; Python's carry none,
    and are ``long`` or ``double`` where the program does not tell."""
    declared: Any = C_TYPES.get(parameter.type)
    if isinstance(value, np.bool_):
        value = np.uint8(value)
    if isinstance(value, np.generic):
        if declared is None or declared is type(value):
            return value
        raise KernelError(
            f"{parameter.title}: 'call' gives {_described(value)}; give the scalar "
            f"'dtype: {np.dtype(declared).name}', or declare it "
            f"{_C_NAMES.get(value.dtype.name, 'otherwise')}"
        )
    declared = declared or (np.int64 if isinstance(value, int) else np.float64)
    if issubclass(declared, np.integer):
        bounds = np.iinfo(declared)
        if value != int(value) or not bounds.min <= value <= bounds.max:
            raise KernelError(
                f"{parameter.title}: {value!r} is no whole number from {bounds.min} to "
                f"{bounds.max}; declare another type in the kernel"
            )
        value = int(value)
    converted: np.generic = declared(value)
    return converted


def _described(value: Any) -> str:
    if isinstance(value, np.generic):
        return f"the {value.dtype.name} {value}"
    return f"the number {value!r}" if isinstance(value, int | float) else "an array"


def _text(value: Value) -> str:
    if isinstance(value, str):
        return _C_NAMES.get(value, value)
    return str(int(value)) if isinstance(value, bool) else repr(value)
