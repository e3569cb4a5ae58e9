"""A store of the shape of Django's: 65 benchmarks that are compared with none, with long names, on
one machine."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from gpubench.report.render import write_report
from gpubench.results import open_table

MACHINE, ENVIRONMENT = "ubuntu-latest", "conda-py3.12-Cython-numpy2.0-with-many-requirements"
DAY = 86_400_000
"""Milliseconds."""

COMMITS = 24
WORDS = ["form", "query", "model", "url", "cache", "locale", "admin", "field", "view", "signal"]
VERBS = ["create", "delete_related", "filter", "select_related", "values_list"]
COLUMNS = [
    "result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b",
]  # fmt: skip

TEXTS: dict[str, list[str]] = {
    "backend": ["'django.contrib.sessions.backends.cached_db'", "'signed cookies, no database'"],
    "template": ["'{% extends \"base.html\" %}<b>bold & brave</b>'", "'" + "very_long_" * 12 + "'"],
}
"""Parameters and the reprs of their values: texts, one of them longer than any column."""


def names() -> list[str]:
    """Return asv's names of 65 benchmarks; those of three are no times."""
    made = [
        f"{word}_benchmarks.{word}_{verb}.benchmark.{word.title()}{verb.title().replace('_', '')}"
        f".time_{word}_{verb}"
        for word in WORDS
        for verb in VERBS
    ]
    more = [f"{word}_benchmarks.time_short_{number}" for word in WORDS[:4] for number in range(3)]
    others = ("peakmem_of_all_fixtures", "mem_of_a_form", "track_queries_of_the_admin")
    return [*made, *more, *(f"admin_benchmarks.changelist.benchmark.{name}" for name in others)]


def parameters(name: str) -> dict[str, list[str]]:
    """Return the parameters of a benchmark; some have none, as most of Django's."""
    if "filter" in name:
        return TEXTS
    return {"backend": TEXTS["backend"]} if "values_list" in name else {}


def write_foreign_store(folder: Path) -> Path:
    """Write results and their report below a folder; return the folder of its pages."""
    results = folder / "results"
    (results / MACHINE).mkdir(parents=True)
    facts = {"machine": MACHINE, "cpu": "Example 9000 with a long name at 2.60GHz", "version": 1}
    (results / MACHINE / "machine.json").write_text(json.dumps(facts))
    described: dict[str, Any] = {"version": 2}
    for name in names():
        kind = {"peakmem": "peakmemory", "mem": "memory", "track": "track"}.get(
            name.rpartition(".")[2].partition("_")[0], "time"
        )
        described[name] = {
            "name": name, "type": kind, "unit": "bytes" if "mem" in kind else "seconds",
            "param_names": [*parameters(name)], "params": [*parameters(name).values()],
            "code": f"class Benchmark:\n    def {name.rpartition('.')[2]}(self):\n        ...",
            "version": "v1",
        }  # fmt: skip
    (results / "benchmarks.json").write_text(json.dumps(described))
    for index in range(COMMITS):
        _write_commit(results, index)
    return write_report(open_table(results), folder / "html").parent


def _write_commit(results: Path, index: int) -> None:
    """Every third benchmark changes in the midst, every eleventh fails at the newest commits, every
    thirteenth vanished."""
    chance, rows = random.Random(index), {}
    for place, name in enumerate(names()):
        if place % 13 == 12 and index > 15:
            continue
        params = [*parameters(name).values()]
        cases = 1
        for values in params:
            cases *= len(values)
        level = 10.0 ** (place % 7 - 6) * (1.7 if place % 3 == 0 and index >= 12 else 1.0)
        is_failed = place % 11 == 10 and index > 20
        medians = [None if is_failed else level * chance.gauss(1, 0.004) for _ in range(cases)]
        ends = [[m and share * m for m in medians] for share in (0.99, 1.01)]
        rows[name] = [medians, params, "v1", (index + 1) * DAY, 1.0, *ends]
    content = {
        "version": 2, "commit_hash": f"{index + 1:08x}{index:032x}", "env_name": ENVIRONMENT,
        "date": (index + 1) * DAY, "params": {"machine": MACHINE}, "python": "3.12",
        "requirements": {}, "env_vars": {}, "result_columns": COLUMNS, "results": rows,
        "durations": {},
    }  # fmt: skip
    path = results / MACHINE / f"{content['commit_hash'][:8]}-{ENVIRONMENT}.json"
    path.write_text(json.dumps(content))
