"""Small kernels in PTX, for tests of the driver that need one and no compiler of Python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from softcuda_process import result

HEADER = ".version 8.0\n.target sm_75\n.address_size 64\n"

KERNELS = (
    HEADER
    + """
.visible .global .align 4 .u32 counter = 5;
.visible .const .align 4 .u32 step = 3;

// *p += 1, by each thread for its own element
.visible .entry add_one(.param .u64 p)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [p];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d3, %d1, %d2;
    ld.global.u32 %r2, [%d3];
    add.u32 %r3, %r2, 1;
    st.global.u32 [%d3], %r3;
    ret;
}

// *p += 1 in each thread, once all threads of its block have met
.visible .entry count_at_barrier(.param .u64 p)
{
    .reg .b64 %d<2>;
    ld.param.u64 %d1, [p];
    bar.sync 0;
    red.global.add.u32 [%d1], 1;
    ret;
}

.visible .entry empty()
{
    ret;
}

// *p = a + b
.visible .entry add_parameters(.param .u64 p, .param .u32 a, .param .u64 b)
{
    .reg .b32 %r<2>;
    .reg .b64 %d<5>;
    ld.param.u64 %d1, [p];
    ld.param.u32 %r1, [a];
    ld.param.u64 %d2, [b];
    cvt.u64.u32 %d3, %r1;
    add.u64 %d4, %d2, %d3;
    st.global.u64 [%d1], %d4;
    ret;
}

// *p = (counter += step)
.visible .entry count(.param .u64 p)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<2>;
    ld.param.u64 %d1, [p];
    ld.global.u32 %r1, [counter];
    ld.const.u32 %r2, [step];
    add.u32 %r3, %r1, %r2;
    st.global.u32 [counter], %r3;
    st.global.u32 [%d1], %r3;
    ret;
}

.visible .entry limited() .maxntid 64, 1, 1
{
    ret;
}
"""
)

SHARED = (
    HEADER
    + """
.visible .entry shares(.param .u64 p)
{
    .shared .align 4 .b8 room[256];
    .reg .b32 %r<2>;
    .reg .b64 %d<2>;
    ld.param.u64 %d1, [p];
    mov.u32 %r1, 7;
    st.shared.u32 [room], %r1;
    st.global.u32 [%d1], %r1;
    ret;
}
"""
)


def load(ptx: str = KERNELS) -> Any:
    """Load a module into the current context."""
    from cuda.bindings import driver

    return result(driver.cuModuleLoadData(ptx.encode()))


def function(name: str, module: Any = None) -> Any:
    from cuda.bindings import driver

    return result(driver.cuModuleGetFunction(module or load(), name.encode()))


def launch(
    kernel: Any,
    arguments: Sequence[tuple[Any, Any]] = (),
    *,
    grid: tuple[int, int, int] = (1, 1, 1),
    block: tuple[int, int, int] = (1, 1, 1),
    shared: int = 0,
    stream: Any = 0,
) -> Any:
    """Return the answer of ``cuLaunchKernel`` for arguments as ``(value, ctypes type)``."""
    from cuda.bindings import driver

    values = tuple(value for value, _ in arguments)
    types = tuple(kind for _, kind in arguments)
    return driver.cuLaunchKernel(kernel, *grid, *block, shared, stream, (values, types), 0)


def device_word(value: int = 0, count: int = 1) -> int:
    """Return the address of 32-bit words of device memory with that value; one more behind is
    unset."""
    from cuda.bindings import driver

    address = result(driver.cuMemAlloc(4 * count + 4))
    result(driver.cuMemsetD32(address, value, count))
    result(driver.cuStreamSynchronize(0))  # other streams may not wait for the default stream
    return int(address)


def read_word(address: int) -> int:
    """Return the 32-bit word at an address of the device, after a copy that waits."""
    from cuda.bindings import driver

    word = ctypes.c_uint32()
    result(driver.cuMemcpyDtoH(ctypes.addressof(word), address, 4))
    return word.value


class Gate:
    """A stream that does nothing until ``open`` is called."""

    def __init__(self, stream: Any) -> None:
        from cuda.bindings import driver

        self._word = int(result(driver.cuMemHostAlloc(4, 0)))
        ctypes.c_uint32.from_address(self._word).value = 0
        result(driver.cuStreamWaitValue32(stream, self._word, 1, 0))

    def open(self) -> None:
        ctypes.c_uint32.from_address(self._word).value = 1
