"""What a history is, and what is said of code and suites that are not a commit's."""

from __future__ import annotations

import dataclasses
import sys

import pytest
from history_project import CASE, KERNEL, SUITE, History

from gpubench.project.opening import project_table
from gpubench.results import CaseName

pytestmark = pytest.mark.ci

KERNEL_OF_S = CaseName("s", "k", "kernel", "kernel", CASE)

HERE = "-E", f"existing:{sys.executable}"


def table(history: History):
    opened, _ = project_table(history.results, history.path, history.path / "suites")
    return opened


def times_over_commits(history: History, name: CaseName = KERNEL_OF_S) -> list[float]:
    """Times of a case in the first history, oldest commit first."""
    times = []
    opened = table(history)
    for snapshot in opened.snapshots(opened.setups[0]):
        rows = opened.rows(snapshot)
        if name in rows and rows[name].seconds is not None:
            times.append(round(rows[name].seconds, 12))
    return times


@pytest.mark.thorough  # tests/results/test_commit_order.py has its rule
def test_commits_of_another_branch_are_outside_of_the_history(history):
    history.package()
    history.commit_seconds("one", 1e-3)
    history.git("checkout", "--quiet", "-b", "try")
    history.commit_seconds("tried", 9e-3)
    history.git("checkout", "--quiet", "main")
    history.commit_seconds("two", 2e-3)
    history.measure("one", "two", "tried")
    assert history.seconds("tried") == 9e-3
    assert times_over_commits(history) == [1e-3, 2e-3]
    assert [commit.subject for commit in table(history).outside] == ["tried"]


@pytest.mark.thorough  # so has it this rule
def test_dates_that_run_backwards_change_no_order(history):
    history.package()
    for number, day in ((1, 20), (2, 10), (3, 15)):
        date = f"2026-01-{day}T12:00:00+00:00"
        history.environment.update(GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)
        history.commit_seconds(f"c{number}", number * 1e-3)
    history.measure("c3", "c1", "c2")
    assert times_over_commits(history) == [1e-3, 2e-3, 3e-3]


@pytest.mark.thorough  # and this
def test_a_commit_that_was_rewritten_keeps_its_time_outside(history):
    history.package()
    history.commit_seconds("one", 1e-3)
    history.commit_seconds("two", 2e-3)
    history.measure("one", "two")
    history.put("mini/helper.py", "SECONDS = 0.003\n")
    history.git("commit", "--quiet", "--all", "--amend", "-m", "amended")
    history.git("tag", "amended")
    history.measure("amended")
    assert times_over_commits(history) == [1e-3, 3e-3]
    assert history.seconds("two") == 2e-3


@pytest.mark.thorough  # and this
def test_a_shallow_clone_measures_what_it_has(history, tmp_path):
    history.package()
    for number in (1, 2, 3):
        history.commit_seconds(f"c{number}", number * 1e-3)
    clone = tmp_path / "shallow"
    history.git("clone", "--quiet", "--depth", "2", f"file://{history.path}", str(clone))
    shallow = dataclasses.replace(history, path=clone)
    shallow.asv("run", "HEAD~1^!")
    shallow.asv("run", "HEAD^!")
    assert times_over_commits(shallow) == [2e-3, 3e-3]


def test_a_repository_without_files_elsewhere(history, tmp_path):
    history.package()
    history.commit_seconds("one", 1e-3)
    history.commit_seconds("two", 2e-3)
    origin = tmp_path / "origin.git"
    history.git("clone", "--quiet", "--bare", ".", str(origin))
    history.configure(repo=str(origin), branches=["main"])
    history.measure("one", "two")
    assert (history.seconds("one"), history.seconds("two")) == (1e-3, 2e-3)


# --- what is not committed


def test_a_suite_that_is_not_committed_is_on_record(history):
    history.package()
    history.commit_seconds("one", 1e-3)
    history.put("suites/s.yaml", (history.path / "suites/s.yaml").read_text() + "\n# edited\n")
    history.measure("one")
    assert history.seconds("one") == 1e-3
    assert history.uncommitted("one") == "suites/s.yaml"
    opened = table(history)
    (snapshot,) = opened.snapshots(opened.setups[0])
    assert snapshot.uncommitted == ("suites/s.yaml",)


def test_a_suite_of_a_later_commit_is_not_called_uncommitted(history):
    history.package()
    history.commit_seconds("one", 1e-3)
    history.put("suites/s.yaml", (history.path / "suites/s.yaml").read_text() + "\n# edited\n")
    history.commit_seconds("two", 2e-3)
    history.measure("one")
    assert history.uncommitted("one") is None


def test_code_that_is_not_committed_is_on_record_where_nothing_is_installed(history):
    history.package()
    history.commit_seconds("one", 1e-3)
    history.environment["ASV_PYTHONPATH"] = str(history.path)
    commit = history.git("rev-parse", "one")
    history.asv("run", *HERE, "--set-commit-hash", commit)
    assert (history.seconds("one"), history.uncommitted("one")) == (1e-3, None)
    history.put("mini/helper.py", "SECONDS = 0.004\n")
    history.put("mini/new.py", "")
    history.asv("run", *HERE, "--set-commit-hash", commit)
    assert history.seconds("one") == 4e-3
    assert history.uncommitted("one") == "mini/helper.py, mini/new.py"


def test_a_function_that_is_not_committed_yet_is_told_in_one_line_once(history):
    history.package()
    history.commit_seconds("one", 1e-3)
    extra = KERNEL.format(imports="", seconds="1e-3").replace("def kernel", "def newer")
    history.put("mini/extra.py", extra)
    text = (history.path / "mini/kernels.py").read_text()
    history.put("mini/kernels.py", text + "\n\nnewer = kernel\n")
    suite = SUITE.format(module="mini.kernels")
    for name in ("newer", "newest"):
        suite = suite.replace(
            "    sampling", f'      {name}: {{function: "mini.kernels:newer"}}\n    sampling'
        )
    suite = suite.replace("    sampling", "    sampling", 1)
    history.put("suites/s.yaml", ordered(suite))
    out = history.measure("one")
    short = history.git("rev-parse", "one")[:8]
    line = f"`newer` is not known at {short}: it is not committed yet; commit it, or measure"
    assert history.seconds("one") == 1e-3
    assert out.count(line) == 1, out
    assert "gpubench: 2 cases skipped" in out
    assert "Traceback" not in out
    assert history.statuses("one")["newer"] == "skipped"


def ordered(suite: str) -> str:
    """The suite with its implementations together."""
    lines = suite.splitlines(keepends=True)
    added = [line for line in lines if line.startswith("      newe")]
    rest = [line for line in lines if line not in added]
    place = next(i for i, line in enumerate(rest) if line.startswith("    sampling"))
    return "".join([*rest[:place], *added, *rest[place:]])


FACTORY = """\
from gpubench.backends.scripted import script


@script(seconds=1e-3)
def plain(x, y):
    y[:] = 2 * x


def make({axis}):
    @script(seconds={axis} * 1e-3)
    def kernel(x, y):
        y[:] = 2 * x

    return kernel
"""

WITH_AXIS = """\
version: 1
suite: s
backend: scripted
kernels:
  k:
    sizes: {{n: [8]}}
    parameters: {{{axis}: {values}}}
    arrays:
      x: {{shape: [n], dtype: float64}}
      y: {{shape: [n], dtype: float64, intent: out}}
    call: [x, y]
    baseline: plain
    implementations:
      plain: {{function: "mini.kernels:plain"}}
      kernel: {{factory: "mini.kernels:make", with: {{{axis}: {axis}}}}}
    sampling: {{rounds: 1, repeat: 2, warmup_time: 0}}
"""


@pytest.mark.thorough  # tests/measure/test_provenance.py has its rule
def test_an_axis_that_was_renamed_is_told_in_one_line_at_older_commits(history):
    history.package()
    for tag, axis, values in (
        ("old", "width", "[2, 3]"),
        ("new", "window", "{values: [2, 3], was: width}"),
    ):
        history.put("mini/kernels.py", FACTORY.format(axis=axis))
        history.put("suites/s.yaml", WITH_AXIS.format(axis=axis, values=values))
        history.save(tag)
        if tag == "old":
            history.measure("old")
    history.measure("new")
    name = CaseName("s", "k", "kernel", "kernel", "n=8 window=3")
    out = history.measure("old")  # again, with the newer suite
    short = history.git("rev-parse", "old")[:8]
    assert out.count(f"`window` is not known at {short}: the suite is newer") == 1, out
    assert "Traceback" not in out
    assert times_over_commits(history, name)[-1] == 3e-3


@pytest.mark.thorough  # tests/results/test_renames.py has its rule
def test_a_history_goes_on_under_new_names(history):
    history.package()
    history.put("mini/kernels.py", FACTORY.format(axis="width"))
    history.put("suites/s.yaml", WITH_AXIS.format(axis="width", values="[2, 3]"))
    history.save("old")
    history.measure("old")
    history.put("mini/kernels.py", FACTORY.format(axis="window"))
    suite = WITH_AXIS.format(axis="window", values="{values: [2, 3], was: width}")
    suite = suite.replace("suite: s", "suite: renamed\nwas: s").replace("  k:", "  k2:\n    was: k")
    history.put("suites/s.yaml", suite)
    history.git("mv", "suites/s.yaml", "suites/renamed.yaml")
    history.save("new")
    history.measure("new")
    name = CaseName("renamed", "k2", "kernel", "kernel", "n=8 window=3")
    assert times_over_commits(history, name) == [3e-3, 3e-3]


def test_code_that_fails_at_a_commit_fails_whatever_its_suite(history):
    history.package()
    kernels = (history.path / "mini/kernels.py").read_text()
    history.put("mini/kernels.py", kernels + '\nraise ValueError("broken here")\n')
    history.commit_seconds("broken", 1e-3)
    history.put("mini/kernels.py", kernels)
    history.put("suites/s.yaml", (history.path / "suites/s.yaml").read_text() + "\n# edited\n")
    history.save("mended")
    history.measure("broken", code=2)
    assert history.statuses("broken")["kernel"] == "failed"
    assert "broken here" in str(history.reason("broken"))
