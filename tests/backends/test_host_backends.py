"""NumPy and Numba on the CPU: threads are set for a session and given back after it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numba
import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from gpubench.backends import host
from gpubench.backends.host import Cell, CellSession, HostBackend, HostSession
from gpubench.backends.numpy import blas_facts
from gpubench.backends.protocol import Target
from gpubench.backends.registry import get
from gpubench.errors import BackendError, KernelError


def blas_threads() -> Any:
    with get("numpy").open("cpu") as session:
        return session.facts()["numpy_blas_threads"]


def test_blas_threads_are_set_for_the_session_only() -> None:
    before = blas_threads()
    with get("numpy").open("cpu", threads=1) as session:
        assert session.facts()["numpy_blas_threads"] == 1
        assert session.facts()["numpy_blas"]
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


@pytest.mark.parametrize(
    ("backend", "variable", "threads", "reason"),
    [
        ("numpy", "4", 4, "threads of 4: this process may use 2 of the machine's hardware threads"),
        ("numba", "4", 4, "threads of 4: this process may use 2 of the machine's hardware threads"),
        (
            "numba",
            "1",
            2,
            "threads of 2: Numba's pool has 1, allowed are 1 to 1; use fewer, or set",
        ),
        ("numba", "", 2, None),
        ("numpy", "1", 2, None),
    ],
)
def test_threads_are_counted_before_anything_is_started(
    monkeypatch: pytest.MonkeyPatch, backend: str, variable: str, threads: int, reason: str | None
) -> None:
    two = replace(host.cpu(), threads=2)
    monkeypatch.setattr("gpubench.backends.host.cpu", lambda: two)
    monkeypatch.delitem(sys.modules, "numba.core.config")
    monkeypatch.setenv("NUMBA_NUM_THREADS", variable)
    found = get(backend).too_many_threads(threads)
    assert found is None if reason is None else str(found).startswith(reason)


def test_a_blas_that_takes_no_thread_count_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    none = ThreadpoolController().select(user_api="no such thing")
    monkeypatch.setattr("gpubench.backends.numpy.blas_libraries", lambda: none)
    with pytest.raises(BackendError, match="threads of 1: the number of threads of NumPy's BLAS"):
        get("numpy").open("cpu", threads=1)


SITE = "/usr/lib/python3.11/site-packages"


def openblas(path: str, version: str = "0.3.30") -> dict[str, Any]:
    """What threadpoolctl tells of an OpenBLAS that was loaded from there."""
    return {
        "internal_api": "openblas",
        "version": version,
        "architecture": "Zen",
        "num_threads": 2,
        "filepath": path,
    }


@pytest.mark.parametrize(
    ("paths", "packages"),
    [
        # Both are called libscipy_openblas: the folder tells whose it is.
        (("scipy.libs/libscipy_openblas.so", "numpy.libs/libscipy_openblas64_.so"), "numpy scipy"),
        (("numpy/.dylibs/libscipy_openblas64_.dylib", "torch/lib/libblas.dylib"), "numpy torch"),
        (("../../libmkl_rt.so.2",), "numpy"),  # of conda or the system: NumPy has no other
        (("../../libopenblas.so.0", "numpy.libs/libscipy_openblas64_.so"), "numpy system"),
        (("../../libopenblas.so.0", "scipy.libs/libscipy_openblas.so"), "numpy scipy"),
    ],
)
def test_each_blas_is_named_with_the_package_that_brought_it(
    paths: tuple[str, ...], packages: str
) -> None:
    loaded = [openblas(os.path.normpath(f"{SITE}/{path}"), path) for path in paths]
    facts = blas_facts(loaded)
    owners = [name.removesuffix("_blas") for name in facts if name.endswith("_blas")]
    assert sorted(owners) == packages.split()
    assert facts == blas_facts(loaded[::-1])
    for path in paths:
        assert f"openblas {path} (Zen)" in facts.values()


def test_a_blas_that_threadpoolctl_does_not_know_is_named_as_numpy_was_built() -> None:
    (name,) = blas_facts([]).values()
    assert name == np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]  # type: ignore[call-overload]


def test_flushing_writes_more_than_the_last_level_cache_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gpubench.backends.host.last_level_cache_bytes", lambda: 2**20)
    with get("numpy").open("cpu") as session:
        session.flush()
        scratch = session._scratch  # type: ignore[attr-defined]
        assert scratch.nbytes >= 2 * 2**20
        assert (scratch == 1).all()
        session.flush()
        assert (scratch == 2).all()


def test_the_pool_runs_before_a_time_is_taken() -> None:
    program = (
        "from numba.np.ufunc import parallel\n"
        "from gpubench.backends.registry import get\n"
        "before = parallel._is_initialized\n"
        "with get('numba').open('cpu'):\n"
        "    print(before, parallel._is_initialized)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_numba_facts_name_versions_and_the_threading_layer() -> None:
    with get("numba").open("cpu") as session:
        facts = session.facts()
    assert facts["numba"] == numba.__version__
    assert facts["threading_layer"] == numba.threading_layer()
    assert set(facts) == {
        "numpy",
        "numpy_blas",
        "numpy_blas_threads",
        "numba",
        "llvmlite",
        "threading_layer",
        "numba_threads",
        "svml",
    }


@numba.njit(cache=True)
def cached(x: float) -> float:
    return x


@pytest.mark.parametrize("function", [cached, numba.njit(lambda x: x), len])
def test_numba_keeps_what_was_compiled_with_a_cache(function: Any) -> None:
    assert get("numba").keeps(function) == (function is cached)
    assert not get("numpy").keeps(function)


@numba.njit
def forgotten(x: float) -> float:
    return x + 1


@pytest.mark.parametrize(("function", "is_told"), [(forgotten, True), (cached, False)])
def test_the_seconds_of_compiling_what_is_not_kept_are_told(function: Any, is_told: bool) -> None:
    def facts_of_a_run() -> Any:
        with get("numba").open("cpu") as session:
            session.bind(Target(function=function), None, [1.0])()
            return session.facts()

    facts = facts_of_a_run()
    assert (facts.get("compile_seconds", 0.0) > 0) == is_told
    assert "compile_seconds" not in facts_of_a_run()  # this process has the code now


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


@pytest.mark.parametrize(("value", "runs"), [("1", False), ("0", True), ("", True)])
def test_numba_that_would_run_python_is_not_timed_as_numba(
    monkeypatch: pytest.MonkeyPatch, value: str, runs: bool
) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", value)
    why = get("numba").unavailable("cpu")
    assert why == (
        None if runs else "NUMBA_DISABLE_JIT is set, so that nothing would be compiled: unset it"
    )


class AbacusSession(HostSession):
    """Begins something, and fails where it is told to."""

    def __init__(self, ended: list[str], *, fails: bool) -> None:
        super().__init__("abacus")
        with self.opening() as ending:
            ending.callback(ended.append, "first")
            ending.callback(ended.append, "second")
            if fails:
                raise ZeroDivisionError


class AbacusBackend(HostBackend):
    name, title, times = "abacus", "Abacus", ("kernel",)
    no_threads = "beads have none; list abacus:{threads}"
    preloads = "this"

    def start(self, device: str, threads: int | None) -> HostSession:
        return HostSession(self.name)


def test_what_a_session_began_ends_with_it_once_the_last_first() -> None:
    ended: list[str] = []
    with AbacusSession(ended, fails=False) as session:
        assert ended == []
    session.close()
    assert ended == ["second", "first"]


def test_what_a_session_began_ends_where_it_cannot_be_opened() -> None:
    ended: list[str] = []
    with pytest.raises(ZeroDivisionError):
        AbacusSession(ended, fails=True)
    assert ended == ["second", "first"]


def test_threads_are_refused_where_the_backend_says_that_it_has_none() -> None:
    AbacusBackend().open("cpu").close()
    with pytest.raises(BackendError) as refusal:
        AbacusBackend().open("cpu", threads=3)
    assert str(refusal.value) == "threads of 3: beads have none; list abacus:3"


def test_what_a_backend_passes_comes_first_and_is_not_given_to_the_empty_call() -> None:
    with get("numpy").open("cpu") as opened:
        assert isinstance(opened, HostSession)
        opened.serve("abacus", (np.ones(2),), {"beads": 7})
        call = opened.bind(Target(function=np.add), None, [3])
        np.testing.assert_array_equal(call(), [4, 4])
        empty = opened.empty()
        assert empty is not None
        assert empty() is None
        assert opened.facts()["beads"] == 7
        with pytest.raises(KernelError, match=r"^the backend abacus runs functions and got a"):
            opened.bind(Target(launcher=print), None, [])


def test_a_module_that_takes_long_is_imported_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[str] = []
    monkeypatch.setattr("importlib.import_module", imported.append)
    AbacusBackend().preload()
    get("numpy").preload()
    assert imported == ["this"]


def test_a_cell_is_restored_by_what_it_holds_and_taken_off_for_a_call() -> None:
    class Immutable(CellSession):
        def to_native(self, array: Any) -> Cell:
            return Cell(array.copy())

    with Immutable("abacus") as session:
        native = session.to_native(np.ones(2))
        call = session.bind(Target(function=np.add), None, [native, 3])
        np.testing.assert_array_equal(session.to_host(call()), [4, 4])
        session.restore(native, session.pristine(np.zeros(2)))
        np.testing.assert_array_equal(call(), [3, 3])
        np.testing.assert_array_equal(session.to_host(native), [0, 0])
        assert session.empty() is None
