"""Two commits of the project, each in an environment of asv's, measured process by process.

asv makes the environments, checks out, builds and installs, as for ``asv run``; both commits stay
installed beside each other, and a side can be given another commit. Their folders have names of the
same length, as a path's length moves what lies in memory. Suites are those of the working tree,
kernels those of each commit. Processes are started by asv's own code, so that a commit with another
release of gpubench is measured too: what both sides share is asv's protocol and the record. Nothing
is kept among asv's results.
"""

from __future__ import annotations

import copy
import json
import logging
import math
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpubench.asv_config import machine_name
from gpubench.distribution import write_local_requirements
from gpubench.environment import environment
from gpubench.errors import GpubenchError
from gpubench.git import ask_git, named_repository
from gpubench.measure.asv_settings import VARIABLE, AsvSettings
from gpubench.measure.conditions import why_stopped
from gpubench.measure.direct import Job, Measured
from gpubench.measure.in_turn import Bench
from gpubench.measure.observers.turns import FIRST_FILE, PIPES, TURNS_VARIABLE
from gpubench.measure.outcomes import case_record
from gpubench.processes import how_it_ended
from gpubench.record import SUFFIX, CaseRecord, Line, RoundsRecord, RunRecord, parse_line
from gpubench.statuses import RecordedStatus

ATTRIBUTES: Mapping[str, Any] = {"rounds": 1, "repeat": 5}
"""Attributes of asv that hold for every process. Five samples, each in a round of its own: what
differs between processes, 1 to 10 %, is more than what more samples of one would settle."""

ENVIRONMENT_FOLDERS = ("in-turn-1", "in-turn-2")
"""Folders of the two environments in asv's ``env_dir``: before and after."""

TAIL_LINES = 12
"""Last lines of a command that stand in the message of its failure."""

MAX_TURNS = 4096
"""Turns that a process is left when the other has ended: more than samples in one process, and no
more than a pipe takes at once (``PIPE_BUF``)."""

MIN_TIMEOUT_SECONDS = 0.1
"""Limit of a process for which no time is left: asv takes 0 for no limit."""

Say = Callable[[str], object]
"""Is called with what is done now."""


@dataclass
class CommitSide:
    """One commit, installed in its environment."""

    label: str
    """As the user named it."""
    commit: str
    date: float
    """Seconds since 1970."""
    subject: str | None
    machine: str
    environment: Any
    """``asv.environment.Environment``."""
    variables: Mapping[str, str]
    """With which its processes are started."""
    records: Path
    """Folder that its processes write their records into."""
    benchmarks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What asv discovers, by name."""
    run: RunRecord | None = None
    """Facts of its last process that gave any."""

    def find(self, job: Job) -> tuple[Mapping[str, Any], int] | None:
        """Return asv's description of a job's benchmark and the case's number in it; ``None`` where
        this side does not have it."""
        benchmark = self.benchmarks.get(job.case.benchmark(job.time).asv_name)
        (cases,) = benchmark["params"] if benchmark else ((),)
        identity = repr(job.case.identity)
        return (benchmark, cases.index(identity)) if benchmark and identity in cases else None


@dataclass(frozen=True, slots=True)
class _Ended:
    """How one process ended."""

    outcome: Measured
    is_cut: bool
    """Whether the time that was left ended it."""
    has_no_server: bool
    """Whether the server that it was forked from ended with it."""


class TwoCommits(Bench):
    """Two commits whose processes can be taken in turn; a ``Bench``."""

    def __init__(
        self,
        sides: Sequence[CommitSide],
        installer: CommitInstaller,
        launch_method: str | None = None,
    ) -> None:
        """Start processes by a launch method of asv's, else as the installer's configuration says.

        Two are alive at once where asv's servers start each with the variables of its side. What
        asv starts by ``spawn`` has those of this process.
        """
        self.sides = [*sides]
        self._installer = installer
        self._launch_method = launch_method or installer.config.launch_method
        self.is_alternating = self._launch_method == "forkserver"
        self._spawners: list[Any] = []

    def put_in_place(self, side: int, label: str) -> CommitSide:
        """Install another commit in the environment of a side. Raises ``NotInstalled``, and then
        nothing is there."""
        self.close()
        commit = self._installer.describe(label, ENVIRONMENT_FOLDERS[side])
        self._installer.install(commit)
        self.sides[side] = commit
        return commit

    def has_job(self, side: int, job: Job) -> bool:
        """Return whether a side has a case."""
        return self.sides[side].find(job) is not None

    def begin_round(self) -> None:
        """Start new servers, from which asv forks processes, where it has servers: forks of one
        server lie alike in memory, and that would favour one side in all pairs."""
        from gpubench.asv_code import runner, util

        self.close()
        config = self._installer.config
        method = self._launch_method or "auto"
        for side in self.sides:
            with environment(side.variables), _quiet():
                try:
                    spawner = runner.get_spawner(side.environment, config.benchmark_dir, method)
                except (util.UserError, RuntimeError) as error:
                    raise GpubenchError(f"no process starts for {side.label}: {error}") from error
            self._spawners.append(spawner)
        with ThreadPoolExecutor(len(self.sides)) as threads:
            imports = [*threads.map(lambda spawner: spawner.preimport(), self._spawners)]
        for side, (imported, words) in zip(self.sides, imports, strict=True):
            if not imported:
                raise GpubenchError(
                    f"the benchmarks cannot be imported at {side.label} ({side.commit[:8]}):\n"
                    f"{_tail(words)}"
                )

    def close(self) -> None:
        """End the servers, and what they measure."""
        for spawner in self._spawners:
            spawner.interrupted = True  # else it prints what its processes have printed
            spawner.close()
        self._spawners = []

    def take(self, side: int, job: Job, seconds_left: float = math.inf) -> Measured | None:
        """Measure a job in one process of a side; ``None`` where the time that is left ended it."""
        with environment(self.sides[side].variables), _quiet():
            ended = self._run(side, job, seconds_left)
            if ended.has_no_server:
                self.begin_round()
        return None if ended.is_cut else ended.outcome

    def take_together(
        self, job: Job, is_reversed: bool, seconds_left: float = math.inf
    ) -> list[Measured] | None:
        """Measure a job in a process of each side, both alive: their samples take turns.

        A process that ends leaves its turns to the other. ``None`` where the time that is left
        ended one.
        """
        pipes = self._installer.make_pipes(PIPES[is_reversed])

        def run(side: int) -> _Ended:
            try:
                return self._run(side, job, seconds_left, waits=True)
            finally:
                os.write(pipes[1 - side], b"." * MAX_TURNS)

        try:
            with _quiet(), ThreadPoolExecutor(len(self.sides)) as threads:
                running = [threads.submit(run, side) for side in range(len(self.sides))]
                try:
                    both = [one.result() for one in running]
                except BaseException:
                    self.close()  # else the threads wait for processes that nobody wants
                    raise
        finally:
            for pipe in pipes:
                os.close(pipe)
        if any(ended.has_no_server for ended in both):
            self.begin_round()
        return None if any(ended.is_cut for ended in both) else [ended.outcome for ended in both]

    def _run(self, side: int, job: Job, seconds_left: float, *, waits: bool = False) -> _Ended:
        """Run one process to its end. One that waits for another has the time of both."""
        from gpubench.asv_code import util

        of, spawner = self.sides[side], self._spawners[side]
        found = of.find(job)
        assert found is not None  # only jobs that both sides have are taken
        benchmark, number = found
        limit = benchmark.get("timeout") or self._installer.config.default_benchmark_timeout
        limit *= 1 + waits
        has_no_server = False
        with tempfile.TemporaryDirectory() as folder:
            result = Path(folder, "result.json")
            try:
                printed, code = spawner.run(
                    name=f"{benchmark['name']}-{number}",
                    params_str=json.dumps(dict(ATTRIBUTES)),
                    profile_path="None",
                    result_file_name=str(result),
                    timeout=max(min(limit, seconds_left), MIN_TIMEOUT_SECONDS),
                    cwd=folder,
                )
            except (util.UserError, OSError, RuntimeError) as error:  # the server has ended with it
                has_no_server = True
                printed, code = str(error), -signal.SIGKILL
            samples: tuple[float, ...] = ()
            with suppress(OSError, ValueError, TypeError, KeyError):  # none where it failed
                samples = tuple(map(float, json.loads(result.read_text())["samples"]))
        return _Ended(
            self._outcome(of, job, samples, printed, code, limit),
            is_cut=seconds_left < limit and code == util.TIMEOUT_RETCODE,
            has_no_server=has_no_server,
        )

    def _outcome(
        self,
        side: CommitSide,
        job: Job,
        samples: Sequence[float],
        printed: str,
        code: int,
        limit: float,
    ) -> Measured:
        """Return what a process put on record; where it ended before, how it did."""
        from gpubench.asv_code import util

        last: CaseRecord | None = None
        rounds: RoundsRecord | None = None
        for line in take_lines(side):
            if isinstance(line, RunRecord):
                side.run = line
            elif isinstance(line, RoundsRecord):
                rounds = line
            elif isinstance(line, CaseRecord) and (last is None or last.status != "wrong"):
                last = line
        record = last or case_record(job.case, job.time, "started")
        taken = rounds.rounds if rounds and rounds.rounds else samples
        if code == util.TIMEOUT_RETCODE:
            record = replace(record, status="timed_out", reason=why_stopped(limit))
        elif record.status in ("started", "ok") and not (code == 0 and taken):
            how = how_it_ended(code) if code else "it gave no time"
            status: RecordedStatus = "failed" if code >= 0 else "killed"
            words = (f"its process ended without an outcome ({how})", _tail(printed, 1))
            record = replace(record, status=status, reason=": ".join(filter(None, words)))
        elif record.status == "started":  # a release that kept no record
            record = replace(record, status="ok")
        if record.status != "ok":
            return Measured(record)
        each_round = tuple((seconds,) for seconds in taken)
        return Measured(record, (each_round,), (rounds.disturbance if rounds else None,))


def take_lines(side: CommitSide) -> Iterator[Line]:
    """Yield what the last processes of a side put on record, and remove it."""
    for path in side.records.rglob(f"*{SUFFIX}"):
        lines = path.read_bytes().splitlines()
        path.unlink()
        for line in lines:
            with suppress(GpubenchError):  # of a later release
                yield parse_line(line)


class NotInstalled(GpubenchError):
    """A commit that asv cannot install, or whose benchmarks it cannot find."""


class CommitInstaller:
    """Installs commits of the project in environments of asv's, for some jobs."""

    def __init__(
        self,
        work: Sequence[Job],
        temporary: Path,
        environment_name: str | None,
        preset: str | None,
        say: Say,
    ) -> None:
        """Read asv's configuration and update its clone of the repository.

        ``environment_name``: asv's name of the environment, where its matrix has several. Raises
        ``GpubenchError`` where there is no configuration of asv, or the repository cannot be used.
        """
        from gpubench.asv_code import get_repo, util

        self._temporary, self._environment_name = temporary, environment_name
        self._preset, self._say = preset, say
        self._started = f"{os.getpid()}-{time.time():.0f}"
        self._wanted = {job.case.benchmark(job.time).asv_name for job in work}
        self._environments: dict[str, Any] = {}
        with _quiet():
            self.config = _load_config()
            write_local_requirements()
            try:
                self._repository = get_repo(self.config)
                self._repository.pull()
            except (util.UserError, util.ProcessError) as error:
                raise GpubenchError(f"asv cannot use the repository: {_words(error)}") from error

    def find_commit(self, label: str) -> str:
        """Return the hash of a commit. Raises ``GpubenchError`` where git does not know it."""
        from asv.repo import NoSuchNameError

        try:
            return str(self._repository.get_hash_from_name(label))
        except NoSuchNameError as error:
            raise GpubenchError(f"git knows no commit {label!r}") from error

    @property
    def repository_path(self) -> str | None:
        """The clone that asv works on; ``None`` where it is not of git."""
        from gpubench.asv_code import repository_path

        return repository_path(self._repository)

    def make_pipes(self, first: str) -> list[int]:
        """Make the pipes through which two processes give each other turns, anew and open both
        ways; the process of pipe ``first`` takes the first sample."""
        pipes = []
        for name in PIPES:
            path = self._temporary / name
            path.unlink(missing_ok=True)
            os.mkfifo(path)
            pipes.append(os.open(path, os.O_RDWR))
        (self._temporary / FIRST_FILE).write_text(first)
        return pipes

    def describe(
        self, label: str, folder: str, patterns: Sequence[str] | None = None
    ) -> CommitSide:
        """Return a commit with its environment, in this folder, before it is installed.

        ``patterns``: of asv's names of benchmarks with their cases, in place of all cases.
        """
        with _quiet():
            commit = self.find_commit(label)
            records = self._temporary / folder
            records.mkdir(exist_ok=True)
            settings = AsvSettings(
                run=self._started,
                results_dir=str(records),
                machine=machine_name(),
                repository=self.repository_path,
                attributes=ATTRIBUTES,
                benchmarks=tuple(
                    patterns or (f"^{re.escape(name)}\\b" for name in sorted(self._wanted))
                ),
                timeout=self.config.default_benchmark_timeout,
            )
            with environment({VARIABLE: None}):
                settings.export()
                variables = {VARIABLE: os.environ[VARIABLE]}
            if self.config.launch_method == "forkserver":
                pipe = PIPES[ENVIRONMENT_FOLDERS.index(folder)]
                variables[TURNS_VARIABLE] = str(self._temporary / pipe)
            if self._preset:
                variables["GPUBENCH_PRESET"] = self._preset
            if folder not in self._environments:
                of_folder = _environment(self.config, folder, self._environment_name)
                self._environments[folder] = of_folder
            return CommitSide(
                label,
                commit,
                self._repository.get_date(commit) / 1000,
                _subject(self._repository, commit),
                settings.machine,
                self._environments[folder],
                variables,
                records,
            )

    def install(self, side: CommitSide) -> None:
        """Install a commit in its environment, and find its benchmarks. Raises ``NotInstalled``."""
        is_hash = side.label == side.commit
        named = side.commit[:8] if is_hash else f"{side.label} ({side.commit[:8]})"
        self._say(f"installing {named}")
        with _quiet():
            _install(side, self.config, self._repository)
            side.benchmarks = _discover(side, self.config, self._wanted)


@contextmanager
def installer_of(
    work: Sequence[Job],
    environment_name: str | None = None,
    preset: str | None = None,
    say: Say = lambda words: None,
) -> Iterator[CommitInstaller]:
    """Install commits for these jobs inside the block; see ``CommitInstaller``."""
    with tempfile.TemporaryDirectory(prefix="gpubench-") as temporary:
        yield CommitInstaller(work, Path(temporary), environment_name, preset, say)


@contextmanager
def two_commits(
    labels: tuple[str, str],
    work: Sequence[Job],
    environment_name: str | None = None,
    preset: str | None = None,
    say: Say = lambda words: None,
) -> Iterator[TwoCommits]:
    """Install two commits, each in an environment of its own, for these jobs.

    Raises ``GpubenchError`` where there is no configuration of asv, git does not know a commit, or
    an environment cannot be made.
    """
    with (
        installer_of(work, environment_name, preset, say) as installer,
        sides_of(installer, labels) as bench,
    ):
        yield bench


@contextmanager
def sides_of(installer: CommitInstaller, labels: tuple[str, str]) -> Iterator[TwoCommits]:
    """Install two commits beside each other. Raises ``GpubenchError`` as ``two_commits``."""
    pairs = zip(labels, ENVIRONMENT_FOLDERS, strict=True)
    sides = [installer.describe(label, folder) for label, folder in pairs]
    for side in sides:
        installer.install(side)
    bench = TwoCommits(sides, installer)
    try:
        yield bench
    finally:
        bench.close()


def _load_config() -> Any:
    """Return asv's configuration of the working folder, with its plugins imported."""
    from gpubench.asv_code import Config, plugin_manager, util

    if not any(Path(name).is_file() for name in ("asv.conf.json", "asv.conf.jsonc")):
        raise GpubenchError(
            f"there is no asv.conf.json in {Path.cwd()}, which says how commits are installed: "
            "go to its folder, or start with `gpubench init`"
        )
    try:
        config = Config.load()
        for plugin in config.plugins:
            plugin_manager.import_plugin(plugin)
    except (util.UserError, ImportError) as error:
        raise GpubenchError(f"asv cannot use asv.conf.json: {error}") from error
    return config


def _environment(config: Any, folder: str, name: str | None) -> Any:
    """Return the environment of asv's matrix that has this name, or the only one, in a folder of
    its own."""
    from asv.environment import EnvironmentUnavailable, is_existing_only

    from gpubench.asv_code import get_environments

    of_side = copy.copy(config)
    of_side.env_dir = str(Path(config.env_dir, folder))
    try:
        found = [*get_environments(of_side, None)]
    except EnvironmentUnavailable as error:
        raise GpubenchError(f"asv has no such environment: {error}") from error
    names = [one.name for one in found]
    kept = [one for one in found if name in (None, one.name)]
    if not kept:
        there = ", ".join(names) or "none that can be made here"
        which = f" {name}" if name else ""
        raise GpubenchError(f"asv.conf.json has no environment{which}: it has {there}")
    if len(kept) > 1:
        raise GpubenchError(
            f"asv.conf.json has {len(kept)} environments; name one with --environment: "
            f"{', '.join(names)}"
        )
    if is_existing_only(kept):
        raise GpubenchError(
            "a Python that exists already holds one commit: to measure two in turn, let "
            "asv.conf.json name an environment_type that asv makes, such as virtualenv"
        )
    return kept[0]


def _install(side: CommitSide, config: Any, repository: Any) -> None:
    """Make the environment and install the commit there, where it is not so yet."""
    from asv.environment import EnvironmentUnavailable

    from gpubench.asv_code import util

    try:
        with environment(side.variables):
            side.environment.create()
            side.environment.install_project(config, repository, side.commit)
    except (util.UserError, util.ProcessError, EnvironmentUnavailable, OSError) as error:
        raise NotInstalled(
            f"{side.label} ({side.commit[:8]}) cannot be installed, so that nothing is compared: "
            f"{_words(error)}"
        ) from error


def _discover(side: CommitSide, config: Any, wanted: set[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return what asv finds of the wanted benchmarks at this commit, by name."""
    from gpubench.asv_code import runner, util

    with tempfile.TemporaryDirectory() as folder, environment(side.variables):
        result = Path(folder, "benchmarks.json")
        variables = {**os.environ, **side.environment.env_vars}
        arguments = ["discover", str(Path(config.benchmark_dir).resolve()), str(result)]
        try:
            side.environment.run(
                [runner.BENCHMARK_RUN_SCRIPT, *arguments], cwd=folder, env=variables, dots=False
            )
            found = json.loads(result.read_text())
        except (util.ProcessError, OSError, ValueError) as error:
            raise NotInstalled(
                f"asv finds no benchmarks at {side.label} ({side.commit[:8]}): {_words(error)}"
            ) from error
    return {one["name"]: one for one in found if one["name"] in wanted}


def _subject(repository: Any, commit: str) -> str | None:
    from gpubench.asv_code import repository_path

    if (path := repository_path(repository)) is None:
        return None
    printed = ask_git(named_repository(Path(path)), "show", "-s", "--format=%s", commit)
    return printed.decode(errors="replace").strip() or None


def _words(error: BaseException) -> str:
    """Return what went wrong, with the last lines of the command that did."""
    printed = "\n".join(
        words.decode(errors="replace") if isinstance(words, bytes) else words
        for words in (getattr(error, "stdout", None), getattr(error, "stderr", None))
        if words
    )
    return "\n".join(filter(None, (str(error), _tail(printed))))


def _tail(printed: str, lines: int = TAIL_LINES) -> str:
    return "\n".join([line for line in printed.splitlines() if line.strip()][-lines:])


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep asv from printing inside the block: what goes wrong is raised."""
    from gpubench.asv_code import log

    with log.set_level(logging.CRITICAL):
        yield
