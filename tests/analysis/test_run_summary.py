"""The summary at the end of ``asv run`` and ``make bench``."""

from __future__ import annotations

from pathlib import Path

import pytest
from result_files import CommitFiles

from gpubench import asv_plugin
from gpubench.analysis.run_summary import summarize
from gpubench.measure.asv_settings import AsvSettings
from gpubench.results import CaseName, Ratio, Row
from gpubench.statuses import Status
from gpubench.tables.run_summary import MAX_PROBLEMS, summary_lines


def row(implementation: str, n: int, status: Status = "ok", **fields: object) -> Row:
    name = CaseName("sums", "total", implementation, "kernel", f"n={n}")
    return Row(name, status, **fields)  # type: ignore[arg-type]


def compared(n: int, speedup: float, **fields: object) -> Row:
    interval = Ratio(speedup, speedup * 0.9, speedup * 1.1)
    return row("numba", n, seconds=1.0, value=1.0, speedup=interval, **fields)


def test_the_best_and_the_worst_speedup_have_intervals_and_name_their_case() -> None:
    lines = summary_lines(summarize([compared(8, 0.5), compared(16, 4.0), compared(32, 2.0)], 0))

    assert lines == [
        "3 cases compared with the baseline: 2 faster, 1 slower",
        "best speedup 4.00\N{MULTIPLICATION SIGN} (3.60\N{EN DASH}4.40\N{MULTIPLICATION SIGN}): "
        "sums::total numba n=16",
        "worst speedup 0.500\N{MULTIPLICATION SIGN} "
        "(0.450\N{EN DASH}0.550\N{MULTIPLICATION SIGN}): sums::total numba n=8",
        "next: gpubench report",
    ]


def test_a_disturbed_case_is_counted_and_is_neither_best_nor_worst() -> None:
    summary = summarize([compared(8, 9.0, disturbed=0.8), compared(16, 4.0)], 0)

    assert summary.best is not None and summary.best.name.case == "n=16"
    assert summary.worst is None
    assert "1 case disturbed by other work; measure again on a quiet machine" in summary_lines(
        summary
    )


def test_where_all_are_disturbed_the_best_says_so() -> None:
    lines = summary_lines(summarize([compared(8, 9.0, disturbed=0.8)], 0))

    assert lines[1].endswith(", beside other work): sums::total numba n=8")


def test_cuda_in_software_is_checked_and_counted() -> None:
    rows = [row("cuda", n, "verified", reason="no times in software") for n in (8, 16, 32)]

    assert summary_lines(summarize(rows, 2)) == [
        "3 CUDA cases checked in software, 2 counted: no times",
        "next: gpubench report",
    ]


@pytest.mark.parametrize("status", ["wrong", "failed", "killed", "timed_out"])
def test_cases_of_one_reason_are_one_line_with_the_command_that_shows_more(status: Status) -> None:
    rows = [row("numba", n, status, reason="why\nTraceback") for n in (8, 16)]
    rows.append(row("numba", 32, "skipped", reason="no GPU"))

    first, second, _ = summary_lines(summarize(rows, 0))

    words = status.replace("_", " ")
    command = "gpubench verify sums::total -a implementation=numba -a n=8"
    assert first == f"2 cases {words}: why; see `{command}`"
    assert second == "1 case skipped: no GPU"


def test_many_reasons_are_shortened() -> None:
    rows = [row("numba", n, "failed", reason=f"{n} {'x' * 5_000}") for n in range(MAX_PROBLEMS + 2)]

    lines = summary_lines(summarize(rows, 0))

    assert len(lines) == MAX_PROBLEMS + 2
    assert lines[-2] == "2 more reasons in the report"
    assert max(map(len, lines)) < 920


def test_a_run_without_cases_names_the_next_command() -> None:
    assert summary_lines(summarize([], 0)) == ["next: gpubench report"]


def test_the_plugin_sums_up_the_cases_of_its_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numpy, numba = (f"suites.total__{name}.time_kernel" for name in ("numpy", "numba"))
    for machine, commit in (("here", "a" * 40), ("here", "b" * 40), ("there", "b" * 40)):
        files = CommitFiles(tmp_path / ".asv/results", commit, 1_767_225_600, machine)
        for benchmark, seconds in ((numpy, 4.0), (numba, 1.0)):
            files.time(benchmark, "n=8", seconds).time(benchmark, "n=16", seconds)
            files.record(benchmark, "n=8").record(benchmark, "n=16")
        files.write()
    settings = AsvSettings(results_dir=str(tmp_path / ".asv/results"), machine="here")
    monkeypatch.setattr(asv_plugin, "asv_settings", lambda: settings)
    monkeypatch.chdir(tmp_path)

    found = asv_plugin._summary({files.record_path.name: {(numpy, "n=8"), (numba, "n=8")}})

    assert found.tally == {"faster": 1, "baseline": 1}
    assert found.best is not None and found.best.name.case == "n=8"
