"""Cases to asv's classes: one class for each implementation, one ``time_*`` for each labelled time.
Where counts are asked for, each count has a ``track_*``: of CUDA on the device in software, and of
Numba's code on the CPU.

asv instantiates a class without arguments, calls ``setup`` with the case's identity before every
sample, reads the clock from ``timer`` and runs ``time_*`` once between two readings of it.
The first ``setup`` of a process prepares the case and warms it up. Later ones restore what the
kernel overwrote, or begin the next round. asv reads ``repeat`` after the first ``setup``: that is
how it takes as many samples as are shared among the rounds.

Counts need one run of a case, but asv starts a process for each ``track_*`` of the case. The first
process, or the ``time_*`` before it, puts the counts on record; the other processes read the
record. Counts on the CPU are on record before asv measures.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from gpubench.backends import registry
from gpubench.backends.devices import gpu_count, is_cuda
from gpubench.backends.software import (
    counts_model,
    counts_wanted,
    cpu_counts_wanted,
    requested,
    tracks_wanted,
)
from gpubench.counts.cpu import CPU_MODEL
from gpubench.counts.processor import processor_to_compile_for
from gpubench.errors import GpubenchError
from gpubench.measure.appending import calls_in_sample
from gpubench.measure.asv_settings import asv_settings, say_if_without_plugin, started_by_asv
from gpubench.measure.caches import keep_caches_apart
from gpubench.measure.case_run import CaseRun, State
from gpubench.measure.cpu_counting import is_counted_on_cpu
from gpubench.measure.outcomes import Refused, Skipped, WrongResult
from gpubench.measure.provenance import NOBODY_LOOKED, Provenance, find_provenance
from gpubench.measure.recorder import Recorder, now
from gpubench.measure.resuming import RecordedSamples, finished_before
from gpubench.measure.sampling import (
    COMPILATIONS,
    CaseSampler,
    Schedule,
    apply_asv_attributes,
    split_into_rounds,
)
from gpubench.names import FRESH_TIMES, BenchmarkName, parse_benchmark_name, timed_beside
from gpubench.plan.case import Case
from gpubench.plan.expansion import Expansion, compiled_apart, expand
from gpubench.plan.group import kernel_groups
from gpubench.plan.plan import build_plan
from gpubench.plan.version import benchmark_version
from gpubench.processes import end_with_parent
from gpubench.record import CaseRecord, CountsRecord, FinishedProcess
from gpubench.statuses import UNMEASURED_STATUSES
from gpubench.suite.folder import asked_folder
from gpubench.suite.loading import load_suites
from gpubench.suite.sampling import Sampling
from gpubench.work.costs import TRACKED_COSTS, TRACKED_CPU_COSTS, Cost

T = TypeVar("T")

NOT_OF_ASV = {"sample_time", "number", "paired", "memory"}
"""What of ``sampling`` is carried out here: asv sees one call a sample."""


def benchmark_classes(suites: Path) -> dict[str, type]:
    """asv benchmark classes of all suite files in a folder, or in the one that ``GPUBENCH_SUITES``
    names beside it, by name; in a process that asv started for one benchmark, that one's class.

    The preset is the environment variable ``GPUBENCH_PRESET``. No device, no thread pool and no
    kernel is touched before a case is set up. A process that asv forks for each benchmark imports
    what all of them need. Raises ``SuiteError`` with every fault of the files.
    """
    say_if_without_plugin()
    if started_by_asv():
        # First of all: where asv is killed between two cases, or before there is one, the process
        # that it forks for each would wait for the next one for ever.
        end_with_parent(root=asv_settings().process)
        keep_caches_apart()
    preset, count = os.environ.get("GPUBENCH_PRESET") or None, gpu_count()
    asked = asked_benchmark(sys.argv)
    # A suite's file has its name, so that the other suites need not be read.
    folder = asked_folder(suites)
    source = folder if asked is None else folder / f"{asked.suite}.yaml"
    loaded = load_suites([source], preset)
    provenance = find_provenance(loaded) if started_by_asv() else NOBODY_LOOKED
    if asked is None:
        expansions = tuple(build_plan(loaded, count).expansions())
    else:  # of its kernel alone, so that no other kernel's code and backends are looked at
        kernels = (one for one in loaded if asked.kernel in one.suite.kernels)
        made = (group for one in kernels for group in kernel_groups(one, asked.kernel, count))
        groups = (one for one in made if one.has_cases and one.class_name == asked.class_name)
        expansions = tuple(map(expand, groups))
    classes = {
        each.group.class_name: benchmark_class(each, count, provenance) for each in expansions
    }
    if sys.argv[1:2] == ["run_server"]:  # asv forks this process for each case
        # A process of a case has no use for these.
        from gpubench.measure.count_ahead import count_ahead
        from gpubench.measure.verify_ahead import verify_ahead

        cases = [*chain.from_iterable(each.cases for each in expansions)]
        verify_ahead(cases, provenance)
        count_ahead(cases, provenance)
        for name in sorted({name for each in expansions for name in each.group.backends}):
            with suppress(Exception):  # its cases say what is wrong
                registry.get(name).preload()
        # Garbage collection in a fork looks at all objects of this process and so copies their
        # pages: 0.13 s for a case, of Numba's 240,000 objects.
        gc.freeze()
    return classes


def asked_benchmark(arguments: Sequence[str]) -> BenchmarkName | None:
    """Return the benchmark that asv starts a process for: ``benchmark.py run FOLDER NAME-INDEX
    ...``.

    ``None`` where asv lists all of them, or imports them once to fork later.
    """
    match arguments:
        case [_, "run", _, name, *_]:
            benchmark = name.partition("-")[0]
            return parse_benchmark_name(benchmark) or timed_beside(benchmark)
    return None


def benchmark_class(
    expansion: Expansion, gpu_count: int, provenance: Provenance = NOBODY_LOOKED
) -> type:
    """Return the class that asv discovers for one implementation, a group with its cases.

    Cases that get no time anyway are done in one process: there are thousands of them.
    """
    group, cases = expansion.group, expansion.cases
    source = group.source_text()
    sampling = group.kernel.sampling
    asked = {name: getattr(sampling, name) for name in Sampling.model_fields.keys() - NOT_OF_ASV}
    given = {name: value for name, value in asked.items() if value is not None}
    without_gpu = gpu_count == 0 or requested()
    if without_gpu and all(is_cuda(case.device) for case in cases):
        given["rounds"] = 1
    attributes: dict[str, Any] = {
        "__doc__": group.kernel.title or "",
        "params": ([case.identity for case in cases],),
        "param_names": ["case"],
        "number": 1,
        **given,
        **{
            f"time_{label}": _time_method(expansion, label, source, provenance)
            for label in group.times
        },
    }
    counted, costs, rules = _tracked_costs(cases)
    if counted and group.times and tracks_wanted(asv_settings().benchmarks):
        tracked = TrackedBenchmark(expansion, provenance)
        for name, cost in costs.items():
            method = _track_method(name, cost, counted, tracked)
            what = f"track_{name} by {rules}"
            version = benchmark_version(group.kernel, group.implementation_name, what)
            vars(method).update(version=version, pretty_source=source)
            attributes[method.__name__] = method
    return type(group.class_name, (), attributes)


def _tracked_costs(cases: Sequence[Case]) -> tuple[list[Case], Mapping[str, Cost], str]:
    """Return the cases of an implementation whose counts asv can track, which costs, and the rules
    by which they are counted: with others a new history begins."""
    on_device = [case for case in cases if is_cuda(case.device)]
    if on_device:
        is_counted = requested() and counts_wanted()
        return on_device if is_counted else [], TRACKED_COSTS, f"model {counts_model()}"
    on_cpu = [*filter(is_counted_on_cpu, cases)] if cpu_counts_wanted() else []
    if not on_cpu:
        return [], {}, ""
    made_by = " ".join(metadata.version(name) for name in ("numba", "llvmlite"))
    return on_cpu, TRACKED_CPU_COSTS, f"model {CPU_MODEL}, {made_by}, {processor_to_compile_for()}"


def _time_method(
    expansion: Expansion, label: str, source: str, provenance: Provenance
) -> Callable[..., None]:
    """Return a ``time_*`` method with the hooks and attributes that asv looks for on it. asv's
    pages show ``source`` as its code."""
    group = expansion.group
    version = benchmark_version(group.kernel, group.implementation_name, label)
    timed = TimedBenchmark(expansion, label, version, provenance)

    def setup(identity: str) -> None:
        timed.setup(identity)
        attributes["timer"] = timed.elapsed
        if timed.repeat is not None:
            attributes["repeat"] = timed.repeat

    def method(self: object, identity: str) -> None:
        timed.run(identity)

    vars(setup)["pretty_source"] = ""
    method.__name__ = f"time_{label}"
    attributes = vars(method)
    attributes |= {
        "setup": setup,
        "teardown": timed.teardown,
        "version": version,
        "pretty_source": source,
        "warmup_time": 0.0,  # setup has done it
    }
    if label in FRESH_TIMES:
        compiled = [case.identity for case in compiled_apart(expansion.cases)]
        attributes |= {"rounds": 1, "repeat": COMPILATIONS, "params": (compiled,)}
    return method


def _track_method(
    name: str, cost: Cost, cases: Sequence[Case], tracked: TrackedBenchmark
) -> Callable[..., float]:
    """Return a ``track_*`` method for these cases with the hooks that asv looks for on it."""

    def setup(identity: str) -> None:
        tracked.setup(cost, identity)

    def method(self: object, identity: str) -> float:
        return tracked.value

    vars(setup)["pretty_source"] = ""
    method.__name__ = f"track_{name}"
    vars(method).update(
        setup=setup,
        unit=cost.unit,
        params=([case.identity for case in cases],),
    )
    return method


class TrackedBenchmark:
    """What the ``track_*`` benchmarks of one implementation read in one process."""

    def __init__(self, expansion: Expansion, provenance: Provenance) -> None:
        self._expansion, self._provenance = expansion, provenance
        self.value = 0.0
        """The cost that was set up last."""

    def setup(self, cost: Cost, identity: str) -> None:
        """Read the counts of a case from the record, or count and record them first.

        Raises ``NotImplementedError``, which asv shows as n/a, where there are none.
        """
        if started_by_asv():
            end_with_parent(root=asv_settings().process)
        case, recorder = self._expansion.find(identity), Recorder(asv_settings().record)
        counts = self._counts(case, recorder)
        if isinstance(counts, CaseRecord):
            ended = "its process ended before" if counts.status == "started" else counts.status
            raise NotImplementedError(f"not counted: {counts.reason or ended}")
        if counts.missing is not None:
            raise NotImplementedError(f"not counted: {counts.missing}")
        value = cost.value(counts)
        if value is None:
            raise NotImplementedError(cost.absent)
        self.value = value

    def _counts(self, case: Case, recorder: Recorder) -> CountsRecord | CaseRecord:
        """Return what is counted of a case, or its outcome where that is nothing. On the CPU all is
        counted before asv measures."""
        name, label = case.benchmark("kernel").asv_name, case.benchmark(case.group.times[0])
        if not is_cuda(case.device):
            counts = recorder.counts_of_run(name, case.identity)
            if counts is None:
                raise NotImplementedError(
                    "not counted: `gpubench count --cpu` says why; counts need asv's fork server"
                )
            return counts
        return (
            recorder.counts_of_run(name, case.identity)
            # One that was begun, no more, ended its process or was ended: it would do so again.
            or recorder.last_of_run(label.asv_name, case.identity)
            or self._count(case, recorder)
        )

    def _count(self, case: Case, recorder: Recorder) -> CountsRecord | CaseRecord:
        settings, group = asv_settings(), case.group
        label = group.times[0]
        run = CaseRun(
            case,
            label,
            recorder,
            case.kernel.sampling.timeout or settings.timeout,
            asv_run=settings.run,
            version=benchmark_version(group.kernel, group.implementation_name, label),
            provenance=self._provenance,
            count=True,
        )
        try:
            run.advance(State.PREPARED)
        except (Skipped, WrongResult):
            return run.counts or run.record
        except Refused as refused:
            _exit_refused(refused, settings.run)
        run.close()
        return run.record


def _exit_refused(refused: Refused, run: str) -> NoReturn:
    """End a process whose code is not the commit's. The cause is one for all cases, and the plugin
    tells it once: there is no traceback for each."""
    if not run:
        print(refused, file=sys.stderr)
    sys.stderr.flush()
    os._exit(1)


class TimedBenchmark:
    """State of one ``time_*`` benchmark in one process: what asv's hooks work on."""

    def __init__(
        self,
        expansion: Expansion,
        label: str,
        version: str | None = None,
        provenance: Provenance = NOBODY_LOOKED,
    ) -> None:
        self._expansion = expansion
        self._provenance = provenance
        self._label = label
        self._version = version
        self._identity: str | None = None
        self._run: CaseRun | None = None
        """The run of the present case; ``None`` before the first and after its last sample."""
        self._recorded_samples: RecordedSamples | None = None
        """Samples in place of the samples of a run."""
        self._timer: CaseSampler | RecordedSamples | None = None
        """What asv's timer reads; it outlives the run."""
        self.repeat: int | None = None
        """Samples that asv has to take; ``None`` where that is not settled here."""

    def setup(self, identity: str) -> None:
        """Before every sample: prepare the case once, then restore its arrays or move them.

        Raises ``NotImplementedError``, which asv shows as n/a, for a case that is skipped.
        """
        if identity != self._identity:
            self._prepare(identity)
        if self._run is not None and self._run.state is not State.READY:
            self._run.advance(State.READY)

    def run(self, identity: str) -> None:
        """Take one sample."""
        if self._recorded_samples is not None:
            self._recorded_samples.sample()
            return
        assert self._run is not None
        self._run.advance(State.SAMPLED)

    def teardown(self, identity: str) -> None:
        """After every sample: see that the runs it queued did not fail. After the last one, see
        that a run is right even now, and put the rounds on record."""
        run = self._run
        if run is None or run.state is not State.SAMPLED:  # asv tears down after a failure too
            return
        run.advance(State.SETTLED)
        if run.is_sampled:
            # Now: a process that asv forks ends by os._exit, past all that would close a cluster.
            run.advance(State.CLOSED)
            self._run = self._identity = None

    def elapsed(self) -> float:
        """Return asv's timer."""
        assert self._timer is not None
        return self._timer.elapsed()

    def _prepare(self, identity: str) -> None:
        if started_by_asv():  # which sees to the time limit, itself or as the process it forks
            end_with_parent(root=asv_settings().process)
        if self._run is not None:
            self._run.close()
        self._identity, self._run, self._recorded_samples = identity, None, None
        case, settings = self._expansion.find(identity), asv_settings()
        recorder, name = Recorder(settings.record), case.benchmark(self._label).asv_name
        before = finished_before(recorder, settings, name, identity, self._version)
        if before is not None:
            self._take(before, recorder, settings.run)
            return
        # Before the record is asked what this run knows: it begins with its facts.
        recorder.write_facts(settings.run, self._provenance.facts())
        if requested() and is_cuda(case.device):
            self._end_as_recorded(case, recorder)
        calls = calls_in_sample(settings, name, identity, self._version)
        self._run = run = CaseRun(
            case,
            self._label,
            recorder,
            case.kernel.sampling.timeout or settings.timeout,
            sampling=apply_asv_attributes(case.kernel.sampling, settings.attributes),
            schedule=partial(self._schedule, attributes=settings.attributes, calls=calls),
            asv_run=settings.run,
            version=self._version,
            provenance=self._provenance,
            count=self._label == case.group.times[0] and requested() and counts_wanted(),
            earlier=recorder.outcome_of_run(name, identity),
        )
        try:
            run.advance(State.PREPARED)
        except Skipped as skipped:
            raise NotImplementedError(str(skipped)) from None
        except Refused as refused:
            _exit_refused(refused, settings.run)
        self._timer = run.sampler

    def _schedule(self, run: CaseRun, attributes: Mapping[str, Any], calls: int) -> Schedule:
        """Return the samples that asv takes of a run that is ready, and settle how many.

        ``attributes`` are those of asv's command line. With ``-a number=3`` one of asv's samples is
        three ``calls``, with ``-a repeat=1,9,2.5`` asv stops when it likes, and with
        ``-a warmup_time=0.5`` it warms up, whatever we set.
        """
        plan = run.plan
        by_asv = attributes.get("warmup_time") or 0.0
        warm_up = 0.0 if by_asv else plan.warm_up
        if self._label in FRESH_TIMES:
            if "repeat" in attributes:
                return Schedule((sys.maxsize,), warm_up, by_asv)
            least, most, seconds = COMPILATIONS  # as asv's loop ends (asv_runner)
            return Schedule((most,), warm_up, by_asv, enough=least, seconds=seconds)
        self.repeat = plan.samples(run.sampler.sample_seconds)
        sizes = tuple(size * calls for size in split_into_rounds(self.repeat))
        least = plan.least if "repeat" in attributes else self.repeat
        return Schedule(sizes, warm_up, by_asv, may_end_from=calls * least)

    def _end_as_recorded(self, case: Case, recorder: Recorder) -> None:
        """On the device in software one run tells of all labelled times of a case: where the
        present run has an outcome of one of them, end with that."""
        for label in dict.fromkeys((self._label, *case.group.times)):
            outcome = recorder.outcome_of_run(case.benchmark(label).asv_name, case.identity)
            if outcome is None or outcome.status == "ok":
                continue
            if label != self._label:
                name = case.benchmark(self._label).asv_name
                other = replace(outcome, benchmark=name, version=self._version, at=now())
                recorder.write(other)
            _end_as(outcome)

    def _take(self, before: FinishedProcess, recorder: Recorder, run: str) -> None:
        """Take what an earlier process had finished in place of a run: this run's record
        gets it too, so that it is whole."""
        outcome = before.outcome
        counts = recorder.last_counts(outcome.benchmark, outcome.case)
        recorder.write_facts(run, self._provenance.facts())
        if counts is not None and outcome.status == "verified":
            recorder.write(counts)
        recorder.write(outcome)
        if before.rounds is not None:
            recorder.write(before.rounds)
            self._recorded_samples = self._timer = RecordedSamples(before.samples)
            self.repeat = len(before.samples)
        else:
            _end_as(outcome)


def _end_as(outcome: CaseRecord) -> NoReturn:
    """Raise what shows asv an outcome without a time: n/a, or failed."""
    if outcome.status in UNMEASURED_STATUSES:
        raise NotImplementedError(outcome.reason)
    raise GpubenchError(outcome.reason or outcome.status)
