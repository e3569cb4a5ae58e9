"""A run of asv that is at work is said to be: what it has not finished was not killed."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from result_files import CommitFiles

from gpubench.cli import main
from gpubench.report import choose, kernel, machines, overview
from gpubench.report.site import Site
from gpubench.results import Row, Snapshot, open_table
from gpubench.results.unfinished import RUNNING, UNFINISHED

NUMPY, NUMBA = "suites.norm__numpy.time_kernel", "suites.norm__numba.time_kernel"
COMMIT, DATE = "a" * 40, 1_600_000_000

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are told by /proc")


class Run:
    """A process that stands for asv's, and what it has put on record so far."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        sleep = "import sys; sys.stdin.read()"
        command = [sys.executable, "-c", sleep, *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE)
        self.began = time.time()
        self.files = CommitFiles(folder, COMMIT, DATE)

    def write(self, run: str | None = None, host: str | None = None) -> None:
        """One case finished, one begun; of the other benchmark nothing."""
        run = f"{self.process.pid}-{self.began:.0f}" if run is None else run
        self.files.facts(run=run, host=host or platform.node())
        self.files.record(NUMPY, "n=4", "started").record(
            NUMPY, "n=4", values={"n": 4}, sizes=("n",)
        )
        self.files.rounds(NUMPY, "n=4", 1.0, 1.1, 1.2, 0.9, 1.0)
        self.files.record(NUMPY, "n=8", "started").write()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path / ".asv/results", "run", "HEAD^!")
    yield run
    run.end()


def benchmarks(folder: Path) -> None:
    """Two benchmarks of two cases."""
    entries = {
        name: {"name": name, "param_names": ["case"], "params": [["'n=4'", "'n=8'"]]}
        for name in (NUMPY, NUMBA)
    }
    (folder / "benchmarks.json").write_text(json.dumps({**entries, "version": 2}))


def only(folder: Path) -> tuple[Snapshot, dict[str, Row]]:
    """The one snapshot, and its rows by case."""
    table = open_table(folder)
    (snapshot,) = table.snapshots(table.setups[0])
    return snapshot, {name.case: row for name, row in table.rows(snapshot).items()}


def test_what_a_run_at_work_has_begun_is_not_killed(run: Run, tmp_path: Path) -> None:
    run.write()
    benchmarks(run.files.directory)

    snapshot, rows = only(run.files.directory)

    assert snapshot.running
    assert (snapshot.running.finished, snapshot.running.planned) == (1, 4)
    assert [*rows] == ["n=4"]
    assert rows["n=4"].warnings == (RUNNING,)


def test_when_its_process_has_ended_it_was_killed(run: Run) -> None:
    run.write()
    before, _ = only(run.files.directory)
    run.end()

    snapshot, rows = only(run.files.directory)

    assert snapshot.running is None
    assert snapshot.digest != before.digest  # pages are made again
    assert rows["n=8"].status == "killed"
    assert rows["n=4"].warnings == (UNFINISHED,)


def test_a_process_that_nobody_has_waited_for_has_ended(run: Run) -> None:
    run.write()
    run.process.kill()
    os.waitid(os.P_PID, run.process.pid, os.WEXITED | os.WNOWAIT)

    assert only(run.files.directory)[0].running is None


def test_another_process_of_that_number_is_not_the_run(run: Run) -> None:
    run.write(run=f"{run.process.pid}-{run.began - 3600:.0f}")

    assert only(run.files.directory)[0].running is None


@pytest.mark.parametrize(
    "made_up", ["", "x", "1", "1-", "-5-5", "../1-5", f"{'9' * 5000}-5", "0-9"]
)
def test_a_run_that_is_none_is_not_at_work(run: Run, made_up: str) -> None:
    run.write(run=made_up)

    assert only(run.files.directory)[0].running is None


def test_a_run_on_another_host_is_not_known_to_be_at_work(run: Run) -> None:
    run.write(host="elsewhere")

    assert only(run.files.directory)[0].running is None


def test_a_commit_that_asv_has_stored_is_done_though_the_run_goes_on(run: Run) -> None:
    run.files.time(NUMPY, "n=4", 1.0)
    run.write()
    later = run.files.record_path.stat().st_mtime + 1
    os.utime(run.files.result_path, (later, later))

    assert only(run.files.directory)[0].running is None


def test_of_a_part_of_the_benchmarks_it_is_not_said_how_many_there_are(tmp_path: Path) -> None:
    run = Run(tmp_path, "run", "--bench", "norm")
    try:
        run.write()
        benchmarks(tmp_path)

        snapshot, _ = only(tmp_path)
    finally:
        run.end()

    assert snapshot.running and snapshot.running.planned is None


def test_pages_and_terminal_say_it_and_advise_no_second_run(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run.write()
    benchmarks(run.files.directory)
    site = Site(open_table(run.files.directory))
    (history,) = site.histories
    since = time.strftime("%Y-%m-%d %H:%M", time.gmtime(round(run.began)))
    words = f"running since {since} UTC: 1 of 4 cases so far"

    pages = (
        overview.build(history, site),
        kernel.build(history, ("norm", "norm"), site),
        choose.build(history, site),
        machines.build(site),
    )

    for page in pages:
        state = page.states[0]
        assert state.title == "A run is at work"
        assert words in state.why
        assert not any("--skip-existing" in (each.command or "") for each in page.states)
    assert "killed" not in pages[0].counts
    done = CliRunner().invoke(main, ["query", "select 1"], env={"COLUMNS": "200"})
    assert f"asv run of aaaaaaaa on runner, virtualenv-py3.11: {words}" in done.stderr
