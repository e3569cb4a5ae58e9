"""NumPy and Numba on the CPU: threads are set for a session and given back after it."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from gpubench.backends.protocol import Target
from gpubench.backends.registry import get
from gpubench.errors import BackendError, KernelError


def blas_threads() -> Any:
    with get("numpy").open("cpu") as session:
        return session.facts()["blas_threads"]


def test_blas_threads_are_set_for_the_session_only() -> None:
    before = blas_threads()
    with get("numpy").open("cpu", threads=1) as session:
        assert session.facts()["blas_threads"] == 1
        assert session.facts()["blas"]
    assert blas_threads() == before


def test_blas_threads_come_back_after_an_error() -> None:
    before = blas_threads()
    with pytest.raises(ZeroDivisionError), get("numpy").open("cpu", threads=1):
        raise ZeroDivisionError
    assert blas_threads() == before


def test_numba_threads_are_set_for_the_session_only() -> None:
    before = numba.get_num_threads()
    with get("numba").open("cpu", threads=1) as session:
        assert session.facts()["numba_threads"] == 1
        assert numba.get_num_threads() == 1
    assert numba.get_num_threads() == before


@pytest.mark.parametrize("threads", [0, 10_000])
def test_more_threads_than_the_pool_has_are_refused(threads: int) -> None:
    most = numba.config.NUMBA_NUM_THREADS
    with pytest.raises(BackendError) as refusal:
        get("numba").open("cpu", threads=threads)
    assert str(refusal.value) == (
        f"threads of {threads}: Numba's pool has {most}, allowed are 1 to {most}; "
        "use fewer, or set NUMBA_NUM_THREADS before Python starts"
    )


def test_numba_facts_name_versions_and_the_threading_layer() -> None:
    with get("numba").open("cpu") as session:
        facts = session.facts()
    assert facts["numba"] == numba.__version__
    assert facts["threading_layer"] == numba.threading_layer()
    assert set(facts) == {
        "numpy",
        "numba",
        "llvmlite",
        "threading_layer",
        "numba_threads",
        "svml",
    }


@numba.vectorize(["float64(float64)"])
def square(x: float) -> float:
    return x * x


@numba.guvectorize(["(float64[:], float64[:])"], "(n)->()")
def total(a: Any, out: Any) -> None:
    out[0] = a.sum()


@numba.njit(parallel=True)
def parallel(a: Any) -> None:
    for i in numba.prange(len(a)):
        a[i] += 1


@pytest.mark.parametrize("function", [square, total, parallel, numba.njit(lambda x: x)])
def test_numba_recognises_what_it_compiled(function: Any) -> None:
    assert get("numba").recognises(function)
    assert not get("numpy").recognises(function)


@pytest.mark.parametrize("function", [np.add, np.dot, len, blas_threads, np.ones(2).sum])
def test_numpy_recognises_plain_functions(function: Any) -> None:
    assert get("numpy").recognises(function)
    assert not get("numba").recognises(function)


def test_a_call_returns_what_the_function_returns() -> None:
    with get("numpy").open("cpu") as session:
        call = session.bind(Target(function=np.add), None, [np.ones(2), 3])
        np.testing.assert_array_equal(session.to_host(call()), [4, 4])
        assert session.to_host(np.float32(2)).dtype == np.float32


def test_a_launcher_is_refused_on_the_cpu() -> None:
    with get("numpy").open("cpu") as session, pytest.raises(KernelError) as refusal:
        session.bind(Target(launcher=print), None, [])
    assert str(refusal.value) == (
        "the backend numpy runs functions and got a launcher; "
        "name a 'function:' or a 'factory:', or another 'backend:'"
    )
