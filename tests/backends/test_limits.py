"""Which limit a launch exceeds, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpubench.backends.limits import ARCHITECTURE_LIMITS, launch_fault
from gpubench.backends.protocol import Launch, Limits

ANY = "every CUDA architecture"
H200 = replace(ARCHITECTURE_LIMITS, source="NVIDIA H200 (compute capability 9.0)")
SMALL = replace(
    ARCHITECTURE_LIMITS, source="a small device", total_threads=2**14, cooperative_blocks=1
)
"""OpenCL devices have such limits."""


def launch(
    block: tuple[int, ...] = (256,),
    grid: tuple[int, ...] = (1,),
    shared_bytes: int = 0,
    cooperative: bool = False,
) -> Launch:
    return Launch(_three(block), _three(grid), shared_bytes, cooperative)


def _three(shape: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*shape, 1, 1)[:3]
    return x, y, z


@pytest.mark.parametrize(
    "possible",
    [
        launch(),
        launch(block=(1024,), grid=(2**31 - 1,)),
        launch(block=(1, 1024), grid=(1, 65535, 65535)),
        launch(block=(4, 4, 64)),
        launch(shared_bytes=48 * 1024),
        launch(grid=(1000,), cooperative=True),
    ],
)
def test_a_launch_at_the_limits_is_possible(possible: Launch) -> None:
    assert launch_fault(possible, ARCHITECTURE_LIMITS) is None


@pytest.mark.parametrize(
    ("impossible", "limits", "fault"),
    [
        (
            launch(block=(2048,)),
            ARCHITECTURE_LIMITS,
            f"block of 2048 threads: the limit is 1024 threads per block ({ANY}); "
            "use a smaller block",
        ),
        (
            launch(block=(64, 32)),
            H200,
            "block of 64x32 = 2048 threads: the limit is 1024 threads per block "
            "(NVIDIA H200 (compute capability 9.0)); use a smaller block",
        ),
        (
            launch(block=(1, 1, 128)),
            ARCHITECTURE_LIMITS,
            f"block of 1x1x128: the limit is 64 threads along z ({ANY}); "
            "use a smaller extent or the x axis",
        ),
        (
            launch(grid=(2**50,)),
            ARCHITECTURE_LIMITS,
            f"grid of 1125899906842624: the limit is 2147483647 blocks along x ({ANY}); "
            "give every thread more elements, or use the x axis",
        ),
        (
            launch(grid=(1, 65536)),
            ARCHITECTURE_LIMITS,
            f"grid of 1x65536: the limit is 65535 blocks along y ({ANY}); "
            "give every thread more elements, or use the x axis",
        ),
        (
            launch(block=(0, 4)),
            ARCHITECTURE_LIMITS,
            "block of 0x4: every extent has to be at least 1; mend the block's shape or formula",
        ),
        (
            launch(grid=(-1,)),
            ARCHITECTURE_LIMITS,
            "grid of -1: every extent has to be at least 1; mend the grid's shape or formula",
        ),
        (
            launch(shared_bytes=-4),
            ARCHITECTURE_LIMITS,
            "shared_bytes of -4: it has to be at least 0; mend its value or formula",
        ),
        (
            launch(shared_bytes=49153),
            ARCHITECTURE_LIMITS,
            f"49153 bytes of shared memory: the limit is 49152 bytes per block ({ANY}); "
            "use less shared memory, smaller tiles for example",
        ),
        (
            launch(block=(1024,), grid=(17,)),
            SMALL,
            "launch of 17408 threads: the limit is 16384 threads (a small device); "
            "use smaller sizes there",
        ),
        (
            launch(grid=(2,), cooperative=True),
            SMALL,
            "cooperative launch of 2 blocks: the limit is 1 (a small device); "
            "use a smaller grid there",
        ),
    ],
)
def test_an_impossible_launch_names_the_limit_and_the_next_step(
    impossible: Launch, limits: Limits, fault: str
) -> None:
    assert launch_fault(impossible, limits) == fault


def test_the_first_of_several_faults_is_told() -> None:
    faults = [
        launch(block=(0, 2048), grid=(2**40,), shared_bytes=-1),
        launch(block=(1, 1, 2048), grid=(2**40,), shared_bytes=-1),
        launch(block=(1, 1, 128), grid=(2**40,), shared_bytes=-1),
        launch(grid=(2**40,), shared_bytes=-1),
        launch(grid=(2**40,), shared_bytes=2**20),
        launch(grid=(2**40,), cooperative=True),
        launch(grid=(2**20,), cooperative=True),
    ]
    told = [str(launch_fault(impossible, SMALL)).partition(":")[0] for impossible in faults]
    assert told == [
        "block of 0x2048",
        "block of 1x1x2048 = 2048 threads",
        "block of 1x1x128",
        "shared_bytes of -1",
        "1048576 bytes of shared memory",
        "grid of 1099511627776",
        "launch of 268435456 threads",
    ]
