"""A scheduler that stops, one run at a time, and what is asked for by a run."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="make test-systems has it")

from fleet_project import PATIENCE, Fleet, fleet_at, statuses, wait_until

pytestmark = [
    pytest.mark.systems,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with fleet_at(tmp_path / "fleet") as started:
        yield started


def lines(said: str) -> list[str]:
    return [line.rstrip() for line in said.splitlines()]


def test_after_the_end_of_the_scheduler_workers_wait_for_another(fleet: Fleet) -> None:
    hanging = fleet.folder / "hanging"
    fleet.start("alpha", options=["--retry"], FLEET_HANGS=str(hanging))
    run = fleet.begin()
    fleet.wait_for_hanging(run, hanging)
    fleet.start("beta")
    fleet.scheduler.kill()
    said, _ = run.communicate(timeout=PATIENCE)

    assert run.returncode == 1, said
    assert lines(said)[-1].startswith(
        f"gpubench: the scheduler at {fleet.address} stopped: 0 of 3 shares are kept in "
    )
    assert lines(said)[-1].endswith("--skip-existing`")
    assert "Traceback" not in said
    assert len([line for line in lines(said) if "scheduler" in line]) == 1
    assert fleet.workers["beta"].wait(PATIENCE) == 0
    left = (fleet.folder / "beta/worker.log").read_text()
    assert "a worker with --retry waits until the scheduler is back" in left
    wait_until(lambda: not fleet.processes(), lambda: str(fleet.processes()))

    host, _, port = fleet.address.removeprefix("tcp://").rpartition(":")
    fleet.start_scheduler(host, port)
    log = fleet.folder / "alpha/worker.log"
    wait_until(lambda: log.read_text().count("alpha has joined the fleet") == 2, fleet.said)
    assert "Traceback" not in fleet.said()


def test_a_worker_waits_for_a_scheduler_that_is_not_there_yet(fleet: Fleet) -> None:
    host, _, port = fleet.address.removeprefix("tcp://").rpartition(":")
    fleet.scheduler.kill()
    fleet.scheduler.wait(PATIENCE)
    fleet.begin_worker("alpha", options=["--retry"])
    log = fleet.folder / "alpha/worker.log"
    wait_until(lambda: "trying every 5 s until it can (--retry)" in log.read_text(), fleet.said)
    fleet.start_scheduler(host, port)
    wait_until(lambda: "alpha" in fleet.machines(), fleet.said)
    fleet.workers["alpha"].terminate()
    assert fleet.workers["alpha"].wait(PATIENCE) == 0


def test_a_name_that_is_taken_is_told_in_one_line(fleet: Fleet) -> None:
    fleet.start("alpha")
    first = fleet.workers["alpha"]
    fleet.begin_worker("alpha")
    second, fleet.workers["alpha"] = fleet.workers["alpha"], first
    assert second.wait(PATIENCE) == 2
    said = lines((fleet.folder / "alpha/worker.log").read_text())
    assert said[-1] == (
        f"gpubench: alpha cannot join the fleet at {fleet.address}: it has a worker called alpha "
        "already; end that one, or give another --machine"
    )
    assert "Traceback" not in "\n".join(said)


def test_one_run_at_a_time(fleet: Fleet) -> None:
    hanging = fleet.folder / "hanging"
    fleet.start("alpha", FLEET_HANGS=str(hanging))
    first = fleet.begin()
    fleet.wait_for_hanging(first, hanging)
    refused = fleet.run("run", "HEAD^!", code=2).stdout
    assert lines(refused)[-1].startswith("gpubench: another run measures on this fleet: HEAD^!, ")
    assert "; wait for its end with --wait, or end it there with Ctrl-C" in refused
    waits = fleet.begin("--wait", "--suite", "adding")
    assert waits.stderr is None
    assert waits.stdout is not None
    while "waiting for the run that measures now" not in (line := waits.stdout.readline()):
        assert line
    first.kill()  # the claim ends with it
    first.communicate(timeout=PATIENCE)
    while "preparing" not in (line := waits.stdout.readline()):
        assert line
    waits.send_signal(signal.SIGINT)
    waits.communicate(timeout=PATIENCE)
    assert waits.returncode == 130


STRAYS = """
from gpubench.edge.fleet import cluster
from gpubench.edge.fleet.checkout import git

real = cluster.join

def join(repository, head):
    machine = real(repository, head)
    with cluster._measuring().task("straying") as checkout:
        git(checkout.folder, "checkout", "--quiet", "HEAD~1")
    return machine

join.__module__ = "gpubench.edge.fleet.cluster"
cluster.join = join
"""
"""Run first by a worker whose checkout is brought to another commit after it was prepared."""


def test_a_share_is_measured_on_the_checkout_of_its_run(fleet: Fleet) -> None:
    (fleet.project.path / "README").write_text("second")
    fleet.project.commit("second", 2)
    fleet.start("alpha", first=STRAYS)
    said = fleet.run("run", "--suite", "adding").stdout
    assert "1 of 1 shares are measured and kept" in said
    assert len(statuses(fleet.project, "alpha")) == 6


def test_suites_kernels_and_a_preset_are_chosen(fleet: Fleet) -> None:
    fleet.start("alpha", GPUBENCH_PRESET="none-such")  # a machine's own is not meant
    told = fleet.run("run", "--suite", "ading", code=2).stdout
    assert ("gpubench: there is no suite, kernel or path 'ading'; did you mean 'adding'?") in lines(
        told
    )
    told = fleet.run("run", "--suite", "adding::halving", code=2).stdout
    assert "gpubench: suite 'adding' has no kernel 'halving'; did you mean 'adding'?" in lines(told)
    assert "none-such" in fleet.run("run", "--preset", "none-such", code=2).stdout

    chosen = ("run", "--suite", "halving.halving")
    told = fleet.run(*chosen).stdout
    assert "1 share for 1 machine: 1 of them were never measured" in told
    assert "1 of 1 shares are measured and kept in .asv/results" in told
    assert {name.split(".")[1].split("__")[0] for name, _ in statuses(fleet.project, "alpha")} == {
        "halving"
    }
    told = fleet.run(*chosen, "--skip-existing").stdout
    assert "nothing is left to measure: all that machines can of HEAD^! is in" in told


@pytest.mark.parametrize("commits", ["HEAD..HEAD", " "])
def test_a_range_without_commits_is_refused(fleet: Fleet, commits: str) -> None:
    said = fleet.run("run", commits, code=2).stdout
    assert lines(said)[-1] == (
        f"gpubench: {commits!r} is no commit: HEAD^! is the newest one, HEAD~3..HEAD are three"
    )
