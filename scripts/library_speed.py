"""How much faster than NumPy the library's Numba forms are on this CPU, kernel by kernel.

Every kernel at its largest default sizes, NumPy and Numba in turn in one process, measured and
compared as ``gpubench time`` does. Prints the speedup of each form with its interval, and the
geometric mean over the kernels, the faster form of each. Targets: at least 4 times in the mean; a
form that is slower than NumPy has its reason in its suite.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from conditions import print_conditions, progress

from gpubench.analysis.headline import Headline, headline
from gpubench.analysis.speedup import Speedup, geometric_mean
from gpubench.measure.direct import jobs, measure, rounds_of, take_round
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.report import text
from gpubench.suite.loading import load_suites
from gpubench.tables.times import by_kernel, compared

SUITES = Path(__file__).parent.parent / "suites"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="*", type=Path, default=[SUITES], help="files or folders")
    parser.add_argument("--preset", help="the sizes of a preset in place of the suites' own")
    parser.add_argument("--samples", type=int, default=20, help="samples of each case")
    given = parser.parse_args()
    print_conditions()
    cases = largest(build_plan(load_suites(given.suites, given.preset), 0).cases())
    best = [
        max(fastest, key=lambda one: one.value)
        for kernel in measured(cases, given.samples)
        if (fastest := list(shown(kernel)))
    ]
    mean = geometric_mean(best)
    print(f"\n{len(best)} kernels, the faster form of each: {told(mean)}   target at least 4x")


def largest(cases: Iterable[Case]) -> list[Case]:
    """CPU cases of the largest problems of each kernel."""
    kernels: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        if case.device == "cpu" and case.fault is None and case.baseline() is not None:
            kernels.setdefault((case.suite.suite, case.kernel_name), []).append(case)
    return [
        case
        for found in kernels.values()
        for case in found
        if elements(case) == max(map(elements, found))
    ]


def elements(case: Case) -> float:
    """The product of a case's sizes."""
    return math.prod(float(case.values[name]) for name in case.sizes)


def measured(cases: list[Case], samples: int) -> Iterator[list[Headline]]:
    """Each kernel's forms at its largest size, kernel by kernel."""
    work = [job for job in jobs(cases, samples) if job.time == "kernel"]
    show, found = progress(rounds_of(work), "round"), {}
    for number, (index, one) in enumerate(measure(work, take_round)):
        found[index] = one
        show(number + 1)
    for kernel in by_kernel(compared(found.values())):
        names = {case.outcome.name.implementation for case in kernel if not case.is_baseline}
        yield [headline(kernel, name) for name in sorted(names)]


def shown(forms: list[Headline]) -> Iterator[Speedup]:
    """Print one line for each form, and give its speedup."""
    for form in forms:
        name = form.cases[0].outcome.name
        where = f"{name.suite}.{name.kernel}  {name.implementation}"
        problem = ", ".join(case.problem for case in form.cases)
        print(f"{where:55} {told(form.speedup):28} {problem}", flush=True)
        if form.speedup is not None:
            yield form.speedup
        else:
            print(
                *(f"    {case.outcome.status}: {case.outcome.reason}" for case in form.cases),
                sep="\n",
            )


def told(speedup: Speedup | None) -> str:
    return (
        "no speedup" if speedup is None else f"{text.speedup(speedup)} ({text.interval(speedup)})"
    )


if __name__ == "__main__":
    main()
