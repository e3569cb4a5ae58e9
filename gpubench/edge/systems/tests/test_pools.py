"""Pools of processes and threads: what they compute, what they leave, how they fail."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pool_functions
import pytest

from gpubench.backends.numpy import blas_libraries
from gpubench.backends.protocol import Session, Target
from gpubench.backends.registry import get
from gpubench.edge.systems.multiprocessing import WatchedPool
from gpubench.edge.systems.pools import ONE_THREAD_VARIABLES, SharedArray
from gpubench.errors import BackendError, GpubenchError
from gpubench.measure.cold_start import ColdStartSampler
from gpubench.measure.direct import Job, take_turn
from gpubench.measure.verify_cases import Manner, Verified, verified
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suite

pytest.importorskip("joblib", reason="make test-systems has it")

SUITE = Path(__file__).parents[1] / "suites" / "map.yaml"
PROCESSES = ("multiprocessing", "processes:2")
THREADS = ("threads", "threads:2")
LOKY = pytest.param("joblib", "processes:2", id="loky")
JOBLIB_THREADS = pytest.param("joblib", "threads:2", id="joblib-threads")
ALL = [
    pytest.param(*PROCESSES, id="multiprocessing"),
    pytest.param(*THREADS, id="threads"),
    LOKY,
    JOBLIB_THREADS,
]
OF_PROCESSES = [ALL[0], LOKY]

DOUBLED = """
version: 1
suite: doubled
kernels:
  doubled:
    arrays:
      a: {{shape: [64], dtype: float64}}
      out: {{shape: [64], dtype: float64, intent: out}}
    call: [a, out]
    devices: [cpu, "{device}"]
    baseline: serial
    sampling: {{rounds: 1, repeat: 2, sample_time: 0.001, warmup_time: 0, timeout: 30}}
    measure: [kernel, start]
    implementations:
      serial: {{function: "pool_functions:serial", backend: numpy, returns: [out]}}
      pool: {{function: "pool_functions:{function}", backend: {backend}, returns: [out]}}
"""


def case_of(folder: Path, backend: str, device: str, function: str) -> Case:
    """``out = 2 a`` by a function of ``pool_functions``."""
    path = folder / "doubled.yaml"
    path.write_text(DOUBLED.format(backend=backend, device=device, function=function))
    plan = build_plan([load_suite(path)], gpu_count=0)
    return next(case for case in plan.cases() if case.implementation_name == "pool")


def outcome(case: Case, limit: float = 60.0) -> Verified:
    """What becomes of it in a process of its own, as under ``gpubench verify``."""
    return dict(verified([case], Manner(processes=1, limit=limit)))[0]


def call(session: Session, function: Callable[..., Any], *arguments: Any) -> Any:
    return session.bind(Target(function=function), None, arguments)()


def processes() -> set[int]:
    """Numbers of the processes that this one started, and those that they started; without the
    trackers and servers that Python and loky keep until this one ends."""
    found, below = set[int](), {os.getpid()}
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has just ended
            continue
    while new := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= new
    for pid in below - {os.getpid()}:
        try:
            command = Path(f"/proc/{pid}/cmdline").read_text()
        except OSError:
            continue
        if command and not any(name in command for name in ("resource_tracker", "forkserver")):
            found.add(pid)
    return found


def shared_blocks() -> int:
    """Blocks of shared memory that this process has open or mapped."""
    gc.collect()
    files = [str(file.readlink()) for file in Path("/proc/self/fd").iterdir() if file.is_symlink()]
    mapped = pool_functions.shared_memory_of_this_process(None)
    return mapped + sum("memfd:gpubench" in file for file in files)


def left_by(pid: int) -> list[str]:
    """What stands in shared memory under the name of a process, as loky's things do."""
    names = [path.name for path in Path("/dev/shm").iterdir()]
    return [name for name in names if f"-{pid}-" in name or f"_{pid}_" in name]


def wait_until(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def nothing_left() -> Iterator[None]:
    """After it there are no more processes, threads, names and blocks than before."""
    before = processes(), shared_blocks(), {*left_by(os.getpid())}
    threads = threading.active_count()
    yield
    wait_until(lambda: threading.active_count() <= threads)
    wait_until(lambda: processes() <= before[0])
    wait_until(lambda: shared_blocks() <= before[1])
    wait_until(lambda: {*left_by(os.getpid())} <= before[2])


# --- what they compute


def small_cases() -> list[Any]:
    """Of the suite, those of pools of this machine at one size, one on each device."""
    names = ("threads", "multiprocessing", "written", "joblib")
    cases = build_plan([load_suite(SUITE, "smoke")], gpu_count=0).cases()
    wanted = {"batch": 8, "tasks": 64}
    return [
        pytest.param(case, id=f"{case.kernel_name}-{case.implementation_name}-{case.device}")
        for case in cases
        if case.implementation_name in names
        and {name: case.values[name] for name in wanted} == wanted
    ]


def test_every_implementation_of_the_suite_is_right() -> None:
    cases = [parameter.values[0] for parameter in small_cases()]
    assert {case.device for case in cases} >= {"threads:1", "threads:2", "processes:1"}
    assert len(cases) == 14
    found = dict(verified(cases, Manner(processes=1)))
    wrong = {cases[place].device: one.reason for place, one in found.items() if one.reason}
    assert not wrong
    assert {one.max_abs_error for one in found.values()} == {0.0}


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_every_way_to_start_workers_gives_the_same(method: str) -> None:
    with get("multiprocessing").open("processes:2", None, {"method": method}) as session:
        a = session.to_native(np.arange(64.0))
        np.testing.assert_array_equal(call(session, pool_functions.on_pool, a), 2 * a)
        facts = session.facts()
    assert (facts["start_method"], facts["worker_blas_threads"]) == (method, 1)


@pytest.mark.parametrize(("backend", "device"), ALL)
def test_a_pool_stands_when_it_is_opened_and_says_how(backend: str, device: str) -> None:
    variables = {name: os.environ.get(name) for name in ONE_THREAD_VARIABLES}
    main, blas = sys.modules["__main__"], blas_libraries().info()
    with nothing_left():
        with get(backend).open(device) as session:
            started = len(processes()) if device.startswith("processes") else 2
            facts = session.facts()
        session.close()  # a second time
    assert started == facts["workers"] == 2
    assert facts["worker_blas_threads"] == 1
    assert facts["pool_start_seconds"] > 0
    # What was set for the workers is as it was.
    assert {name: os.environ.get(name) for name in ONE_THREAD_VARIABLES} == variables
    assert sys.modules["__main__"] is main
    assert blas_libraries().info() == blas


def test_a_worker_imports_nothing_of_the_program_that_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = ModuleType("__main__")
    program.__file__ = str(tmp_path / "program.py")
    Path(program.__file__).touch()
    monkeypatch.setitem(sys.modules, "__main__", program)
    with get("multiprocessing").open("processes:2") as session:
        assert call(session, lambda pool: pool.apply(pool_functions.main_module)) == "__main__"


@pytest.mark.parametrize(("backend", "device"), ALL)
def test_its_time_is_taken(tmp_path: Path, backend: str, device: str) -> None:
    function = "on_pool" if backend != "joblib" else "writing_back"
    case = case_of(tmp_path, backend, device, function)
    measured = take_turn(Job(case))
    assert measured.record.status == "ok", measured.record.reason
    assert measured.record.conditions["workers"] == 2
    assert min(measured.samples) > 0
    assert measured.record.method == "host loop"


@pytest.mark.parametrize(("backend", "device"), OF_PROCESSES)
def test_starting_is_measured_in_a_fresh_process(tmp_path: Path, backend: str, device: str) -> None:
    function = "on_pool" if backend != "joblib" else "writing_back"
    case = case_of(tmp_path, backend, device, function)
    with nothing_left():
        seconds = ColdStartSampler(case, "start").seconds(1)
    with get(backend).open(device) as session:
        pool = session.facts()["pool_start_seconds"]
    assert isinstance(pool, float)
    assert seconds > pool / 10  # of the same order, on a machine that may be busy


# --- arrays that processes share


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with get("multiprocessing").open("processes:2") as opened:
        yield opened


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[2:7],
        lambda a: a[::-2],
        lambda a: a.reshape(2, 6).T[1:],
        lambda a: a.reshape(3, 4)[:, 1::2],
    ],
    ids=["slice", "backwards", "transposed", "columns"],
)
def test_what_workers_write_into_a_view_is_seen(
    session: Session, view: Callable[[Any], Any]
) -> None:
    a, expected = session.to_native(np.arange(12.0)), np.arange(12.0)
    call(session, lambda pool, part: pool.map(pool_functions.double_in_place, [part]), view(a))
    view(expected)[...] *= 2
    np.testing.assert_array_equal(session.to_host(a), expected)


def test_what_is_computed_of_a_shared_array_goes_as_its_values(session: Session) -> None:
    a = session.to_native(np.arange(8.0))
    sums = a + 1
    assert isinstance(sums, SharedArray)
    (doubled,) = call(session, lambda pool: pool.map(pool_functions.double, [sums]))
    np.testing.assert_array_equal(doubled, 2 * np.arange(1.0, 9.0), strict=True)
    np.testing.assert_array_equal(session.to_host(a), np.arange(8.0))


def test_memory_is_given_back_here_and_in_the_workers(session: Session) -> None:
    def mapped(pool: Any, part: Any) -> int:
        pool.starmap(pool_functions.double, [(part,)] * 8, chunksize=1)
        return max(pool.map(pool_functions.shared_memory_of_this_process, range(8), chunksize=1))

    before = shared_blocks()
    for _ in range(10):
        a = session.to_native(np.zeros(1000))
        assert shared_blocks() > before
        assert call(session, mapped, a) <= 3
        del a
    assert shared_blocks() == before


def test_an_array_of_nothing_is_shared_too(session: Session) -> None:
    empty = session.to_native(np.zeros((0, 3)))
    (doubled,) = call(session, lambda pool: pool.map(pool_functions.double, [empty]))
    assert doubled.shape == (0, 3)


def test_locks_of_a_pool_have_no_names(session: Session) -> None:
    """One that is killed, as after a time-out, would leave them."""
    pool = session._pool  # type: ignore[attr-defined]
    queues = pool._inqueue, pool._outqueue
    names = [lock._semlock.name for queue in queues for lock in (queue._rlock, queue._wlock)]
    assert len(set(names)) == 4
    assert not [name for name in names if Path(f"/dev/shm/sem.{name.strip('/')}").exists()]


# --- how they fail, and what they leave


def test_a_worker_that_leaves_is_told_by_its_exit_code(tmp_path: Path) -> None:
    found = outcome(case_of(tmp_path, *PROCESSES, "leaving"))
    assert found.reason is not None
    assert found.reason.startswith("a worker died (exit code 3) ")


@pytest.mark.parametrize(
    ("backend", "device", "function"),
    [
        *[(*one.values, "raising") for one in ALL],
        *[(*one.values, "killing") for one in OF_PROCESSES],
    ],
)
def test_nothing_is_left_of_a_pool_that_failed(backend: str, device: str, function: str) -> None:
    with nothing_left():
        with pytest.raises((GpubenchError, ValueError)), get(backend).open(device) as session:
            # Halves of more than 1 MiB go to joblib's workers as files. Smaller ones go through a
            # pipe, and where loky kills the workers in the midst of one, the thread that writes it
            # waits until this process ends (joblib 1.6).
            a = session.to_native(np.zeros(2**19))
            call(session, getattr(pool_functions, function), a)
        del a, session


def test_a_pool_whose_worker_died_is_of_no_more_use() -> None:
    with nothing_left(), get("multiprocessing").open("processes:2") as session:
        for function in (pool_functions.killing, pool_functions.on_pool):
            with pytest.raises(GpubenchError, match="a worker died"):
                call(session, function, np.zeros(64))


def test_an_idle_worker_that_was_killed_holding_a_lock_does_not_keep_the_pool() -> None:
    with nothing_left(), get("multiprocessing").open("processes:2") as session:
        for pid in processes():  # one of them waits for a task, and holds the lock of the queue
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(GpubenchError, match="a worker died"):
            call(session, pool_functions.on_pool, np.zeros(64))
        ended = threading.Thread(target=session.close)
        ended.start()
        ended.join(30)
        assert not ended.is_alive()


def test_a_task_that_a_killed_worker_read_in_part_does_not_keep_the_pool() -> None:
    tasks: multiprocessing.SimpleQueue[Any]
    tasks, over = multiprocessing.SimpleQueue(), threading.Event()
    tasks._writer.send_bytes(b"")  # type: ignore[attr-defined]
    handler = threading.Thread(target=over.wait, daemon=True)
    handler.start()
    with pytest.raises(EOFError):
        tasks._reader.recv()  # type: ignore[attr-defined]
    tasks._writer.send_bytes(b"")  # type: ignore[attr-defined]
    WatchedPool._help_stuff_finish(tasks, handler, 1)
    over.set()
    handler.join()


@pytest.mark.parametrize(("backend", "device"), OF_PROCESSES)
@pytest.mark.parametrize(
    ("end", "code"),
    [
        pytest.param("pass", 0, id="returns"),
        pytest.param("os._exit(3)", 3, id="exits-at-once"),
        pytest.param("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, id="killed"),
        pytest.param("os.killpg(0, signal.SIGKILL)", -signal.SIGKILL, id="killed-with-its-group"),
    ],
)
def test_a_program_leaves_nothing_and_says_nothing(
    backend: str, device: str, end: str, code: int
) -> None:
    program = f"""
        import os, signal, sys
        import numpy as np
        import pool_functions
        from gpubench.backends.protocol import Target
        from gpubench.backends.registry import get

        os.setpgid(0, 0)
        with get({backend!r}).open({device!r}) as session:
            a = session.to_native(np.arange(2.0**19))  # halves large enough for joblib's files
            if {backend!r} == "multiprocessing":
                session.bind(Target(function=pool_functions.on_pool), None, [a])()
            else:
                session.bind(Target(function=pool_functions.writing_back), None, [a])()
            print("ready", flush=True)
            sys.stdin.readline()
            {end}
    """
    here = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": here},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    children = {pid for pid in processes() if pid != process.pid}
    assert len(children) >= 2
    _, errors = process.communicate("go on\n", timeout=60)
    assert (process.returncode, errors) == (code, "")
    wait_until(lambda: not left_by(process.pid))
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))


# --- what they refuse


def test_what_workers_of_loky_write_is_lost_and_called_wrong(tmp_path: Path) -> None:
    assert outcome(case_of(tmp_path, "joblib", "processes:2", "writing")).status == "wrong"
    assert outcome(case_of(tmp_path, "joblib", "threads:2", "writing")).status == "right"


@pytest.mark.parametrize(("backend", "device"), ALL)
def test_threads_of_a_case_are_refused(backend: str, device: str) -> None:
    with pytest.raises(BackendError, match=r"^threads of 3: the device says how many workers"):
        get(backend).open(device, threads=3)


def test_more_workers_than_processors_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert get("threads").unavailable("threads:2") is None
    reason = get("multiprocessing").unavailable("processes:9000")
    assert reason is not None
    assert reason.startswith("processes:9000: this process may use ")
    assert reason.endswith("use fewer workers, or measure on a larger machine")


@pytest.mark.parametrize(
    ("backend", "served", "refused"),
    [
        ("multiprocessing", ["processes:1", "processes:64"], ["processes:0", "threads:2", "cpu"]),
        ("threads", ["threads:1", "threads:64"], ["threads:02", "processes:2", "threads:2:1"]),
        ("joblib", ["processes:2", "threads:2"], ["processes:1", "threads:1", "dask:2:1"]),
    ],
)
def test_devices_are_called_after_their_workers(
    backend: str, served: list[str], refused: list[str]
) -> None:
    serves = get(backend).serves
    assert [*map(serves, served), *map(serves, refused)] == [True] * len(served) + [False] * 3


def test_an_unknown_way_to_start_names_the_nearest() -> None:
    options: Mapping[str, Any] = {"method": "forkserve"}
    with pytest.raises(BackendError, match="method 'forkserve'; did you mean 'forkserver'"):
        get("multiprocessing").open("processes:2", None, options)


def test_joblib_that_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert get("joblib").unavailable("processes:2") == (
        "processes:2: the module 'joblib' is not installed; pip install 'gpubench-suite[joblib]'"
    )
