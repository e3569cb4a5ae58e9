"""Cases to asv's classes: one class for each implementation, one ``time_*`` for each labelled time.

asv instantiates a class without arguments, calls ``setup`` with the case's identity before every
sample, reads the clock from ``timer`` and runs ``time_*`` once between two readings of it.
Preparing a case happens in the first ``setup`` of a process; later ones only restore what the
kernel overwrote.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gpubench.measure.asv_command import asv_attributes
from gpubench.measure.asv_record import asv_timeout
from gpubench.measure.preparation import Preparation, Skipped
from gpubench.measure.recorder import recorder_of_asv
from gpubench.measure.repeats import COMPILATIONS, with_attributes
from gpubench.measure.sampling import Sampling
from gpubench.names import BenchmarkName, parse_benchmark_name
from gpubench.plan.group import Group
from gpubench.plan.stored import Blueprint, stored


def benchmark_classes(suites: Path) -> dict[str, type]:
    """asv benchmark classes of all suite files in a folder, by name; in a process that asv started
    for one benchmark, that one's class.

    The preset is the environment variable ``GPUBENCH_PRESET``. No device, no thread pool and no
    kernel is touched before a case is set up. A process that asv forks for each benchmark imports
    what all of them need.
    """
    preset = os.environ.get("GPUBENCH_PRESET") or None
    blueprints = _blueprint_of_one(suites, preset, sys.argv) or _plan(suites, preset)
    if sys.argv[1:2] == ["run_server"]:  # asv forks this process for each benchmark
        from gpubench.measure.preloading import preload

        preload(name for one in blueprints for name in one.group.subject.backends)
    return {one.group.class_name: _benchmark_class(one) for one in blueprints}


def _blueprint_of_one(
    suites: Path, preset: str | None, arguments: Sequence[str]
) -> tuple[Blueprint, ...]:
    """What another process has planned for the only benchmark that this one runs, if it has."""
    asked = _asked(arguments)
    if asked is None:
        return ()
    found = stored(suites / f"{asked.suite}.yaml", preset, asked.class_name)
    return () if found is None else (found,)


def _asked(arguments: Sequence[str]) -> BenchmarkName | None:
    """The benchmark that asv starts this process for: ``benchmark.py run FOLDER NAME-INDEX ...``.

    ``None`` where asv lists all of them, or imports them once to fork later.
    """
    match arguments:
        case [_, "run", _, name, *_]:
            return parse_benchmark_name(name.partition("-")[0])
    return None


def _plan(suites: Path, preset: str | None) -> tuple[Blueprint, ...]:
    # Reading suites takes longer than many kernels: a process that finds its plan leaves it out.
    from gpubench.asv_planning import plan_blueprints

    return plan_blueprints(suites, preset)


WARM_UP = 0.1
"""Seconds before the first sample, asv's own default; the runs that size a sample count."""


class TimedBenchmark:
    """State of one ``time_*`` benchmark in one process: what asv's hooks work on."""

    def __init__(self, group: Group, time: str) -> None:
        self._group = group
        self._time = time
        self._identity: str | None = None
        self._preparation: Preparation | None = None
        self._sampling: Sampling | None = None

    def setup(self, identity: str) -> None:
        """Before every sample: prepare the case once, then only restore its arrays.

        Raises ``NotImplementedError``, which asv shows as n/a, for a case that is skipped.
        """
        if identity != self._identity:
            self._prepare(identity)
        elif self._sampling is not None:
            self._recorded(self._sampling.restore)

    def teardown(self, identity: str) -> None:
        """After every sample: see that the runs it queued did not fail."""
        if self._preparation is not None and self._sampling is not None:
            self._preparation.synchronize()

    def run(self, identity: str) -> None:
        """One sample."""
        assert self._sampling is not None and self._preparation is not None
        self._recorded(self._sampling.sample)
        self._preparation.note(self._sampling)

    def _recorded(self, work: Callable[[], object]) -> None:
        """Do it; a failure is put on record and raised."""
        assert self._preparation is not None
        try:
            work()
        except Exception as error:
            self._preparation.fail(error)

    def _prepare(self, identity: str) -> None:
        if self._preparation is not None:
            self._preparation.close()
        self._identity, self._sampling = identity, None
        case = self._group.case(identity)
        attributes = asv_attributes()
        self._preparation = Preparation(
            case,
            self._time,
            recorder_of_asv(),
            case.kernel.sampling.timeout or asv_timeout(attributes),
            declared=with_attributes(case.kernel.sampling, attributes),
        )
        try:
            self._sampling = self._preparation.prepare()
        except Skipped as skipped:
            raise NotImplementedError(str(skipped)) from None

    @property
    def warmed(self) -> float:
        """Seconds for which the case ran before asv's own warm-up."""
        return 0.0 if self._sampling is None else self._sampling.warmed

    @property
    def timer(self) -> Callable[[], float]:
        assert self._sampling is not None
        return self._sampling.elapsed


def _benchmark_class(blueprint: Blueprint) -> type:
    methods = {
        f"time_{time}": _time_method(blueprint, time, version)
        for time, version in blueprint.versions.items()
    }
    attributes: dict[str, Any] = {
        "__doc__": blueprint.title,
        "params": (list(blueprint.identities),),
        "param_names": ["case"],
        "number": 1,
        **blueprint.attributes,
        **methods,
    }
    return type(blueprint.group.class_name, (), attributes)


def _time_method(blueprint: Blueprint, time: str, version: str) -> Callable[..., None]:
    """A ``time_*`` method with the hooks and attributes that asv looks for on it."""
    timed = TimedBenchmark(blueprint.group, time)
    warm_up = 0.0 if time == "compile" else blueprint.attributes.get("warmup_time", WARM_UP)

    def setup(identity: str) -> None:
        timed.setup(identity)
        method.timer = timed.timer  # type: ignore[attr-defined]
        method.warmup_time = max(0.0, warm_up - timed.warmed)  # type: ignore[attr-defined]

    def method(self: object, identity: str) -> None:
        timed.run(identity)

    setup.pretty_source = ""  # type: ignore[attr-defined]
    method.__name__ = f"time_{time}"
    method.setup = setup  # type: ignore[attr-defined]
    method.teardown = timed.teardown  # type: ignore[attr-defined]
    method.version = version  # type: ignore[attr-defined]
    method.pretty_source = blueprint.source  # type: ignore[attr-defined]
    if time == "compile":
        method.rounds, method.repeat = 1, COMPILATIONS  # type: ignore[attr-defined]
        method.params = (list(blueprint.compiled),)  # type: ignore[attr-defined]
    return method
