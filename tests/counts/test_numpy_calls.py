"""What NumPy does in a call is what theory gives, or it is not counted, with the reason."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

N = 1000
ARRAY = 8 * N

BY_THEORY: dict[str, dict[str, int]] = {
    "scale_and_add": {
        "flops_float64": 2 * N,
        "calls": 2,
        "load_bytes": 3 * ARRAY,
        "store_bytes": 2 * ARRAY,
        "allocations": 2,
        "allocated_bytes": 2 * ARRAY,
    },
    "add_in_place": {
        "flops_float64": N,
        "calls": 1,
        "load_bytes": 2 * ARRAY,
        "store_bytes": ARRAY,
    },
    "norm": {  # the root is of a number, not of an array
        "flops_float64": 2 * N - 1,
        "calls": 2,
        "load_bytes": 3 * ARRAY,
        "store_bytes": ARRAY + 8,
        "allocations": 1,
        "allocated_bytes": ARRAY,
    },
    "smooth": {  # a sum, a product, and a copy into the slice
        "flops_float64": 2 * (N - 2),
        "calls": 3,
        "load_bytes": 4 * 8 * (N - 2),
        "store_bytes": 3 * 8 * (N - 2),
        "allocations": 2,
        "allocated_bytes": 2 * 8 * (N - 2),
    },
    "divide_by_largest": {
        "special_functions": N,
        "calls": 2,
        "load_bytes": 2 * ARRAY,
        "store_bytes": ARRAY + 8,
    },
    "complex_square": {  # of a complex number 2 operations an addition, 6 a product
        "flops_float64": 8 * N,
        "calls": 2,
        "load_bytes": 4 * ARRAY,
        "store_bytes": 4 * ARRAY,
        "allocations": 4,  # both results, and x and y as complex numbers
        "allocated_bytes": 8 * ARRAY,
    },
    "product": {
        "flops_float64": 2 * N,
        "calls": 1,
        "load_bytes": 2 * ARRAY,
        "store_bytes": 8,
    },
    "matrices": {
        "flops_float64": 2 * 20 * 50 * 20,
        "calls": 1,
        "load_bytes": 2 * ARRAY,
        "store_bytes": 8 * 20 * 20,
        "allocations": 1,
        "allocated_bytes": 8 * 20 * 20,
    },
    "copy": {"calls": 1, "load_bytes": ARRAY, "store_bytes": ARRAY},
}

NOT_SEEN = {
    "choose": "np.where is no ufunc",
    "gather": "it indexes by arrays",
    "without_the_subclass": "it calls asarray",
    "sort_in_place": "it calls sort",
    "make_room": "it calls empty",
    "loop": "it goes through an array element by element",
    "index_one_by_one": "it reads single elements",
    "transform": "it uses fft",
    "global_array": "it uses PLACES",
    "memory": "it uses memoryview",
    "masked": "np.add works where a mask says",
    "imports": "it imports a module",
    "compiled": "it calls what Numba compiled",
}


@cache
def counted() -> dict[str, Any]:
    """Count in a process of its own: from then on NumPy's memory is counted there."""
    program = str(Path(__file__).with_name("numpy_functions.py"))
    done = subprocess.run([sys.executable, program], stdout=subprocess.PIPE, check=True)
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("name", BY_THEORY)
def test_operations_bytes_and_arrays_are_those_of_theory(name: str) -> None:
    assert counted()[name] == {"totals": BY_THEORY[name], "missing": None}


@pytest.mark.parametrize("name", NOT_SEEN)
def test_work_that_no_ufunc_does_is_noticed(name: str) -> None:
    found = counted()[name]
    assert found["missing"] == NOT_SEEN[name]
    assert found["totals"].keys() <= {"allocations", "allocated_bytes"}


def test_arrays_are_counted_also_where_calls_are_not() -> None:
    """Of ``np.where``: the comparison and the result."""
    totals = counted()["choose"]["totals"]
    assert totals == {"allocations": 2, "allocated_bytes": ARRAY + N}
