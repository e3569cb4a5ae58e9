"""Launches in the order of their counts, and how that goes with published times."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from kernel_runs import why_not
from softcuda_process import on_softcuda

from gpubench.record import LaunchRecord
from gpubench.work.gpus import MULTIPROCESSORS, Gpu, load_gpu
from gpubench.work.ordering import ENOUGH_WARPS, SHARE_TO_MEASURE, weigh, why_not_ordered

A100 = load_gpu("A100")
RESOURCES = {"registers": 32}


def launch(blocks: int = 1080, threads: int = 256, **counts: int) -> LaunchRecord:
    counts.setdefault("ptx_instructions", 1000 * blocks)
    return LaunchRecord("m.k", (blocks, 1, 1), (threads, 1, 1), counts=counts, resources=RESOURCES)


def test_a_launch_is_weighed_by_the_resource_that_takes_most_clocks() -> None:
    weight = weigh([launch(shared_load_wavefronts=400 * 1080)], A100)
    # 1,080 blocks are 8 on each of 108 multiprocessors, and 2 on as many again.
    assert (weight.by, weight.warps, weight.waves) == ("wavefronts", 64, 2)
    assert weight.value == 2 * 8 * 400
    assert weigh([launch()], A100).by == "issue"


def test_few_blocks_leave_room_on_a_multiprocessor() -> None:
    weight = weigh([launch(blocks=108, threads=128)], A100)
    assert (weight.warps, weight.waves) == (4, 1)
    assert weight.value == 250 * ENOUGH_WARPS / 4


def test_launches_one_after_another_weigh_their_sum() -> None:
    one = launch()
    assert weigh([one, replace(one, times=3)], A100).value == 4 * weigh([one], A100).value


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (launch(blocks=4, ptx_instructions=400, busiest_block_instructions=200), "blocks of m.k"),
        (replace(launch(), resources=None), "the registers of m.k are not known"),
        (replace(launch(), shared_bytes=1 << 20), "does not fit"),
    ],
)
def test_what_cannot_be_ordered_is_refused(given: LaunchRecord, why: str) -> None:
    assert why in (why_not_ordered([given], A100) or "")
    even = launch(blocks=4, ptx_instructions=400, busiest_block_instructions=140)
    assert why_not_ordered([even], A100) is None


# ---- published times -----------------------------------------------------------------------------


def _gpu(name: str, multiprocessors: int) -> Gpu:
    ampere = MULTIPROCESSORS[8, 6]
    return replace(
        A100, name=name, architecture=(8, 6), multiprocessors=multiprocessors, limits=ampere
    )


GPUS = {"A100": A100, "A4000": _gpu("A4000", 48), "A6000": _gpu("A6000", 84)}


def count_published() -> Any:
    import sys

    sys.path.insert(0, str(Path(__file__).parent))
    from tuned_kernels import count_tuned_kernels

    return count_tuned_kernels()


def _ranks(values: list[float]) -> list[int]:
    order = sorted(range(len(values)), key=lambda place: values[place])
    return [order.index(place) for place in range(len(values))]


def rank_correlation(one: list[float], other: list[float]) -> float:
    """Return Spearman's."""
    n = len(one)
    apart = zip(_ranks(one), _ranks(other), strict=True)
    return 1 - 6 * sum((a - b) ** 2 for a, b in apart) / (n * (n**2 - 1))


@pytest.mark.thorough
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_the_first_fifth_has_one_of_the_best_of_published_times() -> None:
    import sys

    sys.path.insert(0, str(Path(__file__).parent))
    from tuned_kernels import GRID, TUNED

    counted = on_softcuda(count_published, timeout=900)
    published = yaml.safe_load(Path(__file__).with_name("published_times.yaml").read_text())
    for name, shapes in published.items():
        x, y = TUNED[name].problem
        for gpu in GPUS.values():
            weights: list[float] = []
            for shape, (block, shared, registers, counts) in zip(
                shapes, counted[name], strict=True
            ):
                grid = -(-x // (shape["BX"] * shape["TX"])), -(-y // (shape["BY"] * shape["TY"])), 1
                times = math.prod(grid) / math.prod(GRID)
                record = LaunchRecord(
                    *(name, grid, (*block, 1)),
                    shared_bytes=shared,
                    counts={key: times * number for key, number in counts.items()},
                    resources={"registers": registers},
                )
                weights.append(weigh([record], gpu).value)
            taken = [shape[gpu.name] for shape in shapes]
            first = sorted(zip(weights, taken, strict=True))
            first = first[: math.ceil(SHARE_TO_MEASURE * len(first))]
            assert rank_correlation(weights, taken) > 0.3, (name, gpu.name)
            assert min(each for _, each in first) <= 1.1 * min(taken), (name, gpu.name)
