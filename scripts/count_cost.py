"""What counting costs over plain ``gpubench verify``: processor time, case by case.

Verifies the preset `smoke` of each suite on the device in software with and without counts, in
turn. The processor time of a case is that of the process that verifies it and of the compilers that
it starts, of two runs the lesser: other work on the machine moves it little, and the first run
fills caches of compiled code. Prints the sums of each suite, and the geometric mean of the ratios
of all cases. Target: at most 1.6.

With --cpu the cases are Numba's on the CPU, and both sides compile all of them, as after a commit:
what is counted is kept nowhere. Target: at most 2.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory

from figures import add_option, record, recording

from gpubench.backends.devices import is_cuda
from gpubench.environment import environment
from gpubench.measure.cpu_counting import is_counted_on_cpu
from gpubench.measure.verify_cases import Manner, Verified, Verifier, verified
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites

SUITES = Path(__file__).parent.parent / "suites"
TURNS = 2
CACHE_VARIABLE = "NUMBA_CACHE_DIR"
"""Numba reads it when a kernel is imported: so it is set before the first process starts."""
COST = "processor time of `gpubench verify` with counts over without, geometric mean of all cases"


@dataclass(frozen=True, slots=True)
class Side:
    """What is weighed: cases of CUDA on the device in software, or of Numba on the CPU."""

    section: str
    """Of docs/measurements.yaml."""
    what: str
    target: float
    has: Callable[[Case], bool]
    plain: Manner
    counted: Manner


CUDA = Side(
    "softcuda",
    COST,
    1.6,
    lambda case: is_cuda(case.device),
    Manner(in_software=True),
    Manner(in_software=True, count=True),
)
ON_CPU = Side(
    "counts_on_the_cpu",
    "processor time of `gpubench count --cpu` over `gpubench verify` where both compile, geometric "
    "mean of all cases",
    2.0,
    is_counted_on_cpu,
    Manner(),
    Manner(count_on_cpu=True),
)


@dataclass(frozen=True, slots=True)
class Weighed(Verified):
    """What became of a case, and the processor time that it took."""

    seconds: float = math.nan


class Weigher:
    """Verifies cases and weighs each."""

    def __init__(self, manner: Manner) -> None:
        self._verify = Verifier(manner)

    def __call__(self, item: tuple[int, Case]) -> Weighed:
        """Verify the case of this item."""
        before = _processor_seconds()
        outcome = self._verify(item)
        taken = _processor_seconds() - before
        return Weighed(**{one.name: getattr(outcome, one.name) for one in fields(outcome)},
                       seconds=taken)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="*", type=Path, default=[SUITES], help="files or folders")
    parser.add_argument("--cpu", action="store_true", help="weigh Numba's cases on the CPU")
    add_option(parser)
    given = parser.parse_args()
    side = ON_CPU if given.cpu else CUDA
    with recording(given), TemporaryDirectory() as folder, environment({CACHE_VARIABLE: folder}):
        print(
            f"{'suite':20} {'cases':>5} {'plain s':>8} {'counted s':>9} {'mean ratio':>10}",
            flush=True,
        )
        ratios, means = list[float](), list[float]()
        both = list[tuple[float, float]]()
        for file in sorted(file for path in given.suites for file in _files(path)):
            plan = build_plan(load_suites([file], "smoke"), 1)
            cases = [case for case in plan.cases() if side.has(case)]
            seconds = _seconds_in_turn(cases, side)
            its = [counted / plain for plain, counted in seconds]
            if its:
                ratios += its
                both += seconds
                means.append(_mean(its))
                sums = [math.fsum(column) for column in zip(*seconds, strict=True)]
                shown = f"{len(its):5} {sums[0]:8.2f} {sums[1]:9.2f} {_mean(its):10.2f}"
                print(f"{file.stem:20} {shown}", flush=True)
        mean = _mean(ratios)
        print(f"\ngeometric mean of {len(ratios)} cases {mean:.2f}, target at most {side.target}")
        record(side.section, side.what, {"figure": f"{mean:.2f}"})
        plain, counted = (math.fsum(column) for column in zip(*both, strict=True))
        record(
            side.section, "the same, of the sums of all cases", {"figure": f"{counted / plain:.2f}"}
        )
        for extreme, of in (("least", min), ("most", max)):
            what = f"the same, the {extreme} of a suite"
            record(side.section, what, {"figure": f"{of(means):.2f}"})
    sys.exit(mean > side.target)


def _files(path: Path) -> list[Path]:
    return [*path.glob("*.yaml")] if path.is_dir() else [path]


def _mean(ratios: Iterable[float]) -> float:
    logs = [*map(math.log, ratios)]
    return math.exp(math.fsum(logs) / len(logs))


def _seconds_in_turn(cases: list[Case], side: Side) -> list[tuple[float, float]]:
    """Return, plain and counted, the least processor time of each case that is always right."""
    runs = [(_weighed(cases, side.plain), _weighed(cases, side.counted)) for _ in range(TURNS)]
    plain, counted = zip(*runs, strict=True)
    right = [
        place for place in range(len(cases)) if all(place in run for both in runs for run in both)
    ]
    return [(min(run[p] for run in plain), min(run[p] for run in counted)) for p in right]


def _weighed(cases: list[Case], manner: Manner) -> Mapping[int, float]:
    """Return the processor time of each case that is right, by its place."""
    if not manner.in_software:  # else it finds what a turn before has compiled
        for kept in Path(os.environ[CACHE_VARIABLE]).rglob("*.nb[ic]"):
            kept.unlink()
    return {
        place: outcome.seconds
        for place, outcome in verified(cases, manner, do=Weigher(manner))
        if isinstance(outcome, Weighed) and outcome.status == "right"
    }


def _processor_seconds() -> float:
    """Return the user and system time of this process and of children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return math.fsum(each for one in used for each in (one.ru_utime, one.ru_stime))


if __name__ == "__main__":
    main()
