"""Plugin of asv: it tells what asv was asked for, and ``asv publish`` writes the report too.

In ``asv.conf.json``: ``"plugins": [".gpubench.asv_plugin"]``. The leading dot is asv's way to say
that the name is a module; without it asv looks among its own plugins and silently finds nothing.

asv imports it in its own process, before it starts any other: see ``measure/asv_settings.py``.
asv's pages have no place for a link to the report, so that its path is said on the terminal.
"""

from __future__ import annotations

import io
import os
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

from asv.console import log
from asv.publishing import OutputPublisher

from gpubench.errors import GpubenchError
from gpubench.measure.asv_settings import VARIABLE, AsvSettings

FOLDER = "gpubench"
"""Of the report, inside asv's ``html_dir``."""

KEEPING = ("run", "continuous", "find")
"""Commands of asv that write result files."""

QUICK = {"number": 1, "repeat": 1, "warmup_time": 0, "rounds": 1}
"""What asv's ``--quick`` stands for (``asv.runner.run_benchmarks``)."""


def export_settings() -> None:
    """Read asv's command line and configuration as asv does, for the processes that it starts.

    Does nothing in a process that is not asv's. Never ends asv: what goes wrong is a warning.
    """
    arguments = _arguments()
    if arguments is None:
        return
    try:
        _settings(arguments).export()
    except Exception as error:  # asv fails of it too, or its results are without a record
        os.environ[VARIABLE] = ""
        log.warning(f"gpubench: no record is kept: {error}")


def _arguments() -> Any:
    """What asv makes of its command line; ``None`` where this is no command of asv."""
    from asv.commands import make_argparser

    parser, _ = make_argparser()
    try:
        with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
            arguments = parser.parse_args(sys.argv[1:])
    except SystemExit:
        return None
    return arguments if hasattr(arguments, "func") else None


def _settings(arguments: Any) -> AsvSettings:
    """asv has changed into the folder of its configuration already (``asv.main``)."""
    from asv.config import Config
    from asv.machine import Machine
    from asv.repo import get_repo

    config = Config.load(Path(arguments.config).name if arguments.config else None)
    options = vars(arguments)
    attributes = {**(options.get("attribute") or {}), **(QUICK if options.get("quick") else {})}
    asked = options.get("bench") or ()
    settings = AsvSettings(
        run=f"{os.getpid()}-{time.time():.0f}",
        attributes=attributes,
        benchmarks=(asked,) if isinstance(asked, str) else tuple(asked),
        timeout=float(attributes.get("timeout", config.default_benchmark_timeout)),
    )
    command = arguments.func.__self__.__name__.lower()  # a class method of asv.commands.run.Run ...
    if command not in KEEPING or options.get("dry_run") or options.get("skip_save"):
        return settings
    commit = options.get("set_commit_hash")
    return replace(
        settings,
        results_dir=str(Path(config.results_dir).resolve()),
        # Where the machine has no name yet, asv asks for one here, keeps it and asks no more.
        machine=Machine.load(machine_name=arguments.machine, interactive=True).machine,
        commit=None if commit is None else get_repo(config).get_hash_from_name(commit),
    )


class GpubenchReport(OutputPublisher):  # type: ignore[misc]
    """asv finds subclasses of its ``OutputPublisher`` and calls them when its site is written."""

    name = FOLDER
    button_label = "gpubench report"
    description = "Speedups of implementations over their baseline"
    order = 1000
    """After asv's own pages."""

    @classmethod
    def publish(cls, conf: Any, repo: Any, benchmarks: Any, graphs: Any, revisions: Any) -> None:
        """Write the report of all stored results; what goes wrong is a warning, not asv's end."""
        try:
            index = publish_report(Path(conf.results_dir), Path(conf.html_dir))
        except GpubenchError as error:
            log.warning(f"gpubench: {error}")
        except Exception as error:  # a fault of ours: asv's own site is written all the same
            log.warning(f"gpubench: no report is written: {type(error).__name__}: {error}")
        else:
            log.info(f"gpubench: the report is {index}")


def publish_report(results_dir: Path, html_dir: Path) -> Path:
    """Write the report of a project in the current directory; returns its first page.

    asv changes into the folder of ``asv.conf.json``. Suites and templates of the project are looked
    for as by ``gpubench report``.
    """
    from gpubench.project import project_table  # asv run has no use for the report
    from gpubench.report.render import write_report

    project = Path.cwd()
    table, faults = project_table(results_dir, project, project / "suites")
    for fault in faults:
        log.warning(f"gpubench: {fault}")
    overrides = project / "reports"
    chosen = overrides if overrides.is_dir() else None
    return write_report(table, html_dir / FOLDER, chosen).resolve()


export_settings()
