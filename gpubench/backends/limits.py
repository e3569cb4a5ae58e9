"""Which limit a launch exceeds, and what all CUDA architectures allow.

Source of the numbers: NVIDIA, CUDA C++ Programming Guide, appendix "Compute Capabilities", table
"Technical Specifications per Compute Capability". They are the same for every architecture from
compute capability 3.0 on.
"""

from __future__ import annotations

from gpubench.backends.protocol import Launch, Limits
from gpubench.names import format_shape

ARCHITECTURE_LIMITS = Limits(
    threads_per_block=1024,
    block=(1024, 1024, 64),
    grid=(2**31 - 1, 65535, 65535),
    # Of a block that has not asked for more, static or dynamic; Numba's target cannot ask.
    shared_bytes_per_block=48 * 1024,
    source="every CUDA architecture",
)
"""What every supported architecture allows, for a machine without a device."""


def launch_fault(launch: Launch, limits: Limits) -> str | None:
    """Return which limit a launch exceeds, with its value and the next step; ``None`` if it is
    possible.

    Pure; the first fault in this order: extents, block, shared memory, grid, whole launch.
    """
    source, threads, most = limits.source, launch.threads_per_block, limits.cooperative_blocks
    for what, shape in (("block", launch.block), ("grid", launch.grid)):
        if min(shape) <= 0:
            return (
                f"{what} of {format_shape(shape)}: every extent has to be at least 1; "
                f"mend the {what}'s shape or formula"
            )
    if threads > limits.threads_per_block:
        extents = format_shape(launch.block)
        shown = "" if extents == str(threads) else f"{extents} = "
        return (
            f"block of {shown}{threads} threads: the limit is {limits.threads_per_block} threads "
            f"per block ({source}); use a smaller block"
        )
    for axis, extent, limit in zip("xyz", launch.block, limits.block, strict=True):
        if extent > limit:
            return (
                f"block of {format_shape(launch.block)}: the limit is {limit} threads along "
                f"{axis} ({source}); use a smaller extent or the x axis"
            )
    if launch.shared_bytes < 0:
        return (
            f"shared_bytes of {launch.shared_bytes}: it has to be at least 0; "
            "mend its value or formula"
        )
    if launch.shared_bytes > limits.shared_bytes_per_block:
        return (
            f"{launch.shared_bytes} bytes of shared memory: the limit is "
            f"{limits.shared_bytes_per_block} bytes per block ({source}); "
            "use less shared memory, smaller tiles for example"
        )
    for axis, extent, limit in zip("xyz", launch.grid, limits.grid, strict=True):
        if extent > limit:
            return (
                f"grid of {format_shape(launch.grid)}: the limit is {limit} blocks along {axis} "
                f"({source}); give every thread more elements, or use the x axis"
            )
    if limits.total_threads is not None and launch.blocks * threads > limits.total_threads:
        return (
            f"launch of {launch.blocks * threads} threads: the limit is {limits.total_threads} "
            f"threads ({source}); use smaller sizes there"
        )
    if launch.cooperative and most is not None and launch.blocks > most:
        return (
            f"cooperative launch of {launch.blocks} blocks: the limit is {most} ({source}); "
            "use a smaller grid there"
        )
    return None
