"""Both formats of asv's result files, and the NaN in them, are read as asv reads them."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asv.results import Results
from stored_asv_project import commit_hash, write_format_2

from gpubench.names import BenchmarkName
from gpubench.results import Pair
from gpubench.results.asv_files import ResultFile, read_result_file
from gpubench.results.asv_json import UnreadableFile
from gpubench.results.pairs import BenchmarkPairs

NAME = "linalg.Norm.time_numpy"
PLACE = BenchmarkName("linalg", "Norm.time_numpy", "time", "kernel")
PAIRS = BenchmarkPairs((Pair(PLACE.suite, PLACE.kernel, NAME, ""),))
STATS = {"ci_99": [0.9876543, 1.0123456], "q_25": 0.99, "q_75": 1.01, "number": 3, "repeat": 10}


def read(path: Path, content: object) -> ResultFile:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return read_result_file(path, "box", PAIRS)


def format_1(stored: object) -> dict[str, Any]:
    return {
        "version": 1, "commit_hash": commit_hash(1), "env_name": "env", "date": 86_400_000,
        "params": {"machine": "box"}, "python": "3.11", "requirements": {"numpy": ""},
        "results": {NAME: stored}, "benchmark_version": {NAME: "v1"}, "started_at": {NAME: 5000},
    }  # fmt: skip


@pytest.mark.parametrize(
    "stored",
    [
        1.0,
        None,
        math.nan,
        {"result": 1.0, "stats": STATS},
        {"result": [1.0]},
        {"result": [1.0, None], "params": [["1", "2"]], "stats": [STATS, None]},
        {"result": [1.0, 2.0], "params": [["1", "2"]], "stats": None},
        {"result": [None, math.nan], "params": [["1", "2"]], "stats": [None, None]},
        {"result": [1.0], "params": [["1"]], "stats": [{"ci_99": [0.9, 1.1]}]},
    ],
)
def test_format_1_is_read_as_what_asv_makes_of_it(tmp_path: Path, stored: object) -> None:
    content = format_1(stored)
    by_asv = read(
        tmp_path / "asv.json", {"version": 2, **Results.update_to_2(copy.deepcopy(content))}
    )

    ours = read(tmp_path / "ours.json", content)

    # asv rounds what comes from statistics to five digits.
    assert ours.values == pytest.approx(by_asv.values, rel=1e-4, nan_ok=True)
    assert np.array_equal(ours.missing, by_asv.missing)
    assert (ours.benchmarks, ours.params) == (by_asv.benchmarks, by_asv.params)
    assert ours.faults == by_asv.faults == ()
    assert len(ours.benchmarks) == 1


def test_an_environment_without_a_name_has_the_one_that_asv_gives_it(tmp_path: Path) -> None:
    content = format_1(1.0)
    del content["env_name"]
    by_asv = Results.update_to_2(copy.deepcopy(content))["env_name"]

    assert read(tmp_path / "ours.json", content).environment == by_asv == "py3.11-numpy"


@pytest.mark.parametrize("stored", [{}, {"result": [1.0], "stats": [{"number": 1}]}])
def test_a_damaged_format_1_is_refused(tmp_path: Path, stored: object) -> None:
    with pytest.raises(UnreadableFile, match="its format 1 cannot be converted"):
        read(tmp_path / "ours.json", format_1(stored))


@pytest.mark.parametrize("text", ["[1, NaN]", "NaN", '"NaN", NaN', '\\"NaN\\', "\\"])
def test_nan_is_not_applicable_as_a_number_and_itself_in_a_text(tmp_path: Path, text: str) -> None:
    write_format_2(tmp_path, 1, {})
    (path,) = tmp_path.glob("box/*-*.json")
    content = json.loads(path.read_text())
    content["env_name"] = text
    nothing = [None, math.nan]
    content["results"] = {NAME: [[math.nan, 1.0], [[text, "2"]], text, 1.0, 1.0, nothing, nothing]}

    result = read(path, content)

    (benchmark,) = result.benchmarks
    assert (result.environment, benchmark.version) == (text, text)
    assert benchmark.cases[0] == f"param1={text}".replace(", ", ",\N{OPEN BOX}")
    assert np.isnan(result.values[:, 0]).all()
    assert result.values[:3, 1].tolist() == [1.0, -math.inf, math.inf]
    assert not result.missing.any()
