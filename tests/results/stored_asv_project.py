"""Result files of an asv project that knows nothing of gpubench, in both formats of asv."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpubench.results import Pair

PAIR = Pair("sums", "norm", "linalg.Norm.time_numpy", "linalg.Norm.time_numba")
PARAMETERS: dict[str, dict[str, list[object]]] = {
    PAIR.baseline: {"n": [64, 1024], "dtype": ["float32", "float64"]},
    PAIR.candidate: {"dtype": ["float32", "float64"], "threads": [1, 2], "n": [64, 1024]},
    "linalg.track_error": {},
}
KINDS = {"track_": "track", "peakmem_": "peakmemory", "mem_": "memory"}
COLUMNS = [
    "result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b",
    "stats_q_25", "stats_q_75", "stats_number", "stats_repeat",
]  # fmt: skip
DAY = 86_400_000
"""Milliseconds."""


def write_benchmarks(directory: Path) -> None:
    """asv's ``benchmarks.json``, format 2."""
    content: dict[str, Any] = {"version": 2}
    for name, parameters in PARAMETERS.items():
        content[name] = {
            "name": name,
            "type": next((kind for part, kind in KINDS.items() if part in name), "time"),
            "unit": "bytes" if "mem_" in name else "seconds",
            "param_names": list(parameters),
            "params": [[repr(value) for value in values] for values in parameters.values()],
            "code": f"def {name.rpartition('.')[2]}(self): ...",
            "version": "v1",
        }
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "benchmarks.json").write_text(json.dumps(content))


def stored_params(name: str) -> list[list[str]]:
    return [[repr(value) for value in values] for values in PARAMETERS[name].values()]


def commit_hash(day: int) -> str:
    """Later commits have smaller hashes, so that the order of file names is not that of dates."""
    return f"{2**32 - day:08x}{day:032x}"


def write_format_2(directory: Path, day: int, values: Mapping[str, list[float | None]]) -> None:
    """As asv 0.6 writes it: rows of columns, what is empty at the end left out."""
    rows = {}
    for name, medians in values.items():
        low = [None if m is None else 0.98 * m for m in medians]
        high = [None if m is None else 1.02 * m for m in medians]
        row = [medians, stored_params(name), "v1", day * DAY, 1.0, low, high, low, high]
        rows[name] = [*row, [1] * len(medians), [10] * len(medians)]
    content = {
        "version": 2, "commit_hash": commit_hash(day), "env_name": "virtualenv-py3.11",
        "date": day * DAY, "params": {"machine": "box"}, "python": "3.11", "requirements": {},
        "env_vars": {}, "result_columns": COLUMNS, "results": rows, "durations": {},
    }  # fmt: skip
    _write(directory, day, content)


def write_format_1(
    directory: Path,
    day: int,
    values: Mapping[str, list[float | None]],
    versions: Mapping[str, str] | None = None,
) -> None:
    """As asv 0.3 wrote it: a dictionary for each benchmark, without the time at which it began."""
    results = {}
    for name, medians in values.items():
        stats = [
            m and {"ci_99": [0.98 * m, 1.02 * m], "q_25": m, "q_75": m, "number": 1, "repeat": 10}
            for m in medians
        ]
        results[name] = {"result": medians, "params": stored_params(name), "stats": stats}
    content = {
        "version": 1, "commit_hash": commit_hash(day), "env_name": "virtualenv-py3.11",
        "date": day * DAY, "params": {"machine": "box"}, "python": "3.11", "requirements": {},
        "results": results, "benchmark_version": versions or {},
    }  # fmt: skip
    _write(directory, day, content)


def _write(directory: Path, day: int, content: Mapping[str, Any]) -> None:
    folder = directory / "box"
    folder.mkdir(parents=True, exist_ok=True)
    machine = {"machine": "box", "cpu": "Example 9000", "version": 1}
    (folder / "machine.json").write_text(json.dumps(machine))
    path = folder / f"{content['commit_hash'][:8]}-virtualenv-py3.11.json"
    path.write_text(json.dumps(content))
