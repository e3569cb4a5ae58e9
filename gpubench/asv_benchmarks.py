"""Cases to asv's classes: one class for each implementation, one ``time_*`` for each labelled time.

asv instantiates a class without arguments, calls ``setup`` with the case's identity before every
sample, reads the clock from ``timer`` and runs ``time_*`` once between two readings of it.
Preparing a case happens in the first ``setup`` of a process; later ones only restore what the
kernel overwrote.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpubench.backends.devices import gpu_count
from gpubench.backends.numba_cuda import simulating
from gpubench.measure.preparation import Preparation, Skipped
from gpubench.measure.recorder import recorder_of_asv
from gpubench.measure.sampling import Sampling
from gpubench.plan.plan import Group, build_plan
from gpubench.plan.version import benchmark_version
from gpubench.suite.loading import load_suites
from gpubench.suite.model import Sampling as DeclaredSampling

DEFAULT_TIMEOUT = 60.0
"""Seconds for one case, asv's own default; ``sampling.timeout`` of a suite replaces it."""


def benchmark_classes(suites: Path) -> dict[str, type]:
    """asv benchmark classes of all suite files in a folder, by name.

    The preset is the environment variable ``GPUBENCH_PRESET``. Builds the plan only: no device, no
    thread pool and no kernel is touched before a case is set up.
    """
    loaded = load_suites([suites], os.environ.get("GPUBENCH_PRESET") or None)
    plan = build_plan(loaded, gpu_count(), simulator=simulating())
    return {group.class_name: _benchmark_class(group) for group in plan.groups()}


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
            self._sampling.restore()

    def run(self, identity: str) -> None:
        """One sample."""
        assert self._sampling is not None and self._preparation is not None
        try:
            self._sampling.sample()
        except Exception as error:
            self._preparation.fail(error)

    def _prepare(self, identity: str) -> None:
        if self._preparation is not None:
            self._preparation.close()
        self._identity, self._sampling = identity, None
        case = self._group.case(identity)
        timeout = case.kernel.sampling.timeout or DEFAULT_TIMEOUT
        self._preparation = Preparation(case, self._time, recorder_of_asv(), timeout)
        try:
            self._sampling = self._preparation.prepare()
        except Skipped as skipped:
            raise NotImplementedError(str(skipped)) from None

    @property
    def timer(self) -> Callable[[], float]:
        assert self._sampling is not None
        return self._sampling.elapsed


def _benchmark_class(group: Group) -> type:
    methods = {f"time_{time}": _time_method(group, time) for time in group.times}
    attributes: dict[str, Any] = {
        "__doc__": group.kernel.title,
        "params": ([case.identity for case in group.cases()],),
        "param_names": ["case"],
        "number": 1,
        **_asv_attributes(group.kernel.sampling),
        **methods,
    }
    return type(group.class_name, (), attributes)


def _time_method(group: Group, time: str) -> Callable[..., None]:
    """A ``time_*`` method with the hooks and attributes that asv looks for on it."""
    timed = TimedBenchmark(group, time)

    def setup(identity: str) -> None:
        timed.setup(identity)
        method.timer = timed.timer  # type: ignore[attr-defined]

    def method(self: object, identity: str) -> None:
        timed.run(identity)

    setup.pretty_source = ""  # type: ignore[attr-defined]
    method.__name__ = f"time_{time}"
    method.setup = setup  # type: ignore[attr-defined]
    method.version = benchmark_version(  # type: ignore[attr-defined]
        group.kernel, group.implementation_name, time
    )
    method.pretty_source = group.source_text()  # type: ignore[attr-defined]
    if time == "compile":
        method.rounds, method.repeat, method.warmup_time = 1, 3, 0  # type: ignore[attr-defined]
    return method


def _asv_attributes(sampling: DeclaredSampling) -> dict[str, Any]:
    """asv's own attributes; what the suite leaves out stays asv's default."""
    given = sampling.model_dump(exclude_none=True, exclude={"sample_time", "number"})
    return {"timeout": DEFAULT_TIMEOUT, **given}
