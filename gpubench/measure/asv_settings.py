"""What asv was asked for, as the processes know that it starts to measure.

asv's own process imports our plugin (``gpubench.asv_plugin``), which reads asv's command line and
configuration with asv's own code and puts the answers into one environment variable. The processes
that asv starts inherit it. asv itself adds the commit and the environment's name (``ASV_COMMIT``,
``ASV_ENV_NAME``), which change during a run.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from gpubench.record import record_name

VARIABLE = "GPUBENCH_ASV"
"""Environment variable with an ``AsvSettings`` as JSON. Empty where the plugin has failed, which it
has said on asv's terminal."""

TIMEOUT = 60.0
"""Seconds for one case, asv's own default (``asv.config.Config``)."""

NO_PLUGIN = (
    "gpubench: no record is kept, because asv runs without gpubench's plugin; add this line to "
    'asv.conf.json: "plugins": [".gpubench.asv_plugin"]'
)


@dataclass(frozen=True, slots=True)
class AsvSettings:
    """One command of asv, as far as it decides what is kept and how samples are taken."""

    run: str = ""
    """Tells the processes of one command from those of another."""
    results_dir: str | None = None
    """Absolute; ``None`` where the command keeps no results."""
    machine: str = ""
    """Name under which asv keeps results of this machine."""
    commit: str | None = None
    """The 40 digits of ``--set-commit-hash``: results are kept under it, whatever is measured."""
    repository: str | None = None
    """Where git has the project, a mirror of asv's for one from elsewhere; ``None`` without git."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Attributes of benchmarks that the command line sets (``-a``, ``--quick``)."""
    benchmarks: tuple[str, ...] = ()
    """Regular expressions of the benchmarks that were asked for; none are all."""
    timeout: float = TIMEOUT
    """Seconds after which asv ends a case whose suite does not say."""
    skip_successful: bool = False
    """Whether asv was asked not to measure again what has results (``--skip-existing`` ...)."""
    skip_failed: bool = False
    """The same of what has failed."""
    append_samples: bool = False
    """Whether asv was asked to add samples to those it has stored (``--append-samples``)."""

    @property
    def process(self) -> int | None:
        """Number of asv's process; ``None`` where it is not known."""
        number = self.run.partition("-")[0]
        return int(number) if number.isdecimal() else None

    def export(self) -> None:
        """Leave the settings for the processes that this one starts."""
        os.environ[VARIABLE] = json.dumps(asdict(self))

    @property
    def record(self) -> Path | None:
        """File for the status of this process's case; ``None`` where asv keeps no results of it,
        as of an existing Python whose commit nobody set."""
        commit = self.commit or os.environ.get("ASV_COMMIT")
        if self.results_dir is None or commit is None:
            return None
        # Where asv did not make this Python: as `asv.environment.get_env_name` names it.
        existing = re.sub(r'[<>:"/\\^|?*\x00-\x1f]', "_", f"existing-py{sys.executable}")
        environment = os.environ.get("ASV_ENV_NAME") or existing
        return Path(self.results_dir) / self.machine / record_name(commit, environment)


def asv_settings() -> AsvSettings:
    """Return those of the command that started this process; the defaults where asv did not, or
    told nothing."""
    # The plugin may be of another release than the benchmarks: asv runs in a Python of its own.
    content = json.loads(os.environ.get(VARIABLE) or "{}")
    names = {field.name for field in fields(AsvSettings)}
    settings = AsvSettings(**{name: content[name] for name in names & content.keys()})
    return replace(settings, benchmarks=tuple(settings.benchmarks))


def started_by_asv() -> bool:
    """Return whether asv started this process to measure, or forked it from a process of asv."""
    return sys.argv[1:2] in (["run"], ["run_server"])  # of asv's benchmark.py


def say_if_without_plugin() -> None:
    """Print a line on standard error, which asv shows with ``--show-stderr``, in a process that asv
    started to measure where no plugin ran."""
    if started_by_asv() and VARIABLE not in os.environ:
        print(NO_PLUGIN, file=sys.stderr)
