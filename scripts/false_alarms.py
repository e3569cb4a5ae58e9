"""How often a difference is seen where there is none, and how often one of 5 % is missed.

1. A real kernel against itself, in rounds and in pairs. Target: at most 1 alarm in 100.
2. Scripted durations, whose samples differ by noise and whose preparations differ by a factor of
   their own, as arrays come to lie elsewhere: the same two.
3. A slowdown of 5 %, in scripted durations and in a real kernel that does 5 % more work, in pairs.
   Target: found in at least 95 of 100.

All as `gpubench time` measures and judges. Comparisons of scripted durations take a tenth of a
second each; those of a real kernel a second or two.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from conditions import print_conditions, progress, scratch_project

from gpubench.analysis.control import false_alarms, proportion_interval
from gpubench.analysis.speedup import Speedup
from gpubench.measure.control import twins
from gpubench.measure.direct import jobs, measure, take_round
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites
from gpubench.tables.times import compared, control_speedup

KERNELS = """\
import itertools

import numpy as np
from numba import njit

from gpubench.backends.scripted import script

SEEDS = itertools.count()


def scale(a, out):
    np.multiply(a, 2, out=out)


def noisy(slowdown, noise, spread):
    # Every preparation draws noise of its own and has a factor of its own.
    seed = next(SEEDS)
    factor = 1 + spread * np.random.default_rng([seed]).standard_normal()
    return script(1e-3 * slowdown * factor, noise=noise, seed=seed)(scale)


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
    sampling: {{number: 1, warmup_time: 0, rounds: 2, repeat: 10, paired: {paired}}}
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
    sampling: {{rounds: 2, repeat: 10, sample_time: 0.01, warmup_time: 0.05, paired: {paired}}}
    implementations:
      base: {{function: "control_kernels:work"}}
      slower: {{function: "control_kernels:work_and_5_percent"}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--comparisons", type=int, default=100, help="of each kind")
    parser.add_argument("--noise", type=float, default=0.02, help="relative, of scripted samples")
    parser.add_argument("--spread", type=float, default=0.01, help="relative, of preparations")
    parser.add_argument(
        "--suite",
        type=Path,
        help="its CPU kernels against themselves too, for example suites/x.yaml",
    )
    parser.add_argument("--preset", default="smoke", help="of that suite")
    given = parser.parse_args()
    print_conditions("asv_runner")
    with scratch_project(files(given.noise, given.spread)) as folder:
        for mode in ("rounds", "pairs"):
            report(folder, mode, given.comparisons)
    if given.suite is not None:
        loaded = load_suites([given.suite], given.preset)
        on_cpu = [case for case in build_plan(loaded, 0).cases() if case.device == "cpu"]
        alarms(f"{given.suite.stem} against itself", on_cpu, given.comparisons)


def files(noise: float, spread: float) -> dict[str, str]:
    made = {"control_kernels.py": KERNELS}
    for mode, paired in (("rounds", "false"), ("pairs", "true")):
        names = {"mode": mode, "paired": paired}
        made[f"real_{mode}.yaml"] = REAL.format(**names)
        made[f"scripted_{mode}.yaml"] = SCRIPTED.format(
            **names, noise=noise, spread=spread, implementation=FACTORY
        )
    return made


def report(folder: Path, mode: str, comparisons: int) -> None:
    real, scripted = planned(folder, f"real_{mode}"), planned(folder, f"scripted_{mode}")
    alarms(f"real kernel against itself, {mode}", [real["base"]], comparisons)
    same = against_baseline(scripted["same"], comparisons, "scripted, same")
    print(line(f"scripted, same duration, {mode}", same, "at most 1 %"))
    for name, cases in (("scripted", scripted), ("real kernel", real)):
        found = against_baseline(cases["slower"], comparisons, name)
        print(found_line(f"{name}, 5 % slower, {mode}", found, needed=mode == "pairs"))


def planned(folder: Path, suite: str) -> dict[str, Case]:
    """The case of each implementation."""
    cases = build_plan(load_suites([folder / f"{suite}.yaml"]), gpu_count=0).cases()
    return {case.implementation_name: case for case in cases}


def alarms(what: str, cases: list[Case], comparisons: int) -> None:
    speedups = (control_speedup(found) for found in twins(cases, comparisons, take_round))
    known = shown((one for one in speedups if one is not None), comparisons, what)
    print(line(what, known, "at most 1 %"))


def against_baseline(case: Case, comparisons: int, what: str) -> list[Speedup]:
    """As many comparisons of a case with its baseline, each measured anew."""

    def once() -> Iterator[Speedup]:
        for _ in range(comparisons):
            found = dict(measure(jobs([case]), take_round))
            (one,) = (c.speedup for c in compared(found.values()) if not c.is_baseline)
            assert one is not None
            yield one

    return shown(once(), comparisons, what)


def shown(speedups: Iterable[Speedup], total: int, what: str) -> list[Speedup]:
    show, found = progress(total, what), []
    for one in speedups:
        found.append(one)
        show(len(found))
    return found


def line(what: str, speedups: list[Speedup], target: str) -> str:
    told = false_alarms(speedups)
    interval = f"99 % interval {told.low:.1%} to {told.high:.1%}"
    return f"{what:42} {told.alarms:4} of {told.comparisons} alarms ({interval})   target {target}"


def found_line(what: str, speedups: list[Speedup], *, needed: bool) -> str:
    found = sum(one.verdict == "slower" for one in speedups)
    low, high = proportion_interval(found, len(speedups))
    target = "   target at least 95 %" if needed else ""
    interval = f"99 % interval {low:.1%} to {high:.1%}"
    return f"{what:42} {found:4} of {len(speedups)} found ({interval}){target}"


if __name__ == "__main__":
    main()
