"""Plugin of asv: tells gpubench what asv was asked for, warns of a busy machine, and lets ``asv
publish`` write the report too.

In ``asv.conf.json``: ``"plugins": [".gpubench.asv_plugin"]``. The leading dot is asv's way to say
that the name is a module; without it asv looks among its own plugins and silently finds nothing.

asv imports the plugin in asv's own process, before asv starts another: see
``measure/asv_settings.py``. asv's pages have no place for a link to the report, so the plugin
prints the report's path.
"""

from __future__ import annotations

import atexit
import io
import math
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from statistics import median
from types import FrameType
from typing import TYPE_CHECKING, Any

from asv.publishing import OutputPublisher

from gpubench.asv_code import Config, Machine, get_repo, log, repository_path, runner
from gpubench.backends.software import requested
from gpubench.distribution import describe_conflict, write_local_requirements
from gpubench.errors import Exit, GpubenchError, SuiteError, join_repeats
from gpubench.measure.asv_settings import VARIABLE, AsvSettings, asv_settings
from gpubench.measure.disturbance import busy_since, core_use
from gpubench.names import parse_benchmark_name
from gpubench.processes import PR_SET_PDEATHSIG
from gpubench.record import SUFFIX, CaseRecord, CountsRecord, RoundsRecord, RunRecord, record_name
from gpubench.suite.folder import asked_folder, suite_files
from gpubench.temporary import remove_abandoned

if TYPE_CHECKING:
    from gpubench.analysis.renamed import Rename
    from gpubench.analysis.run_summary import RunSummary
    from gpubench.results import Row

REPORT_FOLDER = "gpubench"
"""Of the report, inside asv's ``html_dir``."""

KEEPING = ("run", "continuous", "find")
"""Commands of asv that write result files."""

QUICK = {"number": 1, "repeat": 1, "warmup_time": 0, "rounds": 1}
"""What asv's ``--quick`` stands for (``asv.runner.run_benchmarks``)."""


ENOUGH_PROCESSES = 4
"""Processes of a case from which two stored runs can be told apart (``analysis/between_runs.py``,
which asv has no use for)."""


_sizes_before: dict[Path, int] = {}
"""Bytes of each record of the machine when asv began. What has grown is of this run; the moments of
files are those of another clock on a network's disk, and clocks jump."""


def export_settings() -> None:
    """Read asv's command line and configuration as asv does, for the processes that it starts.

    Does nothing in a process that is not asv's. Never ends asv: what goes wrong is a warning.
    """
    from asv.commands import make_argparser

    parser, _ = make_argparser()
    try:
        with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
            arguments = parser.parse_args(sys.argv[1:])
    except SystemExit:  # no command line of asv's
        return
    if not hasattr(arguments, "func"):  # ``asv`` without a command
        return
    write_local_requirements()
    if _command(arguments) in KEEPING:
        end_as_by_ctrl_c()
        refuse_faulty_suites()
    if _command(arguments) in KEEPING and (warning := busy_since(core_use())):
        log.warning(f"gpubench: {warning}")
    if conflict := describe_conflict():
        log.warning(f"gpubench: {conflict}")
    try:
        (settings := _settings(arguments)).export()
        _sizes_before.update({path: path.stat().st_size for path in _records(settings)})
    except Exception as error:  # asv fails of it too, or its results are without a record
        os.environ[VARIABLE] = ""
        log.warning(f"gpubench: no record is kept: {error}")


def end_as_by_ctrl_c() -> None:
    """Have SIGTERM and SIGHUP (a batch system's end, a closed terminal) end asv as Ctrl-C does: it
    ends what it has started. A signal that is ignored, as under ``nohup``, stays ignored."""

    def end(number: int, frame: FrameType | None) -> None:
        if callable(signal.getsignal(signal.SIGINT)):
            signal.raise_signal(signal.SIGINT)  # to whom it is given now
        else:  # ignored, as in what a shell has put into the background
            signal.default_int_handler(number, frame)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)


def refuse_faulty_suites() -> None:
    """End asv where no benchmark can be made of the suites, or none of them has the preset, before
    it makes an environment, which takes minutes."""
    from gpubench.suite.loading import load_suites  # other commands of asv have no use for it

    here = Path("suites")  # asv has changed into the folder of its configuration
    try:
        suites = asked_folder(here)
        if not suite_files(suites):
            return
        load_suites([suites], os.environ.get("GPUBENCH_PRESET") or None)
    except SuiteError as error:
        faults = join_repeats(error.faults)
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        last = f"gpubench: {count} in suites; nothing is measured"
        print(*faults, last, sep="\n", file=sys.stderr)
        sys.exit(Exit.REFUSED)
    except GpubenchError as error:
        print(f"gpubench: {error}; nothing is measured", file=sys.stderr)
        sys.exit(Exit.REFUSED)


def _command(arguments: Any) -> str:
    """``run``, ``publish`` ...: the function is a class method of ``asv.commands.run.Run`` ..."""
    name: str = arguments.func.__self__.__name__
    return name.lower()


def _settings(arguments: Any) -> AsvSettings:
    """asv has changed into the folder of its configuration already (``asv.main``)."""
    config = Config.load(Path(arguments.config).name if arguments.config else None)
    options = vars(arguments)
    attributes = {**(options.get("attribute") or {}), **(QUICK if options.get("quick") else {})}
    asked = options.get("bench") or ()
    skip_all = options.get("skip_existing") or options.get("skip_existing_commits")
    settings = AsvSettings(
        run=f"{os.getpid()}-{time.time():.0f}",
        attributes=attributes,
        benchmarks=(asked,) if isinstance(asked, str) else tuple(asked),
        timeout=float(attributes.get("timeout", config.default_benchmark_timeout)),
        skip_successful=bool(skip_all or options.get("skip_existing_successful")),
        skip_failed=bool(skip_all or options.get("skip_existing_failed")),
        append_samples=bool(options.get("append_samples")),
    )
    if _command(arguments) not in KEEPING or options.get("dry_run") or options.get("skip_save"):
        return settings
    commit, repository = options.get("set_commit_hash"), get_repo(config)
    return replace(
        settings,
        repository=repository_path(repository),
        results_dir=str(Path(config.results_dir).resolve()),
        # Where the machine has no name yet, asv asks for one here, keeps it and asks no more.
        machine=Machine.load(machine_name=arguments.machine, interactive=True).machine,
        commit=None if commit is None else repository.get_hash_from_name(commit),
    )


def say_what_is_compiled_anew() -> None:
    """At the end of a run, once: what compiling functions that keep no code has cost its cases.

    Each case has a process of its own, and compiles them again.
    """
    compiled = {  # a process may tell of its case several times
        (record.benchmark, record.case, float(str(record.conditions["compile_seconds"])))
        for _, record in _lines_of_run("compile_seconds")
        if isinstance(record, CaseRecord)
    }
    if not compiled:
        return
    from gpubench.tables.table import compiled_line  # brings rich

    names = ((parse_benchmark_name(benchmark), seconds) for benchmark, _, seconds in compiled)
    said = compiled_line((f"{n.kernel} {n.implementation}", seconds) for n, seconds in names if n)
    if said:
        log.info(f"gpubench: {said}")
        log.flush()  # the end of the line, which asv has written already after its own last one


def say_what_was_measured() -> None:
    """Say at the end of a run what asv does not: the best and the worst speedup, what is wrong or
    skipped, and the next command. What goes wrong here is a warning."""
    measured: dict[str, set[tuple[str, str]]] = {}
    for path, record in _lines_of_run("benchmark"):
        measured.setdefault(path.name, set()).add((record.benchmark, record.case))
    if not measured:
        return
    from gpubench.tables.run_summary import NEXT, summary_lines  # asv has no use for it

    try:
        lines = summary_lines(_summary(measured))
    except Exception as error:
        lines = [f"no summary: {type(error).__name__}: {error}", NEXT]
    for line in lines:
        log.info(f"gpubench: {line}")
    log.flush()


def _summary(measured: Mapping[str, Set[tuple[str, str]]]) -> RunSummary:
    """Return what this run showed of these benchmarks and cases, by the name of the record."""
    from gpubench.analysis.renamed import find_renames
    from gpubench.analysis.run_summary import summarize
    from gpubench.project.opening import project_table

    settings, project = asv_settings(), Path.cwd()  # asv changes into its configuration's folder
    suites = asked_folder(project / "suites")
    table, _ = project_table(Path(settings.results_dir or ""), project, suites)
    rows: list[Row] = []
    counted = 0
    renames: list[Rename] = []
    for setup in table.measured:
        snapshots = table.snapshots(setup)
        for before, snapshot in zip([None, *snapshots], snapshots, strict=False):
            name = record_name(snapshot.commit.hash, setup.environment)
            of_run = measured.get(name, set())
            if snapshot.measured_on != settings.machine or not of_run:
                continue
            chosen = {
                case: row
                for case, row in table.rows(snapshot).items()
                if (case.benchmark.asv_name, case.case) in of_run
            }
            rows += chosen.values()
            counted += sum(case in chosen for case in table.counts(snapshot))
            if before is not None:
                renames += find_renames(table.rows(before), table.rows(snapshot))
    return summarize(rows, counted, renames)


def say_what_can_be_found() -> None:
    """Say at the end of a run with few processes a case what `gpubench compare` can find by it.

    The figures are those of ``scripts/detection_power.py``.
    """
    processes = Counter(
        (path, record.benchmark, record.case)
        for path, record in _lines_of_run("rounds")
        if isinstance(record, RoundsRecord) and parse_benchmark_name(record.benchmark)
    )
    count = median(processes.values()) if processes else math.inf
    if count >= ENOUGH_PROCESSES:
        return
    finds = "names suspects, and calls no case slower or faster"
    if count > 1:
        finds = "finds a doubling in a quarter to two thirds of the cases"
    each = "one process" if count == 1 else f"{count:g} processes"
    log.info(
        f"gpubench: each case has {each}: `gpubench compare` of such runs {finds}; it finds a "
        "doubling in nine of ten cases with four (`sampling: {rounds: 4}`, or `-a rounds=4`)"
    )
    log.flush()


def record_what_was_lost() -> None:
    """At the end of a run: put on record which cases ended without an outcome on a device that is
    no more. Ray ends a process that has lost its head, before that can say so."""
    last = {(line.benchmark, line.case): (path, line) for path, line in _lines_of_run("benchmark")}
    if not last:
        return
    from gpubench.backends import registry  # brings NumPy, as the recorder does
    from gpubench.measure.recorder import Recorder, now

    # With `-a repeat=` a case whose samples asv has may have no line of rounds.
    before = ("started",) if "repeat" in asv_settings().attributes else ("started", "ok")
    for path, line in last.values():
        if isinstance(line, CaseRecord) and line.status in before:
            with suppress(GpubenchError):  # a backend that is not there any more
                if lost := registry.get(line.backend).lost(line.device):
                    reason = f"its process ended without an outcome; {lost}"
                    Recorder(path).write(replace(line, status="killed", at=now(), reason=reason))


def _records(settings: AsvSettings) -> Iterator[Path]:
    """Yield the records of the machine that is measured; none where nothing is kept."""
    if settings.results_dir is not None:
        yield from Path(settings.results_dir, settings.machine).glob(f"*{SUFFIX}")


def _lines_of_run(field: str) -> Iterator[tuple[Path, CaseRecord | RoundsRecord]]:
    """Lines of cases and rounds of this run that have such a field, each with its record; damaged
    ones are left out."""
    from gpubench.measure.recorder import Recorder

    settings = asv_settings()
    for path in _records(settings):
        if path.stat().st_size == _sizes_before.get(path):
            continue
        of_run = False
        for record in reversed([*Recorder(path).backwards(f'"{field}"', '"kind": "run"')]):
            if isinstance(record, RunRecord):
                of_run = record.facts.get("run") == settings.run
            elif of_run and not isinstance(record, CountsRecord):
                yield path, record


END_WITH_ASV = f"""
import ctypes, os, runpy, sys
if sys.path[:1] == [""]:
    del sys.path[0]
root, *sys.argv = sys.argv[1:]
ctypes.CDLL(None).prctl({PR_SET_PDEATHSIG}, {signal.SIGKILL})
if not os.path.exists("/proc/" + root):
    os._exit(1)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a script of asv's until the process ``root`` ends. It is text, as the environment of a
commit may hold another gpubench."""


class _ServerOfAsv:
    """An environment of asv's whose server ends with asv from its first moment, on Linux.

    Else a server that was asked nothing yet, when asv is killed, waits for its first order for
    ever.
    """

    def __init__(self, environment: Any) -> None:
        self._environment = environment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)

    def run(self, arguments: Sequence[str], **options: Any) -> Any:
        before = ("-c", END_WITH_ASV, f"{os.getpid()}") if sys.platform == "linux" else ()
        return self._environment.run([*before, *arguments], **options)


class ForkServer(runner.ForkServer):  # type: ignore[misc]
    """asv's fork server, which Ctrl-C ends while the server starts too. The server has a process
    group of its own, which a terminal's Ctrl-C does not reach. asv may be interrupted before asv
    knows of the server."""

    def __init__(self, environment: Any, root: str) -> None:
        asked: list[int] = []

        def hold(number: int, _: object) -> None:
            asked.append(number)
            if len(asked) > 1:  # by somebody who has seen one do nothing: it may never be ready
                raise KeyboardInterrupt

        before = signal.signal(signal.SIGINT, hold)
        try:
            # Takes a second, or as long as it lives.
            super().__init__(_ServerOfAsv(environment), root)
        finally:
            signal.signal(signal.SIGINT, before)
        if asked and callable(before):  # it is not where Ctrl-C is ignored
            self.interrupt()
            self.close()
            before(asked[0], None)

    def preimport(self) -> Any:
        """Import the benchmarks; says why that takes long where CUDA runs in software."""
        if requested():
            log.info("gpubench: CUDA cases are verified in software first, side by side")
        return super().preimport()


class GpubenchReport(OutputPublisher):  # type: ignore[misc]
    """asv finds subclasses of its ``OutputPublisher`` and calls them when its site is written."""

    name = REPORT_FOLDER
    button_label = "gpubench report"
    description = "Speedups of implementations over their baseline"
    order = 1000
    """After asv's own pages."""

    @classmethod
    def publish(cls, conf: Any, repo: Any, benchmarks: Any, graphs: Any, revisions: Any) -> None:
        """Write the report of all stored results, with suites and templates as ``gpubench report``
        finds them; what goes wrong is a warning, not asv's end."""
        from gpubench.project.opening import project_table  # asv run has no use for the report
        from gpubench.report.render import write_report

        project = Path.cwd()  # asv changes into the folder of its configuration
        templates = project / "reports"
        try:
            suites = asked_folder(project / "suites")
            table, faults = project_table(Path(conf.results_dir), project, suites)
            for fault in faults:
                log.warning(f"gpubench: {fault}")
            folder = Path(conf.html_dir) / REPORT_FOLDER
            index = write_report(table, folder, templates if templates.is_dir() else None)
        except GpubenchError as error:
            log.warning(f"gpubench: {error}")
        except Exception as error:  # a fault of ours: asv's own site is written all the same
            log.warning(f"gpubench: no report is written: {type(error).__name__}: {error}")
        else:
            log.info(f"gpubench: the report is {index.resolve()}")


export_settings()
runner.ForkServer = ForkServer
atexit.register(remove_abandoned)  # of cases that asv ended
atexit.register(say_what_was_measured)  # runs after what is registered below: its end is the last
atexit.register(say_what_is_compiled_anew)
atexit.register(say_what_can_be_found)
atexit.register(record_what_was_lost)
