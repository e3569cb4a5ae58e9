"""Every kernel of every suite at small sizes and launches, made from the suites themselves.

A suite that is added is tested without a word here. Sizes become ``SIZES`` and launches that a
suite writes as numbers become small ones; where a kernel needs others, ``AXES`` has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from gpubench.measure.bound_case import opened
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.verification import verify
from gpubench.plan.case import Case
from gpubench.plan.group import Group
from gpubench.plan.plan import Plan, build_plan
from gpubench.suite.arrays import Zip
from gpubench.suite.loading import load_suites
from gpubench.suite.model import DeclaredLaunch, Kernel

FOLDER = Path(__file__).parents[2] / "suites"

FIRST = {
    *("vector_add.vector_add", "matmul.matmul", "reductions.sum", "sorting.sort"),
    *("strings.crc32", "images.convolution"),
}
"""Kernels of each kind that ``make test`` compiles: element by element, in tiles, with atomic
operations, in steps, on bytes and with neighbours. ``.ci/run`` compiles all of them."""

SIZES = (1, 7, 9)
"""One, a prime that is one less than a block of ``BLOCKS``, and one more than it."""
WIDE_SIZES = (1, 2, 63, 65, 131)
"""The same for loops of the CPU, which work on many elements at once."""

AXES: dict[str, dict[str, tuple[Any, ...]]] = {
    "mandelbrot.mandelbrot": {"iterations": (30,)},
    "matmul.matmul": {"m": (1, 3, 9), "k": (3, 5, 11), "n": (1, 2, 8), "tile": (4,)},
    "threads_and_blocks.thread_index": {"n": (1, 3), "m": (1, 2)},
    "threads_and_blocks.block_limits": {"n": (1, 4, 16)},
    "threads_and_blocks.grid_limits": {"n": (1, 5)},
    "streaming.strided_copy": {"stride": (1, 3)},
    "streaming.misaligned_copy": {"offset": (0, 1, 5)},
    "images.convolution": {"tile": (4,)},
    "stencils.jacobi_2d": {"width": (4,)},
    "stencils.game_of_life": {"width": (4,)},
    "linear_algebra.matvec": {"m": (1, 7, 9), "n": (9, 1, 8)},
    "linear_algebra.transpose": {"m": (1, 3, 9), "n": (5, 7, 8), "tile": (4,)},
    "linear_algebra.spmv": {"per_row": (3,)},
    "linear_algebra.batched_matmul": {"n": (1, 9, 47), "k": (3, 5, 4)},
    "linear_algebra.batched_cholesky": {"n": (1, 7, 4, 9), "k": (1, 3, 5, 4)},
    "learning.attention": {"n": (1, 9), "d": (4, 5), "tile": (4,)},
    "learning.k_nearest_neighbours": {"m": (1, 9), "n": (9, 70), "d": (1, 5), "k": (1, 3)},
    "learning.kmeans_step": {"d": (1, 5), "k": (1, 3)},
    "signals.fft": {"n": (1, 2, 8, 16), "batch": (1, 3)},
    "sorting.sort": {"n": (1, 7, 9, 33)},
    "simulation.quantum_gate": {"qubits": (1, 3)},
    "simulation.ising": {"n": (1, 4, 7)},
    "strings.crc32": {"m": (1, 9), "length": (1, 7, 16)},
    "strings.edit_distance": {"pairs": (1, 3), "n": (1, 7, 9)},
    "particles.nbody": {"tile": (4,)},
    "particles.neighbour_list": {"n": (1, 9, 260)},
    "reductions.argmax": {"n": (1, 7, 9, 47)},  # so that each thread of a block passes one on
    "reductions.inclusive_scan": {"n": (1, 9, 47)},
    "reductions.histogram": {"bins": (1, 7, 64)},
    "reductions.bincount": {"bins": (1, 9)},
}
"""Values of axes, also of zipped ones, by ``suite.kernel``, in place of the suite's."""

WIDE_AXES: dict[str, dict[str, tuple[Any, ...]]] = {
    "linear_algebra.batched_cholesky": {"n": (1, 7, 4, 65), "k": (1, 3, 5, 4)},
}
"""The same for loops of the CPU, where theirs are others."""

BLOCKS = {1: ((2,), (3,), (8,)), 2: ((4, 4), (8, 2)), 3: ((2, 2, 2),)}
GRIDS = {1: ((3,),), 2: ((2, 2),), 3: ((2, 2, 1),)}
"""Small shapes, by the number of extents that the suite writes. The smallest launch has fewer
threads than there are elements, and more blocks than a block has threads."""


def kernels_with(*backends: str) -> list[str]:
    """Return ``suite.kernel`` of each kernel that these backends run beside its baseline."""
    groups = (group for group in small_plan().groups() if group.backend in backends)
    return list(dict.fromkeys(_kernel(group) for group in groups if group.baseline is not None))


def of_each(kernels: Iterable[str], others: pytest.MarkDecorator) -> list[Any]:
    """Return kernels as parameters; those that are not in ``FIRST`` have a mark."""
    return [one if one in FIRST else pytest.param(one, marks=others) for one in kernels]


@cache
def small_plan(
    *, wide: bool = False, own_parameters: bool = False, own_launches: bool = False
) -> Plan:
    """Return all cases of all suites at small sizes, with small parameters and launches or the
    suites' own; own launches come beside the small ones."""
    sizes, axes = (WIDE_SIZES, AXES | WIDE_AXES) if wide else (SIZES, AXES)
    loaded = []
    for one in load_suites([FOLDER]):
        kernels = {
            name: _small(kernel, axes.get(f"{one.suite.suite}.{name}", {}), sizes, own_launches)
            for name, kernel in one.suite.kernels.items()
        }
        if own_parameters:
            kernels = {
                name: kernel.model_copy(update={"parameters": one.suite.kernels[name].parameters})
                for name, kernel in kernels.items()
            }
        loaded.append(replace(one, suite=one.suite.model_copy(update={"kernels": kernels})))
    return build_plan(loaded, gpu_count=1)


def checked_cases(plan: Plan, backends: tuple[str, ...]) -> Iterator[Case]:
    """Return the cases of these backends that have a baseline to be compared with."""
    for case in plan.cases():
        if case.backend in backends and case.baseline() is not None:
            yield case


def by_kernel(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Return the cases of each kernel, by ``suite.kernel``."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(_kernel(case.group), []).append(case)
    return found


def in_pairs(cases: Iterable[Case]) -> Iterator[Case]:
    """Return so many of the cases that any two values of an implementation meet, where they do in
    all."""
    met: set[object] = set()
    for case in cases:
        values = {**case.values, "block": case.block, "grid": case.grid}
        pairs = {(case.group.title, *pair) for pair in combinations(values.items(), 2)}
        if pairs - met or len(values) < 3:
            yield case
        met |= pairs


def with_each_value(cases: Iterable[Case]) -> Iterator[Case]:
    """Return so many of the cases that each value of an implementation is there. The last ones come
    first, as of small sizes few threads have work."""
    met: set[object] = set()
    for case in reversed([*cases]):
        values = {**case.values, "block": case.block, "grid": case.grid}
        new = {(case.group.title, *value) for value in values.items()} - met
        if new:
            yield case
        met |= new


def fault(case: Case) -> str | None:
    """Return what is wrong with a case's results, as when it is prepared to be timed.

    Of one element alone the right result may be zero, which would prove nothing of a larger one:
    the suites' own sizes have to, and these need not.
    """
    inputs = draw_inputs(case)
    with opened(case.baseline() or case, inputs) as execution:
        expected = execution.outputs()
    with opened(case, inputs) as execution:
        return verify(execution, expected).fault


def name(case: Case) -> str:
    return f"{case.suite.suite}.{case.kernel_name}.{case.implementation_name} {case.identity}"


def _kernel(group: Group) -> str:
    return f"{group.loaded.suite.suite}.{group.kernel_name}"


def _small(
    kernel: Kernel,
    given: dict[str, tuple[Any, ...]],
    sizes: tuple[int, ...],
    own_launches: bool,
) -> Kernel:
    shrunk = {
        name: _small_zip(axis, given, sizes) if isinstance(axis, Zip) else given.get(name, sizes)
        for name, axis in kernel.sizes.items()
    }
    parameters = {name: given.get(name, axis) for name, axis in kernel.parameters.items()}
    implementations = {
        name: one.model_copy(
            update={"launch": one.launch and _small_launch(one.launch, own_launches)}
        )
        for name, one in kernel.implementations.items()
    }
    update = {"sizes": shrunk, "parameters": parameters, "implementations": implementations}
    return kernel.model_copy(update=update)


def _small_zip(axis: Zip, given: dict[str, tuple[Any, ...]], sizes: tuple[int, ...]) -> Zip:
    return axis.model_copy(update={"zip": {name: given.get(name, sizes) for name in axis.zip}})


def _small_launch(launch: DeclaredLaunch, own: bool) -> DeclaredLaunch:
    """Numbers become small ones, after the launch's own where these are wanted; formulas and
    ``cover`` stay."""
    blocks: list[Any] = list(launch.blocks()) if own else []
    grids: list[Any] = list(launch.grids()) if own else []
    for block in launch.blocks():
        blocks += BLOCKS[len(block)] if _plain(block) else [block]
    for grid in launch.grids():
        grids += GRIDS[len(grid)] if grid != "cover" and _plain(grid) else [grid]
    update = {"block": tuple(dict.fromkeys(blocks)), "grid": tuple(dict.fromkeys(grids))}
    return launch.model_copy(update=update)


def _plain(shape: tuple[Any, ...]) -> bool:
    """Return whether a shape is made of numbers; one thread or block is not a matter of size."""
    return all(isinstance(extent, int) for extent in shape) and max(shape) > 1
