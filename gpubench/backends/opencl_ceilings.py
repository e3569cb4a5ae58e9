"""What an OpenCL device's memory reaches, by kernels in OpenCL C."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from gpubench.backends.ceilings import BLOCK, Ceilings, array_bytes, ceilings_of
from gpubench.backends.opencl_devices import cache_bytes, opencl
from gpubench.backends.opencl_errors import opencl_errors
from gpubench.backends.protocol import Launch, Native, Session, Target

SOURCE = """
__kernel void copy(__global float *target, __global const float *source) {
    size_t i = get_global_id(0);
    target[i] = source[i];
}
__kernel void triad(
    __global float *target, __global const float *one, __global const float *other
) {
    size_t i = get_global_id(0);
    target[i] = one[i] + 3.0f * other[i];
}
"""
"""float32, because not every device has float64. A grid has no thread too many."""

TIMES_CACHE = 4
"""As STREAM asks for; more would take seconds where the device is the CPU."""
LEAST_BYTES = 2**26
"""Of one array, where the cache is small or unknown."""
PART_OF_ALL = 16
"""Each array takes at most this part of the device's memory; OpenCL does not tell what is free."""
SAMPLES, RUNS = 5, 2
ITEM = 4
"""Bytes of a float32."""


def measured_ceilings(session: Session, name: str, device: Any, queue: Any) -> Ceilings:
    """Measure both; takes tenths of a second on a CPU and gives all memory back.

    Raises ``DeviceMemoryError`` where the arrays find no room.
    """
    wanted = max(LEAST_BYTES, TIMES_CACHE * cache_bytes(device))
    most = min(device.global_mem_size // PART_OF_ALL, device.max_mem_alloc_size)
    width = min(BLOCK, device.max_work_group_size)
    nbytes = array_bytes(wanted, most, width * ITEM)
    launch = Launch(block=(width, 1, 1), grid=(nbytes // ITEM // width, 1, 1))
    with opencl_errors(name):
        arrays = [_filled(queue, nbytes) for _ in range(3)]

    def best(entry: str, used: Sequence[Native]) -> float:
        """The least of several samples, after one that compiles and one that is thrown away."""
        call = session.bind(Target(source=SOURCE, entry=entry), launch, used)
        call()
        sampler = session.sampler(call)
        sampler.seconds(RUNS)
        return min(sampler.seconds(RUNS) for _ in range(SAMPLES)) / RUNS

    return ceilings_of(arrays, nbytes, best)


def _filled(queue: Any, nbytes: int) -> Native:
    """Written once: pages of a CPU's memory that nothing has written are all the same page."""
    array = import_module("pyopencl.array").empty(queue, nbytes // ITEM, np.float32)
    opencl().enqueue_fill_buffer(queue, array.base_data, np.float32(1), 0, nbytes)
    return array
