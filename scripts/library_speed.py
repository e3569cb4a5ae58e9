"""How much faster than NumPy the library's Numba forms are on this CPU, kernel by kernel.

Every kernel at its largest default sizes, NumPy and Numba in turn in one process, measured and
compared as ``gpubench time`` does. Prints the speedup of each form with its interval, and the
geometric mean over the kernels, the faster form of each: over all, and without those that compute
nothing and only time a call. Targets: at least 4 times in the mean of those that compute; a form
that is slower than NumPy has its reason in its suite.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from conditions import progress
from figures import Cell, add_option, record, recording

from gpubench.analysis.headline import Headline, does_nothing, headline
from gpubench.measure.direct import jobs, measure, take_turn
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.report import text
from gpubench.results import Ratio, Row, geometric_mean
from gpubench.suite.loading import load_suites
from gpubench.tables.times import by_kernel, rows_of

OVER = "over NumPy"
SUITES = Path(__file__).parent.parent / "suites"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="*", type=Path, default=[SUITES], help="files or folders")
    parser.add_argument("--preset", help="the sizes of a preset in place of the suites' own")
    parser.add_argument("--samples", type=int, default=20, help="samples of each case")
    add_option(parser)
    given = parser.parse_args()
    with recording(given):
        kernels = largest(build_plan(load_suites(given.suites, given.preset), 0).cases())
        best, computing = list[Ratio](), list[Ratio]()
        for forms in measured(kernels, given.samples):
            speedups = list(shown(forms))
            if speedups:
                best.append(max(speedups, key=lambda one: one.value))
                if not does_nothing(forms[0].rows):
                    computing.append(best[-1])
        print("\ngeometric mean, the faster form of each kernel:")
        all_of_them, those = geometric_mean(best), geometric_mean(computing)
        print(f"  all {len(best)} kernels {told(all_of_them)}")
        print(f"  the {len(computing)} that compute {told(those)}   target at least 4x")
        for kind, mean, kernels_of in (
            ("all kernels", all_of_them, best),
            ("those that compute", those, computing),
        ):
            what = f"geometric mean of {kind}, the faster form of each"
            record("library", what, {"cases": f"{len(kernels_of)} kernels", OVER: cell(mean)})


def largest(cases: Iterable[Case]) -> list[list[Case]]:
    """CPU cases of the largest problems of each kernel."""
    kernels: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        if case.device == "cpu" and case.fault is None and case.baseline() is not None:
            kernels.setdefault((case.suite.suite, case.kernel_name), []).append(case)
    return [
        [case for case in found if elements(case) == max(map(elements, found))]
        for found in kernels.values()
    ]


def elements(case: Case) -> float:
    """Return the product of a case's sizes."""
    return math.prod(float(case.values[name]) for name in case.group.axes.size_names)


def measured(kernels: list[list[Case]], samples: int) -> Iterator[list[Headline]]:
    """Yield each kernel's forms at its largest size, kernel by kernel."""
    show = progress(len(kernels), "kernel")
    for number, cases in enumerate(kernels):
        work = [job for job in jobs(cases, samples) if job.time == "kernel"]
        found = dict(measure(work, take_turn))
        for kernel in by_kernel(rows_of(found.values())).values():
            print_problems(kernel)
            names = {row.name.implementation for row in kernel if not row.is_baseline}
            yield [headline(kernel, name) for name in sorted(names)]
        show(number + 1)


def shown(forms: list[Headline]) -> Iterator[Ratio]:
    """Print one line for each form, and give its speedup."""
    for form in forms:
        name = form.cases[0].name
        where = f"{name.suite}.{name.kernel}  {name.implementation}"
        problem = ", ".join(case.problem for case in form.cases)
        print(f"{where:55} {told(form.speedup):28} {problem}", flush=True)
        at = ", ".join(f"{size}={value:.0f}" for size, value in form.cases[0].sizes.items())
        figures = {"at": at, "cases": str(len(form.cases)), OVER: cell(form.speedup)}
        record("library", f"{name.suite}.{name.kernel}, {name.implementation}", figures)
        if form.speedup is not None:
            yield form.speedup


def print_problems(kernel: Iterable[Row]) -> None:
    """Name the cases without a time: no speedup tells that they are missing from it."""
    for row in kernel:
        if row.status != "ok":
            print(f"    {row.name.implementation} {row.name.case} {row.status}: {row.reason}")


def cell(speedup: Ratio | None) -> Cell:
    if speedup is None:
        return "none"
    numbers = speedup.value, speedup.low, speedup.high
    return [*map(text.digits, numbers)] if speedup.has_interval else text.digits(speedup.value)


def told(speedup: Ratio | None) -> str:
    return (
        "no speedup" if speedup is None else f"{text.speedup(speedup)} ({text.interval(speedup)})"
    )


if __name__ == "__main__":
    main()
