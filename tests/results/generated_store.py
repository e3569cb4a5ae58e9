"""Result files of asv projects as large as NumPy's and SciPy's public ones, without gpubench.

Modelled on https://github.com/numpy/numpy-bench (1,435 files) and
https://github.com/scipy/scipy-bench (1,408 files of thousands of benchmarks): long names,
parameters by the dozen, classes among them, environments of several releases, benchmarks that
appear and vanish, commits without a result, cases that failed or do not apply, versions that
changed, the oldest files in asv's format 1. The same for the same arguments.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

DAY = 86_400_000
"""Milliseconds."""

PAIRS = r"(.*)\.time_scalar_(.*)=\1.time_vector_\2"
"""Pattern of the benchmarks that are generated in pairs."""

AXES: tuple[tuple[str, Sequence[object]], ...] = (
    ("size", (10, 100, 1_000, 10_000, 100_000, 1_000_000)),
    ("dtype", (bool, int, float, complex, np.int8, np.int16, np.float32, np.longdouble)),
    ("shape", ((10, 10), (100, 1_000), (1_000, 1_000), (16, 16, 16))),
    ("method", ("quick'sort", "merge sort", "a very long name of an algorithm, with its options")),
    ("axis", (None, 0, 1, -1)),
    ("density", (0.01, 0.05, 0.1, 0.5)),
    ("order", ("C", "F")),
)
"""Parameters and their values; asv stores the repr of each."""

WORDS = (
    "linear", "sparse", "fourier", "matrix", "signal", "interpolate", "random", "masked", "indexed",
    "contiguous", "strided", "broadcast", "optimize", "cluster", "structured", "polynomial",
)  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """How much a project has measured."""

    title: str
    files: int
    environments: tuple[str, ...]
    benchmarks: int
    series: int
    """In all environments."""
    pairs: int
    """Pairs among the benchmarks."""

    def part(self, share: float) -> Shape:
        """So many of the benchmarks, at all commits."""
        counts = (self.benchmarks, self.series, self.pairs)
        benchmarks, series, pairs = (max(round(share * count), 1) for count in counts)
        return replace(self, benchmarks=benchmarks, series=series, pairs=pairs)


SHAPES = {
    "numpy": Shape(
        "as numpy-bench",
        1_435,
        (
            "virtualenv-py3.7-Cython",
            "virtualenv-py3.8-Cython0.29.30-build-packaging",
            "virtualenv-py3.10-Cython3.0-meson-build",
            "virtualenv-py3.11-Cython3.0-meson-build",
        ),
        benchmarks=900,
        series=100_000,
        pairs=300,
    ),
    "scipy": Shape(
        "as scipy-bench",
        1_400,
        tuple(
            f"conda-py3.{minor}-Cython-numpy{numpy}-pybind11-pythran"
            for minor, numpy in ((8, "1.21.6"), (9, "1.23.5"), (10, "1.26.4"), (11, "2.0.0"))
        ),
        benchmarks=3_000,
        series=100_000,
        pairs=300,
    ),
}


@dataclass(frozen=True)
class Benchmark:
    """One benchmark of such a project."""

    name: str
    kind: str
    """asv's type: ``time``, ``track``, ``peakmemory``."""
    parameters: Mapping[str, Sequence[object]]
    first: float
    last: float
    """Shares of the history between which it is there."""
    version_changes: float
    """Share of the history after which it is of a new version; 0 for most."""

    @property
    def cases(self) -> int:
        return math.prod(map(len, self.parameters.values()))

    @property
    def stored_parameters(self) -> list[list[str]]:
        return [[*map(repr, values)] for values in self.parameters.values()]

    def described(self) -> dict[str, Any]:
        """As asv's ``benchmarks.json`` has it."""
        return {
            "name": self.name, "type": self.kind, "unit": "seconds", "timeout": 60,
            "version": self.version(1.0), "param_names": list(self.parameters),
            "params": self.stored_parameters,
            "code": f"class Generated:\n    def {self.name.rpartition('.')[2]}(self, *args):\n"
            + "        self.function(*self.arrays)\n" * 12,
        }  # fmt: skip

    def version(self, place: float) -> str:
        """A hash in asv's files."""
        is_old = place < self.version_changes
        return f"{random.Random(f'{self.name} {is_old}').getrandbits(256):064x}"


def write_store(shape: Shape, hashes: Sequence[str], results: Path) -> int:
    """Write result files of these commits, oldest first, a day apart; returns how many."""
    chance = random.Random(shape.title)
    benchmarks = list(_benchmarks(shape, chance))
    folder = results / "generated-machine"
    folder.mkdir(parents=True)
    machine = {"machine": folder.name, "arch": "x86_64", "cpu": "Example 9000", "num_cpu": "8",
               "os": "Linux", "ram": "65718468"}  # fmt: skip
    (folder / "machine.json").write_text(json.dumps({**machine, "version": 1}), encoding="utf-8")
    described = {each.name: each.described() for each in benchmarks if each.last == 1}
    (results / "benchmarks.json").write_text(json.dumps({"version": 2, **described}))
    written = 0
    for number, environment in enumerate(shape.environments):
        noise = np.random.default_rng(number)
        count = shape.files * (number + 1) // len(shape.environments) - written
        # An environment is measured for a while, at most commits of that while.
        places = sorted(chance.sample(range(len(hashes)), min(count, len(hashes))))
        series = [_series(each, noise) for each in benchmarks]
        params = {**machine, **dict(zip(("python", "numpy"), _releases(environment), strict=True))}
        for place in places:
            share = place / len(hashes)
            rows = {
                each.name: _row(each, share, base * level ** (share > step), noise)
                for each, (base, level, step) in zip(benchmarks, series, strict=True)
                if each.first <= share <= each.last
            }
            started = (place + 1) * DAY
            content = {
                "commit_hash": hashes[place], "env_name": environment, "date": started,
                "params": params, "python": params["python"], "requirements": {"numpy": ""},
            }  # fmt: skip
            is_old = place < len(hashes) // 5
            content |= (_format_1 if is_old else _format_2)(rows, started)
            path = folder / f"{hashes[place][:8]}-{environment}.json"
            path.write_text(json.dumps(content), encoding="utf-8")
        written += len(places)
    return written


def _releases(environment: str) -> tuple[str, str]:
    """Python and NumPy in the name of an environment."""
    _, python, *others = environment.split("-")
    return python[2:], next((o[5:] for o in others if o.startswith("numpy")), "")


def _benchmarks(shape: Shape, chance: random.Random) -> Iterator[Benchmark]:
    """As many as asked for, with as many cases in all; those in pairs first."""
    left = shape.series // len(shape.environments)
    for number in range(shape.benchmarks):
        words = [WORDS[(number // 16**power) % 16] for power in (0, 1)]
        place = f"bench_{words[0]}.{words[1].title()}Of{WORDS[number % 13].title()}Arrays"
        paired = number < 2 * shape.pairs
        kind = "time" if paired or number % 20 else ("peakmemory", "track")[number // 20 % 2]
        function = {"time": "time", "peakmemory": "peakmem", "track": "track"}[kind]
        if paired:
            place = f"bench_{WORDS[number // 2 % 16]}.{WORDS[number // 32 % 16].title()}Operations"
            function = f"time_{('scalar', 'vector')[number % 2]}_{number // 2:03}"
        else:
            function += f"_{words[0]}_{number:04}_with_a_name_as_long_as_they_are"
        least = left // (shape.benchmarks - number)
        parameters = _parameters(number // 2 if paired else number, least)
        vanishes = not paired and number % 5 == 4
        benchmark = Benchmark(
            f"{place}.{function}",
            kind,
            parameters,
            first=chance.uniform(0, 0.7) if number % 3 == 2 and not paired else 0,
            last=chance.uniform(0.6, 0.95) if vanishes else 1,
            version_changes=chance.uniform(0.2, 0.8) if number % 25 == 24 else 0,
        )
        left -= benchmark.cases
        yield benchmark


def _parameters(number: int, wanted: int) -> dict[str, Sequence[object]]:
    """About so many cases, none to several hundred: by the dozen, and for some far more."""
    chance = random.Random(number)
    wanted = max(round(wanted * chance.choice((0.1, 0.5, 1, 1, 2, 3))), 1)
    parameters: dict[str, Sequence[object]] = {}
    for name, values in chance.sample(AXES, len(AXES)):
        room = wanted // math.prod(map(len, parameters.values()))
        if room > 1:
            parameters[name] = values[:room]
    return parameters


def _series(benchmark: Benchmark, noise: np.random.Generator) -> tuple[Any, Any, float]:
    """Times in seconds of each case, the factor of a step, and where in the history that is; one
    benchmark in ten has one."""
    base = 10 ** noise.uniform(-7, 0, benchmark.cases)
    has_step = noise.random() < 0.1
    level = math.exp(noise.uniform(-0.7, 0.7)) if has_step else 1.0
    return base, level, noise.uniform(0.1, 0.9)


Columns = tuple[list[Any], list[list[str]], str, list[Any], list[Any]]
"""Values, parameters, version, both ends of the intervals."""


def _row(benchmark: Benchmark, share: float, levels: Any, noise: np.random.Generator) -> Columns:
    values = levels * np.exp(noise.normal(0, 0.02, len(levels)))
    widths = 1 + noise.uniform(0.002, 0.03, len(levels))
    fates = noise.random(len(levels))
    columns: list[list[Any]] = []
    for column in (values, values / widths, values * widths):
        shown: list[Any] = [float(f"{value:.5e}") for value in column.tolist()]
        for place in np.flatnonzero(fates < 0.02).tolist():
            shown[place] = None if fates[place] < 0.01 else math.nan
        columns.append(shown)
    version = benchmark.version(share)
    return columns[0], benchmark.stored_parameters, version, columns[1], columns[2]


def _format_2(rows: Mapping[str, Columns], started: int) -> dict[str, Any]:
    """As asv 0.6 writes it."""

    def ends(values: Sequence[Any]) -> list[Any]:
        return [None if value is None or math.isnan(value) else value for value in values]

    return {
        "version": 2, "env_vars": {}, "durations": {},
        "result_columns": [
            "result", "params", "version", "started_at", "duration", "stats_ci_99_a",
            "stats_ci_99_b", "stats_q_25", "stats_q_75", "stats_number", "stats_repeat",
        ],
        "results": {
            name: [
                values, params, version, started, 12.3, ends(low), ends(high), ends(low),
                ends(high), [1] * len(values), [10] * len(values),
            ]
            for name, (values, params, version, low, high) in rows.items()
        },
    }  # fmt: skip


def _format_1(rows: Mapping[str, Columns], _: int) -> dict[str, Any]:
    """As asv 0.3 wrote it."""
    results = {}
    for name, (values, params, _version, low, high) in rows.items():
        stats = [
            None
            if value is None or math.isnan(value)
            else {"ci_99": [a, b], "q_25": a, "q_75": b, "number": 1, "repeat": 10}
            for value, a, b in zip(values, low, high, strict=True)
        ]
        results[name] = {"result": values, "params": params, "stats": stats}
    versions = {name: version for name, (_, _, version, _, _) in rows.items()}
    return {"version": 1, "results": results, "benchmark_version": versions}


def hashes(count: int) -> list[str]:
    """Commits that no repository has, oldest first."""
    chance = random.Random(0)
    return [f"{chance.getrandbits(160):040x}" for _ in itertools.repeat(None, count)]
