"""Every case of every system, however it ends, says why and leaves nothing behind.

Each row runs in a program of its own, as ``gpubench time`` would, with a home, a temporary and a
working folder of its own. Counted before and after: processes, listening ports, entries of
``/dev/shm`` and files.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from asv_project import Project, isolated_environment

from gpubench.distribution import require_extra

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc and /dev/shm")

HERE = Path(__file__).parent
MARK = "GPUBENCH_TEST_OF_LEFTOVERS"
"""Environment variable by which what a program started is found, whoever its parent is by then."""
_CACHE = Path("h", ".cache", "gpubench")
KEPT = _CACHE / "compiled", _CACHE / "compiled-digests"
"""Where compiled code, and digests of its sources, stay for the next program, seen from a scene's
folder."""
PATIENCE = 30.0
"""Seconds that processes may take to notice, on a busy machine, that others have ended: Ray's and
Dask's take about two."""


# --- what there is


@dataclass(frozen=True)
class Standing:
    """What a program could leave behind."""

    processes: frozenset[str] = frozenset()
    ports: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()

    def __sub__(self, other: Standing) -> Standing:
        return Standing(*(vars(self)[name] - vars(other)[name] for name in vars(self)))


def standing(mark: str, sessions: Collection[int], folder: Path) -> Standing:
    running = dict(processes(mark, sessions))
    return Standing(
        frozenset(running.values()),
        frozenset(ports(running)),
        frozenset(unused_shared_memory()),
        frozenset(str(path) for path in files(folder)),
    )


def files(folder: Path) -> Iterator[Path]:
    """Yield the paths in a folder, but for those that are to stay, and what leads to them."""
    for path in folder.rglob("*"):
        inside = path.relative_to(folder)
        if not any(inside.is_relative_to(kept) or kept.is_relative_to(inside) for kept in KEPT):
            yield inside


def processes(mark: str, sessions: Collection[int]) -> Iterator[tuple[Path, str]]:
    """Folder in /proc, number and command of each process with this mark in its environment, or of
    these sessions: one that calls itself otherwise, as Ray's workers do, writes over its
    environment."""
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            state, _, _, session = (path / "stat").read_text().rpartition(")")[2].split()[:4]
            marked = mark.encode() in (path / "environ").read_bytes()
            if state != "Z" and (marked or int(session) in sessions):
                command = (path / "cmdline").read_text().replace("\0", " ")
                yield path, f"{path.name} {command}"


def ports(running: Collection[Path]) -> Iterator[str]:
    """Addresses at which these listen, in the system's hexadecimal form."""
    sockets = set()
    for path in running:
        with suppress(OSError):
            sockets |= {str(link.readlink()) for link in (path / "fd").iterdir()}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            _, address, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in sockets:
                yield address


def unused_shared_memory() -> Iterator[str]:
    """Entries of /dev/shm that no process has mapped or, by its number in the name, is to remove:
    those in use may be others', who run on the same machine. They are known by their inodes, for
    sem_open maps a file before that has its name."""
    used, alive = set(), set()
    for path in Path("/proc").glob("[0-9]*"):
        alive.add(path.name)
        with suppress(OSError):
            lines = (path / "maps").read_text().splitlines()
            used |= {int(line.split()[4]) for line in lines if "/dev/shm/" in line}
    for entry in Path("/dev/shm").iterdir():
        with suppress(OSError):
            is_used = entry.stat().st_ino in used
            if not is_used and alive.isdisjoint(re.split("[-_]", entry.name)):
                yield entry.name


# --- programs


@dataclass(frozen=True)
class Scene:
    """Where a program runs."""

    folder: Path
    """Its home, its temporary and its working folder are in it; short, for Ray's sockets."""
    suite: Path
    environment: Mapping[str, str]

    sessions: list[int]
    """Of the programs that ran there."""

    def run(
        self, *command: str, code: int = 0, cwd: Path | None = None, errors: str = ""
    ) -> list[str]:
        """Lines that the program prints; a pattern of what it writes as ``errors``."""
        program = subprocess.Popen(
            [sys.executable, *command],
            cwd=cwd or self.folder / "w",
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.sessions.append(program.pid)
        printed, written = program.communicate()
        assert program.returncode == code and re.fullmatch(errors, written), printed + written
        return printed.splitlines()


@contextmanager
def nothing_left(tmp_path: Path, path: Sequence[Path] = (), **variables: str) -> Iterator[Scene]:
    """A scene; what has been started and made in it is gone soon after the end.

    ``path`` comes first among the places that its programs import from.
    """
    mark, sessions = f"{MARK}={tmp_path}", list[int]()
    with tempfile.TemporaryDirectory(prefix="g", dir="/tmp") as name:
        folder = Path(name)
        for place in ("h", "t", "w"):
            (folder / place).mkdir()
        imports = os.pathsep.join([*map(str, (*path, HERE)), *filter(None, sys.path)])
        environment = {
            **isolated_environment(folder / "h"),
            **variables,
            MARK: str(tmp_path),
            "TMPDIR": str(folder / "t"),
            "CUPY_CACHE_DIR": str(tmp_path),  # whatever imports it
            "PYTHONPATH": imports,
            "ASV_PYTHONPATH": imports,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        before = standing(mark, sessions, folder)
        yield Scene(folder, tmp_path / "leftovers.yaml", environment, sessions)
        deadline = time.monotonic() + PATIENCE
        while (left := standing(mark, sessions, folder) - before) != Standing():
            assert time.monotonic() < deadline, left
            time.sleep(0.05)


SUITE = """
version: 1
suite: {name}
kernels:
  doubled:
    arrays:
      a: {{shape: [64], dtype: float64}}
      out: {{shape: [64], dtype: float64, intent: out}}
    call: [a, out]
    devices: {devices}
    baseline: serial
    sampling: {{rounds: 1, repeat: 2, sample_time: 0.001, warmup_time: 0, timeout: {timeout}}}
    implementations:
      serial: {{function: "pool_functions:serial", backend: numpy, returns: [out]}}
"""
TAKING = """
import json, sys
from gpubench.measure.direct import Job, bench
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suite

cases = build_plan([load_suite(sys.argv[1])], gpu_count=0).cases()
with bench() as take:
    for case in cases:
        if case.implementation_name != "serial":
            record = take(Job(case)).record
            print(json.dumps([case.device, case.backend, record.status, record.reason]))
"""


@dataclass(frozen=True)
class Way:
    """How a case of one system ends."""

    backend: str
    device: str
    function: str
    """``module:function`` of this folder, which computes ``out = 2 a`` or fails at it."""
    status: str = "ok"
    reason: str | None = None
    """How the reason on record begins."""
    timeout: int = 120
    options: Mapping[str, Any] = field(default_factory=dict)
    errors: str = ""
    """A pattern of what the system itself writes of it."""

    @property
    def title(self) -> str:
        return f"{self.backend}-{self.device}-{self.function.partition(':')[2]}"


def write_suite(path: Path, *ways: Way) -> None:
    """All of them with the time-out of the first."""
    devices = json.dumps(list(dict.fromkeys(["cpu", *(way.device for way in ways)])))
    lines = (
        f"      tried{number}: {{function: {json.dumps(way.function)}, backend: {way.backend}, "
        f"returns: [out], options: {json.dumps(dict(way.options))}}}\n"
        for number, way in enumerate(ways)
    )
    head = SUITE.format(name=path.stem, devices=devices, timeout=ways[0].timeout)
    path.write_text(head + "".join(lines))


def taken(scene: Scene, *ways: Way) -> list[list[str]]:
    """Backend, status and reason of each of these cases."""
    write_suite(scene.suite, *ways)
    errors = "".join(way.errors for way in ways)
    lines = map(json.loads, scene.run("-c", TAKING, str(scene.suite), errors=errors))
    devices = {way.device for way in ways}  # a backend may serve the baseline's too
    return [outcome for device, *outcome in lines if device in devices]


def check(scene: Scene, *ways: Way) -> None:
    """Run these cases, and see how they end."""
    for (backend, status, reason), way in zip(taken(scene, *ways), ways, strict=True):
        assert (backend, status) == (way.backend, way.status), reason
        assert (reason or "").startswith(way.reason or "")


def ways(*rows: tuple[Any, ...]) -> list[Any]:
    """Of the systems that are installed."""
    there = [way for way in (Way(*row) for row in rows) if here(way)]
    return [pytest.param(way, id=way.title, marks=marks(way)) for way in there]


def marks(way: Way) -> Sequence[pytest.MarkDecorator]:
    """Modin on Ray is dear: its ends are seen on Dask, those of Ray with Ray, deaths on both."""
    is_dear = (way.backend, way.device) == ("modin", "ray:2") and "dying" not in way.function
    return [pytest.mark.thorough] if is_dear else []


MODULES = {
    **dict.fromkeys(("multiprocessing", "threads"), "numpy"),
    "scikit_learn": "sklearn",
}


def here(way: Way) -> bool:
    modules = {MODULES.get(way.backend, way.backend)}
    if way.device.startswith("dask:"):
        modules.add("distributed")
    return all(map(find_spec, modules))


# --- one case that succeeds, and one for each way to fail


FUNCTIONS = {"joblib": "writing_back"}
POOLS = [
    ("multiprocessing", "processes:2"),
    ("joblib", "processes:2"),
    ("threads", "threads:2"),
    ("joblib", "threads:2"),
]
DASK = [("dask", "threads:2"), ("dask", "processes:2"), ("dask", "dask:2:1")]
RAY = ("ray", "ray:1")
MODIN = [("modin", "dask:2:1"), ("modin", "ray:2")]
HERE_ALONE = ["scikit_learn", "xgboost", "torch", "jax", "pandas", "polars"]
"""Without workers."""

SUCCESSES = ways(
    *[(*pool, f"pool_functions:{FUNCTIONS.get(pool[0], 'on_pool')}") for pool in POOLS],
    *[(*one, "pool_functions:serial") for one in DASK],
    (*RAY, "cluster_functions:ray_twice"),
    *[(*one, "cluster_functions:modin_twice") for one in MODIN],
    *[(one, "cpu", f"library_functions:{one}_twice") for one in HERE_ALONE],
)

OF_POOLS = "ValueError: no task has 32 numbers"
OF_TASKS = "ZeroDivisionError: no number is half of nothing"
EXCEPTIONS = ways(
    *[(*pool, "pool_functions:raising", "failed", OF_POOLS) for pool in POOLS],
    *[(*one, "cluster_functions:dask_failing", "failed", OF_TASKS) for one in DASK],
    (*RAY, "cluster_functions:ray_failing", "failed", f"a task raised {OF_TASKS}"),
    *[(*one, "cluster_functions:modin_failing", "failed") for one in MODIN],
    ("torch", "cpu", "pool_functions:raise_of", "failed", "ValueError: no task has 64 numbers"),
)

DIED = "a worker died (signal SIGKILL, as where memory runs out) before its tasks were done; "
ENDED = "its process ended without an outcome (signal SIGKILL, as where memory runs out)"
DEATHS = ways(
    *[(*pool, "pool_functions:killing", "failed", DIED) for pool in POOLS[:2]],
    *[(*pool, "pool_functions:killing", "killed", ENDED) for pool in POOLS[2:]],
    ("dask", "threads:2", "cluster_functions:dask_dying", "killed", ENDED),
    *[
        ("dask", device, "cluster_functions:dask_dying", "failed", f"a worker {words}died")
        for device, words in (
            ("processes:2", "process of processes:2 "),
            ("dask:2:1", "of dask:2:1 "),
        )
    ],
    (*RAY, "cluster_functions:ray_dying", "failed", "a worker of ray:1 died while it ran a task"),
    *[(*one, "cluster_functions:modin_dying", "failed") for one in MODIN],
    ("torch", "cpu", "pool_functions:be_killed", "killed", ENDED),
)

HANGING = ways(
    *[
        (*one, function, "timed_out", f"stopped by its timeout of {limit} s", limit)
        for one, function, limit in (
            *((pool, "pool_functions:hanging", 6) for pool in POOLS),
            *((one, "cluster_functions:dask_hanging", 10) for one in DASK),
            (RAY, "cluster_functions:ray_hanging", 15),
            *((one, "cluster_functions:modin_hanging", 30) for one in MODIN),
            (("torch", "cpu"), "pool_functions:hang", 6),
        )
    ]
)

NO_MEMORY = ways(
    (
        *("dask", "dask:2:1", "cluster_functions:dask_greedy", "failed"),
        *("a worker of dask:2:1 exceeded its memory: ", 120, {"memory": 400 * 2**20}),
    )
)


@pytest.mark.parametrize("way", [*SUCCESSES, *EXCEPTIONS, *DEATHS, *HANGING, *NO_MEMORY])
def test_a_case_says_how_it_ended_and_leaves_nothing(way: Way, tmp_path: Path) -> None:
    with nothing_left(tmp_path) as scene:
        check(scene, way)


@pytest.mark.parametrize(
    ("used", "reason"), [("1", "and Ray wrote objects to disk"), ("0", "and so is the disk")]
)
def test_a_full_store_of_ray(
    used: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    # Ray writes objects to a disk of which no more than this share is used.
    monkeypatch.setenv("RAY_local_fs_capacity_threshold", used)
    least = 80 * 2**20  # Ray takes no less than 75 MiB
    reason = f"the object store of {least:,} bytes is full, {reason}"
    hoarding = ("ray", "ray:1", "cluster_functions:ray_hoarding", "failed")
    with nothing_left(tmp_path) as scene:
        check(scene, Way(*hoarding, reason, options={"memory": least}))


EACH = ways(
    ("joblib", "processes:2", "pool_functions:writing_back"),
    ("dask", "processes:2", "pool_functions:serial"),
    ("dask", "dask:2:1", "pool_functions:serial"),
    ("ray", "ray:1", "pool_functions:serial"),
    ("modin", "dask:2:1", "pool_functions:serial"),
    *[(one, "cpu", f"library_functions:{one}_twice") for one in HERE_ALONE],
)


@pytest.mark.skipif(not EACH, reason="make test-systems has them")
def test_systems_that_are_missing_are_skipped_with_what_to_install(tmp_path: Path) -> None:
    every: list[Way] = [one.values[0] for one in EACH]
    modules = {MODULES.get(way.backend, way.backend) for way in every}
    absent = tmp_path / "absent"
    absent.mkdir()
    lines = [f"sys.modules[{module!r}] = None\n" for module in modules]
    # What every process of this Python runs first.
    (absent / "sitecustomize.py").write_text(f"import sys\n{''.join(lines)}")
    with nothing_left(tmp_path, [absent]) as scene:
        records = taken(scene, *every)
    assert {backend for backend, _, _ in records} == {way.backend for way in every}
    for backend, status, reason in records:
        assert status == "skipped"
        assert f"pip install '{require_extra(backend)}'" in reason


@pytest.mark.parametrize("way", EACH)
def test_a_version_that_does_not_fit_is_told_with_what_to_install(way: Way, tmp_path: Path) -> None:
    """Packages raise ``ImportError`` themselves where another's version does not fit theirs."""
    module = MODULES.get(way.backend, way.backend)
    if (way.backend, way.device) == ("dask", "dask:2:1"):
        module = "distributed"
    package = tmp_path / "other" / module
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('version 0.1 is not enough')\n")
    with nothing_left(tmp_path, [package.parent]) as scene:
        ((_, status, reason),) = taken(scene, way)
    assert status == "failed"
    assert "cannot be imported: version 0.1 is not enough; pip install --upgrade" in reason
    assert reason.endswith(f"'{require_extra(way.backend)}'")


ON_A_GPU = """
import xgboost
from gpubench.backends import host
from gpubench.edge.systems import xgboost as ours
host.no_such_gpu = lambda device: None
ours._installed = lambda name: True
xgboost.build_info = lambda: {"USE_CUDA": True}
"""
"""XGBoost believes that there is a GPU, and goes on without one."""


@pytest.mark.skipif(find_spec("xgboost") is None, reason="make test-systems has it")
def test_a_gpu_that_did_nothing_fails_the_case(tmp_path: Path) -> None:
    believing = tmp_path / "believing"
    believing.mkdir()
    (believing / "sitecustomize.py").write_text(ON_A_GPU)
    function = "library_functions:xgboost_twice"
    reason = "cuda:0: XGBoost computed on the CPU: "
    with nothing_left(tmp_path, [believing]) as scene:
        check(scene, Way("xgboost", "cuda:0", function, "failed", reason))


# --- a scheduler of somebody else


def with_functions() -> dict[str, str]:
    """This process's environment, for workers that import what this folder's functions are in."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)])}


@contextmanager
def scheduler(folder: Path) -> Iterator[tuple[str, int]]:
    """Address and process of one with a worker, started by their own commands."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{listening.getsockname()[1]}"
    dask = f"{sys.executable} -m distributed.cli.dask_{{}}".format
    port, here = address.rpartition(":")[2], ("--host", "127.0.0.1", "--no-dashboard")
    commands = [
        [*dask("scheduler").split(), *here, "--port", port, "--dashboard-address", "127.0.0.1:0"],
        [*dask("worker").split(), address, *here, "--nthreads", "1", "--no-nanny"],
    ]
    environment = {**with_functions(), "DASK_TEMPORARY_DIRECTORY": str(folder)}
    running = [
        subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, cwd=folder)
        for command in commands
    ]
    try:
        from distributed import Client

        with Client(address, set_as_default=False, timeout=PATIENCE) as client:
            client.wait_for_workers(1, timeout=PATIENCE)
        yield address, running[0].pid
    finally:
        for process in running:
            process.kill()
            process.wait()


@pytest.mark.skipif(find_spec("distributed") is None, reason="make test-systems has it")
@pytest.mark.parametrize("lost", [False, True], ids=["stays", "is-lost"])
def test_a_case_at_an_address_leaves_nothing_whatever_becomes_of_the_scheduler(
    lost: bool, tmp_path: Path
) -> None:
    with scheduler(tmp_path) as (address, pid), nothing_left(tmp_path, SCHEDULER=str(pid)) as scene:
        device = f"dask:{address}"
        if lost:
            reason = f"{device} lost what it held, because a worker or the scheduler ended: "
            function = "cluster_functions:dask_losing_its_scheduler"
            check(scene, Way("dask", device, function, "failed", reason))
        else:
            check(scene, Way("dask", device, "pool_functions:serial"))


# --- a Ray of somebody else


HEAD = "GPUBENCH_TEST_OF_HEADS"
"""Environment variable by which the processes of a head are found."""


@contextmanager
def head() -> Iterator[tuple[str, list[int]]]:
    """Address and processes of one that Ray's own command line has started on loopback."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listening.getsockname()[1]}"
    with tempfile.TemporaryDirectory(prefix="g", dir="/tmp") as folder:  # short, for its sockets
        mark = f"{HEAD}={folder}"
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"),
                *("--port", address.rpartition(":")[2], "--node-ip-address", "127.0.0.1"),
                *("--num-cpus", "1", "--object-store-memory", str(80 * 2**20)),
                *("--include-dashboard", "false", "--temp-dir", folder),
            ],
            env={**with_functions(), **NO_TOKEN, HEAD: folder},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None

        def running() -> list[int]:
            return [int(path.name) for path, _ in processes(mark, [process.pid])]

        try:
            assert any("Ray runtime started" in line for line in process.stdout)
            yield address, running()
        finally:
            for pid in running():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.communicate()


NO_TOKEN = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}


@pytest.mark.skipif(find_spec("ray") is None, reason="make test-systems has it")
@pytest.mark.parametrize("lost", [False, True], ids=["stays", "is-lost"])
def test_a_case_at_an_address_leaves_nothing_whatever_becomes_of_the_head(
    lost: bool, tmp_path: Path
) -> None:
    with head() as (address, pids):
        numbers = " ".join(map(str, pids))
        with nothing_left(tmp_path, **NO_TOKEN, HEAD=numbers) as scene:
            device = f"ray:{address}"
            if lost:
                ended = "its process ended without an outcome (exit code 1); "
                reason = f"{ended}{device} lost its head: nothing answers at {address} within "
                function = "cluster_functions:ray_losing_its_head"
                # Ray's own threads, where they come to it before the process is ended.
                told = r"(\[.*: Failed to connect to GCS within 10 seconds\. .*\n+)*"
                check(scene, Way("ray", device, function, "killed", reason, errors=told))
            else:
                check(scene, Way("ray", device, "cluster_functions:ray_twice"))


# --- under asv, whose processes end by os._exit and by SIGTERM


ASV = {
    "version": 1,
    "project": "leftovers",
    "repo": ".",
    "branches": ["HEAD"],
    "benchmark_dir": "benchmarks",
    "environment_type": "virtualenv",
    "results_dir": ".asv/results",
    "plugins": [".gpubench.asv_plugin"],
}
UNDER_ASV = ways(
    ("multiprocessing", "processes:2", "pool_functions:on_pool"),
    ("joblib", "processes:2", "pool_functions:writing_back"),
    ("dask", "processes:2", "pool_functions:serial"),
    ("dask", "dask:2:1", "pool_functions:serial"),
    ("ray", "ray:1", "cluster_functions:ray_twice"),
)
HANGING_UNDER_ASV = ways(
    *[
        (*one, function, "started", None, 10)
        for one, function in (
            (POOLS[0], "pool_functions:hanging"),
            (POOLS[1], "pool_functions:hanging"),
            (DASK[2], "cluster_functions:dask_hanging"),
        )
    ]
)


# A new process for each case ends as the single cases above do.
@pytest.mark.parametrize(
    "method", ["forkserver", pytest.param("spawn", marks=pytest.mark.thorough)]
)
def test_asv_run_leaves_nothing(method: str, tmp_path: Path) -> None:
    suites = {"working": UNDER_ASV, "hanging": HANGING_UNDER_ASV}
    with nothing_left(tmp_path) as scene:
        project = Project(tmp_path / "project", dict(scene.environment))
        (project.path / "suites").mkdir(parents=True)
        shutil.copytree(HERE.parents[3] / "benchmarks", project.path / "benchmarks")
        for name, rows in suites.items():
            write_suite(project.path / f"suites/{name}.yaml", *(row.values[0] for row in rows))
        (project.path / "asv.conf.json").write_text(json.dumps(ASV))
        project.git("init", "--quiet", "--initial-branch=main")
        project.commit("only", 1)
        scene.run("-m", "asv", "machine", "--yes", cwd=project.path)
        where = ("--environment", f"existing:{sys.executable}", "--launch-method", method)
        commit = project.git("rev-parse", "only")
        command = ("-m", "asv", "run", *where, "--set-commit-hash", commit, "--bench", "tried")
        scene.run(*command, code=2, cwd=project.path)  # some failed
        (scene.folder / "h/.asv-machine.json").unlink()
    records = {record.benchmark: record.status for record in project.records("only")}
    statuses = [status for benchmark, status in records.items() if "hanging" not in benchmark]
    assert statuses == ["ok"] * len(UNDER_ASV)
    assert len(records) == len(UNDER_ASV) + len(HANGING_UNDER_ASV)
