"""Results of one kernel whose times are known formulas: NumPy, Numba, a GPU and a pool."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from result_files import CommitFiles

SIZES = tuple(2**k for k in range(10, 25))
NUMPY = "suites.scale__numpy.time_kernel"


def numpy(n: float) -> float:
    return 1e-6 + n * 1e-9


def numba(n: float) -> float:
    return 1e-5 + n * 2.5e-10


def cuda(n: float) -> float:
    return 2e-5 + n * 1e-11


def copies(n: float) -> float:
    return 1e-5 + n * 4e-10


def pool(n: float, workers: int) -> float:
    return 1e-3 + n * 1e-9 / workers


def write_scale(
    directory: Path,
    *,
    sizes: tuple[int, ...] = SIZES,
    noise: float = 0.0,
    machine: str = "runner",
    others: Callable[[CommitFiles], object] = lambda files: None,
) -> CommitFiles:
    """One commit of the suite ``scale``: ``numpy``, ``numba`` (compiled in 0.4 s), ``cuda`` on a
    GPU (with copies) and ``pool`` on 1, 2 and 4 processes, which take 0.5 s to start."""
    chance = random.Random(3)
    files = CommitFiles(directory, "c" * 40, 86_400 * 20_000, machine)
    files.facts(cpu="Example EPYC")

    def add(
        implementation: str, time: str, case: str, n: int, seconds: float, **fields: Any
    ) -> None:
        benchmark = f"suites.scale__{implementation}.time_{time}"
        files.time(benchmark, case, seconds * chance.gauss(1, noise), spread=0.02)
        baseline = {} if implementation == "numpy" else {"baseline_benchmark": NUMPY}
        files.record(
            benchmark, case, values={"n": n}, sizes=("n",), backend=implementation,
            **({"baseline_case": f"n={n}"} if baseline else {}), **baseline, **fields,
        )  # fmt: skip

    for n in sizes:
        add("numpy", "kernel", f"n={n}", n, numpy(n), device="cpu", compiled=False)
        add("numba", "kernel", f"n={n}", n, numba(n), device="cpu", compiled=True)
        for block, factor in ((64, 1.5), (256, 1.0)):
            case, on_gpu = f"n={n} block={block}", {"device": "cuda:0", "block": (block, 1, 1)}
            add("cuda", "kernel", case, n, cuda(n) * factor, **on_gpu)
            add("cuda", "end_to_end", case, n, cuda(n) * factor + copies(n), **on_gpu)
        for workers in (1, 2, 4):
            add(
                "pool", "kernel", f"n={n} device=processes:{workers}", n, pool(n, workers),
                device=f"processes:{workers}", conditions={"workers": workers}, compiled=False,
            )  # fmt: skip
            add(
                "pool", "end_to_end", f"n={n} device=processes:{workers}", n, pool(n, workers),
                device=f"processes:{workers}", conditions={"workers": workers}, compiled=False,
            )  # fmt: skip
    n = sizes[-1]
    add("numba", "compile", f"n={n}", n, 0.4, device="cpu", compiled=True)
    for workers in (1, 2, 4):
        add(
            "pool", "start", f"n={n} device=processes:{workers}", n, 0.5 + pool(n, workers),
            device=f"processes:{workers}", conditions={"workers": workers}, compiled=False,
        )  # fmt: skip
    others(files)
    return files.write()


def write_divided(files: CommitFiles) -> None:
    """A kernel ``divided``: NumPy, a GPU of 1.25 times its speed, and both together, which take
    0.2 ms to begin."""
    ways = {
        "numpy": ("cpu", lambda n: n * 5e-10),
        "cuda": ("cuda:0", lambda n: n * 4e-10),
        "together": ("cpu", lambda n: 2e-4 + n * 2.4e-10),
    }
    for (name, (device, seconds)), n in product(ways.items(), SIZES):
        benchmark, case = f"suites.divided__{name}.time_kernel", f"n={n}"
        case += "" if device == "cpu" else f" device={device}"
        files.time(benchmark, case, seconds(n), spread=0.02)
        baseline = {
            "baseline_benchmark": NUMPY.replace("scale", "divided"),
            "baseline_case": f"n={n}",
        }
        files.record(
            benchmark, case, values={"n": n}, sizes=("n",), backend=name, device=device,
            compiled=name == "cuda", **({} if name == "numpy" else baseline),
            **({"conditions": {"devices": "cpu and cuda:0"}} if name == "together" else {}),
        )  # fmt: skip
