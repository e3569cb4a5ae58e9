"""The program that ``gpubench profile`` gives to a profiler: one case, ready, checked, warm, run.

    python -m gpubench.measure.profiled [--preset NAME] [--runs N] CASE

Each run begins on fresh inputs and is alone inside an NVTX range. Exit code 1 where the case is
wrong or fails, 2 where it cannot run here.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from gpubench.backends.devices import gpu_count, is_cuda
from gpubench.errors import GpubenchError
from gpubench.measure.case_run import CaseRun, State
from gpubench.measure.nvtx import RANGE, find_nvtx, nvtx_range
from gpubench.measure.outcomes import Skipped
from gpubench.measure.recorder import Recorder
from gpubench.measure.sampling import WARM_UP, Schedule
from gpubench.plan import source
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.folder import asked_folder
from gpubench.suite.loading import load_suites

GPU_RUNS = 10
"""Runs on a GPU: a profiler of kernels replays each launch for every group of its counters."""

CPU_SECONDS = 2.0
"""Seconds of runs on the CPU: profilers look some 100 to 1,000 times a second."""

MAX_RUNS = 100_000
"""Runs on the CPU of a call that takes next to no time."""


def find_case(name: str, preset: str | None) -> Case:
    """Return the case of this name in the suites of the working folder; raises
    ``GpubenchError``."""
    source.SEARCHED_FIRST[:] = [str(Path.cwd())]
    return build_plan(load_suites([asked_folder(Path("suites"))], preset), gpu_count()).find(name)


def run_profiled(case: Case, runs: int | None) -> int:
    """Prepare, check and warm up a case, and run it so often inside the range; return how often.

    ``None``: ``GPU_RUNS``, or on the CPU for ``CPU_SECONDS``. Raises what ended the case.
    """
    run = CaseRun(
        case, "kernel", Recorder(None), schedule=lambda run: Schedule((1,), warm_up=WARM_UP)
    )
    mark = find_nvtx()
    try:
        run.advance(State.WARMED_UP)
        done = 0
        last = GPU_RUNS if is_cuda(case.device) else MAX_RUNS
        end = perf_counter() + CPU_SECONDS
        while done < (runs or last):
            run.run_inside(lambda: nvtx_range(mark))
            done += 1
            if runs is None and not is_cuda(case.device) and perf_counter() > end:
                break
    finally:
        run.close()
    where = f"each in the NVTX range {RANGE!r}" if mark else "without NVTX: pip install nvtx"
    print(
        f"gpubench: {done:,} runs of {case.group.title} {case.identity}, {where}", file=sys.stderr
    )
    return done


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the case that the command line names; return the exit code."""
    parser = ArgumentParser(prog="python -m gpubench.measure.profiled", description=__doc__)
    parser.add_argument("--preset")
    parser.add_argument("--runs", type=int)
    parser.add_argument("case")
    given = parser.parse_args(arguments)
    sys.path.insert(0, str(Path.cwd()))
    try:
        run_profiled(find_case(given.case, given.preset), given.runs)
    except Skipped as error:
        print(f"gpubench: nothing was profiled: {error}", file=sys.stderr)
        return 2
    except GpubenchError as error:
        print(f"gpubench: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
