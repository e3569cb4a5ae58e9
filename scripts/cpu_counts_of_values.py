"""Counts the library's Numba kernels on the CPU in several processes, also with other values.

With the same values all processes must count alike. With other random numbers a case counts alike
where data decide no branch; the cases that differ are named, with their largest difference. Exit
code 1 where two processes with the same values differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from count_mutations import PRESET
from figures import add_option, record, recording

from gpubench.counts.processor import counting_variables
from gpubench.measure import inputs
from gpubench.measure.cpu_counting import is_counted_on_cpu, why_not_with_one_thread
from gpubench.measure.verify_cases import Manner, Verifier
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites
from gpubench.work.counting import difference_between

CHECKOUT = Path(__file__).parent.parent

Totals = Mapping[str, Mapping[str, int] | str]
"""Counts of each case by its name, or why it has none."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--same", type=int, default=2, help="processes with the same values")
    parser.add_argument("--others", type=int, default=1, help="processes with other values each")
    parser.add_argument("--together", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    add_option(parser)
    given = parser.parse_args()
    if given.child is not None:
        print(json.dumps(_count(given.child, given.only)))
        return 0
    with recording(given):
        draws = [*[""] * given.same, *map(str, range(1, given.others + 1))]
        with ThreadPoolExecutor(given.together) as pool:
            found = [*pool.map(lambda draw: _in_a_process(draw, given.only), draws)]
        return _judge(found[: given.same], found[given.same :])


def _judge(same: Sequence[Totals], others: Sequence[Totals]) -> int:
    """Print what differs, record the figures, and return the exit code."""
    first, *again = same
    counted = [name for name, totals in first.items() if not isinstance(totals, str)]
    for name in first.keys() - {*counted}:
        print(f"not counted: {name}: {first[name]}")
    unlike = _differing(first, again, counted)
    by_values = _differing(first, others, counted)
    for name, difference in unlike.items():
        print(f"two processes differ: {name}: {difference}")
    for name, difference in by_values.items():
        print(f"data decide: {name}: {difference}")
    alike = len(counted) - len(unlike)
    what = f"cases of the library that {len(same)} processes count alike, ASLR on"
    print(f"{what}: {alike} of {len(counted)}")
    record("counts_on_the_cpu", what, {"figure": f"{alike} of {len(counted)}"})
    if others:
        alike = len(counted) - len(by_values)
        what = "the same with other random numbers; in the others data decide branches"
        print(f"{what}: {alike} of {len(counted)}")
        record("counts_on_the_cpu", what, {"figure": f"{alike} of {len(counted)}"})
    return int(bool(unlike))


def _differing(first: Totals, others: Sequence[Totals], names: Sequence[str]) -> dict[str, str]:
    """Return the first difference of each case that differs somewhere."""
    found = {}
    for other in others:
        for name in names:
            before, after = first[name], other[name]
            assert not isinstance(before, str)
            difference = after if isinstance(after, str) else difference_between(before, after)
            if difference:
                found.setdefault(name, difference)
    return found


def _in_a_process(draw: str, only: str) -> Totals:
    command = [sys.executable, __file__, "--child", draw, "--only", only]
    # Places in memory are drawn by chance, and the environment's size moves the stack.
    env = {**os.environ, **counting_variables(), "PADDING": "x" * (1 + len(draw)) * 1000}
    done = subprocess.run(command, cwd=CHECKOUT, env=env, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _count(draw: str, only: str) -> Totals:
    """Count each case of the library, with random numbers of this draw."""

    def generator(case: Case, name: str) -> np.random.Generator:
        key = f"{case.data_title}/{name} {case.data_identity}{draw and f' draw {draw}'}"
        return np.random.default_rng(int.from_bytes(hashlib.sha256(key.encode()).digest()[:16]))

    inputs.generator = generator
    verify, totals = Verifier(Manner(count_on_cpu=True)), {}
    for place, case in enumerate(build_plan(load_suites([Path("suites")], PRESET), 0).cases()):
        name = f"{case.group.title} {case.identity}"
        if is_counted_on_cpu(case) and not why_not_with_one_thread(case) and only in name:
            one = verify((place, case))
            if one.counts is None or one.counts.missing:
                why = one.reason or (one.counts and one.counts.missing) or one.status
                totals[name] = f"{one.status}: {why}"
            else:
                totals[name] = one.counts.totals
    return totals


if __name__ == "__main__":
    sys.exit(main())
