"""Occupancy, against NVIDIA's own rules, compiled from its header."""

from __future__ import annotations

import itertools
import random
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gpubench.work.gpus import GPUS, MULTIPROCESSORS, Gpu
from gpubench.work.occupancy import (
    RESERVED_SHARED_BYTES,
    allocated_shared_bytes,
    compute_occupancy,
)
from softcuda.build import nvidia_folders

LIMIT_BITS = {"warps": 1, "registers": 2, "shared_memory": 4, "blocks": 8, "barriers": 16}
"""``cudaOccLimitingFactor``."""
Configuration = tuple[int, int, int, int, int]
"""Threads, registers, static and dynamic shared bytes, barriers."""


def gpu_of(architecture: tuple[int, int]) -> Gpu:
    limits = (
        MULTIPROCESSORS.get(architecture)
        or {
            (10, 3): MULTIPROCESSORS[10, 0],
            (11, 0): replace(MULTIPROCESSORS[10, 0], threads=1536, blocks=24),
            (12, 1): MULTIPROCESSORS[12, 0],
        }[architecture]
    )
    return replace(GPUS["A100"], architecture=architecture, limits=limits)


ARCHITECTURES = [*MULTIPROCESSORS, (10, 3), (11, 0), (12, 1)]


def configurations() -> list[Configuration]:
    """The edges of every rule, and as many by chance."""
    chance = random.Random(36)
    edges = itertools.product(
        (1, 32, 33, 64, 96, 160, 256, 384, 1024, 1025),
        (0, 1, 8, 9, 16, 31, 32, 33, 40, 64, 65, 128, 168, 255, 256, 257),
        (0, 1, 1023, 8192, 48 << 10),
        (0, 1, 16 << 10, 99 << 10),
        (0, 1, 16),
    )
    by_chance = (
        (
            chance.randint(1, 1024),
            chance.randint(0, 255),
            chance.randint(0, 48 << 10),
            chance.choice((0, chance.randint(0, 200 << 10))),
            chance.randint(0, 16),
        )
        for _ in range(5000)
    )
    return [*edges, *by_chance]


@pytest.fixture(scope="module")
def calculator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """NVIDIA's header as a program."""
    folders = nvidia_folders(("cu13/include", "cuda_runtime/include"), "include")
    header = next((f for f in folders if (f / "cuda_occupancy.h").is_file()), None)
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if header is None or compiler is None:
        missing = "cuda_occupancy.h" if header is None else "a C compiler"
        pytest.skip(f"{missing} is not installed")
    program = tmp_path_factory.mktemp("occupancy") / "calculator"
    source = Path(__file__).parent / "occupancy_by_nvidia.c"
    subprocess.run(
        [compiler, "-w", "-O1", f"-I{header}", str(source), "-o", str(program)], check=True
    )
    return program


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_occupancy_and_what_limits_it_are_nvidias(
    architecture: tuple[int, int], calculator: Path
) -> None:
    gpu, asked = gpu_of(architecture), configurations()
    reserved = RESERVED_SHARED_BYTES if architecture >= (8, 0) else 0
    device = (
        *(*architecture, gpu.limits.threads, gpu.limits.shared_bytes),
        *(gpu.limits.shared_bytes_per_block, reserved),
    )
    text = "\n".join(" ".join(map(str, (*device, *one))) for one in asked)
    done = subprocess.run([calculator], input=text, capture_output=True, text=True, check=True)
    said = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(said) == len(asked) > 10_000
    for (threads, registers, fixed, dynamic, barriers), (error, blocks, bits) in zip(
        asked, said, strict=True
    ):
        ours = compute_occupancy(gpu, threads, registers, fixed + dynamic, barriers)
        by = sum(LIMIT_BITS[name] for name in ours.limited_by)
        shown = (threads, registers, fixed, dynamic, barriers)
        # The header gives an error instead of 0 for more shared memory than it can divide.
        assert ours.blocks == (0 if error else blocks), shown
        # Once barriers limit, the header still names what limited without them.
        assert error or by == (bits & by if by & LIMIT_BITS["barriers"] else bits), shown


def test_what_limits_a_kernel_is_named() -> None:
    a100 = GPUS["A100"]
    full = compute_occupancy(a100, 256, 32, 0)
    assert (full.blocks, full.warps, full.share) == (8, 64, 1.0)
    assert full.limited_by == ("warps", "registers")
    assert compute_occupancy(a100, 256, 40, 0).limited_by == ("registers",)
    assert compute_occupancy(a100, 32, 16, 0).limited_by == ("blocks",)
    tiled = compute_occupancy(a100, 256, 32, 33 * 32 * 8 * 4)
    assert (tiled.blocks, tiled.share, tiled.limited_by) == (4, 0.5, ("shared_memory",))


def test_a_block_that_is_too_large_has_no_occupancy() -> None:
    t4 = GPUS["T4"]
    assert compute_occupancy(t4, 1024, 65, 0).limits["registers"] == 0
    too_much = compute_occupancy(t4, 32, 16, 65 << 10)
    assert (too_much.blocks, too_much.share, too_much.limited_by) == (0, 0.0, ("shared_memory",))
    with pytest.raises(ValueError, match="a block of 0 threads"):
        compute_occupancy(t4, 0, 16, 0)


def test_the_system_takes_shared_memory_of_each_block_from_ampere_on() -> None:
    assert allocated_shared_bytes((7, 5), 0) == 0
    assert allocated_shared_bytes((7, 5), 1) == 256
    assert allocated_shared_bytes((8, 0), 1) == 1024 + 128
