"""`gpubench compare` as a person and a script see it."""

# ruff: noqa: RUF001 (the command writes multiplication signs and en dashes)

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from result_files import CommitFiles

from gpubench.cli import main

NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"
A, B = "a" * 40, "b" * 40


def compare(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["compare", *arguments], env={"COLUMNS": "120"})
    assert result.exit_code == code, result.output
    return result


def write(folder: Path, commit: str, numba: float, machine: str = "runner") -> CommitFiles:
    files = CommitFiles(folder, commit, 86_400 * (1 + (commit > A)), machine)
    return files.time(NUMPY, "n=4", 4.0).time(NUMBA, "n=4", numba).write()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits: the second is half as fast."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / ".asv/results", A, 1.0)
    write(tmp_path / ".asv/results", B, 2.0)
    return tmp_path


def test_two_commits_show_what_differs_and_count_the_rest(project: Path) -> None:
    lines = [line.rstrip() for line in compare("aaaa", "bbbb").stdout.splitlines()]

    assert lines[0] == "bbbbbbbb against aaaaaaaa on runner, virtualenv-py3.11"
    assert lines[2].split() == [
        "▼", "slower", "add", "numba", "n=4", "2.00×", "slower", "1.96–2.04×", "1.00", "s",
        "2.00", "s",
    ]  # fmt: skip
    assert lines[3:] == ["1 slower and 1 same"]


def test_it_says_that_nothing_was_compared_where_no_case_is_on_both_sides(project: Path) -> None:
    other = "suites.scale__numpy.time_kernel"
    CommitFiles(project / ".asv/results", "c" * 40, 3 * 86_400).time(other, "n=4", 4.0).write()

    lines = compare("aaaa", "cccc").stdout.splitlines()

    assert lines[1] == "Nothing was compared: no case is on both sides."


def test_every_case_is_listed_where_asked(project: Path) -> None:
    assert "add numpy n=4" not in compare("aaaa", "bbbb").stdout
    (row,) = (
        line for line in compare("aaaa", "bbbb", "--all").stdout.splitlines() if "numpy" in line
    )
    assert row.split() == [
        "same", "add", "numpy", "n=4", "0.980–1.02×", "4.00", "s", "4.00", "s",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "fail_on", "code"),
    [
        ("aaaa", "bbbb", "slower", 1),
        ("aaaa", "bbbb", "failed", 0),
        ("bbbb", "aaaa", "slower", 0),
    ],
)
def test_the_exit_code_is_1_where_asked(
    project: Path, before: str, after: str, fail_on: str, code: int
) -> None:
    compare(before, after, "--fail-on", fail_on, code=code)


@pytest.mark.parametrize("fail_on", ["slower", "failed"])
def test_a_case_that_became_wrong_fails_both_ways(project: Path, fail_on: str) -> None:
    files = CommitFiles(project / ".asv/results", "c" * 40, 300_000).time(NUMBA, "n=4", 1.0)
    files.record(NUMBA, "n=4", "wrong", reason="off by one").write()

    result = compare("aaaa", "cccc", "--fail-on", fail_on, code=1)

    assert "failed, 1 case: off by one" in result.stdout


def test_nothing_in_common_is_no_success(project: Path) -> None:
    files = CommitFiles(project / ".asv/results", "c" * 40, 300_000)
    files.time("suites.norm__numpy.time_kernel", "n=4", 1.0).write()

    result = compare("aaaa", "cccc", "--fail-on", "slower", code=2)

    assert result.stderr == (
        "gpubench: aaaa and cccc have no case in common: nothing was compared\n"
    )


def test_json_holds_every_case_with_plain_numbers(project: Path) -> None:
    (found,) = json.loads(compare("aaaa", "bbbb", "--json").stdout)

    assert found["counts"] == {"slower": 1, "same": 1}
    slower, same = found["cases"]
    assert (slower["benchmark"], slower["case"], slower["verdict"]) == (NUMBA, "n=4", "slower")
    assert slower["ratio"]["value"] == pytest.approx(0.5)
    assert (slower["new"]["status"], slower["new"]["median"]) == ("ok", 2.0)
    assert same["verdict"] == "same"


def test_json_has_null_for_what_is_not_known(project: Path) -> None:
    files = CommitFiles(project / ".asv/results", "c" * 40, 300_000)
    files.time(NUMBA, "n=4", 1.0, count=1).write()

    (found,) = json.loads(compare("aaaa", "cccc", "--json").stdout)

    (case,) = found["cases"]
    assert (case["verdict"], case["new"]["low"], case["ratio"]["high"]) == ("unclear", None, None)


def test_markdown_is_for_a_pull_request(project: Path) -> None:
    text = compare("aaaa", "bbbb", "--markdown").stdout

    assert text.startswith("<!-- gpubench compare -->\n### bbbbbbbb against aaaaaaaa")
    assert "| ▼ slower | add numba n=4 | 2.00× slower" in text


def test_two_folders_are_compared_at_their_newest_commits(project: Path) -> None:
    write(project / "elsewhere", "c" * 40, 4.0)

    text = compare(".asv/results", "elsewhere").stdout

    assert text.startswith("cccccccc against bbbbbbbb on runner, virtualenv-py3.11\n")
    assert "2.00× slower" in text


def test_folders_of_two_machines_are_compared_with_each_other(project: Path) -> None:
    write(project / "elsewhere", "c" * 40, 4.0, machine="other")

    text = compare(".asv/results", "elsewhere").stdout

    assert text.startswith("cccccccc on other, virtualenv-py3.11 against bbbbbbbb on runner")


def test_sides_without_a_machine_in_common_say_how_to_choose(project: Path) -> None:
    for machine in ("left", "right"):
        write(project / "elsewhere", "c" * 40, 4.0, machine=machine)

    result = compare(".asv/results", "elsewhere", code=2)

    assert result.stderr == (
        "gpubench: .asv/results and elsewhere have no machine and environment in common: "
        "runner virtualenv-py3.11 against left virtualenv-py3.11, right virtualenv-py3.11; "
        "narrow them to one each with --machine and --environment\n"
    )


def test_other_versions_are_not_comparable(project: Path) -> None:
    files = CommitFiles(project / "elsewhere", "c" * 40, 300_000).time(NUMBA, "n=4", 4.0)
    files.versions[NUMBA] = "v2"
    files.write()

    text = compare(".asv/results", "elsewhere", "--fail-on", "slower").stdout

    assert "not comparable, 1 case: what it measures has changed between the two" in text


@pytest.mark.parametrize("name", ["main", "v1"])
def test_branches_and_tags_name_commits(project: Path, name: str) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
        process = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
        return process.stdout.strip()

    git("init", "--quiet", "--initial-branch", "main")
    git("commit", "--quiet", "--allow-empty", "--message", "Measured")
    git("tag", "v1")
    write(project / ".asv/results", git("rev-parse", "HEAD"), 1.0)

    assert git("rev-parse", "--short=8", "HEAD") in compare("aaaa", name).stdout


def test_a_commit_without_results_says_which_have_some(project: Path) -> None:
    result = compare("aaaa", "cccc", code=2)

    assert result.stderr == (
        "gpubench: there are no results of cccc in .asv/results; the newest are of bbbbbbbb, "
        "aaaaaaaa; measure it with `asv run cccc^!`\n"
    )


def test_an_ambiguous_beginning_asks_for_more(project: Path) -> None:
    write(project / ".asv/results", "aaaab" + "c" * 35, 1.0)

    result = compare("aaaa", "bbbb", code=2)

    assert "'aaaa' names 2 commits: aaaa" in result.stderr
    assert result.stderr.endswith("give more of the hash\n")


def test_a_machine_and_an_environment_can_be_chosen(project: Path) -> None:
    write(project / ".asv/results", A, 1.0, machine="other")
    write(project / ".asv/results", B, 1.0, machine="other")

    assert compare("aaaa", "bbbb").stdout.count("against") == 2
    text = compare("aaaa", "bbbb", "--machine", "other", "--fail-on", "slower").stdout
    assert text.startswith("bbbbbbbb against aaaaaaaa on other, virtualenv-py3.11")


def test_a_narrow_terminal_cuts_no_name_off_and_has_no_empty_column(project: Path) -> None:
    name = "suites.add__an_implementation_with_a_long_name.time_kernel"
    for commit, seconds in ((A, 1.0), (B, 2.0)):
        files = CommitFiles(project / ".asv/results", commit, 86_400 * (1 + (commit > A)), "narrow")
        files.time(name, "n=4", seconds).write()

    arguments = ["compare", "aaaa", "bbbb", "--machine", "narrow"]
    shown = CliRunner().invoke(main, arguments, env={"COLUMNS": "72"}).stdout

    assert "…" not in shown
    assert "baseline" not in shown
    assert "an_implementation_with_a_long_namen=4" in "".join(shown.split())


def test_times_of_an_unfinished_run_are_told(project: Path) -> None:
    files = CommitFiles(project / ".asv/results", "c" * 40, 300_000).facts(run="18-300000")
    for name, seconds in ((NUMPY, 4.0), (NUMBA, 1.0)):
        files.record(name, "n=4", "started", version="v1")
        files.record(name, "n=4", values={"n": 4}, sizes=("n",), version="v1")
        files.rounds(name, "n=4", *[seconds] * 6)
    files.write()
    words = (
        "cccccccc has 2 times of a run that asv has not stored; if it was stopped, "
        "`asv run --skip-existing` measures the rest"
    )

    (compared,) = json.loads(compare("aaaa", "cccc", "--json").stdout)

    assert compared["unfinished"] == [words]
    assert words in " ".join(compare("aaaa", "cccc").stdout.split())
    assert "asv has not stored" not in compare("aaaa", "bbbb").stdout
