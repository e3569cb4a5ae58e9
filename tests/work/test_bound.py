"""Bounds: below every time, by the part that takes longest, and never shown as a time."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import gpubench
from gpubench.numbers import SPACE
from gpubench.record import CountsRecord, LaunchRecord
from gpubench.tables.counts import bounds_of
from gpubench.work.bound import (
    BOUND_PARTS,
    Bound,
    add_bounds,
    bound_to_json,
    compute_bound,
    describe_bound,
    repeat_bound,
)
from gpubench.work.counting import MachineCode
from gpubench.work.gpus import GPUS
from softcuda.sass import KernelCode

# A GPU with figures that can be divided by head.
UNIT = replace(
    GPUS["A100"],
    name="unit",
    multiprocessors=10,
    clock_hz=1e6,
    memory_bytes_per_second=1e6,
    l2_bytes=1000,
    limits=replace(
        GPUS["A100"].limits,
        float16_per_clock=256,
        float32_per_clock=64,
        float64_per_clock=32,
        special_per_clock=16,
    ),
)
GRID, BLOCK = (1000, 1, 1), (256, 1, 1)


@pytest.mark.parametrize(
    ("counts", "by", "seconds"),
    [
        # 4 sectors a clock of each of 10 multiprocessors
        ({"global_load_sectors": 30_000_000, "global_store_sectors": 10_000_000}, "sectors", 1.0),
        ({"shared_store_wavefronts": 10_000_000}, "wavefronts", 1.0),
        # four loads may have been joined
        ({"shared_load_wavefronts": 40_000_000}, "wavefronts", 1.0),
        ({"flops_float16": 2 * 256 * 10_000_000}, "float16", 1.0),
        ({"flops_float32": 2 * 64 * 10_000_000}, "float32", 1.0),
        ({"flops_float64": 2 * 32 * 10_000_000}, "float64", 1.0),
        ({"special_functions": 16 * 10_000_000}, "special", 1.0),
        # 4 instructions a clock
        ({"global_load_requests": 40_000_000}, "issue", 1.0),
    ],
)
def test_a_part_is_its_count_over_its_rate(counts: dict[str, int], by: str, seconds: float) -> None:
    bound = compute_bound(UNIT, counts, GRID, BLOCK)
    assert (bound.by, bound.seconds) == (by, pytest.approx(seconds))


def test_the_part_that_takes_longest_counts() -> None:
    counts = {"global_load_sectors": 40_000_000, "flops_float64": 2 * 32 * 20_000_000}
    bound = compute_bound(UNIT, counts, GRID, BLOCK)
    assert (bound.by, bound.seconds) == ("float64", pytest.approx(2.0))
    assert bound.parts["sectors"] == pytest.approx(1.0)


def test_a_small_launch_uses_few_multiprocessors_and_a_warp_one_sub_partition() -> None:
    sectors, flops = {"global_load_sectors": 40_000_000}, {"flops_float32": 2 * 64 * 10_000_000}
    assert compute_bound(UNIT, sectors, (2, 1, 1), BLOCK).seconds == pytest.approx(5.0)
    assert compute_bound(UNIT, flops, (2, 1, 1), BLOCK).seconds == pytest.approx(5.0)
    assert compute_bound(UNIT, flops, (1, 1, 1), (32, 1, 1)).seconds == pytest.approx(40.0)


def test_shared_loads_that_are_known_not_to_be_joined_count_in_full() -> None:
    counts = {"shared_load_wavefronts": 10_000_000}
    bound = compute_bound(UNIT, counts, GRID, BLOCK, joined_shared_loads=1)
    assert bound.seconds == pytest.approx(1.0)


def test_memory_bounds_only_what_no_cache_can_hold() -> None:
    assert compute_bound(UNIT, {}, GRID, BLOCK, array_bytes=1000).by == ""
    bound = compute_bound(UNIT, {}, GRID, BLOCK, array_bytes=1_001_000)
    assert (bound.by, bound.seconds) == ("memory", pytest.approx(1.0))


def test_repeated_requests_do_not_count_as_traffic_of_memory() -> None:
    """A tiled product asks for each byte many times, and caches answer: hardware runs a naive
    product of 4096 x 4096 in less than its requested bytes take to cross the A100's memory."""
    a100, n = GPUS["A100"], 4096
    counts = {"global_load_sectors": n**3 // 32 * 5, "flops_float32": 2 * n**3}
    bound = compute_bound(a100, counts, (256, 256, 1), (16, 16, 1))
    assert bound.seconds < counts["global_load_sectors"] * 32 / a100.memory_bytes_per_second


@pytest.mark.parametrize(("joined", "wavefronts"), [(None, 25.0), (1.0, 100.0), (2.0, 50.0)])
def test_loads_that_the_assembler_joined_are_not_counted_twice(
    joined: float | None, wavefronts: float
) -> None:
    one = LaunchRecord("k", (1, 1, 1), (32, 1, 1), counts={"shared_load_wavefronts": 100})
    code = joined and MachineCode({"k": KernelCode(1, 1, 4, joined, ())}, None)

    (bound,) = bounds_of(CountsRecord("b", "c", 1, None, (one,)), [GPUS["A100"]], code or None)

    assert bound.by == "wavefronts"
    assert bound.seconds == pytest.approx(wavefronts / GPUS["A100"].clock_hz)


def test_nothing_counted_gives_no_bound() -> None:
    bound = compute_bound(UNIT, {"warps": 5}, GRID, BLOCK)
    assert (bound.seconds, bound.by, bound.parts) == (0.0, "", {})
    assert describe_bound(bound) == "no bound on unit: nothing was counted that takes time"


def test_bounds_of_launches_one_after_another_add_up() -> None:
    one = compute_bound(UNIT, {"global_load_sectors": 40_000_000}, GRID, BLOCK)
    other = compute_bound(UNIT, {"shared_store_wavefronts": 20_000_000}, GRID, BLOCK)
    both = add_bounds([one, other])
    assert (both.seconds, both.by) == (pytest.approx(3.0), "wavefronts")
    with pytest.raises(ValueError, match="bounds of 2 GPUs cannot be added"):
        add_bounds([one, compute_bound(GPUS["T4"], {}, GRID, BLOCK)])
    with pytest.raises(ValueError, match="bounds of 0 GPUs"):
        add_bounds([])


def test_an_empty_launch_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a grid of \(0, 1, 1\) blocks"):
        compute_bound(UNIT, {}, (0, 1, 1), BLOCK)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(2.0, "2.00{}s"), (0.99999, "1.00{}s"), (1.5e-3, "1.50{}ms"), (3.21e-8, "32.1{}ns")],
)
def test_words_say_that_it_is_a_bound(seconds: float, shown: str) -> None:
    bound = Bound("H100", seconds, "issue", {"issue": seconds})
    assert describe_bound(bound) == f"bound {shown.format(SPACE)} on H100, by issue slots"
    # However it gets into a text, it says so.
    assert f"{bound}" == str(bound) == describe_bound(bound)


@pytest.mark.parametrize("part", BOUND_PARTS)
def test_json_says_in_each_key_that_it_is_a_bound(part: str) -> None:
    written = bound_to_json(Bound("H100", 1.0, part, {part: 1.0}))
    assert all(key.startswith("bound_") for key in written)
    assert written["bound_by"] == part


def test_only_the_formatter_shows_the_seconds_of_a_bound() -> None:
    """Who imports ``Bound`` or makes one shows it by ``describe_bound`` or ``bound_to_json``."""
    package = Path(gpubench.__file__).parent
    reads = re.compile(r"\bbounds?(?:\[\w+\])?\.(?:seconds|parts)\b")
    found = [
        f"{path.relative_to(package)}: {line.strip()}"
        for path in sorted(package.rglob("*.py"))
        if path.name != "bound.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if reads.search(line)
    ]
    assert not found, "show a bound by describe_bound or bound_to_json"


def test_equal_launches_one_after_another_add_up() -> None:
    bound = compute_bound(GPUS["A100"], {"global_load_sectors": 4096}, (8, 1, 1), (256, 1, 1))

    assert repeat_bound(bound, 3) == add_bounds([bound] * 3)
