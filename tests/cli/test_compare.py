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
    return timed(files, 4.0, numba).write()


def timed(files: CommitFiles, numpy: float, numba: float) -> CommitFiles:
    """Four processes of either, and of twenty other cases that do not change."""
    for number in range(20):
        files.processes(NUMPY, f"n={1000 + number}", 1.0 + 1e-9 * number * files.date)
    return files.processes(NUMPY, "n=4", numpy).processes(NUMBA, "n=4", numba)


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
    assert lines[2].split()[:9] == [
        "▼", "slower,", "sure", "add", "numba", "n=4", "2.00×", "slower", lines[2].split()[8],
    ]  # fmt: skip
    assert lines[3] == "slower, 1 case: between runs"
    assert lines[-1].startswith("1 slower")


def test_it_says_that_nothing_was_compared_where_no_case_is_on_both_sides(project: Path) -> None:
    other = "suites.scale__numpy.time_kernel"
    CommitFiles(project / ".asv/results", "c" * 40, 3 * 86_400).time(other, "n=4", 4.0).write()

    shown = compare("aaaa", "cccc", code=2)

    assert shown.stdout.splitlines()[1] == "Nothing was compared: no case is on both sides."
    assert "nothing was compared: aaaa and cccc have no case with a result" in shown.stderr
    assert "keeps its history with `was:`" in shown.stderr


def test_every_case_is_listed_where_asked(project: Path) -> None:
    assert "add numpy n=4 " not in compare("aaaa", "bbbb").stdout
    shown = compare("aaaa", "bbbb", "--all").stdout.splitlines()
    (row,) = (line for line in shown if "add numpy n=4 " in line)
    assert row.split()[:4] == ["same", "add", "numpy", "n=4"]
    assert row.split()[-4:] == ["4.00", "s", "4.00", "s"]


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


def test_json_holds_every_case_with_plain_numbers(project: Path) -> None:
    (found,) = json.loads(compare("aaaa", "bbbb", "--json").stdout)

    assert found["counts"]["slower"] == 1
    slower, same, *_ = found["cases"]
    assert slower["processes"] == [4, 4]
    assert (slower["benchmark"], slower["case"], slower["verdict"]) == (NUMBA, "n=4", "slower")
    assert slower["ratio"]["value"] == pytest.approx(0.5, rel=0.01)
    assert (slower["new"]["status"], slower["new"]["median"]) == ("ok", 2.0)
    assert same["verdict"] == "same"
    assert found["suspects"] is None


def test_json_has_null_for_what_is_not_known(project: Path) -> None:
    files = CommitFiles(project / ".asv/results", "c" * 40, 300_000)
    files.time(NUMBA, "n=4", 1.0, count=1).write()

    (found,) = json.loads(compare("aaaa", "cccc", "--json").stdout)

    (case,) = found["cases"]
    assert (case["verdict"], case["new"]["low"]) == ("unclear", None)
    assert case["detectable"] > 1.01


def test_one_process_a_side_names_suspects_and_the_command_that_decides_them(
    project: Path,
) -> None:
    for commit, numba in (("c" * 40, 1.0), ("d" * 40, 3.0)):
        files = CommitFiles(project / ".asv/results", commit, 300_000 + (commit > "d"))
        files.processes(NUMBA, "n=4", numba, count=1).write()
    command = "gpubench compare cccccccc dddddddd --measure --suspects"

    shown = " ".join(compare("cccc", "dddd", "--fail-on", "slower").stdout.split())
    (found,) = json.loads(compare("cccc", "dddd", "--json").stdout)

    assert "? suspect add numba n=4 3.00× slower" in shown
    assert f"To decide exactly this case: `{command}`." in shown
    assert "Each case has one process on a side" in shown
    assert found["suspects"] == command
    assert command in compare("cccc", "dddd", "--markdown").stdout


def test_suspects_alone_are_no_question(project: Path) -> None:
    assert "give both" in compare("aaaa", "bbbb", "--suspects", code=2).stderr
    (project / "suites").mkdir()
    refused = compare("aaaa", "bbbb", "--measure", "--suspects", code=2).stderr
    assert "suspect" in refused or "suites" in refused


def test_what_is_unclear_never_stands_alone(project: Path) -> None:
    for commit, numba in (("c" * 40, 1.0), ("d" * 40, 1.04)):
        files = CommitFiles(project / ".asv/results", commit, 300_000 + (commit > "d"))
        files.processes(NUMBA, "n=4", numba, count=2).write()

    shown = " ".join(compare("cccc", "dddd").stdout.split())

    assert "1 case unclear: no change was shown. One of " in shown
    assert "`gpubench compare cccccccc dddddddd --measure KERNEL` decides." in shown


def test_markdown_is_for_a_pull_request(project: Path) -> None:
    text = compare("aaaa", "bbbb", "--markdown").stdout

    assert text.startswith("<!-- gpubench compare -->\n**Slower: 1 case of add numba, 2.00× slower")
    assert "| ▼ slower, sure | add numba n=4 | 2.00× slower" in text


def test_two_folders_are_compared_at_their_newest_commits(project: Path) -> None:
    write(project / "elsewhere", "c" * 40, 4.0)

    text = compare(".asv/results", "elsewhere", "--all").stdout

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

    text = compare(".asv/results", "elsewhere", "--fail-on", "slower", code=2).stdout

    assert "not comparable, 1 case: what it measures has changed between the two" in text


def write_on(folder: Path, commit: str, cpu: str, numpy: float, numba: float) -> None:
    files = CommitFiles(folder, commit, 86_400 * (1 + (commit > A))).facts(cpu=cpu)
    files.processes(NUMPY, "n=4", numpy).processes(NUMBA, "n=4", numba).write()


@pytest.mark.parametrize(("numba", "code"), [(1.4, 0), (2.8, 1)])
def test_another_processor_is_no_reason_to_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numba: float, code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    write_on(tmp_path / ".asv/results", A, "EPYC", 4.0, 1.0)
    write_on(tmp_path / ".asv/results", B, "Xeon", 5.6, numba)

    shown = compare("aaaa", "bbbb", "--fail-on", "slower", code=code).stdout

    assert (
        "The two sides differ in processor (EPYC, Xeon). So speedups are compared, not times, and "
        "a case without a speedup on both sides is not judged."
    ) in shown
    assert ("4.00× → 2.00×" in shown) is (code == 1)
    assert "baseline became" not in shown


def test_json_and_markdown_say_what_was_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_on(tmp_path / ".asv/results", A, "EPYC", 4.0, 1.0)
    write_on(tmp_path / ".asv/results", B, "Xeon", 5.6, 2.8)

    (found,) = json.loads(compare("aaaa", "bbbb", "--json").stdout)

    assert found["setups"].startswith("The two sides differ in processor (EPYC, Xeon).")
    slower, baseline = found["cases"]
    assert (slower["verdict"], slower["compared"]) == ("slower", "speedups")
    assert (baseline["verdict"], baseline["ratio"], baseline["compared"]) == (
        "not judged", None, None
    )  # fmt: skip
    assert "differ in processor (EPYC, Xeon)" in compare("aaaa", "bbbb", "--markdown").stdout


@pytest.mark.parametrize(("factor", "code"), [("1.9", 1), ("2.5", 0)])
def test_only_ratios_beyond_a_factor_fail(project: Path, factor: str, code: int) -> None:
    arguments = "aaaa", "bbbb", "--factor", factor, "--fail-on", "slower"

    words = f"Only ratios beyond {factor}× count as slower or faster (--factor)."
    assert words in compare(*arguments, code=code).stdout
    assert words in compare(*arguments, "--markdown", code=code).stdout
    (found,) = json.loads(compare(*arguments, "--json", code=code).stdout)
    assert found["factor"] == float(factor)
    assert ("slower" in found["counts"]) is (code == 1)


@pytest.mark.parametrize("factor", ["0.9", "0", "-1", "nan", "inf", "fast"])
def test_a_factor_is_a_number_from_one_on(project: Path, factor: str) -> None:
    assert "--factor" in compare("aaaa", "bbbb", "--factor", factor, code=2).stderr


def test_uncommitted_code_is_told_on_the_side_that_has_it(project: Path) -> None:
    files = CommitFiles(project / ".asv/results", "c" * 40, 300_000).facts(uncommitted="src/k.py")
    timed(files, 4.0, 1.0).write()
    words = "cccccccc was measured with uncommitted changes in src/k.py"

    (found,) = json.loads(compare("aaaa", "cccc", "--json").stdout)

    assert found["uncommitted"] == [words]
    assert words in compare("aaaa", "cccc").stdout.splitlines()
    assert words in compare("aaaa", "cccc", "--markdown").stdout
    assert "uncommitted" not in compare("aaaa", "bbbb").stdout


def git(*arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
    process = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
    return process.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Hashes of four commits on main; all but the newest have results."""
    monkeypatch.chdir(tmp_path)
    git("init", "--quiet", "--initial-branch", "main")
    hashes = []
    for number in range(4):
        git("commit", "--quiet", "--allow-empty", "--message", f"Number {number}")
        hashes.append(git("rev-parse", "HEAD"))
    for seconds, commit in enumerate(hashes[:3], 1):
        write(tmp_path / ".asv/results", commit, float(seconds))
    return tuple(hashes)


def test_a_branch_named_like_the_beginning_of_a_hash_is_the_branch(
    repository: tuple[str, ...],
) -> None:
    name = repository[1][:5]
    git("branch", name, "main~3")

    assert compare(name, repository[2]).stdout.startswith(
        f"{repository[2][:8]} against {repository[0][:8]} on runner"
    )


@pytest.mark.parametrize(
    "name", ["main~2", "origin/topic", "v1", "-dash", ":/Number 1", "HEAD~2", "tags/v1"]
)
def test_all_that_git_takes_for_a_commit_names_one(repository: tuple[str, ...], name: str) -> None:
    git("update-ref", "refs/remotes/origin/topic", "main~2")
    git("update-ref", "refs/heads/-dash", "main~2")
    git("tag", "--annotate", "--message", "v1", "v1", "main~2")

    assert compare("--", "main~3", name).stdout.startswith(repository[1][:8])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "main",
            "there are no results of main, which git knows ({newest} Number 3); measure it with "
            "`asv run {newest}^!`; the newest results in .asv/results are of ",
        ),
        ("mian", "git knows no commit 'mian'; did you mean 'main'? The newest results in "),
        ("topic", "git knows no commit 'topic'; did you mean 'origin/topic'? "),
        ("deadbeef", "git knows no commit 'deadbeef'; the newest results in "),
        ("tree", "'tree' is a tree, not a commit; give a branch, a tag or a hash of a commit"),
        (
            "main~1..main",
            "'main~1..main' is a range of commits; compare its two ends: "
            "gpubench compare main~1 main\n",
        ),
        ("..main", "compare its two ends: gpubench compare HEAD main\n"),
        ("main^!", "'main^!' is a range of commits; name one commit: main\n"),
        ("", "an empty text names no commit; give a branch, a tag or a hash\n"),
        ("docs", "the folder docs holds no results of asv: it has no */machine.json\n"),
        ("../nothing", "there is no folder ../nothing\n"),
        (
            "here",
            "'here' is a folder with results, and git takes it for a commit: ./here is the "
            "folder, here~0 the commit\n",
        ),
    ],
)
def test_a_name_without_results_says_what_git_knows_of_it(
    repository: tuple[str, ...], name: str, words: str
) -> None:
    git("update-ref", "refs/remotes/origin/topic", "main~2")
    git("tag", "tree", "main^{tree}")
    git("branch", "here")
    Path("docs").mkdir()
    write(Path("here"), A, 1.0)

    error = compare("main~3", name, code=2).stderr

    assert words.format(newest=repository[3][:8]) in error


def test_a_folder_and_a_branch_of_one_name_can_both_be_had(repository: tuple[str, ...]) -> None:
    git("branch", "here", "main~2")
    write(Path("here"), A, 1.0)

    assert compare("main~3", "./here").stdout.startswith("aaaaaaaa against")
    assert compare("main~3", "here~0").stdout.startswith(repository[1][:8])


def test_a_range_alone_says_how_its_ends_are_compared(project: Path) -> None:
    assert "gpubench compare main HEAD" in compare("main..HEAD", code=2).stderr
    assert "Missing argument 'B'" in compare("main", code=2).stderr


def test_a_hash_that_git_no_longer_knows_names_its_results(repository: tuple[str, ...]) -> None:
    write(Path(".asv/results"), "c0ffee" + "0" * 34, 1.0)

    for name in ("c0ffee", "C0FFEE00", "c0ffee" + "0" * 34):
        assert compare("main~3", name).stdout.startswith("c0ffee00 against")


def test_a_shallow_clone_says_why_it_lacks_a_commit(
    repository: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    git("clone", "--quiet", "--depth", "1", f"file://{Path.cwd()}", "clone")
    monkeypatch.chdir("clone")
    write(Path(".asv/results"), A, 1.0)

    assert "`git fetch --unshallow`" in compare("aaaa", "HEAD~1", code=2).stderr


@pytest.mark.parametrize("name", ["main", "v1"])
def test_branches_and_tags_name_commits(project: Path, name: str) -> None:
    git("init", "--quiet", "--initial-branch", "main")
    git("commit", "--quiet", "--allow-empty", "--message", "Measured")
    git("tag", "v1")
    write(project / ".asv/results", git("rev-parse", "HEAD"), 1.0)

    assert git("rev-parse", "--short=8", "HEAD") in compare("aaaa", name).stdout


def test_a_commit_without_results_says_which_have_some(project: Path) -> None:
    result = compare("aaaa", "cccc", code=2)

    assert result.stderr == (
        "gpubench: there are no results of cccc; git finds no repository here, so that only hashes "
        "and their beginnings, of four characters or more, name commits; the newest results in "
        ".asv/results are of bbbbbbbb, aaaaaaaa\n"
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


def test_stored_cases_are_chosen_by_the_names_and_options_of_every_command(project: Path) -> None:
    other = "suites.scale__numpy.time_kernel"
    for record in (project / ".asv/results").rglob("*.jsonl"):
        record.unlink()
    for commit, day in ((A, 1), (B, 2)):
        files = CommitFiles(project / ".asv/results", commit, 86_400 * day)
        files.time(NUMPY, "n=4", 4.0).time(NUMBA, "n=4", 1.0).time(NUMBA, "n=8", 1.0)
        files.time(other, "n=4", 4.0).write()

    def counted(*arguments: str) -> str:
        return compare("aaaa", "bbbb", *arguments).stdout.splitlines()[-1]

    assert counted() == "4 same"
    assert counted("add") == counted("add.add") == "3 same"
    assert counted("scale", "--where", "n < 8") == "1 same"
    assert counted("add", "-a", "implementation=numba", "-a", "n=8") == "1 same"
    refused = compare("aaaa", "bbbb", "ad", code=2).stderr
    assert refused == "gpubench: there are no results of 'ad'; did you mean 'add'?\n"
    assert "no case has n=5; values are 4, 8" in compare("aaaa", "bbbb", "-a", "n=5", code=2).stderr
