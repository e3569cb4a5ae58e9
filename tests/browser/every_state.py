"""A report in which every state of a page occurs, and the addresses of the pages looked at."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from counted_store import write_counted
from full_kernel import write_full_kernel
from generated_history import generate, write_files
from report_sample import START, commit_hash, write_sample
from result_files import CommitFiles, launch

from gpubench.report.pages import all_pages
from gpubench.report.render import write_report
from gpubench.report.site import Site
from gpubench.results import Setup, open_table

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> {{ 7 * 7 }}"
LONG = "a_very_long_name_of_a_kernel_that_no_column_of_a_table_was_ever_made_for"
GENERATED = Setup("machine-0", "virtualenv-py3.11")
HOSTILE_SETUP = Setup("<b>bold & brave", "env'\"<i>")
FULL = Setup("gpu-box", "virtualenv-py3.11")
GPU = Setup("gpu-box", "virtualenv-py3.12-numba-cuda")
RUNNER = Setup("runner", "virtualenv-py3.11")
COUNTED = Setup("counter", "virtualenv-py3.11")

KERNELS = {
    "kernel with every time": (FULL, "scale"),
    "kernel over launches": (GPU, "matmul"),
    "kernel with steps": (GENERATED, "kernel_1"),
    "kernel with hostile names": (HOSTILE_SETUP, LONG),
    "kernel with counted work": (COUNTED, "transpose"),
}
OVERVIEWS = {
    "overview": GPU,
    "overview without a GPU": RUNNER,
    "overview with hostile names": HOSTILE_SETUP,
    "overview with counted work": COUNTED,
}
SHOWN_ON = {"changes": GENERATED, "compare": RUNNER}
"""Setups of pages that have more to show there than on the one with a GPU."""

OTHERS = {page.name: (page.name, SHOWN_ON.get(page.name, GPU)) for page in all_pages()} | {
    f"{page.name} with hostile names": (page.name, HOSTILE_SETUP)
    for page in all_pages()
    if not page.is_shared
}
"""Every page of the report's list, and what else one has to be opened with."""
OTHERS["changes with counted work"] = "changes", COUNTED
EMPTY = "nothing measured"
PAGES = (*OVERVIEWS, *KERNELS, *OTHERS, EMPTY)

FIRST_OF_TEMPLATES = {
    next(iter(OVERVIEWS)),
    next(iter(KERNELS)),
    *{template: name for name, (template, _) in reversed(OTHERS.items())}.values(),
    EMPTY,
}
"""A page of each template."""


@dataclass(frozen=True)
class Report:
    """A report on disk."""

    folder: Path
    site: Site
    empty: Path
    """First page of a report of no results."""

    def page(self, name: str) -> Path:
        """The page of one of ``PAGES``."""
        if name == EMPTY:
            return self.empty
        if name in KERNELS:
            setup, kernel = KERNELS[name]
            return self.folder / self.site.address(setup, (kernel, kernel))
        if name in OVERVIEWS:
            return self.folder / self.site.address(OVERVIEWS[name])
        page, setup = OTHERS[name]
        return self.folder / self.site.page_address(page, setup)


def write_every_state(directory: Path) -> Report:
    """Write results and their report below ``directory``."""
    results = directory / "results"
    write_sample(results)
    write_full_kernel(results)
    write_files(generate(11, commits=24, kernels=10), results, records=True)
    for index in range(12):
        _write_hostile(results, index)
    write_counted(results, [commit_hash(index) for index in range(3)], COUNTED.machine)
    (results / "runner" / "<i>damaged.json").write_text("{")
    table = open_table(results)
    first = write_report(table, directory / "site")
    (directory / "nothing").mkdir()
    empty = write_report(open_table(directory / "nothing"), directory / "empty")
    return Report(first.parent, Site(table, all_pages()), empty)


def _write_hostile(directory: Path, index: int) -> None:
    """One commit of a kernel whose every text tries to be markup, in each way to have no time."""
    chance = random.Random(index)
    files = CommitFiles(
        directory, commit_hash(index), START + index * 90_000, HOSTILE_SETUP.machine,
        HOSTILE_SETUP.environment,
    )  # fmt: skip
    files.facts(cpu=HOSTILE, numba=f"0.{60 + index // 6}{HOSTILE}")
    for size in (1024, 4096):
        case = f"n={size} dtype={HOSTILE}"
        for implementation, factor in (("numpy", 4.0), ("numba", 1.0 + (index > 5))):
            name = f"suites.{LONG}__{implementation}.time_kernel"
            files.time(name, case, factor * size * 1e-9 * chance.gauss(1, 0.005), spread=0.02)
            files.record(
                name, case, values={"n": size, "dtype": HOSTILE}, sizes=("n",), device=HOSTILE,
                warnings=(HOSTILE,), bytes=12 * size,
            )  # fmt: skip
    for status in ("failed", "wrong", "timed_out", "skipped", "started"):  # started: was killed
        name = f"suites.{LONG}__{status}.time_kernel"
        files.missing(name, "n=1024").record(name, "n=1024", status, reason=HOSTILE)
    verified = f"suites.{LONG}__verified.time_kernel"
    files.not_applicable(verified, "n=1024").record(verified, "n=1024", "verified", reason=HOSTILE)
    lines = {1: {HOSTILE: 3, "ptx_instructions": 1}}
    did = {"ptx_instructions": 32 + index // 6, HOSTILE: index}
    files.counts(verified, "n=1024", launch(HOSTILE, file=HOSTILE, lines=lines, **did))
    files.not_applicable(verified, "n=2048").record(verified, "n=2048", "verified", reason=HOSTILE)
    files.counts(verified, "n=2048", missing=HOSTILE)
    files.write()
