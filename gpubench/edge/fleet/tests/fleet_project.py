"""A project of three small suites, a scheduler, and measuring workers with homes of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asv_project import CHECKOUT, CUDA_SAMPLE, Project, isolated_environment

from gpubench.edge.fleet.parcels import rows_of, stored
from gpubench.record import CaseRecord, parse_line

PATIENCE = 600.0
"""Seconds in which what has to happen has happened, on a busy machine."""

SUITES = ("adding", "doubling", "halving")
SUITE = """\
version: 1
suite: {name}
kernels:
  {name}:
    sizes: {{n: [8, 16]}}
    arrays: {{a: {{shape: [n], dtype: float64}}, out: {{shape: [n], dtype: float64, intent: out}}}}
    call: [a, out]
    baseline: plain
    implementations:
      plain: {{function: "fleet_kernels:{name}", backend: scripted}}
      quick: {{function: "fleet_kernels:{name}_quick", backend: scripted}}
      wrong: {{function: "fleet_kernels:wrong", backend: scripted}}
    sampling: {{rounds: 1, repeat: 10, warmup_time: 0, number: 1}}
"""
KERNELS = """\
import os
import time
from pathlib import Path

import numpy as np
from gpubench.backends.scripted import script


def behave(seconds):
    '''As the machine does: under asv, hang for good in what takes so long, or be slow.'''
    hangs = "FLEET_HANGS" in os.environ and seconds <= float(os.environ.get("FLEET_HANGS_IN", 1))
    if "GPUBENCH_ASV" in os.environ and hangs:
        Path(os.environ["FLEET_HANGS"]).touch()
        time.sleep(3600)
    time.sleep(float(os.environ.get("FLEET_SLOW", 0)))


def computes(ufunc, other, seconds):
    def function(a, out):
        behave(seconds)
        ufunc(a, other, out=out)
    return script(seconds)(function)


adding = computes(np.add, 1, 4e-3)
adding_quick = computes(np.add, 1, 1e-3)
doubling = computes(np.multiply, 2, 3e-3)
doubling_quick = computes(np.multiply, 2, 1e-3)
halving = computes(np.divide, 2, 2e-3)
halving_quick = computes(np.divide, 2, 1e-3)
wrong = computes(np.power, 3, 1e-3)
"""

DAMAGING = """
from dataclasses import replace
from gpubench.edge.fleet import cluster

real, damaged = cluster.pack, []

def pack(*arguments):
    parcel = real(*arguments)
    if damaged:
        return parcel
    damaged.append(True)
    name = next(name for name in parcel.files if name.startswith(arguments[1].commit[:8]))
    return replace(parcel, files={**parcel.files, name: parcel.files[name][:-9] + b"x" * 9})

cluster.pack = pack
"""
"""Run first by a worker whose first parcel is damaged on the way."""

WORKER = "from gpubench.cli import main; main(prog_name='gpubench')"


def make_fleet_project(path: Path, environment: dict[str, str]) -> Project:
    """A repository of one commit, ``only``."""
    (path / "suites").mkdir(parents=True)
    for name in SUITES:
        (path / f"suites/{name}.yaml").write_text(SUITE.format(name=name))
    (path / "fleet_kernels.py").write_text(KERNELS)
    shutil.copy(CUDA_SAMPLE / "asv.conf.json", path)
    caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CHECKOUT / "benchmarks", path / "benchmarks", ignore=caches)
    (path / ".gitignore").write_text("/.asv/\n/reports/\n__pycache__/\n")
    project = Project(path, environment)
    project.git("init", "--quiet", "--initial-branch=main")
    project.commit("only", 1)
    return project


@dataclass
class Fleet:
    """A scheduler and its workers, each a process of its own."""

    folder: Path
    address: str
    project: Project
    tls: tuple[str, ...] = ()
    """Options of every command."""
    at: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What a command of a machine begins with; the coordinator's is ``coordinator``."""
    python: tuple[str, ...] = ("--python", sys.executable)
    """Options of every worker; none where asv makes environments."""
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    scheduler: subprocess.Popen[bytes] = field(init=False)

    def start(
        self, name: str, first: str = "", options: Sequence[str] = (), **variables: str
    ) -> None:
        """A worker that joins; ``first`` is run in it before all else."""
        self.begin_worker(name, first, options, **variables)
        wait_until(lambda: name in self.machines(), self.said)

    def begin_worker(
        self, name: str, first: str = "", options: Sequence[str] = (), **variables: str
    ) -> None:
        """A worker, whether it can join or not."""
        home = self.folder / name
        home.mkdir(exist_ok=True)
        checkout = home / "checkout"
        environment = machine_environment(home, checkout, FLEET_MARK=str(self.folder), **variables)
        if not self.python:
            del environment["ASV_PYTHONPATH"]
        command = [*self.at.get(name, ()), sys.executable, "-c", first + WORKER, "fleet", "worker"]
        command += [self.address, "--checkout", str(checkout), "--machine", name]
        command += [*self.python, *self.tls, *options]
        with (home / "worker.log").open("ab") as log:
            self.workers[name] = subprocess.Popen(
                command, cwd=home, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def start_scheduler(self, host: str, port: str = "0") -> None:
        """A scheduler, when it listens."""
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        self.scheduler = subprocess.Popen(
            [
                *self.at.get("coordinator", ()),
                *(sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", host),
                *("--port", port, "--no-dashboard", "--dashboard-address", "127.0.0.1:0"),
                *("--scheduler-file", str(file)),
                *(("--protocol", "tls", *self.tls) if self.tls else ()),
            ],
            cwd=self.folder,
            env=self.project.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(lambda: file.exists() and bool(file.read_text()), lambda: "no scheduler")
        self.address = json.loads(file.read_text())["address"]

    def said(self) -> str:
        logs = sorted(self.folder.glob("*/*.log"))
        return "\n".join(f"--- {log}\n{log.read_text()}" for log in logs)

    def machines(self) -> dict[str, Any]:
        """What `gpubench fleet status` says of each."""
        told = json.loads(self.run("status", "--json").stdout)
        return {machine["machine"]: machine for machine in told["machines"]}

    def run(self, command: str, *arguments: str, code: int | None = 0) -> Any:
        """`gpubench fleet run` or `status` of the coordinator."""
        return self.project.run(*self._words(command, *arguments), code=code)

    def _words(self, command: str, *arguments: str) -> list[str]:
        words = [*self.at.get("coordinator", ()), sys.executable, "-m", "gpubench", "fleet"]
        return [*words, command, *self.tls, *arguments, "--scheduler", self.address]

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """`gpubench fleet run`, going on."""
        return subprocess.Popen(
            self._words("run", *arguments),
            cwd=self.project.path,
            env=self.project.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_for_hanging(self, run: subprocess.Popen[str], hanging: Path) -> None:
        """Until the machine that hangs has begun to measure."""
        while not hanging.exists():
            assert run.poll() is None, f"{run.communicate()[0]}\n{self.said()}"
            time.sleep(0.1)

    def processes(self) -> list[str]:
        """Command lines of all processes that workers have started, without their own."""
        own = {worker.pid for worker in self.workers.values()}
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                state = (path / "stat").read_text().rpartition(")")[2].split()[0]
                marked = f"FLEET_MARK={self.folder}".encode() in (path / "environ").read_bytes()
                if marked and state != "Z" and int(path.name) not in own:
                    found.append((path / "cmdline").read_text().replace("\0", " "))
        return found


def imports() -> str:
    """Where these tests have modules from."""
    return os.pathsep.join(filter(None, sys.path))


def machine_environment(home: Path, checkout: Path, **variables: str) -> dict[str, str]:
    """Of a machine: a home of its own, and modules from where these tests have them."""
    return {
        **isolated_environment(home),
        "PYTHONPATH": imports(),
        "ASV_PYTHONPATH": os.pathsep.join([str(checkout), imports()]),
        "PYTHONDONTWRITEBYTECODE": "1",
        **variables,
    }


def tls_options(folder: Path, name: str, trusted: str) -> tuple[str, ...]:
    """Options of every command of who has the certificate ``name``, which is made where there is
    none, and trusts one."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    if not cert.exists():
        new = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=lab")
        subprocess.run([*new, "-keyout", key, "-out", cert], check=True, capture_output=True)
    files = {"ca-file": folder / f"{trusted}.pem", "cert": cert, "key": key}
    return tuple(word for name, file in files.items() for word in (f"--tls-{name}", str(file)))


@contextmanager
def fleet_at(
    folder: Path,
    tls: tuple[str, ...] = (),
    at: Mapping[str, Sequence[str]] | None = None,
    host: str = "127.0.0.1",
) -> Iterator[Fleet]:
    """A scheduler without workers, and the project that they measure; all is ended afterwards.

    ``tls``: options that name certificates. ``at``: as of ``Fleet``. ``host``: where the scheduler
    listens, which runs where the coordinator does.
    """
    home, path = folder / "coordinator", folder / "coordinator/project"
    home.mkdir(parents=True)
    project = make_fleet_project(path, machine_environment(home, path))
    fleet = Fleet(folder, "", project, tls, at or {})
    try:
        fleet.start_scheduler(host)
        yield fleet
    finally:
        for process in (*fleet.workers.values(), fleet.scheduler):
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            process.kill()


def wait_until(happened: Callable[[], bool], said: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, said()
        time.sleep(0.1)


def statuses(project: Project, machine: str) -> dict[tuple[str, str], tuple[str, bool]]:
    """Of each benchmark and case that a machine has measured: its status on record, and whether asv
    has a time."""
    records = case_records(project, machine)
    timed = _times(project, machine)
    last = {(r.benchmark, r.case): r.status for r in records if r.status != "started"}
    return {place: (last[place], timed[place]) for place in timed.keys() | last.keys()}


def case_records(project: Project, machine: str) -> list[CaseRecord]:
    """Lines about cases of the one record of a machine, in their order."""
    (file,) = (project.results / machine).glob("*.gpubench.jsonl")
    lines = map(parse_line, file.read_text().splitlines())
    return [line for line in lines if isinstance(line, CaseRecord)]


def _times(project: Project, machine: str) -> dict[tuple[str, str], bool]:
    (file,) = (project.results / machine).glob("*-*.json")
    return {
        (name, case.strip("'")): seconds is not None
        for name, row in rows_of(stored(file)).items()
        for case, seconds in zip(
            row["params"][0], row["result"] or [None] * len(row["params"][0]), strict=True
        )
    }
