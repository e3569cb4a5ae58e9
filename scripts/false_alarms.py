"""How often a difference is seen where there is none, and how often one of 5 % is missed.

1. Two commits, as `asv run` measures them in the default way: each in a process of its own, which
   is forked. Arithmetic in Numba and a minimum over memory in NumPy, against themselves and
   against the same with 5 % more work. Targets: at most 1 alarm in 100, and found in at least 95
   of 100.
2. A real kernel against itself, in the default mode, in rounds alone and in pairs that the suite
   asks for. Target: at most 1 alarm in 100.
3. Scripted durations, whose samples differ by noise and whose rounds differ by a factor of their
   own, as arrays come to lie elsewhere: the same.
4. A slowdown of 5 %, in scripted durations and in a real kernel that does 5 % more work, in these
   modes. Target: found in at least 95 of 100, except in rounds alone, which count from 5 % on.
5. The same with neighbours: 0, 1, 2 and 4 other processes that keep a core busy each, beside
   arithmetic in one thread and in all; and without neighbours a kernel that sorts in place, one
   whose work is random, and one that becomes slower from call to call. Each against itself and
   against twice the work. Targets: at most 1 alarm in 100; found, or said to be disturbed, in at
   least 95 of 100. And work that is shared among all threads against the same on one thread, which
   waits less for others. Target: never called slower.

6. How many rounds of pairs that takes (`pair_rounds`): kernels with 5 % more work in forty rounds
   of five pairs, of which fewer are counted, judged by the sign test and by signed ranks, at 99 %.
   And by how much medians of processes that follow each other scatter (`processes`), in arithmetic
   and in kernels over arrays that take from less than a microsecond on.

All but the first as `gpubench time` measures and judges. Comparisons of scripted durations take a
tenth of a second each; those of a real kernel a second or two, and of two commits some more.
`--part neighbours` and its like run one of them.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

import numpy as np
from asv_runner.statistics import quantile_ci
from conditions import progress, scratch_project
from figures import Cell, add_option, record, recording
from numpy.typing import NDArray

from gpubench.analysis.between_runs import IN_TURN, CaseRuns, judge
from gpubench.analysis.comparison import time_ratio
from gpubench.analysis.control import false_alarms, proportion_interval
from gpubench.measure.direct import Job, Measured, Take, jobs, measure, take_turn, twins
from gpubench.measure.observers import pairs as paired
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.results import Ratio, Row
from gpubench.results import ratio as intervals
from gpubench.results.kinds import kind_of
from gpubench.suite.loading import load_suites
from gpubench.tables.times import control_speedup, rows_of

T = TypeVar("T")

KERNELS = """\
import itertools

import numpy as np
from numba import njit, prange

from gpubench.backends.scripted import script

SEEDS = itertools.count()


def scale(a, out):
    np.multiply(a, 2, out=out)


def noisy(slowdown, noise, spread):
    # Every run draws noise of its own, and every round, which has arrays of its own, a factor.
    random = np.random.default_rng(next(SEEDS))
    now = {"array": None, "factor": 1.0}

    def seconds(a, out):
        if out is not now["array"]:
            now.update(array=out, factor=1 + spread * random.standard_normal())
        return 1e-3 * slowdown * now["factor"] * (1 + noise * random.standard_normal())

    return script(seconds)(scale)


@njit(cache=True)
def chain(x, steps):
    for _ in range(steps):
        x = 0.5 * x + 0.5
    return x


@njit(cache=True)
def work(a, out):
    out[0] = chain(a[0], 20000)


@njit(cache=True)
def work_and_5_percent(a, out):
    # The result is the same: the chain comes to 1 within a hundred steps and stays there.
    out[0] = chain(a[0], 21000)


@njit(cache=True)
def twice_the_work(a, out):
    out[0] = chain(a[0], 40000)


@njit(parallel=True, cache=True)
def in_threads(a, out):
    for i in prange(32):
        out[i % 1] = chain(a[0], 2000)


@njit(cache=True)
def in_one_thread(a, out):
    for _ in range(32):
        out[0] = chain(a[0], 2000)


@njit(parallel=True, cache=True)
def twice_in_threads(a, out):
    for i in prange(64):
        out[i % 1] = chain(a[0], 2000)


@njit(cache=True)
def insertion_sort(a):
    for i in range(1, a.size):
        value, j = a[i], i
        while j > 0 and a[j - 1] > value:
            a[j] = a[j - 1]
            j -= 1
        a[j] = value


@njit(cache=True)
def sort(a, out):
    insertion_sort(a)
    out[0] = a[0]


@njit(cache=True)
def sort_twice(a, out):
    insertion_sort(a.copy())
    insertion_sort(a)
    out[0] = a[0]


@njit(cache=True)
def random_work(a, out):
    out[0] = chain(a[0], 10000 + np.random.randint(20000))


@njit(cache=True)
def twice_the_random_work(a, out):
    out[0] = chain(a[0], 2 * (10000 + np.random.randint(20000)))


CALLS = itertools.count()


def drifting(a, out):
    out[0] = chain(a[0], 20000 + next(CALLS))


def twice_the_drifting_work(a, out):
    out[0] = chain(a[0], 2 * (20000 + next(CALLS)))


def least_of_most(a, out):
    out[0] = a[:100_000].min()


def least_of_5_percent_more(a, out):
    # The result is the same: the first element is the least.
    out[0] = a[:105_000].min()
"""

SCRIPTED = """\
version: 1
suite: scripted_{mode}
kernels:
  scripted_{mode}:
    sizes: {{n: [8]}}
    parameters: {{noise: [{noise}], spread: [{spread}]}}
    arrays:
      a: {{shape: [n], dtype: float64}}
      out: {{shape: [n], dtype: float64, intent: out}}
    call: [a, out]
    baseline: base
    sampling: {{number: 1, warmup_time: 0, {sampling}}}
    implementations:
      base: {implementation}, with: {{slowdown: 1.0, noise: noise, spread: spread}}}}
      same: {implementation}, with: {{slowdown: 1.0, noise: noise, spread: spread}}}}
      slower: {implementation}, with: {{slowdown: 1.05, noise: noise, spread: spread}}}}
"""
FACTORY = '{factory: "control_kernels:noisy", backend: scripted'

REAL = """\
version: 1
suite: real_{mode}
kernels:
  real_{mode}:
    sizes: {{n: [8]}}
    arrays:
      a: {{shape: [n], dtype: float64}}
      out: {{shape: [1], dtype: float64, intent: out}}
    call: [a, out]
    baseline: base
    sampling: {{sample_time: 0.01, warmup_time: 0.05, {sampling}}}
    implementations:
      base: {{function: "control_kernels:work", backend: numba}}
      same: {{function: "control_kernels:work", backend: numba}}
      slower: {{function: "control_kernels:work_and_5_percent", backend: numba}}
"""

MEMORY = """\
version: 1
suite: memory
backend: numpy
kernels:
  memory:
    sizes: {n: [105000]}
    arrays:
      a: {shape: [n], dtype: float64, fill: {formula: "1 + i", indices: [i]}}
      out: {shape: [1], dtype: float64, intent: out}
    call: [a, out]
    baseline: base
    sampling: {rounds: 2, repeat: [3, 7, 0.18], sample_time: 0.01, warmup_time: 0.05}
    implementations:
      base: {function: "control_kernels:least_of_most"}
      same: {function: "control_kernels:least_of_most"}
      slower: {function: "control_kernels:least_of_5_percent_more"}
"""

BESIDE = """\
version: 1
suite: {name}
backend: numba
kernels:
  {name}:
    sizes: {{n: [1000]}}
    arrays:
      a: {{shape: [n], dtype: float64, intent: {intent}, fill: uniform}}
      out: {{shape: [1], dtype: float64, intent: out}}
    call: [a, out]
    baseline: base
    sampling: {{rounds: 2, repeat: [3, 7, 0.18], sample_time: 0.01, warmup_time: 0.05}}
    implementations:
      base: {{function: "control_kernels:{base}", backend: {backend}}}
      slower: {{function: "control_kernels:{slower}", backend: {backend}}}
"""

WITH_NEIGHBOURS = {
    "one_thread": ("work", "twice_the_work", "numba"),
    "all_threads": ("in_threads", "twice_in_threads", "numba"),
}
BESIDE_ONE = {"beside_one": ("in_one_thread", "in_threads", "numba")}
ALONE = {
    "in_place": ("sort", "sort_twice", "numba"),
    "random": ("random_work", "twice_the_random_work", "numba"),
    "drifting": ("drifting", "twice_the_drifting_work", "numpy"),
}
"""Functions of the kernels of the fifth part, and their backend. The one thread of `BESIDE_ONE` is
its baseline."""

NEXT = 4
"""A process is compared with those of the other commit that come less than so many later: commits
that are measured in one run follow each other as closely."""

NEIGHBOURS = (0, 1, 2, 4)
SPINNING = (
    "while True: pass",
    "import numpy; a = numpy.ones(10**6)\nwhile True: a += 1",
)
"""What neighbours do: Python in the core's own cache, and NumPy over memory."""

DEFAULT = "rounds: 2, repeat: [3, 7, 0.18]"
"""How the suites of the library are sampled."""

MODES = {
    "default": DEFAULT,
    "rounds": "rounds: 2, repeat: 10, paired: false",
    "pairs": "rounds: 2, repeat: 10, paired: true",
}
PARTS = ("commits", *MODES, "neighbours", "pair_rounds", "processes")

SIZES = """\
version: 1
suite: sizes
backend: numpy
kernels:
  sizes:
    sizes: {n: [4096, 65536, 4194304]}
    arrays:
      a: {shape: [n], dtype: float32}
      b: {shape: [n], dtype: float32, intent: inout}
    call: [a, b, n]
    baseline: in_numpy
    sampling: {rounds: 2, repeat: [3, 7, 0.18]}
    implementations:
      in_numpy: {function: "gpubench.kernels.elementwise:vector_add_numpy"}
      one_thread: {function: "gpubench.kernels.elementwise:vector_add_serial", backend: numba}
      all_threads: {function: "gpubench.kernels.elementwise:vector_add_parallel", backend: numba}
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--comparisons", type=int, default=100, help="of each kind")
    parser.add_argument(
        "--slower", type=int, help="comparisons with twice the work; absent: as many"
    )
    parser.add_argument("--noise", type=float, default=0.02, help="relative, of scripted samples")
    parser.add_argument("--spread", type=float, default=0.01, help="relative, of scripted rounds")
    parser.add_argument(
        "--suite",
        type=Path,
        help="its CPU kernels against themselves too, for example suites/x.yaml",
    )
    parser.add_argument("--preset", default="smoke", help="of that suite")
    parser.add_argument("--neighbours", type=int, nargs="+", default=NEIGHBOURS)
    parser.add_argument("--part", choices=PARTS, action="append", help="absent: all")
    add_option(parser)
    given = parser.parse_args()
    parts = given.part or PARTS
    with recording(given, "asv_runner"):
        with scratch_project(files(given.noise, given.spread)) as folder:
            if "commits" in parts:
                two_commits("arithmetic", planned(folder, "real_commits"), given.comparisons)
                two_commits("memory", planned(folder, "memory"), given.comparisons)
            for mode in MODES:
                if mode in parts:
                    report(folder, mode, given.comparisons)
            if "neighbours" in parts:
                for count in given.neighbours:
                    for name in (*WITH_NEIGHBOURS, *(() if count else ALONE)):
                        counts = given.comparisons, given.slower or given.comparisons
                        beside(count, name, planned(folder, name), *counts)
                    threads_beside_one(count, planned(folder, "beside_one")["slower"], counts[1])
            if "pair_rounds" in parts:
                for kind, suite in (("arithmetic", "real_default"), ("memory", "memory")):
                    rounds_needed(kind, planned(folder, suite)["slower"], given.comparisons)
            if "processes" in parts:
                scatter("arithmetic", planned(folder, "all_threads")["base"], given.comparisons)
                for case in cases_of(folder, "sizes"):
                    name = f"{case.implementation_name} {case.identity}"
                    scatter(name, case, given.comparisons)
        if given.suite is not None:
            loaded = load_suites([given.suite], given.preset)
            on_cpu = [case for case in build_plan(loaded, 0).cases() if case.device == "cpu"]
            alarms(f"{given.suite.stem} against itself", on_cpu, given.comparisons)


def files(noise: float, spread: float) -> dict[str, str]:
    made = {"control_kernels.py": KERNELS, "memory.yaml": MEMORY, "sizes.yaml": SIZES}
    made["real_commits.yaml"] = REAL.format(mode="commits", sampling=DEFAULT)
    for name, (base, slower, backend) in (WITH_NEIGHBOURS | BESIDE_ONE | ALONE).items():
        intent = "inout" if name == "in_place" else "in"
        functions = {"base": base, "slower": slower, "backend": backend}
        made[f"{name}.yaml"] = BESIDE.format(name=name, intent=intent, **functions)
    for mode, sampling in MODES.items():
        names = {"mode": mode, "sampling": sampling}
        made[f"real_{mode}.yaml"] = REAL.format(**names)
        made[f"scripted_{mode}.yaml"] = SCRIPTED.format(
            **names, noise=noise, spread=spread, implementation=FACTORY
        )
    return made


def two_commits(kind: str, cases: dict[str, Case], processes: int) -> None:
    """Measure the same kernel at both commits, and one that is slower at the newer: so many
    processes of each, and each of the older with the next few of the newer."""
    measured: dict[str, list[tuple[Row, Row]]] = {"same": [], "slower": []}
    show = progress(processes, f"two commits, {kind}")
    with forked() as take:
        for number in range(processes):
            for name, sides in measured.items():
                baseline, row = rows_of(one for _, one in measure(jobs([cases[name]]), take))
                sides.append((baseline, row))
            show(number + 1)
    for name, what in (("same", "same kernel"), ("slower", "5 % slower")):
        newer, first = measured[name], int(name == "same")
        told = [
            _changed(*old, *new)
            for place, old in enumerate(measured["same"])
            for new in newer[place + first : place + NEXT]
        ]
        target = "at most 1 %" if name == "same" else "at least 95 %"
        title, as_if = f"two commits, {kind}, {what}", ", if all were independent"
        print(line(title, sum(told), len(told), "told", target, as_if), flush=True)
        record("commits", kind, {what: counted(sum(told), len(told))})


def _changed(old_baseline: Row, old: Row, new_baseline: Row, new: Row) -> bool:
    """Return whether the newer is made a suspect, alone and where nothing is known of the machine:
    by its speedup of pairs where both have one, else by its time."""
    group: str = kind_of(new)
    logs = [math.log(row.seconds or math.nan) for row in (old, new)]
    if old.pairs and new.pairs and old.speedup and new.speedup:
        group, logs = IN_TURN, [-math.log(row.speedup.value) for row in (old, new) if row.speedup]
    return judge([CaseRuns(group, logs[:1], logs[1:])]).cases[0].call != "unchanged"


def beside(
    neighbours: int, name: str, cases: dict[str, Case], comparisons: int, slowed: int
) -> None:
    """Compare a kernel with itself and with twice the work, while others keep cores busy."""
    title = f"{name.replace('_', ' ')}, {neighbours} neighbours"
    with busy(neighbours), forked() as take:
        same = alarms(f"{title}, same", [cases["base"]], comparisons, take)
        found = rows(cases["slower"], slowed, f"{title}, twice", take)
        slower = sum(row.speedup is not None and row.speedup.verdict == "slower" for row in found)
        disturbed = sum(row.is_disturbed for row in found)
    print(
        f"{f'{title}, twice':42} {slower:4} of {slowed} found, {disturbed} disturbed"
        "   target at least 95 % together",
        flush=True,
    )
    twice = {"twice the work: found": f"{slower} of {slowed}", "disturbed": str(disturbed)}
    record("neighbours", title, {"against itself: alarms": same, **twice})


def threads_beside_one(neighbours: int, case: Case, comparisons: int) -> None:
    """Work in all threads, which is twice as fast on two cores, against the same in one."""
    title = f"all threads against one, {neighbours} neighbours"
    with busy(neighbours), forked() as take:
        found = rows(case, comparisons, title, take)
    verdicts = Counter(row.speedup.verdict if row.speedup else "none" for row in found)
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    print(f"{title:42} of {comparisons}: {told}   target none slower", flush=True)
    record("beside_one", title, {"verdicts": told})


def rounds_needed(kind: str, case: Case, comparisons: int) -> None:
    """Print in how many comparisons with the baseline the first rounds, of three pairs, show 5
    %."""
    pairs: list[NDArray[np.float64]] = []
    with (
        patch.multiple(paired, BRIEF_PAIRS=5, BRIEF=10.0),
        patch.object(intervals, "PAIRED_ERROR", intervals.VERDICT_ERROR),
    ):
        intervals._signed_rank.cache_clear()  # of the other error
        for _ in range(comparisons):
            record = take_turn(Job(case)).record
            # Fewer rounds where others disturbed what sized its samples.
            if len(record.pair_rounds) == paired.BRIEF_ROUNDS:
                pairs.append(np.reshape(record.pair_ratios, (paired.BRIEF_ROUNDS, -1)))
        for rounds in (9, 12, 20, 30, paired.BRIEF_ROUNDS):
            medians = [np.median(one[:rounds, :3], axis=1) for one in pairs]
            sign = sum(quantile_ci(m, 0.5, intervals.VERDICT_ERROR)[1][1] < 1 for m in medians)
            ranks = [intervals.paired_speedup(m.tolist()) for m in medians]
            found = sum(one is not None and one.high < 1 for one in ranks)
            words = f"{kind}, {rounds} rounds of three pairs, 5 % slower"
            print(f"{words:52} {sign:4} by signs, {found:4} by ranks, of {len(pairs)}", flush=True)
            of_all = {"by signs": f"{sign} of {len(pairs)}", "by ranks": f"{found} of {len(pairs)}"}
            record("pair_rounds", f"{kind}, {rounds} rounds", of_all)
    intervals._signed_rank.cache_clear()


def scatter(kind: str, case: Case, comparisons: int) -> None:
    """By how much medians of processes scatter, and how often two that follow each other are apart,
    with intervals that are."""
    with forked() as take:
        rows = [rows_of([take(Job(case))])[0] for _ in range(comparisons)]
    seconds = [row.seconds for row in rows if row.seconds]
    ratios = [one for pair in pairwise(rows) if (one := time_ratio(*pair))]
    apart = [
        sum(
            one.low > 1 <= one.value / factor or one.high < 1 >= one.value * factor
            for one in ratios
        )
        for factor in (1.05, 1.1)
    ]
    print(
        f"{f'processes, {kind}':42} {np.median(seconds) * 1e6:8.1f} µs, medians scatter by "
        f"{np.log(seconds).std():.1%}; of {len(ratios)} "
        f"that follow each other {apart[0]} are apart by 5 %, {apart[1]} by 10 %",
        flush=True,
    )
    figures: dict[str, Cell] = {
        "median, µs": f"{np.median(seconds) * 1e6:.1f}",
        "medians scatter by, %": f"{100 * np.log(seconds).std():.1f}",
        "apart by 5 %": f"{apart[0]} of {len(ratios)}",
        "apart by 10 %": f"{apart[1]} of {len(ratios)}",
    }
    record("processes", kind, figures)


@contextmanager
def busy(neighbours: int) -> Iterator[None]:
    """So many other processes that keep a core busy each."""
    with ExitStack() as stack:
        for number in range(neighbours):
            code = SPINNING[number % len(SPINNING)]
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", code]))
            stack.callback(process.kill)  # before it is waited for
        yield


@contextmanager
def forked() -> Iterator[Take]:
    """Takes each turn in a process that is forked for it, as asv's are."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["gpubench.measure.direct", "numba"])
    with context.Pool(1, maxtasksperchild=1) as pool:

        def take(job: Job) -> Measured:
            one: Measured = pool.apply(take_turn, (job,))
            assert one.samples, one.record.reason
            return one

        yield take


def report(folder: Path, mode: str, comparisons: int) -> None:
    real, scripted = planned(folder, f"real_{mode}"), planned(folder, f"scripted_{mode}")
    itself = alarms(f"real kernel against itself, {mode}", [real["base"]], comparisons)
    record("modes", f"real kernel against itself, {mode}", {"seen": itself})
    same = against_baseline(scripted["same"], comparisons, "scripted, same")
    title = f"scripted, same duration, {mode}"
    print(alarms_line(title, same))
    record("modes", title, {"seen": counted(false_alarms(same).alarms, len(same))})
    for name, cases in (("scripted", scripted), ("real kernel", real)):
        speedups = against_baseline(cases["slower"], comparisons, name)
        found = sum(one.verdict == "slower" for one in speedups)
        title = f"{name}, 5 % slower, {mode}"
        print(line(title, found, len(speedups), "found", "at least 95 %"))
        record("modes", title, {"seen": counted(found, len(speedups))})


def planned(folder: Path, suite: str) -> dict[str, Case]:
    """Return the case of each implementation, in a suite where each has one."""
    return {case.implementation_name: case for case in cases_of(folder, suite)}


def cases_of(folder: Path, suite: str) -> Iterable[Case]:
    return build_plan(load_suites([folder / f"{suite}.yaml"]), gpu_count=0).cases()


def alarms(what: str, cases: list[Case], comparisons: int, take: Take = take_turn) -> Cell:
    """Print and return how many of so many comparisons of cases with themselves are alarms."""
    speedups = (control_speedup(found) for found in twins(cases, comparisons, take))
    known = shown((one for one in speedups if one is not None), comparisons, what)
    print(alarms_line(what, known))
    return counted(false_alarms(known).alarms, len(known))


def against_baseline(case: Case, comparisons: int, what: str) -> list[Ratio]:
    """Compare a case with its baseline so many times, each measured anew."""
    found = rows(case, comparisons, what, take_turn)
    return [row.speedup for row in found if row.speedup]


def rows(case: Case, comparisons: int, what: str, take: Take) -> list[Row]:
    """So many rows of a case, each with its baseline measured anew."""

    def once() -> Iterator[Row]:
        for _ in range(comparisons):
            measured = dict(measure(jobs([case]), take))
            yield from (row for row in rows_of(measured.values()) if not row.is_baseline)

    return shown(once(), comparisons, what)


def shown(ones: Iterable[T], total: int, what: str) -> list[T]:
    show, found = progress(total, what), []
    for one in ones:
        found.append(one)
        show(len(found))
    return found


def alarms_line(what: str, speedups: list[Ratio]) -> str:
    return line(what, false_alarms(speedups).alarms, len(speedups), "alarms", "at most 1 %")


def counted(count: int, total: int) -> Cell:
    """Return a count with the 99 % interval of its proportion."""
    low, high = (100 * one for one in proportion_interval(count, total))
    return [f"{count} of {total}", f"{low:.1f}", f"{high:.1f} %"]


def line(what: str, count: int, total: int, word: str, target: str, as_if: str = "") -> str:
    low, high = proportion_interval(count, total)
    interval = f"99 % interval {low:.1%} to {high:.1%}{as_if}"
    return f"{what:42} {count:4} of {total} {word} ({interval})   target {target}"


if __name__ == "__main__":
    main()
