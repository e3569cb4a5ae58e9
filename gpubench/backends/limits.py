"""Limits on a launch: what CUDA architectures allow, and which limit a launch exceeds.

Source of the numbers: NVIDIA, CUDA C++ Programming Guide, appendix "Compute Capabilities", table
"Technical Specifications per Compute Capability". The limits on threads and extents are the same
for every architecture from compute capability 3.0 on.
"""

from __future__ import annotations

from gpubench.backends.protocol import Launch, Limits
from gpubench.names import format_shape

KIB = 1024
THREADS_PER_BLOCK = 1024
BLOCK = (1024, 1024, 64)
GRID = (2**31 - 1, 65535, 65535)
SHARED_BYTES = 48 * KIB
"""Shared memory of a block that has not asked for more, static or dynamic; bytes."""

SHARED_BYTES_OPT_IN = {
    (7, 0): 96 * KIB,
    (7, 2): 96 * KIB,
    (7, 5): 64 * KIB,
    (8, 0): 163 * KIB,
    (8, 6): 99 * KIB,
    (8, 7): 163 * KIB,
    (8, 9): 99 * KIB,
    (9, 0): 227 * KIB,
    (10, 0): 227 * KIB,
    (10, 3): 227 * KIB,
    (11, 0): 227 * KIB,
    (12, 0): 99 * KIB,
    (12, 1): 99 * KIB,
}
"""Most dynamic shared memory of a block that asks for it, by compute capability; bytes."""

ARCHITECTURE_LIMITS = Limits(
    threads_per_block=THREADS_PER_BLOCK,
    block=BLOCK,
    grid=GRID,
    shared_bytes_per_block=SHARED_BYTES,
    source="every CUDA architecture",
)
"""What every supported architecture allows, for a machine without a device."""


def device_limits(name: str, capability: tuple[int, int], *, opt_in: bool = False) -> Limits:
    """Limits of a CUDA device by its compute capability.

    ``opt_in`` is for backends that ask for a kernel's largest dynamic shared memory
    (``cuFuncSetAttribute``); a capability that the table lacks gets what all architectures allow.
    """
    shared = SHARED_BYTES_OPT_IN.get(capability, SHARED_BYTES) if opt_in else SHARED_BYTES
    major, minor = capability
    return Limits(
        threads_per_block=THREADS_PER_BLOCK,
        block=BLOCK,
        grid=GRID,
        shared_bytes_per_block=shared,
        source=f"{name} (compute capability {major}.{minor})",
    )


def launch_fault(launch: Launch, limits: Limits) -> str | None:
    """Which limit a launch exceeds, with its value and the next step; ``None`` if it is possible.

    Pure; the first fault in this order: extents, block, shared memory, grid, whole launch.
    """
    return (
        _extent_fault("block", launch.block)
        or _extent_fault("grid", launch.grid)
        or _block_fault(launch, limits)
        or _shared_fault(launch, limits)
        or _grid_fault(launch, limits)
        or _total_fault(launch, limits)
        or _cooperative_fault(launch, limits)
    )


def _extent_fault(what: str, shape: tuple[int, int, int]) -> str | None:
    if min(shape) > 0:
        return None
    return (
        f"{what} of {format_shape(shape)}: every extent has to be at least 1; "
        f"mend the {what}'s shape or formula"
    )


def _block_fault(launch: Launch, limits: Limits) -> str | None:
    if launch.threads_per_block > limits.threads_per_block:
        shape = format_shape(launch.block)
        threads = launch.threads_per_block
        block = f"{threads} threads" if shape == str(threads) else f"{shape} = {threads} threads"
        return (
            f"block of {block}: the limit is {limits.threads_per_block} threads per block "
            f"({limits.source}); use a smaller block"
        )
    return _axis_fault("block", "threads", launch.block, limits.block, limits)


def _grid_fault(launch: Launch, limits: Limits) -> str | None:
    return _axis_fault("grid", "blocks", launch.grid, limits.grid, limits)


def _axis_fault(
    what: str,
    unit: str,
    shape: tuple[int, int, int],
    allowed: tuple[int, int, int],
    limits: Limits,
) -> str | None:
    for axis, extent, most in zip("xyz", shape, allowed, strict=True):
        if extent > most:
            return (
                f"{what} of {format_shape(shape)}: the limit is {most} {unit} along {axis} "
                f"({limits.source}); {_AXIS_ADVICE[what]}"
            )
    return None


_AXIS_ADVICE = {
    "block": "use a smaller extent or the x axis",
    "grid": "give every thread more elements, or use the x axis",
}


def _shared_fault(launch: Launch, limits: Limits) -> str | None:
    if launch.shared_bytes < 0:
        return (
            f"shared_bytes of {launch.shared_bytes}: it has to be at least 0; "
            "mend its value or formula"
        )
    if launch.shared_bytes > limits.shared_bytes_per_block:
        return (
            f"{launch.shared_bytes} bytes of shared memory: the limit is "
            f"{limits.shared_bytes_per_block} bytes per block ({limits.source}); "
            "use less shared memory, smaller tiles for example"
        )
    return None


def _total_fault(launch: Launch, limits: Limits) -> str | None:
    total = launch.blocks * launch.threads_per_block
    if limits.total_threads is None or total <= limits.total_threads:
        return None
    return (
        f"launch of {total} threads: the limit is {limits.total_threads} threads "
        f"({limits.source}); use smaller sizes there"
    )


def _cooperative_fault(launch: Launch, limits: Limits) -> str | None:
    most = limits.cooperative_blocks
    if not launch.cooperative or most is None or launch.blocks <= most:
        return None
    return (
        f"cooperative launch of {launch.blocks} blocks: the limit is {most} "
        f"({limits.source}); use a smaller grid there"
    )
