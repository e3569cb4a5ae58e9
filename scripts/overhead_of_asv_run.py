"""A whole ``asv run`` of our cases over the same cases as an asv suite written by hand.

The projects are generated into a temporary folder: the same kernels (NumPy and Numba), sizes and
sampling, in this environment. By hand means plain classes with ``params`` and a ``setup`` that
draws the arrays, and kernels that import Numba at the top of their file; nothing is checked and
nothing recorded. ``declared`` is our suites with kernels that import Numba when one is compiled, as
those that come with gpubench do; ``plain`` is our suites with the kernels of the suite by hand. A
sample is one run (``number: 1``) in all, so that they time the same calls. Targets: at most 1.05
with ``spawn`` for both, and at most 0.6 with ``forkserver`` for ours and ``spawn`` for the suite
written by hand.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from conditions import progress, scratch_project
from figures import add_option, record, recording

SIZES = tuple(1024 * k for k in range(1, 12))
"""Small: asv draws arrays again before every sample of a suite written by hand, and what that costs
with large ones would be to our credit."""

WAYS = (
    ("by_hand", "spawn"),
    ("declared", "spawn"),
    ("declared", "forkserver"),
    ("plain", "spawn"),
    ("plain", "forkserver"),
)
PROJECTS = ("by_hand", "declared", "plain")
TARGETS = {WAYS[1]: "   target <= 1.05", WAYS[2]: "   target <= 0.6"}

KERNELS = """\
import numpy as np
from numba import njit


def add_numpy(a, b, out):
    np.add(a, b, out=out)


def scale_numpy(a, b, out):
    np.multiply(a, 2, out=out)


def axpy_numpy(a, b, out):
    np.multiply(a, 3, out=out)
    out += b


@njit(cache=True)
def add_numba(a, b, out):
    for i in range(a.size):
        out[i] = a[i] + b[i]


@njit(cache=True)
def scale_numba(a, b, out):
    for i in range(a.size):
        out[i] = 2 * a[i]


@njit(cache=True)
def axpy_numba(a, b, out):
    for i in range(a.size):
        out[i] = 3 * a[i] + b[i]
"""

NAMES = ("add", "scale", "axpy")

SUITE = """\
version: 1
suite: {name}
kernels:
  {name}:
    sizes: {{n: {sizes}}}
    arrays:
      a: {{shape: [n], dtype: float32, fill: normal}}
      b: {{shape: [n], dtype: float32, fill: normal}}
      out: {{shape: [n], dtype: float32, intent: out}}
    call: [a, b, out]
    check: {{atol: 1.0e-5}}
    sampling: {{number: 1, rounds: {rounds}, repeat: {repeat}, warmup_time: {warm_up}}}
    implementations:
      numpy: {{function: "{module}:{name}_numpy"}}
      numba: {{function: "{module}:{name}_numba"}}
"""

BY_HAND = """\
import numpy as np

import vector_kernels


class _Vectors:
    params = [{sizes}]
    param_names = ["n"]
    rounds, repeat, warmup_time = {rounds}, {repeat}, {warm_up}

    def setup(self, n):
        random = np.random.default_rng(1)
        self.a = random.standard_normal(n, np.float32)
        self.b = random.standard_normal(n, np.float32)
        self.out = np.empty_like(self.a)
        self.run()  # compiles

"""

CLASS = """\

class {title}(_Vectors):
    def run(self):
        vector_kernels.{function}(self.a, self.b, self.out)

    def time_run(self, n):
        self.run()
"""

DOOR = """\
from pathlib import Path

from gpubench.asv_benchmarks import benchmark_classes

globals().update(benchmark_classes(Path(__file__).resolve().parent.parent / "suites"))
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3, help="asv runs of each kind, in turn")
    parser.add_argument("--sizes", type=int, default=len(SIZES), help="how many sizes of 11")
    parser.add_argument("--rounds", type=int, default=2, help="asv's rounds")
    parser.add_argument("--repeat", type=int, default=10, help="samples in a round")
    parser.add_argument("--warm-up", type=float, default=0.1, help="seconds, asv's warmup_time")
    add_option(parser)
    given = parser.parse_args()
    with recording(given, "asv_runner"):
        with scratch_project(files(given)) as folder:
            prepare(folder)
            show = progress(given.runs * len(WAYS), "asv run")
            seconds: dict[tuple[str, str], list[float]] = {way: [] for way in WAYS}
            for number in range(given.runs):
                for place, way in enumerate(WAYS):
                    samples = given.rounds * given.repeat
                    seconds[way].append(whole_run(folder, *way, 6 * given.sizes, samples))
                    show(number * len(WAYS) + place + 1)
        report(seconds, 6 * given.sizes)


def files(given: argparse.Namespace) -> dict[str, str]:
    """Return the files of all projects."""
    values = {
        "sizes": list(SIZES[: given.sizes]),
        "rounds": given.rounds,
        "repeat": given.repeat,
        "warm_up": given.warm_up,
    }
    late = KERNELS.replace("from numba import", "from gpubench.kernels.lazy_numba import")
    made = {"vector_kernels.py": KERNELS, "late_kernels.py": late}
    for project, module in (("declared", "late_kernels"), ("plain", "vector_kernels")):
        made[f"{project}/benchmarks/__init__.py"] = ""
        made[f"{project}/benchmarks/suites.py"] = DOOR
        for name in NAMES:
            suite = SUITE.format(name=name, module=module, **values)
            made[f"{project}/suites/{name}.yaml"] = suite
    classes = (
        CLASS.format(title=f"{name}_{kind}".title().replace("_", ""), function=f"{name}_{kind}")
        for name in NAMES
        for kind in ("numpy", "numba")
    )
    made["by_hand/benchmarks/__init__.py"] = ""
    made["by_hand/benchmarks/vectors.py"] = BY_HAND.format(**values) + "".join(classes)
    configuration = {"version": 1, "project": "p", "repo": ".", "branches": ["HEAD"]}
    for project in PROJECTS:
        plugins = [] if project == "by_hand" else [".gpubench.asv_plugin"]
        results = {"environment_type": "existing", "results_dir": ".asv/results"}
        made[f"{project}/asv.conf.json"] = json.dumps(
            {**configuration, **results, "plugins": plugins}
        )
    return made


def prepare(folder: Path) -> None:
    """Repositories for asv, a machine, and Numba's disk cache filled."""
    for project in PROJECTS:
        for command in ("init --quiet", "add --all", "commit --quiet --message start"):
            run(["git", *IDENTITY, *command.split()], folder, folder / project)
    run([*ASV, "machine", "--yes"], folder, folder / "by_hand")
    run([sys.executable, "-c", FILL], folder, folder)


def whole_run(folder: Path, project: str, method: str, cases: int, samples: int) -> float:
    """Seconds of one ``asv run``; stops where it did not take so many samples of all cases."""
    for results in (folder / project / ".asv").glob("results/*/*"):
        if results.name != "machine.json":
            results.unlink()
    command = [*ASV, "run", "--python=same", f"--launch-method={method}", "--set-commit-hash=HEAD"]
    start = time.perf_counter()
    output = run(command, folder, folder / project)
    seconds = time.perf_counter() - start
    taken = samples_taken(folder / project)
    if taken != [samples] * cases:
        raise SystemExit(f"{project} took {taken}, not {samples} for {cases} cases:\n{output}")
    return seconds


def samples_taken(project: Path) -> list[int]:
    """Samples of each case, from asv's results."""
    (path,) = project.glob(".asv/results/*/*-existing-*.json")
    content = json.loads(path.read_text())
    place = content["result_columns"].index("stats_repeat")
    return [taken for row in content["results"].values() for taken in row[place] if taken]


def run(command: list[str], folder: Path, where: Path) -> str:
    environment = {
        **os.environ,
        "HOME": str(folder),
        "PYTHONPATH": str(folder),
        "ASV_PYTHONPATH": str(folder),
        # asv sets these in environments of its own; with them our record is written too.
        "ASV_CONF_DIR": str(where),
        "ASV_COMMIT": 40 * "0",
        "ASV_ENV_NAME": "figures",
        "COLUMNS": "200",
    }
    done = subprocess.run(command, capture_output=True, text=True, cwd=where, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def report(seconds: dict[tuple[str, str], list[float]], cases: int) -> None:
    print(f"{cases} cases, median of {len(seconds[WAYS[0]])} runs")
    for (project, method), taken in seconds.items():
        listed = ", ".join(f"{one:.1f}" for one in taken)
        print(f"{project:9} {method:11} {statistics.median(taken):7.1f} s ({listed})")
        what = f"{project.replace('_', ' ')}, {method}"
        record("asv_run", what, {"seconds": f"{statistics.median(taken):.1f}"})
    hand = seconds["by_hand", "spawn"]
    for way in WAYS[1:]:
        ratios = [own / other for own, other in zip(seconds[way], hand, strict=True)]
        middle = statistics.median(ratios)
        print(f"{way[0]} {way[1]} over by_hand spawn: {middle:.3f}{TARGETS.get(way, '')}")
        record("asv_run", ", ".join(way), {"over by hand, spawn": f"{middle:.3f}"})


ASV = [sys.executable, "-m", "asv"]
IDENTITY = ["-c", "user.name=figures", "-c", "user.email=figures@localhost"]
FILL = """
import numpy as np, late_kernels, vector_kernels
for k in (late_kernels, vector_kernels):
    for f in (k.add_numba, k.scale_numba, k.axpy_numba):
        f(*np.ones((3, 8), np.float32))
"""

if __name__ == "__main__":
    main()
