"""``gpubench export``: each format as its program reads it."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result
from result_files import CommitFiles

from gpubench.cli import main
from gpubench.cli.exporting import EXPORT_FORMATS
from gpubench.record import LaunchRecord
from gpubench.results import CaseName, Commit, Row, Setup, Snapshot
from gpubench.tables import export_formats

NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"
CUDA = "suites.add__numba_cuda.time_kernel"

BENCHER_SCHEMA = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {
            "type": "object",
            "required": ["value"],
            "additionalProperties": False,
            "properties": {
                name: {"type": "number"} for name in ("value", "lower_value", "upper_value")
            },
        },
    },
}
"""As Bencher's documentation has it, and stricter: without properties that it does not know."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    results = tmp_path / ".asv" / "results"
    old = CommitFiles(results, "a" * 40, 86_400).time(NUMPY, "n=4", 9.0)
    old.record(NUMPY, "n=4", backend="numpy", device="cpu").write()
    new = CommitFiles(results, "b" * 40, 172_800).time(NUMPY, "n=4", 4e-6)
    new.record(NUMPY, "n=4", backend="numpy", device="cpu")
    new.rounds(NUMPY, "n=4", 3.9e-6, 3.95e-6, 4e-6, 4.05e-6, 4.2e-6)
    new.time(NUMBA, "n=4", 3e-7)
    new.record(NUMBA, "n=4", device="cpu", baseline_benchmark=NUMPY, baseline_case="n=4")
    new.missing(NUMBA, "n=8").record(NUMBA, "n=8", status="wrong", reason="y[3] is 1, not 2")
    new.not_applicable(NUMBA, "n=16").record(NUMBA, "n=16", status="skipped", reason="too large")
    new.missing(CUDA, "n=4").record(CUDA, "n=4", status="verified", device="cuda:0")
    counts = {"global_load_sectors": 12, "ptx_instructions": 40, "ptx_thread_instructions": 1_280}
    new.counts(CUDA, "n=4", LaunchRecord("add", (1, 1, 1), (4, 1, 1), counts=counts)).write()
    return tmp_path


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["export", *arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output
    return result


def test_bencher_gets_nanoseconds_intervals_and_costs(project: Path) -> None:
    content = json.loads(run("--format", "bencher").stdout)

    jsonschema.validate(content, BENCHER_SCHEMA)
    assert content[f"{NUMPY} n=4"] == {
        "latency": {"value": 4000, "lower_value": 3900, "upper_value": 4200}
    }
    assert content[f"{NUMBA} n=4"]["latency"]["value"] == 300
    costs = content[f"{CUDA} n=4"]
    assert costs["global-load-sectors"] == {"value": 12}
    assert costs["ptx-instructions"] == {"value": 40}
    assert "latency" not in costs


def test_cases_without_a_number_are_left_out_and_the_failed_named(project: Path) -> None:
    result = run("--format", "bencher")

    assert f"{NUMBA} n=8" not in json.loads(result.stdout)
    assert result.stderr.splitlines() == [
        f"left out {NUMBA} n=8: wrong: y[3] is 1, not 2",
        "left out 1 case without a number: skipped",
    ]


def test_the_action_gets_a_list_of_smaller_is_better(project: Path) -> None:
    entries = {one["name"]: one for one in json.loads(run("--format", EXPORT_FORMATS[1]).stdout)}

    numpy = entries[f"{NUMPY} n=4"]
    assert (numpy["unit"], numpy["value"], numpy["range"]) == ("ns", 4000, "± 200")
    assert numpy["extra"] == "device: cpu"
    assert "speedup: " in entries[f"{NUMBA} n=4"]["extra"]
    cost = entries[f"{CUDA} n=4 [ptx_instructions]"]
    assert (cost["unit"], cost["value"]) == ("PTX instructions", 40)
    assert all({*one} >= {"name", "unit", "value"} for one in entries.values())


def case(name: CaseName, **fields: object) -> export_formats.ExportedCase:
    snapshot = Snapshot(1, Setup('m"1\\', "env\n2"), Commit("c" * 40, 0.0))
    row = Row(name, "ok", **fields)  # type: ignore[arg-type]
    return export_formats.ExportedCase(snapshot, row, {}, name.benchmark.asv_name)


def test_numbers_that_are_not_finite_are_left_out() -> None:
    names = [CaseName("s", "k", "i", "kernel", f'name="{n}\\\n"') for n in range(4)]
    cases = [
        case(names[0], seconds=2.0, low=0.0, high=math.inf),
        case(names[1], seconds=math.nan),
        case(names[2], seconds=math.inf),
        case(names[3], seconds=1.0, low=math.nan, high=1.0),
    ]

    assert [*json.loads(export_formats.bencher_json(cases)).values()] == [
        {"latency": {"value": 2e9}},
        {"latency": {"value": 1e9}},
    ]
    assert all("range" not in one for one in json.loads(export_formats.action_json(cases)))


def test_csv_has_every_case_with_its_status_and_the_columns_of_query(project: Path) -> None:
    rows = [*csv.DictReader(StringIO(run("--format", "csv").stdout))]

    assert {row["status"] for row in rows} == {"ok", "wrong", "skipped", "verified"}
    assert {row["commit"] for row in rows} == {"b" * 40}
    numpy = next(row for row in rows if row["implementation"] == "numpy")
    assert float(numpy["seconds"]) == 4e-6
    assert json.loads(numpy["rounds"]) == [3.9e-6, 3.95e-6, 4e-6, 4.05e-6, 4.2e-6]
    assert next(row["reason"] for row in rows if row["status"] == "skipped") == "too large"


def test_another_commit_is_named_as_git_names_it(project: Path) -> None:
    content = json.loads(run("aaaaaaaa", "--format", "bencher").stdout)
    assert content[f"{NUMPY} n=4"]["latency"]["value"] == 9e9
    assert "the newest results in .asv/results are of" in run(
        "cccccccc", "--format", "csv", code=2
    ).stderr.replace("\n", " ").replace("The newest", "the newest")


def test_a_format_without_machines_takes_one_machine(project: Path) -> None:
    other = CommitFiles(project / ".asv/results", "b" * 40, 172_800, machine="laptop")
    other.time(NUMPY, "n=4", 1.0).record(NUMPY, "n=4", device="cpu").write()

    refused = run("--format", "bencher", code=2).stderr
    assert "bbbbbbbb has results of 2 machines or environments" in refused
    assert "--machine laptop --environment virtualenv-py3.11" in refused
    content = json.loads(run("--format", "bencher", "--machine", "laptop").stdout)
    assert content[f"{NUMPY} n=4"]["latency"]["value"] == 1e9
    rows = [*csv.DictReader(StringIO(run("--format", "csv").stdout))]
    assert {row["machine"] for row in rows} == {"laptop", "runner"}


def test_no_results_say_what_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        "there are no results to export; `asv run` measures"
        in run("--format", "csv", code=2).stderr
    )


def test_a_file_is_replaced_as_a_whole_and_nothing_else_left(project: Path) -> None:
    (project / "out.json").write_text("before" * 1000)
    assert run("--format", "bencher", "--output", "out.json").stdout == "wrote out.json\n"
    assert "latency" in (project / "out.json").read_text()
    assert [path.name for path in project.iterdir() if "out.json" in path.name] == ["out.json"]


def test_a_name_that_is_too_long_for_bencher_keeps_both_ends() -> None:
    name = CaseName("s", "k", "i", "kernel", "x" * 2000 + "=end")
    (written,) = json.loads(export_formats.bencher_json([case(name, seconds=1.0)]))
    assert len(written) == export_formats.MAX_BENCHER_NAME
    assert written.endswith("=end")


def test_the_command_offers_the_formats_that_exist() -> None:
    assert (*export_formats.WRITERS, "csv") == EXPORT_FORMATS


@pytest.mark.parametrize("writer", export_formats.WRITERS.values())
def test_a_disturbed_time_is_no_number_for_another_program(
    writer: Callable[[Sequence[export_formats.ExportedCase]], str],
) -> None:
    quiet, loud = (CaseName("s", "k", name, "kernel", "n=4") for name in ("quiet", "loud"))
    cases = [case(quiet, seconds=2.0, disturbed=0.01), case(loud, seconds=9.0, disturbed=0.9)]

    written = writer(cases)

    assert "quiet" in written and "loud" not in written
    (said,) = export_formats.left_out(cases)
    assert said.startswith("left out 1 time that other work on the machine disturbed: ")
