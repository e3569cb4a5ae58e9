"""Writes the walk of one case into docs/how-it-works.md, as it ran: modules in the order of entry.

A case of a small suite goes the whole way in this process. It is offered to asv, measured as asv's
own runner measures it, stored by asv's class of results, read back, and written as pages. A profile
function notes each module of the engine when one of its functions is first called. What a module
does while it is imported is no step of a case. Neither is what is done once in a process or for a
commit.
"""

from __future__ import annotations

import gc
import inspect
import os
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any
from unittest.mock import patch

from asv.results import Results
from asv.runner import BenchmarkResult
from asv_runner.discovery import get_benchmark_from_name

import gpubench
from gpubench.collecting import without_collecting
from gpubench.measure.asv_settings import AsvSettings
from gpubench.report.render import write_report
from gpubench.results import open_table

Walk = dict[str, list[str]]
"""Modules as paths below gpubench, by what goes on."""

PAGE = Path(__file__).parent.parent / "docs/how-it-works.md"
START, END = "<!-- walk -->\n", "<!-- end of walk -->"
PACKAGE = str(Path(gpubench.__file__).parent) + os.sep
WIDTH = 96
COMMIT, ENVIRONMENT, MACHINE = 40 * "0", "walked", "here"
BACKENDS = tuple(f"backends/{name}" for name in ("protocol", "registry", "host", "numpy"))
"""Of the case. Which others are asked whether they are there depends on what is installed."""
FILES = {
    "suites/vector_add.yaml": """\
version: 1
suite: vector_add
kernels:
  vector_add:
    sizes: {n: [1024]}
    arrays:
      a: {shape: [n], dtype: float32, fill: normal}
      b: {shape: [n], dtype: float32, fill: normal, intent: inout}
    call: [a, b, n]
    baseline: numpy
    sampling: {rounds: 1, repeat: 2, sample_time: 0.001, warmup_time: 0}
    implementations:
      numpy: {function: "gpubench.kernels.elementwise:vector_add_numpy", backend: numpy}
      again: {function: "gpubench.kernels.elementwise:vector_add_numpy", backend: numpy}
""",
    "walked/__init__.py": "",
    "walked/suites.py": """\
from pathlib import Path
from gpubench.asv_benchmarks import benchmark_classes
globals().update(benchmark_classes(Path(__file__).parent.parent / "suites"))
""",
    "results/here/machine.json": '{"machine": "here", "version": 1}',
}
BENCHMARK, IDENTITY = "suites.vector_add__again.time_kernel", "n=1024"


def main() -> None:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    page = before + START + draw(walk()) + END + rest.partition(END)[2]
    PAGE.write_text(page, encoding="utf-8")


def walk() -> Walk:
    """Return by stage the modules that one case enters, each where it is first entered.

    What a process asks once and imports once is known the second time, whatever it did before.
    """
    walk_once()
    gc.collect()
    with without_collecting():  # which would end generators of what ran before
        return walk_once()


def walk_once() -> Walk:
    """Take one case the whole way."""
    with TemporaryDirectory(prefix="gpubench-walk-") as name, _as_asv_starts_it(Path(name)):
        folder, walked, seen = Path(name), Walk(), set[str]()
        with entered(walked, "asv finds the benchmark", seen):
            benchmark = get_benchmark_from_name(str(folder / "walked"), f"{BENCHMARK}-0")
        with entered(walked, "asv sets it up and takes samples", seen):
            benchmark.do_setup()
            measured = benchmark.do_run()
            benchmark.do_teardown()
        store(measured, folder)
        with entered(walked, "gpubench reads asv's files", seen):
            table = open_table(folder / "results")
        with entered(walked, "gpubench writes pages", seen):
            write_report(table, folder / "html")
            table.close()
    return walked


@contextmanager
def _as_asv_starts_it(folder: Path) -> Iterator[None]:
    """Write the project, and set what asv's own process leaves for those that it starts."""
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    finders = [*sys.meta_path]
    with patch.dict(os.environ, {"ASV_COMMIT": COMMIT, "ASV_ENV_NAME": ENVIRONMENT}):
        AsvSettings(run="1", results_dir=str(folder / "results"), machine=MACHINE).export()
        try:
            yield
        finally:
            sys.meta_path[:] = finders
            for module in ("walked", "walked.suites"):
                sys.modules.pop(module, None)


def store(measured: dict[str, Any], folder: Path) -> None:
    """Write asv's result file."""
    results = Results({"machine": MACHINE}, {}, COMMIT, 0, "3.11", ENVIRONMENT, {})
    results.add_result(
        {"name": BENCHMARK, "version": "1", "params": [[repr(IDENTITY)]]},
        BenchmarkResult([1.0], [measured["samples"]], [measured["number"]], 0, "", None),
    )
    results.save(str(folder / "results"))


@contextmanager
def entered(walked: Walk, stage: str, seen: set[str]) -> Iterator[None]:
    """Note each module of the engine of which the block is the first to call a function."""

    def note(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file not in seen and file.startswith(PACKAGE) and _is_step(frame):
            seen.add(file)
            module = Path(file.removeprefix(PACKAGE)).with_suffix("").as_posix()
            if not module.startswith("backends/") or module in BACKENDS:
                walked.setdefault(stage, []).append(module)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def _is_step(frame: FrameType) -> bool:
    """Return whether a function was called, and not because a module of ours is imported."""
    if not frame.f_code.co_flags & inspect.CO_NEWLOCALS:  # the body of a module or of a class
        return False
    above: FrameType | None = frame
    while above is not None:
        if above.f_code.co_name == "<module>" and above.f_code.co_filename.startswith(PACKAGE):
            return False
        above = above.f_back
    return True


def draw(walked: Walk) -> str:
    """Return the walk as text: a paragraph for each stage."""
    paragraphs = (
        f"{stage}\n" + textwrap.fill(" ► ".join(modules), WIDTH, initial_indent="  ",
                                     subsequent_indent="  ")
        for stage, modules in walked.items()
    )  # fmt: skip
    return "\n".join(["", "```", *paragraphs, "```", "", ""])


if __name__ == "__main__":
    main()
