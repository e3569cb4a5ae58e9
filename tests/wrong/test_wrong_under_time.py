"""``gpubench time`` over a folder of wrong kernels: each ends as it has to, and none has a time."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from expectations import FOLDER, OUTCOMES, SUITES, otherwise, outcome

Cases = Mapping[str, Mapping[str, Any]]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    """All cases of all suites as ``time --json`` prints them, by suite, kernel, implementation."""
    project = tmp_path_factory.mktemp("wrong") / "project"
    shutil.copytree(FOLDER, project, ignore=shutil.ignore_patterns("__pycache__"))
    return {name: case for suite in SUITES for name, case in timed(project, suite)}


def timed(project: Path, suite: str) -> list[tuple[str, Mapping[str, Any]]]:
    command = [sys.executable, "-m", "gpubench", "time", suite, "--json"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300)
    try:
        listed = json.loads(done.stdout)["cases"]
    except ValueError:
        raise AssertionError(f"{suite} ended with {done.returncode}\n{done.stderr}") from None
    return [(" ".join((suite, c["kernel"], c["implementation"])), c) for c in listed]


def test_at_least_forty_kinds_of_wrong_kernels_are_tried(cases: Cases) -> None:
    assert sum(case["status"] != "ok" for case in cases.values()) >= 40
    for name in OUTCOMES:
        assert name in cases or name.removesuffix("*") + "numpy" in cases, name


def test_each_ends_as_it_has_to(cases: Cases) -> None:
    unlike = otherwise(cases, {name: outcome(name) for name in cases})
    assert not unlike, unlike


def test_nothing_but_what_is_right_has_a_time(cases: Cases) -> None:
    for name, case in cases.items():
        if outcome(name).status != "ok":
            assert (case["seconds"], case["speedup"]) == (None, None), name


def test_what_depends_on_its_inputs_gets_fresh_ones_for_each_run(cases: Cases) -> None:
    for name in ("later sines skips_what_is_done", "later order sorts_what_may_be_sorted"):
        assert "fresh inputs for each run" in cases[name]["method"], name


def test_bad_manners_end_with_their_case(cases: Cases) -> None:
    """A case finds folder, output, threads and floating-point errors as the first did."""
    first, last = cases["manners double numpy"], cases["manners afterwards numpy"]
    threads = "numpy_blas_threads"
    assert last["conditions"].get(threads) == first["conditions"].get(threads)
