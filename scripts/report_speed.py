"""``gpubench report`` beside ``asv publish`` on the same stored results.

The results are generated: an asv project with its repository, result files of every commit on
several machines, and gpubench's records beside them (``asv publish`` does not read those). Each
command runs in a process of its own, as from the terminal, on two projects of 3,000 result files,
one with 120 cases in each file, one with 1,000, which takes a quarter of an hour, and on one of 20
machines with a million results in all. For each are printed the times, their ratio, the largest
memory of one process, the time of a second report after one new result file and of three queries,
and how long chromium takes from opening the overview to its load event, its layout included.
Targets: a report takes at most 0.25 of asv's time with few cases and 0.15 with many, a second one
at most 0.2 and 0.1 of it, in no more memory than asv, and the overview opens within half a second.

``--shape numpy`` and ``--shape scipy`` take the results of a project that knows nothing of gpubench
instead (``tests/results/generated_store.py``): 1,400 files and 100,000 series take hours, and
``--share 0.05`` a part of the benchmarks over all commits. Reported once by all times and once in
pairs by a pattern. Targets: at most 0.15 of asv's time, 600 MB in all processes together.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp

from conditions import scratch_project
from figures import add_option, record, recording

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "analysis"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "results"))

from generated_history import IMPLEMENTATIONS, generate, write_snapshot
from generated_store import PAIRS, SHAPES, Shape, write_store

from gpubench.results import CaseName

RESULTS = Path(".asv/results")
REPORT = [sys.executable, "-m", "gpubench", "report", "--output", "reports/html"]
"""Without an output a project that has no suites gets its pages beside asv's."""


@dataclass(frozen=True)
class Size:
    """How much a project has measured."""

    title: str
    machines: int
    commits: int
    kernels: int
    sizes: int
    share: float
    """Target: of asv's time."""
    again: float
    """Target: the same, after one new file."""

    @property
    def cases(self) -> int:
        return self.kernels * self.sizes * len(IMPLEMENTATIONS)


SIZES = (
    Size("few cases", machines=3, commits=1000, kernels=12, sizes=5, share=0.25, again=0.2),
    Size("many cases", machines=3, commits=1000, kernels=50, sizes=10, share=0.15, again=0.1),
    Size("many machines", machines=20, commits=50, kernels=50, sizes=10, share=0.15, again=0.1),
)

QUERIES = {
    "query: a case": """
        select date, seconds from results
        where machine = 'machine-1' and kernel = 'kernel_7' and "case" = 'n=1024' order by date
    """,
    "query: statuses": "select machine, status, count(*) from results group by all order by all",
    "query: speedups": """
        select kernel, implementation, quantile_cont(speedup, 0.5), max(speedup) from results
        where verdict <> 'unclear' group by all order by all
    """,
}
"""What people ask: some rows, all rows of two columns, all rows with two columns calculated."""


@dataclass(frozen=True)
class Used:
    """What one process took."""

    seconds: float
    megabytes: float
    """Of the process with the most."""
    together: float
    """MB of all processes together, at most; what they share counts once."""
    processor: float
    """Seconds of all processors, which other work on the machine hardly changes."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--commits", type=int, help="of each project, instead of its own number")
    parser.add_argument("--only", choices=[size.title for size in SIZES], help="one project")
    parser.add_argument(
        "--keep", type=Path, help="make projects below this folder, and take those that are there"
    )
    parser.add_argument("--shape", choices=SHAPES, help="a project without gpubench instead")
    parser.add_argument("--share", type=float, default=1.0, help="of that project's benchmarks")
    add_option(parser)
    given = parser.parse_args()
    with recording(given, "jinja2"):
        if given.shape:
            measure_shape(SHAPES[given.shape].part(given.share), given.keep)
            return
        for size in SIZES:
            if given.only in (None, size.title):
                measure(replace(size, commits=given.commits or size.commits), given.keep)


def measure(size: Size, keep: Path | None) -> None:
    """Measure one project: asv's site, the report, twice, and the overview in a browser."""
    with project(size, keep) as folder, set_aside(newest_files(folder)) as put_back:
        files = sum(1 for _ in folder.glob(f"{RESULTS}/*/*.gpubench.jsonl"))
        print(f"{size.title}: {files:,} result files of {size.cases:,} cases each", flush=True)
        publish = run([sys.executable, "-m", "asv", "publish", "--no-pull"], folder)
        show("asv publish", publish)
        first = run(REPORT, folder)
        share = first.seconds / publish.seconds
        show("gpubench report", first, f"{share:.3f} of it, target <= {size.share}")
        figures = compared(publish, first)
        put_back()
        second = run(REPORT, folder)
        share = second.seconds / publish.seconds
        words = f"{share:.3f} of it, target <= {size.again}"
        show("one file more", second, f"{words}; {second.seconds / first.seconds:.3f} of the first")
        figures |= again(publish, second)
        for title, sql in QUERIES.items():
            asked = run([sys.executable, "-m", "gpubench", "query", sql], folder)
            show(title, asked)
            of_query = {"s": f"{asked.seconds:.1f}", "MB": f"{asked.megabytes:.0f}"}
            record("queries", f"{size.title}, {title}", of_query)
        if opened := opening(folder / "reports/html/index.html"):
            listed = ", ".join(f"{one:.2f}" for one in opened)
            median = statistics.median(opened)
            print(f"  overview opens   {median:8.2f} s  ({listed}), target < 0.5")
            figures["overview opens, s"] = f"{median:.2f}"
        made = f"{size.machines} machines, {size.commits:,} commits, {size.cases:,} cases"
        record("reports", f"{size.title}: {made}", figures)


def measure_shape(shape: Shape, keep: Path | None) -> None:
    """Measure one project without gpubench: reports by times, again with a file more, and in pairs;
    then asv's site, for which files of its format 1 are brought to format 2 at last."""
    with project(shape, keep) as folder:
        results = sorted((folder / RESULTS).glob("*/*-*.json"))
        size = sum(file.stat().st_size for file in results) / 1e6
        print(
            f"{shape.title}: {len(results):,} result files, {size:,.0f} MB, {shape.benchmarks:,} "
            f"benchmarks, {shape.series:,} series in {len(shape.environments)} environments",
            flush=True,
        )
        with set_aside(results[-1:]) as put_back:
            reports = {"times of all": run(REPORT, folder)}
            put_back()
            reports["one file more"] = run(REPORT, folder)
        in_pairs = [*REPORT[:-1], "reports/pairs", "--pair", PAIRS]
        reports["in pairs"] = run(in_pairs, folder)
        for title, used in reports.items():
            show(title, used)
        run([sys.executable, "-m", "asv", "update"], folder)
        publish = run([sys.executable, "-m", "asv", "publish", "--no-pull"], folder)
        show("asv publish", publish)
        for title, used in reports.items():
            share = used.seconds / publish.seconds
            worked = used.processor / publish.processor
            print(f"  {title:16} {share:.3f} of asv publish, {worked:.3f} of its processor time")
        figures = compared(publish, reports["times of all"])
        figures |= again(publish, reports["one file more"])
        figures["in pairs, of asv's time"] = f"{reports['in pairs'].seconds / publish.seconds:.3f}"
        record(
            "reports", f"{shape.title}: {shape.series:,} series, {len(results):,} files", figures
        )


def compared(publish: Used, report: Used) -> dict[str, str]:
    """Return the figures of a first report by their columns of the page."""
    return {
        "asv publish, s": f"{publish.seconds:.1f}",
        "its MB": f"{publish.megabytes:.0f}",
        "report, s": f"{report.seconds:.1f}",
        "of asv's time": f"{report.seconds / publish.seconds:.3f}",
        "MB": f"{report.megabytes:.0f}",
        "MB of all processes": f"{report.together:.0f}",
    }


def again(publish: Used, report: Used) -> dict[str, str]:
    """Return those of a report after one more file."""
    return {
        "one more file, s": f"{report.seconds:.1f}",
        "one more file, of asv's time": f"{report.seconds / publish.seconds:.3f}",
    }


def show(title: str, used: Used, words: str = "") -> None:
    print(
        f"  {title:16} {used.seconds:8.1f} s {used.megabytes:8.0f} MB, "
        f"{used.together:.0f} MB in all processes, {used.processor:.1f} s of processors  {words}",
        flush=True,
    )


@contextmanager
def project(size: Size | Shape, keep: Path | None) -> Iterator[Path]:
    """Yield an asv project with results of all commits, of the newest on one machine."""
    if keep is None:
        with scratch_project({}) as folder:
            write_project(size, folder)
            yield folder
        return
    folder = keep / size.title.replace(" ", "-")
    if not folder.exists():
        folder.mkdir(parents=True)
        write_project(size, folder)
    # Not removed: ext4 looks through the inodes that were deleted in the last minutes for each file
    # that is made, which took 3 s of a report of 3,000 files.
    earlier = Path(mkdtemp(prefix="earlier-", dir=keep))
    for made in (".asv/html", ".asv/.gpubench-cache", "reports"):
        if (folder / made).exists():
            (folder / made).rename(earlier / Path(made).name)
    yield folder


def newest_files(folder: Path) -> list[Path]:
    """Return the result file of the newest commit, and its record."""
    head = ["git", "-C", str(folder), "rev-parse", "main"]
    newest = subprocess.run(head, capture_output=True, text=True, check=True).stdout[:8]
    return list((folder / RESULTS).glob(f"*/{newest}-*"))


@contextmanager
def set_aside(files: Sequence[Path]) -> Iterator[Callable[[], None]]:
    """Takes files away until they are put back, which is done in any case."""

    def put_back() -> None:
        for file in files:
            if aside(file).exists():
                aside(file).replace(file)

    def aside(file: Path) -> Path:
        return file.with_name(f"{file.name}.aside")

    for file in files:
        file.replace(aside(file))
    try:
        yield put_back
    finally:
        put_back()


def write_project(size: Size | Shape, folder: Path) -> None:
    """Write a repository, asv's configuration and the results."""
    configuration = {
        "version": 1, "project": "figures", "repo": ".", "branches": ["main"],
        "results_dir": str(RESULTS), "html_dir": ".asv/html",
    }  # fmt: skip
    (folder / "asv.conf.json").write_text(json.dumps(configuration), encoding="utf-8")
    if isinstance(size, Shape):
        # A tenth of the commits has no result in an environment.
        commits = size.files // len(size.environments) * 10 // 9 + 1
        write_store(size, write_repository(folder, commits), folder / RESULTS)
        return
    hashes = write_repository(folder, size.commits + 1)
    made = generate(
        1, commits=len(hashes), kernels=size.kernels, machines=size.machines, sizes=size.sizes
    )
    real = {commit.hash: hash for commit, hash in zip(made.commits, hashes, strict=True)}
    newest, rows_of_newest = made.measured[-1]
    for snapshot, rows in made.measured:
        if snapshot.commit != made.commits[-1] or snapshot is newest:
            commit = replace(snapshot.commit, hash=real[snapshot.commit.hash])
            written = replace(snapshot, commit=commit)
            write_snapshot(written, rows, folder / RESULTS, records=True)
    write_benchmarks(folder / RESULTS / "benchmarks.json", rows_of_newest)


def write_repository(folder: Path, commits: int) -> list[str]:
    """Commit an empty commit a day, and return their hashes, oldest first."""
    stream = "".join(
        f"commit refs/heads/main\ncommitter figures <figures@localhost> {day * 86_400} +0000\n"
        f"data {len(f'Change {day}')}\nChange {day}\n\n"
        for day in range(1, commits + 1)
    )
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "--quiet", "--initial-branch=main"], check=True)
    subprocess.run([*git, "fast-import", "--quiet"], input=stream, text=True, check=True)
    listed = [*git, "rev-list", "--reverse", "main"]
    return subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()


def write_benchmarks(path: Path, names: Iterable[CaseName]) -> None:
    """asv's ``benchmarks.json``, which it takes the benchmarks and their parameters from."""
    cases: dict[str, list[str]] = {}
    for name in names:
        cases.setdefault(name.benchmark.asv_name, []).append(repr(name.case))
    described = {
        name: {
            "name": name, "type": "time", "unit": "seconds", "version": "v1",
            "param_names": ["case"], "params": [params], "code": "def time_kernel(self, case): ...",
            "timeout": 60,
        }
        for name, params in cases.items()
    }  # fmt: skip
    path.write_text(json.dumps({"version": 2, **described}), encoding="utf-8")


WAITS = """\
import contextlib, ctypes, os, resource, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: a fork server is waited for
with open("output.txt", "w") as output:
    start = time.perf_counter()
    status = subprocess.call(sys.argv[1:], stdout=output, stderr=subprocess.STDOUT)
    seconds = time.perf_counter() - start
with contextlib.suppress(ChildProcessError):
    while True:
        os.wait()
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(status, seconds, used.ru_maxrss, used.ru_utime + used.ru_stime)
"""
"""A small process in between: a new process counts as memory what the one that forked it had."""


def run(command: Sequence[str], folder: Path) -> Used:
    """Time of one process, and the largest memory of it and of those that it started."""
    waits = [sys.executable, "-c", WAITS, *command]
    together = 0
    with subprocess.Popen(waits, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            together = max(together, proportional(process.pid))
            time.sleep(0.1)
        output = process.stdout.read() if process.stdout else ""
    status, seconds, kilobytes, processor = map(float, output.split())
    if status:
        raise SystemExit(f"{' '.join(command)} failed:\n{(folder / 'output.txt').read_text()}")
    return Used(seconds, kilobytes / 1024, together / 1024, processor)


def proportional(process: int) -> int:
    """KB of memory of a process and its children; of what several share, each has its part."""
    folder, total = Path("/proc", str(process)), 0
    with suppress(OSError):  # it has ended
        pss = re.search(r"^Pss: +(\d+)", (folder / "smaps_rollup").read_text(), re.MULTILINE)
        total += int(pss[1]) if pss else 0
        for children in folder.glob("task/*/children"):
            total += sum(map(proportional, map(int, children.read_text().split())))
    return total


TIMING = """\
addEventListener("load", () => {
  const height = document.body.offsetHeight;
  document.body.dataset.opened = `${performance.now()} ms, ${height} px`;
});
"""


def opening(page: Path, times: int = 5) -> list[float]:
    """Seconds from the start of the navigation to the load event, layout included; [] without."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("  overview opens   not measured: there is no chromium on this machine")
        return []
    timed = page.with_name("timed.html")
    page.with_name("timed.js").write_text(TIMING)
    script = '<script src="timed.js"></script></body>'
    timed.write_text(page.read_text(encoding="utf-8").replace("</body>", script), encoding="utf-8")
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    seconds = []
    for _ in range(times):
        done = subprocess.run(
            [*command, timed.as_uri()], capture_output=True, text=True, check=True
        )
        seconds += [float(ms) / 1000 for ms in re.findall(r'data-opened="([\d.]+) ms', done.stdout)]
    return seconds


if __name__ == "__main__":
    main()
