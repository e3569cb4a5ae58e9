"""Runs every CUDA kernel on Numba's simulator and prints what came out, as JSON.

A process of its own: whether Numba simulates is settled when it is imported.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from kernel_inventory import DTYPES, INVENTORY, arguments, covering, results

Case = tuple[str, str, int, str, int]


def cases() -> Iterator[Case]:
    """Operation, CUDA form, number of the launch, dtype and size of everything that is run."""
    for name, entry in INVENTORY.items():
        for form in entry.cuda:
            for number in range(len(entry.launches)):
                for dtype in DTYPES:
                    yield from ((name, form, number, dtype, size) for size in entry.sizes)


def key(case: Case) -> str:
    return " ".join(map(str, case))


def run(case: Case) -> list[list[float]]:
    """Results after two runs of the same call on the same arrays, as it is repeated when timed."""
    name, form, number, dtype, size = case
    block, grid = INVENTORY[name].launches[number]
    called_with = arguments(name, size, dtype)
    for _ in range(2):
        INVENTORY[name].cuda[form](grid or covering(size, block), block, *called_with)
    return [result.ravel().tolist() for result in results(name, called_with)]


if __name__ == "__main__":
    json.dump({key(case): run(case) for case in cases()}, sys.stdout)
