"""What the page of changes says, and why."""

# ruff: noqa: RUF001 (the pages write multiplication signs and en dashes)

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from result_files import CommitFiles

from gpubench.report import changes
from gpubench.report.changes import ChangesPage
from gpubench.report.render import write_report
from gpubench.report.site import Site
from gpubench.results import Table, open_table
from gpubench.results.acknowledgement import Acknowledgement

NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"

Times = Callable[[int], float]


def history(
    directory: Path, numba: Times, numpy: Times = lambda _: 4.0, commits: int = 12, **facts: Times
) -> Table:
    """Two cases over so many commits; seconds and facts by the commit's index."""
    for index in range(commits):
        files = CommitFiles(directory, f"{index:x}" * 40, (index + 1) * 86_400)
        files.facts(python="3.11.9", **{name: fact(index) for name, fact in facts.items()})
        files.time(NUMPY, "n=4", numpy(index)).time(NUMBA, "n=4", numba(index))
        files.record(NUMPY, "n=4", device="cpu", backend="numpy")
        files.record(NUMBA, "n=4", device="cpu", backend="numba",
                     baseline_benchmark=NUMPY, baseline_case="n=4")  # fmt: skip
        files.write()
    return open_table(directory)


def page_of(results: Table) -> ChangesPage:
    site = Site(results)
    return changes.build(site.histories[0], site)


def slower_since(first: int, factor: float = 1.5) -> Times:
    return lambda index: factor if index >= first else 1.0


def test_a_case_without_a_time_is_not_counted_as_judged(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 86_400).time(NUMPY, "n=4", 4.0)
    files.missing(NUMBA, "n=4").write()

    page = page_of(open_table(tmp_path))

    assert page.verdict == "Not judged yet: 2 cases over 1 commit."
    assert (page.note or "").startswith("No case is judged yet")


def test_a_step_is_told_with_factor_interval_commits_and_comparison(tmp_path: Path) -> None:
    page = page_of(history(tmp_path, slower_since(7)))

    assert page.verdict == "1 change in 2 cases over 12 commits: 1 slower."
    ((at,),) = [page.commits]
    (row,) = at.rows
    assert (at.commit.short, row.kind, row.change.slower) == (
        "77777777",
        "step; by times alone",
        True,
    )
    assert (row.change.old, row.change.new) == (1.0, 1.5)
    assert row.ratio.has_interval
    assert row.comparison == (
        "compare.html#a=66666666,runner,virtualenv-py3.11&b=77777777,runner,virtualenv-py3.11"
    )
    assert [value and round(value.value, 2) for value in row.speedups] == [4.0, 2.67]


def test_a_kernel_that_became_slower_is_the_cause_itself(tmp_path: Path) -> None:
    page = page_of(history(tmp_path, slower_since(7)))

    (row,) = page.commits[0].rows
    assert row.why == (
        "The kernel became slower; its baseline did not, and what is recorded of the environment "
        "did not change."
    )
    assert page.causes == {"the kernel": 1}


def test_a_baseline_that_became_faster_says_whose_speedups_fell(tmp_path: Path) -> None:
    page = page_of(history(tmp_path, lambda _: 1.0, lambda i: 2.0 if i >= 7 else 4.0))

    (row,) = page.commits[0].rows
    assert row.why == "The baseline became faster: the speedups of numba fell with it."
    assert page.causes == {"the baseline": 1}
    assert row.speedups == (None, None)


def test_a_changed_environment_is_told_with_the_facts(tmp_path: Path) -> None:
    results = history(tmp_path, slower_since(7), llvmlite=lambda i: 68.0 if i >= 7 else 65.0)

    (row,) = page_of(results).commits[0].rows

    assert row.cause == "environment"
    assert row.why.startswith("The environment changed with it. It became slower; whether the code")
    assert [(fact.label, fact.old, fact.new) for fact in row.facts] == [
        ("llvmlite", "65.0", "68.0")
    ]


def test_a_step_that_was_undone_stays_listed_as_recovered(tmp_path: Path) -> None:
    results = history(tmp_path, lambda i: 1.5 if 5 <= i < 9 else 1.0, commits=14)

    page = page_of(results)

    assert page.verdict == (
        "2 changes in 2 cases over 14 commits: 1 slower (1 recovered since) and 1 faster."
    )
    newest, oldest = page.commits
    assert oldest.rows[0].recovered == newest.commit
    assert newest.rows[0].recovered is None


def test_under_ten_commits_two_that_agree_are_a_step(tmp_path: Path) -> None:
    page = page_of(history(tmp_path, slower_since(3), commits=6))

    (row,) = page.commits[0].rows
    assert row.kind == "step; by times alone"
    assert page.note is None


def test_a_change_at_the_newest_commit_alone_is_called_so(tmp_path: Path) -> None:
    (row,) = page_of(history(tmp_path, slower_since(11))).commits[0].rows

    assert row.kind == "one commit alone, to be checked; by times alone"


def test_cases_that_changed_alike_share_a_row(sample: Table) -> None:
    site = Site(sample)
    (runner,) = [h for h in site.histories if h.setup.machine == "runner"]

    page = changes.build(runner, site)

    assert page.verdict == (
        "8 changes in 192 cases over 12 commits: 4 slower and 4 faster. "
        "4 cases without a time since: wrong, failed or skipped."
    )
    newest, oldest = (commit for commit in page.commits if commit.rows)
    (faster,), (slower,) = newest.rows, oldest.rows
    assert (faster.kernel.label, len(faster.others)) == ("mandelbrot", 3)
    assert (slower.kernel.label, len(slower.others)) == ("vector_add", 3)
    assert slower.others[0] == "vector_add numba_parallel n=262144"


def test_nothing_that_changed_is_said_in_a_sentence(tmp_path: Path) -> None:
    page = page_of(history(tmp_path, lambda _: 1.0))

    assert page.verdict == "No change was found in 2 cases over 12 commits."
    assert (page.commits, page.states) == ((), ())


def test_one_commit_says_what_is_needed(tmp_path: Path) -> None:
    page = page_of(history(tmp_path, lambda _: 1.0, commits=1))

    assert [state.title for state in page.states] == ["One commit so far"]


def test_without_a_record_no_notice_stands_before_the_changes(tmp_path: Path) -> None:
    for index in range(12):
        files = CommitFiles(tmp_path, f"{index:x}" * 40, (index + 1) * 86_400)
        files.time(NUMBA, "n=4", 1.5 if index >= 7 else 1.0).write()

    page = page_of(open_table(tmp_path))

    assert page.states == ()


def test_the_page_is_written_with_every_row_a_link_to_its_comparison(tmp_path: Path) -> None:
    results = history(tmp_path / "results", slower_since(7))

    site = write_report(results, tmp_path / "site").parent

    content = (site / "changes.html").read_text(encoding="utf-8")
    assert "1.50× slower" in content
    assert 'href="compare.html#a=66666666,runner,virtualenv-py3.11&amp;b=77777777' in content


def test_no_row_is_left_out_and_older_ones_are_not_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MAX_ROWS_TOGETHER", 1)
    monkeypatch.setattr(changes, "DRAWN_ROWS", 1)
    results = history(tmp_path, lambda index: 2.0 ** (index // 5), commits=15)

    rows = [row for at in page_of(results).commits for row in at.rows]

    assert [row.change.after.short[0] for row in rows] == ["a", "5"]
    assert [row.change.spark is not None for row in rows] == [True, False]


def test_rows_are_narrowed_by_kernel_commit_direction_and_state_together(tmp_path: Path) -> None:
    results = history(tmp_path, lambda index: 1.5 if 4 <= index < 8 else 1.0)

    listed = [row.listed for at in page_of(results).commits for row in at.rows]

    assert [(row["what"], row["state"], row["commit"]) for row in listed] == [
        (["faster"], ["lasting"], ["88888888"]),
        (["slower"], ["recovered"], ["44444444"]),
    ]
    assert {*map(str, (row["kernel"] for row in listed))} == {"['add']"}


def test_a_change_that_most_cases_share_is_folded_where_all_of_them_are_known(
    tmp_path: Path,
) -> None:
    benchmarks = [f"suites.s__k{index}__numba.time_kernel" for index in range(12)]
    for place in range(12):
        files = CommitFiles(tmp_path, f"{place:x}" * 40, (place + 1) * 86_400)
        for benchmark in benchmarks:
            files.time(benchmark, "n=4", 1.0 if place < 6 else 1.4)
        files.write()
    results = open_table(tmp_path)

    def said(*patterns: str) -> str:
        results.acknowledged = (Acknowledgement("6666666", patterns, "a new compiler", "Ada"),)
        ((row,),) = [at.shared for at in page_of(results).commits]
        return row.acknowledged

    assert said("s.k1*") == ""
    assert said("*") == "acknowledged by Ada: a new compiler"
    html = write_report(results, tmp_path / "html").with_name("changes.html")
    assert "alike 1.40× slower, acknowledged by Ada: a new compiler" in html.read_text()


def test_a_case_that_failed_is_folded_where_that_is_known(tmp_path: Path) -> None:
    for place in range(6):
        files = CommitFiles(tmp_path, f"{place:x}" * 40, (place + 1) * 86_400)
        if place < 3:
            files.time(NUMPY, "n=4", 1.0).write()
        else:
            files.missing(NUMPY, "n=4").write()
    results = open_table(tmp_path)
    results.acknowledged = (Acknowledgement("3333333", ("add",), "needs a GPU now", ""),)

    ((row,),) = [at.statuses for at in page_of(results).commits]

    assert (row.is_worse, row.acknowledged) == (True, "acknowledged: needs a GPU now")
    assert row.listed["state"] == ["acknowledged"]
    html = write_report(results, tmp_path / "html").with_name("changes.html")
    assert "before measured, acknowledged: needs a GPU now" in html.read_text()
