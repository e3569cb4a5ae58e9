"""Dask and Ray: what a call is, what a worker that dies does to a case, and that nothing is left.

The tests share a cluster of two worker processes and a Ray of two, save those that break them.
"""

from __future__ import annotations

import importlib.util
import json
import multiprocessing.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cluster_functions as functions
import numpy as np
import pytest

from gpubench import temporary
from gpubench.backends.protocol import DeviceError, DeviceLostError, Target
from gpubench.backends.registry import get
from gpubench.errors import BackendError, KernelError
from gpubench.measure.bound_case import BoundCase
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.targets import load_target
from gpubench.measure.verification import expected_outputs, verify
from gpubench.names import format_identity, parse_identity
from gpubench.plan.case import Case
from gpubench.plan.expansion import expand
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suite

pytest.importorskip("distributed", reason="make test-systems has it")
pytest.importorskip("ray", reason="make test-systems has it")

HERE = Path(__file__).parent
SUITES = HERE.parent / "suites"
PATIENCE = 60.0
"""Seconds in which what has to happen has happened, on a busy machine: a cluster starts within ten,
and processes notice within two that others have ended."""


@pytest.fixture(autouse=True, scope="module")
def temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One of these tests alone. With a short name: Ray makes sockets in it, whose paths are short
    by necessity."""
    # Folders of the whole process, which tests of other files use too, are made outside of it.
    _ = tmp_path_factory.getbasetemp(), multiprocessing.util.get_temp_dir()
    with tempfile.TemporaryDirectory(prefix="gb-", dir="/tmp") as folder:
        before, tempfile.tempdir = tempfile.tempdir, folder
        yield
        tempfile.tempdir = before


def call(session: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    returned = session.bind(Target(function=function), None, arguments)()
    session.synchronize()
    return returned


def processes_below(parent: int) -> set[int]:
    """Processes that a process started, and theirs, without multiprocessing's and zombies."""
    parents, below = {}, {parent}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state, above = (path / "stat").read_text().rpartition(")")[2].split()[:2]
            command = (path / "cmdline").read_text()
        except OSError:  # it has ended
            continue
        if state != "Z" and not serves_a_process(command):
            parents[int(path.name)] = int(above)
    while new := {pid for pid, above in parents.items() if above in below} - below:
        below |= new
    return below - {parent}


def serves_a_process(command: str) -> bool:
    """Of multiprocessing itself: it ends with the process that it serves."""
    return any(name in command for name in ("resource_tracker", "forkserver"))


def alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def files() -> set[str]:
    """What these systems leave in shared memory, in the temporary folder and in the home; without
    what pytest and multiprocessing keep there until this process ends."""
    temporary = Path(tempfile.gettempdir())
    places = [
        *Path("/dev/shm").glob("plasma*"),
        *(path for path in temporary.glob("*") if not path.name.startswith(("pytest-of", "pymp-"))),
        *Path.home().glob(".ray/*"),
    ]
    return set(map(str, places))


def wait_until(happened: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not happened() and time.monotonic() < deadline:
        time.sleep(0.05)
    return happened()


@contextmanager
def nothing_left() -> Iterator[None]:
    """Inside, processes may start and files be made; none of them is there afterwards."""
    processes, before = processes_below(os.getpid()), files()
    yield
    wait_until(lambda: processes_below(os.getpid()) <= processes)
    assert processes_below(os.getpid()) <= processes
    # Tests of other files run beside, and /dev/shm is theirs too.
    wait_until(lambda: files() <= before)
    assert files() <= before


# --- names of devices


@pytest.mark.parametrize(
    ("device", "backend"),
    [
        ("dask:4:1", "dask"),
        ("dask:tcp://127.0.0.1:8786", "dask"),
        ("dask:tls://scheduler.example.org:8786", "dask"),
        ("ray:4", "ray"),
        ("ray:auto", "ray"),
        ("ray:127.0.0.1:6379", "ray"),
        ("ray:head.example.org:6379", "ray"),
    ],
)
def test_a_suite_may_name_clusters_and_their_cases_have_names(
    tmp_path: Path, device: str, backend: str
) -> None:
    assert get(backend).serves(device)
    suite = write_suite(tmp_path, device, backend, "plain")
    (case,) = [c for c in cases_of(suite) if c.device == device]
    assert case.identity == format_identity({"n": 4, "device": device})
    assert parse_identity(case.identity) == {"n": 4, "device": device}


@pytest.mark.parametrize(
    "device",
    [
        *("ray", "ray:", "ray:all", "ray:127.0.0.1", "ray:127.0.0.1:x", "cpu:auto", "cuda:auto"),
        *("dask:tcp:127.0.0.1:8786", "dask:tcp://", "dask:a b:1", "ray:a=b.c:1", "dask:1:2:3"),
    ],
)
def test_other_names_are_refused(tmp_path: Path, device: str) -> None:
    with pytest.raises(Exception, match="another backend's device like cl:0:0"):
        load_suite(write_suite(tmp_path, device, "dask", "plain"))


def write_suite(folder: Path, device: str, backend: str, function: str, timeout: int = 60) -> Path:
    """A suite of one kernel, which returns what it is given."""
    path = folder / "clusters.yaml"
    path.write_text(f"""
version: 1
suite: clusters
kernels:
  copied:
    sizes: {{n: [4]}}
    arrays:
      a: {{shape: [n], dtype: float64, fill: normal}}
      b: {{shape: [n], dtype: float64, intent: out}}
    call: [a, b]
    implementations:
      numpy: {{function: "cluster_functions:plain", returns: [b]}}
      tried: {{function: "cluster_functions:{function}", backend: {backend}, returns: [b]}}
    devices: [cpu, {json.dumps(device)}]
    sampling: {{rounds: 1, repeat: 2, sample_time: 0.001, warmup_time: 0, timeout: {timeout}}}
""")
    return path


def cases_of(suite: Path) -> list[Case]:
    return list(build_plan([load_suite(suite)], 0).cases())


# --- before anything starts


@pytest.mark.parametrize(
    ("backend", "device", "threads", "options", "words"),
    [
        ("dask", "threads:2", 2, {}, "workers are part of the device's name"),
        ("dask", "threads:2", None, {"chunks": 0}, "chunks is 0; allowed: a whole number from 1"),
        ("dask", "threads:2", None, {"chunks": 2.0}, "chunks is 2.0; allowed: a whole number"),
        ("dask", "threads:2", None, {"chunks": True}, "chunks is True; allowed: a whole number"),
        ("dask", "threads:2", None, {"memory": 2**30}, "only workers of dask:WORKERS:THREADS"),
        ("dask", "dask:2:1", None, {"memory": 0}, "memory is 0; allowed: a number of bytes"),
        ("ray", "ray:2", 2, {}, "workers are part of the device's name"),
        ("ray", "ray:2", None, {"memory": 1.5}, "memory is 1.5; allowed: a number of bytes"),
        ("ray", "ray:auto", None, {"memory": 2**30}, "its object store has its size already"),
    ],
)
def test_options_and_threads_are_checked_before_anything_starts(
    backend: str, device: str, threads: int | None, options: dict[str, Any], words: str
) -> None:
    before = processes_below(os.getpid())
    with pytest.raises(BackendError, match=words):
        get(backend).open(device, threads, options)
    assert processes_below(os.getpid()) <= before


@pytest.mark.parametrize(
    ("backend", "device", "module"),
    [("dask", "threads:2", "dask"), ("dask", "dask:2:1", "distributed"), ("ray", "ray:2", "ray")],
)
def test_a_missing_package_is_named_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, backend: str, device: str, module: str
) -> None:
    find = importlib.util.find_spec
    missing = {module}
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in missing else find(name)
    )
    assert get(backend).unavailable(device) == (
        f"{device}: the module {module!r} is not installed; pip install 'gpubench-suite[{backend}]'"
    )


def unused_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def test_an_address_where_no_scheduler_is_ends_the_case_with_the_next_step() -> None:
    address = f"tcp://127.0.0.1:{unused_port()}"
    with nothing_left(), pytest.raises(BackendError, match="no scheduler of Dask answers") as why:
        get("dask").open(f"dask:{address}")
    assert f"`dask worker {address}`" in str(why.value)


def test_an_address_where_no_ray_is_ends_the_case_with_the_next_step() -> None:
    address = f"127.0.0.1:{unused_port()}"
    with nothing_left(), pytest.raises(BackendError, match="nothing answers at") as why:
        get("ray").open(f"ray:{address}")
    assert "ray start --head --port" in str(why.value)


def test_a_folder_in_use_is_left_alone_and_one_of_a_process_that_is_gone_is_removed() -> None:
    code = "import os; from gpubench.temporary import temporary_folder\n"
    code += "with temporary_folder('tried') as path:\n"
    code += "    print(path, flush=True)\n    os.kill(os.getpid(), 9)"
    with temporary.temporary_folder("tried") as used:
        variables = {**os.environ, "TMPDIR": tempfile.gettempdir()}
        killed = subprocess.run([sys.executable, "-c", code], env=variables, stdout=subprocess.PIPE)
        abandoned = Path(killed.stdout.decode().strip())
        assert abandoned.is_dir()
        temporary.remove_abandoned()
        assert used.is_dir()
        assert not abandoned.exists()
    assert not used.exists()


def test_a_folder_for_sockets_has_a_short_name_wherever_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for most, parent in ((sys.maxsize, tmp_path), (17, Path("/tmp"))):
        with temporary.temporary_folder("tried", max_characters=most) as folder:
            assert folder.parent == parent


# --- Dask


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with nothing_left(), get("dask").open("dask:2:1") as session:
        yield session


@pytest.fixture(scope="module", params=["threads:2", "processes:2", "dask:2:1"])
def dask_session(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "dask:2:1":
        yield request.getfixturevalue("cluster")
    else:
        with get("dask").open(request.param) as session:
            yield session


def test_a_call_of_dask_is_done_when_its_work_is(dask_session: Any, tmp_path: Path) -> None:
    native, record = dask_session.to_native(np.arange(4.0)), tmp_path / "record"
    bound = dask_session.bind(
        Target(function=functions.dask_doubled_on_record), None, [native, str(record)]
    )
    returned = bound()
    assert len(record.read_text().split()) == 2  # as many chunks as workers
    np.testing.assert_array_equal(dask_session.to_host(returned), 2 * np.arange(4.0), strict=True)
    assert len(record.read_text().split()) == 2  # what was there is fetched, not computed again


def test_a_call_of_dask_is_computed_again_while_its_last_result_is_there(
    dask_session: Any, tmp_path: Path
) -> None:
    native, record = dask_session.to_native(np.arange(4.0)), tmp_path / "record"
    for function, arguments in [
        (functions.dask_doubled_on_record, [native, str(record)]),
        (functions.dask_of_nothing, [str(record)]),
    ]:
        record.unlink(missing_ok=True)
        bound = dask_session.bind(Target(function=function), None, arguments)
        results = [bound() for _ in range(3)]
        assert len(record.read_text().split()) == 6
        for result in results:
            np.testing.assert_array_equal(dask_session.to_host(result), [0, 2, 4, 6])


def test_a_table_lies_in_pieces_and_is_computed_at_each_call(
    dask_session: Any, tmp_path: Path
) -> None:
    arrow = pytest.importorskip("pyarrow")
    table, record = arrow.table({"n": [1, 2, 3], "x": [0.5, 1.5, 2.5]}), tmp_path / "record"
    native = dask_session.table_to_native(table)
    assert dask_session.table_to_host(native).equals(table)
    function = Target(function=functions.dask_frame_doubled_on_record)
    bound = dask_session.bind(function, None, [native, str(record)])
    results = [bound() for _ in range(3)]
    assert len(record.read_text().split()) == 6  # as many pieces as workers in each call
    for result in results:
        doubled = arrow.table({"n": [2, 4, 6], "x": [1.0, 3.0, 5.0]})
        assert dask_session.table_to_host(result).equals(doubled)
    assert len(record.read_text().split()) == 6
    with pytest.raises(KernelError, match="a table came as a Array; allowed: a DataFrame"):
        dask_session.table_to_host(dask_session.to_native(np.arange(4.0)))


def test_an_answer_in_more_pieces_than_dask_first_says_is_whole(dask_session: Any) -> None:
    """``dask.persist`` drops all but the first of them."""
    arrow = pytest.importorskip("pyarrow")
    keys = np.arange(1000) % 100
    native = dask_session.table_to_native(arrow.table({"key": keys, "value": np.ones(1000)}))
    result = call(dask_session, functions.dask_frame_sums_of_groups, native)
    assert result.npartitions > 1
    answer = dask_session.table_to_host(result).sort_by("key")
    assert answer.equals(arrow.table({"key": np.arange(100), "value": np.full(100, 10.0)}))


def test_a_frame_that_a_cluster_would_not_compute_again_is_refused(cluster: Any) -> None:
    pytest.importorskip("pyarrow")
    bound = cluster.bind(Target(function=functions.dask_frame_of_nothing), None, [])
    kept = bound()
    with pytest.raises(KernelError, match="made of no table of the call"):
        bound()
    assert cluster.table_to_host(kept).num_rows == 2


def test_delayed_functions_of_dask_find_the_workers_of_the_session(dask_session: Any) -> None:
    pids = set(call(dask_session, functions.dask_workers, 20).tolist())
    workers = processes_below(os.getpid())
    assert pids == {os.getpid()} or (len(pids) == 2 and pids <= workers)
    assert (os.getpid() in pids) == (dask_session.facts()["scheduler"] == "threads")


def test_a_task_of_dask_that_raises_ends_the_call_with_its_error(dask_session: Any) -> None:
    native = dask_session.to_native(np.arange(4.0))
    with pytest.raises(ZeroDivisionError, match="no number is half of nothing"):
        call(dask_session, functions.dask_failing, native)
    assert len(call(dask_session, functions.dask_workers, 2)) == 2  # the others go on


def test_dask_tells_its_workers_and_how_long_they_took_to_start(dask_session: Any) -> None:
    facts = dask_session.facts()
    assert (facts["workers"], facts["worker_blas_threads"]) == (2, 1)
    assert facts["pool_start_seconds"] > 0
    assert {"numpy", "dask", "scheduler"} <= facts.keys()


@pytest.mark.parametrize(
    ("chunks", "shape", "expected"),
    [
        (None, (5,), ((3, 2),)),
        (None, (4, 3), ((2, 2), (3,))),
        (None, (), ()),
        (2, (5, 3), ((2, 2, 1), (2, 1))),
        ("auto", (5, 3), ((5,), (3,))),
    ],
)
def test_arrays_have_as_many_chunks_as_workers_or_what_the_option_says(
    chunks: Any, shape: tuple[int, ...], expected: Any
) -> None:
    seen = []
    with get("dask").open("threads:2", None, {"chunks": chunks}) as session:
        call(session, lambda a: seen.append(a.chunks), session.to_native(np.zeros(shape)))
    assert seen == [expected]


def test_two_sessions_of_dask_stay_apart(cluster: Any) -> None:
    """As where a case is paired with a baseline, each finds its own workers."""
    with get("dask").open("threads:2") as other:
        for session, here in ((cluster, False), (other, True), (cluster, False)):
            pids = call(session, functions.dask_workers, 2)
            assert (os.getpid() in pids) == here


def listening(pids: set[int]) -> set[str]:
    """Addresses, in the system's hexadecimal form, at which these processes wait for others."""
    inodes = set()
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            if link.is_symlink():
                inodes.add(str(link.readlink()).removeprefix("socket:[").rstrip("]"))
    rows = [
        line.split()
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for line in Path(table).read_text().splitlines()[1:]
    ]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes}


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}
"""127.0.0.1, and the same as an address of IPv6."""


def test_a_cluster_of_dask_listens_on_the_loopback_interface_only(cluster: Any) -> None:
    addresses = listening({os.getpid(), *processes_below(os.getpid())})
    assert addresses
    assert addresses <= LOOPBACK


@pytest.mark.parametrize("device", ["processes:2", "dask:2:1"])
def test_a_task_that_ends_its_worker_of_dask_ends_the_case(device: str) -> None:
    with nothing_left(), pytest.raises(DeviceLostError) as why, get("dask").open(device) as session:
        call(session, functions.dask_dying, session.to_native(np.arange(4.0)))
    signal_of_it = {"processes:2": "terminated abruptly", "dask:2:1": "killed by signal 9"}
    assert "died" in str(why.value) and signal_of_it[device] in str(why.value)


def test_a_worker_of_dask_that_ends_between_calls_takes_its_chunks_with_it() -> None:
    with nothing_left(), get("dask").open("dask:2:1") as session:
        native = session.to_native(np.arange(4.0))
        pids = call(session, functions.dask_workers, 20)
        os.kill(int(pids[0]), signal.SIGKILL)
        wait_until(lambda: not alive(int(pids[0])))
        # It may have been given a task before anybody saw that it had ended.
        with pytest.raises(DeviceLostError, match=r"lost what it held|died while it ran a task"):
            call(session, functions.dask_sum, native)


@contextmanager
def started(*command: str, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    folder = tempfile.gettempdir()
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(HERE), "TMPDIR": folder, **variables},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        for pid in {process.pid, *processes_below(process.pid)}:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def test_a_scheduler_is_reached_by_its_address(tmp_path: Path) -> None:
    place = tmp_path / "scheduler.json"
    dask = f"{sys.executable} -m distributed.cli.dask_{{}}".format
    with (
        nothing_left(),
        started(
            *dask("scheduler").split(),
            *("--host", "127.0.0.1", "--port", "0", "--no-dashboard"),
            *("--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(place)),
            DASK_TEMPORARY_DIRECTORY=str(tmp_path),
        ),
    ):
        assert wait_until(place.exists)
        address = json.loads(place.read_text())["address"]
        with pytest.raises(BackendError, match="fewer than 1 workers") as why:
            get("dask").open(f"dask:{address}")
        assert f"`dask worker {address}`" in str(why.value)
        with started(
            *(*dask("worker").split(), address),
            *("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"),
            DASK_TEMPORARY_DIRECTORY=str(tmp_path),
        ) as worker:
            wait_for_worker(address)
            with get("dask").open(f"dask:{address}") as session:
                native = session.to_native(np.arange(4.0))
                assert call(session, functions.dask_workers, 2).tolist() == [worker.pid] * 2
                assert session.facts()["workers"] == 1
                np.testing.assert_array_equal(session.to_host(native), np.arange(4.0))


def wait_for_worker(address: str) -> None:
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(1, timeout=PATIENCE)


# --- Ray: first those that need one of their own


def test_a_ray_that_runs_already_is_reached_by_its_address() -> None:
    port = unused_port()
    with (
        nothing_left(),
        started(
            *(sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"),
            *("--port", str(port), "--num-cpus", "1", "--include-dashboard", "false"),
            *("--object-store-memory", str(80 * 2**20), "--temp-dir", f"{tempfile.gettempdir()}/r"),
            *("--node-ip-address", "127.0.0.1"),
            RAY_AUTH_MODE="disabled",
            RAY_USAGE_STATS_ENABLED="0",
        ),
    ):
        finished = subprocess.run(
            [sys.executable, "-c", CONNECTED, f"ray:127.0.0.1:{port}"],
            env={**os.environ, "RAY_AUTH_MODE": "disabled"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.stdout.splitlines()[-1:] == ["1 [0.0, 1.0, 2.0]"], finished.stderr
        shutil.rmtree(f"{tempfile.gettempdir()}/r", ignore_errors=True)


CONNECTED = """
import sys, time
import numpy as np
from gpubench import temporary
from gpubench.backends.registry import get
from gpubench.errors import BackendError
for _ in range(60):  # it is starting
    try:
        session = get("ray").open(sys.argv[1])
        break
    except BackendError:
        time.sleep(0.5)
with session:
    native = session.to_native(np.arange(3.0))
    print(session.facts()["workers"], session.to_host(native).tolist())
"""


@pytest.fixture(scope="module")
def ray_session() -> Iterator[Any]:
    with nothing_left(), get("ray").open("ray:2") as session:
        yield session


def test_a_call_of_ray_is_done_when_its_work_is(ray_session: Any, tmp_path: Path) -> None:
    native, record = ray_session.to_native(np.arange(4.0)), tmp_path / "record"
    bound = ray_session.bind(
        Target(function=functions.ray_doubled_on_record), None, [native, str(record)]
    )
    for runs in (1, 2):
        returned = bound()
        assert len(record.read_text().split()) == runs
    assert returned.dtype == np.float64
    np.testing.assert_array_equal(ray_session.to_host(returned), 2 * np.arange(4.0), strict=True)


def test_functions_of_ray_return_objects_of_actors_and_arrays(ray_session: Any) -> None:
    native = ray_session.to_native(np.arange(4.0))
    added, tripled = call(ray_session, functions.ray_two_results, native)
    np.testing.assert_array_equal(ray_session.to_host(added), np.arange(4.0) + 1)
    np.testing.assert_array_equal(ray_session.to_host(tripled), np.arange(4.0) * 3)


def test_a_task_of_ray_that_raises_ends_the_case_with_its_error(ray_session: Any) -> None:
    native = ray_session.to_native(np.arange(4.0))
    with pytest.raises(KernelError) as why:
        call(ray_session, functions.ray_failing, native)
    assert str(why.value) == "a task raised ZeroDivisionError: no number is half of nothing"


def test_a_task_that_ends_its_worker_of_ray_ends_the_case(ray_session: Any) -> None:
    native = ray_session.to_native(np.arange(4.0))
    with pytest.raises(DeviceError, match="a worker of ray:2 died while it ran a task"):
        call(ray_session, functions.ray_dying, native)


def test_what_is_no_array_is_named(ray_session: Any) -> None:
    native = ray_session.to_native(np.arange(4.0))
    with pytest.raises(KernelError, match="a task returned a dict; allowed: an array"):
        ray_session.to_host(call(ray_session, functions.ray_dictionary, native))


def test_ray_tells_its_workers_and_how_long_they_took_to_start(ray_session: Any) -> None:
    facts = ray_session.facts()
    assert (facts["workers"], facts["nodes"], facts["worker_blas_threads"]) == (2, 1, 1)
    assert facts["object_store_bytes"] == 2**30
    assert facts["pool_start_seconds"] > 0


def test_a_ray_listens_on_the_loopback_interface_only(ray_session: Any) -> None:
    below = processes_below(os.getpid())
    addresses = listening({os.getpid(), *below})
    assert addresses
    assert addresses <= LOOPBACK


def test_one_process_has_one_ray(ray_session: Any) -> None:
    with get("ray").open("ray:2") as same:
        assert same.facts()["workers"] == 2
    assert ray_session.facts()["workers"] == 2  # the first still has it
    with pytest.raises(BackendError, match="this process uses Ray on ray:2 already"):
        get("ray").open("ray:1")


# --- whole cases


def smallest_cases() -> list[Any]:
    """The smallest case of each implementation of the suites on each device, both systems."""
    chosen = []
    for name in ("clusters", "map", "frames"):
        for group in build_plan([load_suite(SUITES / f"{name}.yaml", "smoke")], 0).groups():
            if group.backend in ("dask", "ray"):
                cases = reversed(expand(group).cases)
                chosen += {case.device: case for case in cases}.values()
    return [pytest.param(case, id=f"{case.kernel_name}-{case.device}") for case in chosen]


@pytest.fixture(scope="module")
def sessions(cluster: Any, ray_session: Any) -> Iterator[dict[str, Any]]:
    dask = get("dask")
    with dask.open("threads:2") as threads, dask.open("processes:2") as processes:
        local = {"threads:1": threads, "threads:2": threads}
        local |= {"processes:1": processes, "processes:2": processes}
        yield {**local, "dask:2:1": cluster, "ray:2": ray_session}


@pytest.mark.parametrize("case", smallest_cases())
def test_every_implementation_of_the_suites_is_right(sessions: dict[str, Any], case: Case) -> None:
    inputs = draw_inputs(case)
    execution = BoundCase(sessions[case.device], case, load_target(case), inputs)
    result = verify(execution, expected_outputs(case, inputs))
    assert (result.fault, result.max_rel_error < 1e-12) == (None, True)
