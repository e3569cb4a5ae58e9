"""Plugin of asv: ``asv publish`` writes the report into asv's site too.

In ``asv.conf.json``: ``"plugins": [".gpubench.asv_plugin"]``. The leading dot is asv's way to say
that the name is a module; without it asv looks among its own plugins and silently finds nothing.
asv's pages have no place for a link to it, so that the path is said on the terminal.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from asv.console import log
from asv.publishing import OutputPublisher

from gpubench.errors import GpubenchError
from gpubench.project import project_results
from gpubench.report.render import write_report

FOLDER = "gpubench"
"""Of the report, inside asv's ``html_dir``."""


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
        else:
            log.info(f"gpubench: the report is {index}")


def publish_report(results_dir: Path, html_dir: Path) -> Path:
    """Write the report of a project in the current directory; returns its first page.

    asv changes into the folder of ``asv.conf.json``. Suites and own templates are looked for as
    by ``gpubench report``.
    """
    project = Path.cwd()
    results, faults = project_results(results_dir, project, project / "suites")
    for fault in faults:
        log.warning(f"gpubench: {fault}")
    overrides = project / "reports"
    chosen = overrides if overrides.is_dir() else None
    return write_report(results, html_dir / FOLDER, chosen).resolve()
