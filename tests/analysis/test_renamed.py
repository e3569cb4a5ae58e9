"""The `was:` line that is proposed where a name left and a like one came."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from result_files import CommitFiles

from gpubench.analysis.renamed import Rename, find_renames
from gpubench.analysis.run_summary import summarize
from gpubench.cli import main
from gpubench.report.overview import build as build_overview
from gpubench.report.site import Site
from gpubench.results import open_table
from gpubench.tables.run_summary import summary_lines

SIZES = ("n=4", "n=8", "n=16")


def proposals(
    folder: Path,
    old: dict[str, tuple[str, ...]],
    new: dict[str, tuple[str, ...]],
    versions: dict[str, str] | None = None,
) -> list[str]:
    """Return what is proposed between two commits with these benchmarks and their cases."""
    for day, letter, benchmarks in ((1, "a", old), (2, "b", new)):
        files = CommitFiles(folder, letter * 40, day * 86_400)
        for name, cases in benchmarks.items():
            files.versions[f"suites.{name}.time_kernel"] = (versions or {}).get(name, name)
            for case in cases:
                files.processes(f"suites.{name}.time_kernel", case, 1.0)
        files.write()
    table = open_table(folder)
    before, after = table.snapshots(table.setups[0])
    return [one.words for one in find_renames(table.rows(before), table.rows(after))]


def test_a_renamed_kernel_of_a_suite_that_stays(tmp_path: Path) -> None:
    other = {"maths__other__numpy": SIZES}
    old = {"maths__add__numpy": SIZES, "maths__add__numba": SIZES}
    new = {"maths__total__numpy": SIZES, "maths__total__numba": SIZES}

    assert proposals(tmp_path, old | other, new | other) == [
        "add left and a like name came: `was: add` under `kernels: total:` of the suite maths "
        "joins its 6 cases"
    ]


def test_a_renamed_suite_and_its_kernel_of_that_name(tmp_path: Path) -> None:
    assert proposals(tmp_path, {"add__numpy": SIZES}, {"sums__numpy": SIZES}) == [
        "add left and a like name came: `was: add` at the top of the suite sums joins its 3 cases",
        "add left and a like name came: `was: add` under `kernels: sums:` of the suite sums joins "
        "its 3 cases",
    ]


def test_a_renamed_implementation(tmp_path: Path) -> None:
    old = {"add__numpy": SIZES, "add__gpu": SIZES}
    new = {"add__numpy": SIZES, "add__numba_cuda": SIZES}

    (words,) = proposals(tmp_path, old, new)

    assert "`was: gpu` under `kernels: add: implementations: numba_cuda:` of the suite add" in words


def test_a_renamed_axis(tmp_path: Path) -> None:
    old = {"add__numpy": ("n=4 block=2", "n=8 block=2")}
    new = {"add__numpy": ("count=4 block=2", "count=8 block=2")}

    (words,) = proposals(tmp_path, old, new, {"add__numpy": "one"})

    assert "`was: n` under `kernels: add: ...: count:` of the suite add joins its 2 cases" in words


def test_of_several_that_came_the_one_of_the_same_function_is_meant(tmp_path: Path) -> None:
    old = {"maths__add__numba": SIZES}
    new = {"maths__adding__numba": SIZES, "maths__blend__numba": SIZES}
    versions = {"maths__add__numba": "v", "maths__blend__numba": "v"}

    (words,) = proposals(tmp_path, old, new | {"maths__x__numpy": ("n=1",)}, versions)

    assert "under `kernels: blend:`" in words


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"add__numpy": SIZES}, {"add__numpy": SIZES, "sums__numpy": SIZES}),  # one came, none left
        ({"add__numpy": SIZES, "sums__numpy": SIZES}, {"add__numpy": SIZES}),  # one left, none came
        ({"add__numpy": SIZES}, {"fft__numpy": ("n=5", "n=6")}),  # nothing alike
        (
            {"m__add__numpy": SIZES, "m__mul__numpy": SIZES, "m__x__numpy": SIZES},
            {"m__fft__numpy": SIZES, "m__zeta__numpy": SIZES, "m__x__numpy": SIZES},
        ),  # the same sizes alone
    ],
)
def test_nothing_is_proposed_without_a_like_name(
    tmp_path: Path, old: dict[str, tuple[str, ...]], new: dict[str, tuple[str, ...]]
) -> None:
    assert proposals(tmp_path, old, new) == []


def test_compare_that_compared_nothing_proposes_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    proposals(tmp_path / ".asv/results", {"add__numpy": SIZES}, {"sums__numpy": SIZES})

    done = CliRunner().invoke(main, ["compare", "aaaa", "bbbb"])

    assert done.exit_code == 2
    assert "`was: add` at the top of the suite sums" in done.stderr


def test_the_report_proposes_the_line(tmp_path: Path) -> None:
    proposals(tmp_path, {"add__numpy": SIZES}, {"sums__numpy": SIZES})
    site = Site(open_table(tmp_path))

    page = build_overview(site.histories[0], site)

    (text,) = (s.why for s in page.states if s.title == "Old names have a history of their own")
    assert "`was: add` at the top of the suite sums" in text


def test_the_end_of_a_run_proposes_the_line() -> None:
    rename = Rename("add", "kernels: total", "sums", 1)

    lines = summary_lines(summarize([], 0, [rename, rename]))

    assert lines == [f"{rename.words}", "next: gpubench report"]
