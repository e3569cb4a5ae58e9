"""What the cases of a run would compile one after another, compiled before it on all processors.

asv measures one case at a time, so that a new environment, whose caches are empty, compiles on one
processor while the others wait. Started between installing and measuring, by ``install_command``
of ``asv.conf.json``::

    return-code=any in-dir={env_dir} python -m gpubench.measure.compiling_ahead {conf_dir}/suites

this calls every function that keeps its compiled code on disk once for each set of dtypes, with the
smallest arrays that the suites give it. The cases then load what they need. A time is none of this:
``compile`` is measured with the caches off.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from gpubench.backends import registry
from gpubench.measure.asv_settings import asv_settings
from gpubench.measure.bound_case import opened
from gpubench.measure.caches import keep_caches_apart
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.targets import load_target
from gpubench.parallel import in_processes
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.folder import asked_folder
from gpubench.suite.loading import load_suites


def main() -> None:
    """Compile for the suites of the folder that is named, in the preset ``GPUBENCH_PRESET``."""
    (folder,) = sys.argv[1:]
    preset = os.environ.get("GPUBENCH_PRESET") or None
    plan = build_plan(load_suites([asked_folder(Path(folder))], preset), gpu_count=0)
    files: defaultdict[str, list[Case]] = defaultdict(list)
    for case in chosen(plan.cases(), asv_settings().benchmarks):
        # Functions of one file stay together: they share functions and a cache.
        files[str(case.implementation.function).partition(":")[0]].append(case)
    if len(files) > 1:
        keep_caches_apart()
        list(in_processes(call_once, list(files.values())))


def chosen(cases: Iterable[Case], asked: Sequence[str]) -> list[Case]:
    """Return the smallest case of each function, its dtypes and layouts, of the benchmarks that are
    asked for: regular expressions, as ``asv run --bench`` has them; none are all."""
    smallest: dict[Hashable, tuple[int, Case]] = {}
    for case in cases:
        with suppress(Exception):  # a case that fails says so itself
            names = [f"{case.benchmark(t).asv_name}({case.identity!r})" for t in case.group.times]
            is_asked = not asked or any(re.search(one, name) for one in asked for name in names)
            if case.fault is None and case.implementation.function and is_asked:
                arrays, scalars = case.given_specs.values(), case.scalars().values()
                kinds = ((one.dtype, len(one.shape), one.order) for one in arrays)
                key = (case.implementation.function, *kinds, *_drawing(case), *map(type, scalars))
                size = sum(one.size * one.itemsize for one in arrays)
                if key not in smallest or size < smallest[key][0]:
                    smallest[key] = size, case
    found = [case for _, case in smallest.values()]
    return [case for case in found if registry.get(case.backend).compiles_ahead]


def _drawing(case: Case) -> Iterator[Hashable]:
    """Yield what decides in which layout functions of the suite give its arrays, sizes left out."""
    if functions := case.kernel.drawing_functions():
        yield from sorted(functions.items())
        yield from sorted(v for v in case.values.items() if v[0] not in case.group.axes.size_names)


def call_once(cases: Sequence[Case]) -> None:
    """Call the function of each case once, where its code is kept. What fails here is for the case
    itself to report."""
    for case in cases:
        with suppress(Exception):
            if registry.get(case.backend).keeps(load_target(case).function):
                # The code is the same for all numbers of threads, and not all can be had here.
                with opened(replace(case, threads=None), draw_inputs(case)) as bound:
                    bound.call()


if __name__ == "__main__":
    main()
