"""Install commits of a project in environments of asv, for some of its benchmarks."""

from __future__ import annotations

import copy
import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpubench.asv_config import machine_name
from gpubench.distribution import write_local_requirements
from gpubench.environment import environment
from gpubench.errors import GpubenchError
from gpubench.git import ask_git, named_repository
from gpubench.measure.asv_settings import VARIABLE, AsvSettings
from gpubench.measure.direct import Job
from gpubench.measure.observers.turns import FIRST_FILE, PIPES, TURNS_VARIABLE
from gpubench.record import SUFFIX, Line, RunRecord, parse_line

TAIL_LINES = 12
"""Last lines of a command that stand in the message of its failure."""

ATTRIBUTES: Mapping[str, Any] = {"rounds": 1, "repeat": 5}
"""Attributes of asv that hold for every process. Five samples, each in a round of its own: what
differs between processes, 1 to 10 %, is more than what more samples of one would settle."""

ENVIRONMENT_FOLDERS = ("in-turn-1", "in-turn-2")
"""Folders of the two environments in asv's ``env_dir``: before and after."""

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
        with quiet_asv():
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
        with quiet_asv():
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
        with quiet_asv():
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
    return "\n".join(filter(None, (str(error), last_lines(printed))))


def last_lines(printed: str, lines: int = TAIL_LINES) -> str:
    return "\n".join([line for line in printed.splitlines() if line.strip()][-lines:])


@contextmanager
def quiet_asv() -> Iterator[None]:
    """Keep asv from printing inside the block: what goes wrong is raised."""
    from gpubench.asv_code import log

    with log.set_level(logging.CRITICAL):
        yield
