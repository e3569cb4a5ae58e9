"""A program in OpenCL C: its constants, its compilation, and the arguments of its kernels."""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from gpubench.backends.protocol import Call, DeviceError, Launch
from gpubench.errors import KernelError
from gpubench.names import Value, format_shape

LOG_LINES = 4
"""Lines of a build log that a message shows. Clang tells an error in three: the message, the line
and a mark under it."""

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

Parameter = tuple[str, str]
"""Of a kernel, as its program declares it: how messages call it (``parameter 3 of vector_add, 'int
n'``), and its type (``float*``, ``int`` ...), empty where the driver does not tell."""

_C_NAMES = {np.dtype(type_).name: name for name, type_ in C_TYPES.items()} | {
    "bool": "uchar",
    "complex64": "float2",
    "complex128": "double2",
}


def opencl() -> Any:
    """Return the module pyopencl, imported when it is first needed."""
    return import_module("pyopencl")


class CompiledKernel:
    """One kernel of a program that is compiled for the context's device, shared by all that is
    bound to it.

    Making a ``pyopencl.Kernel`` costs more than a short kernel runs, so there is one, and it holds
    the arguments of the binding that was queued last.
    """

    def __init__(
        self, device: str, context: Any, text: str, entry: str, options: tuple[str, ...]
    ) -> None:
        """Compile, without PyOpenCL's cache on disk.

        Raises ``KernelError`` with the first errors of the build log, without the temporary file
        that PoCL names, or with the kernels that there are when ``entry`` is none of them.
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
                log = program.get_build_info(device, cl.program_build_info.LOG) or str(error)
                log = re.sub(r"/\S*tempfile_\w+\.cl:", "line ", log)
                raise does_not_compile(entry, log) from error
        names = str(program.kernel_names).split(";")
        if entry not in names:
            raise KernelError(f"the source has no kernel {entry!r}; it has {', '.join(names)}")
        self.entry, self._device = entry, device
        self._kernel = cl.Kernel(program, entry)
        self._held: object = None
        self._parameters = [self._parameter(index) for index in range(self._kernel.num_args)]

    def _parameter(self, index: int) -> Parameter:
        cl, title = opencl(), f"parameter {index + 1} of {self.entry}"
        try:
            type_ = self._kernel.get_arg_info(index, cl.kernel_arg_info.TYPE_NAME)
            name = self._kernel.get_arg_info(index, cl.kernel_arg_info.NAME)
        except cl.Error:  # a driver may leave this out (CL_KERNEL_ARG_INFO_NOT_AVAILABLE)
            return title, ""
        return f"{title}, '{type_} {name}'", type_

    def bound(self, queue: Any, launch: Launch, given: Sequence[Any]) -> Call:
        """Return what queues the kernel. Its arguments are buffers, numbers in the declared type,
        and last, unless ``shared_bytes`` is 0, local memory of so many.

        Raises ``KernelError`` for what does not fit the parameters, ``DeviceError`` for a block
        that registers and local memory do not allow.
        """
        cl, kernel = opencl(), self._kernel
        local = [cl.LocalMemory(launch.shared_bytes)] if launch.shared_bytes else []
        declared = len(self._parameters)
        if len(given) + len(local) != declared:
            shared = " and 'shared_bytes' one" if local else ""
            raise KernelError(
                f"{self.entry} has {declared} parameters and 'call' gives {len(given)}{shared}; "
                "make them agree"
            )
        arguments = (*map(argument, given, self._parameters), *local)
        group_size = cl.kernel_work_group_info.WORK_GROUP_SIZE
        most = int(kernel.get_work_group_info(group_size, queue.device))
        if launch.threads_per_block > most:
            raise DeviceError(
                f"block of {format_shape(launch.block)}: {self.entry} can have {most} threads "
                f"per block on {self._device}; use a smaller block"
            )
        enqueue, block = cl.enqueue_nd_range_kernel, launch.block
        items = tuple(map(operator.mul, launch.grid, block))

        def call() -> Any:
            if self._held is not arguments:
                self._held = None
                kernel.set_args(*arguments)
                self._held = arguments
            return enqueue(queue, kernel, items, block)

        return call


def does_not_compile(entry: str, log: str) -> KernelError:
    """With the first lines of the compiler's log that tell of an error, and those after."""
    lines = [line.rstrip() for line in log.splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if "error" in line.lower()), 0)
    shown = "\n".join(lines[first : first + LOG_LINES])
    return KernelError(f"the source of {entry} does not compile:\n{shown}")


def defines(constants: Mapping[str, Value]) -> tuple[str, ...]:
    """Options for a compiler of C: every constant as ``-DNAME=VALUE``."""
    return tuple(f"-D{name}={constant(value)}" for name, value in constants.items())


def constant(value: Value) -> str:
    """Return a constant as C writes it: booleans are 1 and 0, NumPy's names of types those of
    OpenCL C (``float32`` is ``float``), and other text stays as it is."""
    if isinstance(value, str):
        return _C_NAMES.get(value, value)
    return str(int(value)) if isinstance(value, bool) else repr(value)


def argument(value: Any, parameter: Parameter) -> Any:
    """Return an argument as ``clSetKernelArg`` takes it.

    Numbers of NumPy have to be of the declared type already; Python's carry none, and are ``long``
    or ``double`` where the program does not tell.
    """
    title, type_ = parameter
    is_number = isinstance(value, np.generic | int | float)
    if is_number == type_.endswith("*") and type_:
        raise KernelError(f"{title}: 'call' gives {_described(value)}")
    if not is_number:
        return getattr(value, "base_data", value)
    declared: Any = C_TYPES.get(type_)
    if isinstance(value, np.bool_):
        value = np.uint8(value)
    if isinstance(value, np.generic):
        if declared is None or declared is type(value):
            return value
        raise KernelError(
            f"{title}: 'call' gives {_described(value)}; give the scalar "
            f"'dtype: {np.dtype(declared).name}', or declare it "
            f"{_C_NAMES.get(value.dtype.name, 'otherwise')}"
        )
    declared = declared or (np.int64 if isinstance(value, int) else np.float64)
    if issubclass(declared, np.integer):
        bounds = np.iinfo(declared)
        if value != int(value) or not bounds.min <= value <= bounds.max:
            raise KernelError(
                f"{title}: {value!r} is no whole number from {bounds.min} to "
                f"{bounds.max}; declare another type in the kernel"
            )
        value = int(value)
    return declared(value)


def _described(value: Any) -> str:
    if isinstance(value, np.generic):
        return f"the {value.dtype.name} {value}"
    return f"the number {value!r}" if isinstance(value, int | float) else "an array"
