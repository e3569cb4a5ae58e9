"""What the page of comparisons says, its Markdown, and the scripts beside it."""

# ruff: noqa: RUF001 (the pages write multiplication signs and en dashes)

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from result_files import CommitFiles
from unpacked import floats, unpacked

from gpubench.analysis.comparison import SAME, compare_rows
from gpubench.report import compare
from gpubench.report.compare import ComparePage, pair_address, setup_key
from gpubench.report.comparison_columns import baseline_words
from gpubench.report.comparison_view import comparison_view
from gpubench.report.findings import case_words
from gpubench.report.lists import FIRST
from gpubench.report.pull_request import ComparedSetup, escaped, pull_request_comment
from gpubench.report.render import files_of, groups, write_report
from gpubench.report.site import Site
from gpubench.results import Commit, Setup, Snapshot, Table, open_table

NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"


def commit(directory: Path, letter: str, day: int, machine: str = "runner") -> CommitFiles:
    return CommitFiles(directory, letter * 40, day * 86_400, machine)


def three_cases(directory: Path) -> Table:
    """One case slower, one wrong, one the same; the baseline became faster, Numba was updated."""
    old = commit(directory, "a", 1).facts(numba="0.65.0")
    new = commit(directory, "b", 2).facts(numba="0.68.1")
    for files, seconds in ((old, 4.0), (new, 2.0)):
        files.processes(NUMPY, "n=4", seconds)
    for case, before, after in (("n=4", 1.0, 1.5), ("n=8", 1.0, 1.0), ("n=16", 2.0, 2.0)):
        old.processes(NUMBA, case, before)
        new.processes(NUMBA, case, after)
    new.record(NUMBA, "n=16", "wrong", reason="off by | one")
    old.write()
    new.write()
    return open_table(directory)


def page_of(results: Table, machine: str | None = None) -> ComparePage:
    site = Site(results)
    (history, *_) = [h for h in site.histories if machine in (None, h.setup.machine)]
    return compare.build(history, site)


def test_the_newest_commit_is_set_against_the_one_before(tmp_path: Path) -> None:
    page = page_of(three_cases(tmp_path))

    assert page.verdict == (
        "At bbbbbbbb, compared with aaaaaaaa before it, 1 case became slower, 1 case has no time "
        "any more and 1 case became faster."
    )
    assert page.newest is not None
    view = page.newest.comparison
    assert view.title == "bbbbbbbb against aaaaaaaa on runner, virtualenv-py3.11"
    assert view.counts_line == "1 slower, 1 failed, 1 faster and 1 same"
    assert [(fact.label, fact.old, fact.new) for fact in view.facts] == [
        ("Numba", "0.65.0", "0.68.1")
    ]


def test_only_what_differs_is_listed_with_factor_speedups_and_the_baseline_s_change(
    tmp_path: Path,
) -> None:
    page = page_of(three_cases(tmp_path))
    assert page.newest is not None

    slower, failed, faster = page.newest.comparison.rows

    assert (case_words(slower.name), slower.verdict) == ("add numba n=4", "slower")
    assert baseline_words(slower) == "its baseline became 2.00× faster"
    assert slower.old is not None
    assert slower.old.speedup is not None
    assert slower.new is not None
    assert slower.new.speedup is not None
    assert (failed.verdict, failed.note, failed.ratio) == ("failed", "off by | one", None)
    assert failed.new is not None
    assert (failed.new.status, failed.new.seconds, failed.new.speedup) == ("wrong", None, None)
    assert (case_words(faster.name), baseline_words(faster)) == ("add numpy n=4", "")


def test_the_markdown_can_be_pasted_as_it_is(tmp_path: Path) -> None:
    page = page_of(three_cases(tmp_path))
    assert page.newest is not None

    lines = page.newest.markdown.splitlines()

    assert lines[0] == "<!-- gpubench compare -->"
    assert lines[1].startswith(
        "**Wrong or failed: 1 case of add numba.** Slower: 1 case of add numba"
    )
    assert lines[3] == (
        "bbbbbbbb against aaaaaaaa on runner, virtualenv-py3.11. "
        "1 slower, 1 failed, 1 faster and 1 same."
    )
    narrow = "\N{NARROW NO-BREAK SPACE}"
    cells = [line.split(" | ") for line in lines[7:10]]
    assert [[cell[0], *cell[1:2], *cell[3:]] for cell in cells] == [
        [
            "| ▼ slower, sure", "add numba n=4", f"1.00{narrow}s", f"1.50{narrow}s",
            "4.00× → 1.33×", "between runs; its baseline became 2.00× faster |",
        ],
        [
            "| ! failed", "add numba n=16", f"2.00{narrow}s", "wrong", "", "off by \\| one |",
        ],
        [
            "| ▲ faster, sure", "add numpy n=4", f"4.00{narrow}s", f"2.00{narrow}s", "",
            "between runs |",
        ],
    ]  # fmt: skip
    assert cells[0][2].startswith("1.50× slower (1.")
    assert "- Numba: 0.65.0 → 0.68.1" in lines
    assert lines[-4].startswith("Slower and faster: the processes of the two sides")


def test_markdown_takes_nothing_for_markup() -> None:
    assert escaped("a|b\n<img> @someone [x](y) `c`") == (
        "a\\|b \\<img\\> \\@someone \\[x\\](y) \\`c\\`"
    )


def test_a_long_comparison_is_cut_and_says_so(tmp_path: Path) -> None:
    old, new = commit(tmp_path, "a", 1), commit(tmp_path, "b", 2)
    for n in range(60):
        old.processes(NUMBA, f"n={n}", 1.0)
        new.processes(NUMBA, f"n={n}", 2.0 if n % 2 else 0.5)
    old.write()
    new.write()
    table = open_table(tmp_path)
    pair = table.snapshots(table.setups[0])

    view = comparison_view(compare_rows(*pair, *map(table.rows, pair)), most=55)

    assert (len(view.rows), view.more) == (55, 5)
    assert "and 10 more" in pull_request_comment([ComparedSetup(view)]).splitlines()


def test_other_machines_are_set_against_this_one_at_their_newest_commits(tmp_path: Path) -> None:
    commit(tmp_path, "a", 1).time(NUMBA, "n=4", 1.0).write()
    commit(tmp_path, "b", 2).time(NUMBA, "n=4", 1.0).write()
    commit(tmp_path, "a", 1, "other").time(NUMBA, "n=4", 4.0).time(NUMBA, "n=8", 4.0).write()

    (other,) = page_of(open_table(tmp_path), "runner").others

    assert other.heading == "other, virtualenv-py3.11"
    assert other.comparison.counts == {"not judged": 1}
    assert other.comparison.setups.startswith("The two sides differ in machine (runner, other). ")
    assert (other.comparison.only_new.count, other.comparison.only_old.count) == (1, 0)
    assert other.address == (
        "a=bbbbbbbb,runner,virtualenv-py3.11&b=aaaaaaaa,other,virtualenv-py3.11"
    )


def test_of_other_machines_as_many_rows_are_listed_as_a_long_list_shows(tmp_path: Path) -> None:
    for machine, seconds in (("runner", 1.0), ("other", 2.0)):
        files = commit(tmp_path / "results", "a", 1, machine)
        for n in range(FIRST + 5):
            files.processes(NUMPY, f"n={n}", 1.0)
            files.processes(NUMBA, f"n={n}", seconds if n % 2 else 1 / seconds)
        files.write()
    table = open_table(tmp_path / "results")

    (other,) = page_of(table, "runner").others
    page = (write_report(table, tmp_path / "site").parent / "compare.html").read_text()

    assert (len(other.comparison.rows), other.comparison.more) == (FIRST, 5)
    assert '<p class="muted">and 5 more cases.</p>' in page


def test_one_commit_says_what_a_comparison_needs(tmp_path: Path) -> None:
    commit(tmp_path, "a", 1).time(NUMBA, "n=4", 1.0).write()

    page = page_of(open_table(tmp_path))

    assert page.verdict == "There is one commit so far, and nothing before it to compare with."
    assert (page.newest, page.others, page.export, page.choosable) == (None, (), None, False)
    assert [state.command for state in page.states] == ["asv run HEAD~1..HEAD --skip-existing"]


def test_an_address_escapes_what_a_name_holds() -> None:
    hostile = Snapshot(1, Setup("a,b&c", "env#1"), Commit("a" * 40, 0))
    plain = Snapshot(2, Setup("m", "e"), Commit("b" * 40, 0))

    assert pair_address(hostile, plain) == ("a=aaaaaaaa,a%2Cb%26c,env%231&b=bbbbbbbb,m,e")


BESIDE = ("advice-", "series-", "commits")
"""Beginnings of the scripts that other pages have in that folder."""


def arguments(table: Table) -> dict[str, list[Any]]:
    """Arguments of the call that each script of this page is, by its address."""
    site = Site(table)
    files = [file for history in groups(site) for file in files_of(history, site)]
    scripts = [
        file
        for file in files
        if file.address.endswith(".js")
        and not file.address.removeprefix("compare-data/").startswith(BESIDE)
    ]
    calls = {file.address: file.make() for file in scripts}
    return {
        address: unpacked(call)
        if "gpubenchLists.put(" in call
        else json.loads(call[call.index("(...") + 4 : call.rindex(");")])
        for address, call in calls.items()
    }


def test_a_snapshot_s_script_holds_medians_intervals_and_statuses(tmp_path: Path) -> None:
    found = arguments(three_cases(tmp_path))
    key = setup_key(Setup("runner", "virtualenv-py3.11"))

    labels = found[f"compare-data/{key}.js"][1]["labels"]
    script = found[f"compare-data/{key}-0.js"]
    contents = script["commits"]
    content = contents["bbbbbbbb"]
    of_kinds = floats(content["numbers"]).reshape(4, 4)
    numbers = of_kinds[:, 0]

    assert script["work"] == {}
    assert [*contents] == ["aaaaaaaa", "bbbbbbbb"]
    assert labels == ["add numba n=4", "add numba n=8", "add numba n=16", "add numpy n=4"]
    assert content["status"] == "oowo"
    assert numbers[0] == 1.5
    assert numbers[1] < 1.5 < numbers[2]
    assert numbers[3] == pytest.approx(2.0 / 1.5, rel=4e-6)
    assert np.isnan(of_kinds[:, 2]).all()
    assert math.isnan(of_kinds[3, 3])  # a baseline has no speedup
    assert content["reasons"] == {"2": "off by | one"}
    assert content["facts"]["numba"] == ["Numba", "0.68.1"]


def test_uncommitted_code_of_a_side_is_told(tmp_path: Path) -> None:
    paths = ", ".join(f"src/k{n}.py" for n in range(7))
    commit(tmp_path, "a", 1).facts(uncommitted=None).time(NUMBA, "n=4", 1.0).write()
    commit(tmp_path, "b", 2).facts(uncommitted=paths).time(NUMBA, "n=4", 1.0).write()
    table = open_table(tmp_path)
    pair = table.snapshots(table.setups[0])

    view = comparison_view(compare_rows(*pair, *map(table.rows, pair)))

    words = (
        "bbbbbbbb was measured with uncommitted changes in src/k0.py, src/k1.py, src/k2.py, "
        "src/k3.py, src/k4.py and 2 more"
    )
    assert view.uncommitted == (words,)
    assert view.facts == ()
    assert words in pull_request_comment([ComparedSetup(view)])
    page = (write_report(table, tmp_path / "site").parent / "compare.html").read_text()
    assert f"<p>{words}</p>" in page


def test_the_index_names_every_setup_and_its_commits(tmp_path: Path) -> None:
    (index,) = arguments(three_cases(tmp_path))["compare-data/index.js"]

    (setup,) = index["setups"]
    assert (setup["machine"], setup["label"]) == ("runner", "runner, virtualenv-py3.11")
    assert setup["commits"] == [["aaaaaaaa", "1970-01-02", ""], ["bbbbbbbb", "1970-01-03", ""]]
    assert index["same"] == SAME
    assert index["untimed"]["ow"] == ["failed", "{new}"]
    assert index["untimed"]["to"] == ["mended", "timed out before: {old}"]
    assert index["untimed"]["ss"] == ["not compared", "skipped on both sides"]


def test_a_version_left_out_and_an_absent_case_have_their_letters(tmp_path: Path) -> None:
    old = commit(tmp_path, "a", 1).time(NUMPY, "n=4", 3.0)
    old.versions[NUMPY] = "v0"
    old.write()
    commit(tmp_path, "b", 2).time(NUMPY, "n=4", 3.0).time(NUMBA, "n=4", 3.0).write()
    table = open_table(tmp_path)
    key = setup_key(Setup("runner", "virtualenv-py3.11"))

    assert arguments(table)[f"compare-data/{key}-0.js"]["commits"]["aaaaaaaa"]["status"] == "-v"


def test_scripts_of_commits_that_are_gone_are_removed(tmp_path: Path) -> None:
    table, site = three_cases(tmp_path / "results"), tmp_path / "site"
    write_report(table, site)
    (site / "compare-data" / "gone-cccccccc.js").write_text("")

    write_report(table, site)

    key = setup_key(Setup("runner", "virtualenv-py3.11"))
    left = [path.name for path in (site / "compare-data").iterdir()]
    assert sorted(name for name in left if not name.startswith(BESIDE)) == sorted(
        ["index.js", f"{key}.js", f"{key}-0.js"]
    )
    assert (site / "compare.md").read_text(encoding="utf-8").startswith("<!-- gpubench compare -->")
