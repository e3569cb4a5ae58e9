"""Three machines, each a process with a home and a checkout of its own: one is killed, one is slow,
and what another sends is damaged on the way."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from asv_project import HERE, Project

pytest.importorskip("distributed", reason="make test-systems has it")

from fleet_project import (
    DAMAGING,
    PATIENCE,
    SUITES,
    Fleet,
    case_records,
    fleet_at,
    machine_environment,
    make_fleet_project,
    statuses,
    tls_options,
    wait_until,
)

pytestmark = [
    pytest.mark.systems,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with fleet_at(tmp_path / "fleet") as started:
        yield started


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The same project, measured by one `asv run`."""
    home = tmp_path_factory.mktemp("alone")
    path = home / "project"
    project = make_fleet_project(path, machine_environment(home, path))
    project.asv("machine", "--yes")
    project.asv("run", *HERE, code=2)  # each suite has a wrong implementation
    return project


def lines(said: str) -> list[str]:
    return [line.rstrip() for line in said.splitlines()]


def test_a_fleet_measures_what_one_machine_measures(fleet: Fleet, alone: Project) -> None:
    hanging = fleet.folder / "hanging"
    fleet.start("alpha", FLEET_HANGS=str(hanging))
    fleet.start("beta", FLEET_SLOW="0.05")
    fleet.start("gamma", first=DAMAGING)
    run = fleet.begin("--share", "lab")
    fleet.wait_for_hanging(run, hanging)
    fleet.workers["alpha"].kill()
    said, _ = run.communicate(timeout=PATIENCE)

    assert run.returncode == 0, said + fleet.said()
    assert re.search(r"alpha, beta, gamma divide the work: equal within 0.0%", said)
    assert re.search(r"^alpha: \w{8} \w+: it has vanished$", said, re.MULTILINE)
    damaged = r"^gamma: \w{8} \w+: .* is damaged: .*; it is asked for again$"
    assert len(re.findall(damaged, said, re.MULTILINE)) == 1
    assert "3 of 3 shares are measured and kept in .asv/results" in lines(said)
    (machine,) = (path.name for path in alone.results.iterdir() if path.is_dir())
    assert statuses(fleet.project, "lab") == statuses(alone, machine)
    wait_until(lambda: not fleet.processes(), lambda: str(fleet.processes()))
    report = fleet.project.run(sys.executable, "-m", "gpubench", "report")
    page = (Path(report.stdout.splitlines()[-1]).parent / "machines.html").read_text()
    assert "alpha, beta, gamma divide the work: equal within 0.0%" in page
    log = (fleet.project.path / ".asv/fleet/gamma.log").read_text()
    assert any(f"suites.{suite}__wrong" in log for suite in SUITES)


def test_what_a_vanished_machine_leaves_is_named_and_measured_later(fleet: Fleet) -> None:
    hanging = fleet.folder / "hanging"
    fleet.start("alpha", FLEET_HANGS=str(hanging))
    fleet.start("beta")
    run = fleet.begin()
    fleet.wait_for_hanging(run, hanging)
    fleet.workers["alpha"].kill()
    said, _ = run.communicate(timeout=PATIENCE)

    assert run.returncode == 1, said
    assert "3 of 6 shares are measured and kept in .asv/results" in lines(said)
    left = [line for line in lines(said) if line.startswith("not measured: ")]
    assert len(left) == 3
    assert all(" for alpha: " in line for line in left)
    wait_until(lambda: not fleet.processes(), lambda: str(fleet.processes()))

    fleet.start("alpha")
    said = fleet.run("run", "--skip-existing").stdout

    assert "3 of 3 shares are measured and kept in .asv/results" in lines(said)
    assert "beta:" not in re.sub("(?m)^beta: .*existing.*$", "", said)  # it lacks nothing
    assert statuses(fleet.project, "alpha") == statuses(fleet.project, "beta")
    assert "nothing is left to measure" in fleet.run("run", "--skip-existing").stdout


def test_what_a_vanished_machine_had_sent_is_shown_and_not_measured_again(fleet: Fleet) -> None:
    hanging = fleet.folder / "hanging"
    fleet.start("alpha", FLEET_HANGS=str(hanging), FLEET_HANGS_IN="1e-3")  # not in the baselines
    run = fleet.begin()
    fleet.wait_for_hanging(run, hanging)
    finished = {
        (f"suites.{suite}__plain.time_kernel", f"n={n}") for suite in SUITES for n in (8, 16)
    }

    def kept() -> set[tuple[str, str]]:
        if not list(fleet.project.results.glob("*/*.gpubench.jsonl")):
            return set()
        records = case_records(fleet.project, "alpha")
        return {(r.benchmark, r.case) for r in records if r.status == "ok"}

    wait_until(lambda: len(kept()) == 2, fleet.said)
    fleet.workers["alpha"].kill()
    said, _ = run.communicate(timeout=PATIENCE)
    assert run.returncode == 1, said
    assert kept() < finished
    asked = 'select suite, "case" from results where seconds > 0'
    query = fleet.project.run(sys.executable, "-m", "gpubench", "query", asked, "--json")
    shown = {
        (f"suites.{r['suite']}__plain.time_kernel", r["case"]) for r in json.loads(query.stdout)
    }
    assert shown == kept()

    wait_until(lambda: not fleet.processes(), lambda: str(fleet.processes()))
    shutil.rmtree(fleet.folder / "alpha/checkout")  # what it has itself is gone
    fleet.start("alpha")
    before = kept()
    fleet.run("run", "--skip-existing")
    records = case_records(fleet.project, "alpha")
    begun = Counter((r.benchmark, r.case) for r in records if r.status == "started")
    assert kept() >= finished
    assert [begun[place] for place in before] == [1, 1]


@pytest.mark.parametrize("how", ["ctrl-c", "killed"])
def test_the_end_of_the_coordinator_ends_all_tasks(fleet: Fleet, how: str) -> None:
    hanging = fleet.folder / "hanging"
    fleet.start("alpha", FLEET_HANGS=str(hanging))
    run = fleet.begin()
    fleet.wait_for_hanging(run, hanging)
    told = fleet.machines()["alpha"]
    assert re.fullmatch(r"\w{8} \w+", told["does"])
    os.kill(run.pid, signal.SIGINT if how == "ctrl-c" else signal.SIGKILL)
    said, _ = run.communicate(timeout=PATIENCE)

    assert run.returncode == (130 if how == "ctrl-c" else -9), said
    wait_until(lambda: not fleet.processes(), lambda: str(fleet.processes()))
    wait_until(lambda: fleet.machines()["alpha"]["does"] == "", fleet.said)
    assert not list(fleet.project.results.glob("*/*-*.json"))


def test_a_worker_that_is_asked_to_end_ends_all_that_it_started(fleet: Fleet) -> None:
    hanging = fleet.folder / "hanging"
    fleet.start("alpha", FLEET_HANGS=str(hanging))
    run = fleet.begin()
    fleet.wait_for_hanging(run, hanging)
    fleet.workers["alpha"].terminate()

    assert fleet.workers["alpha"].wait(PATIENCE) == 0
    wait_until(lambda: not fleet.processes(), lambda: str(fleet.processes()))
    said, _ = run.communicate(timeout=PATIENCE)
    assert run.returncode == 1, said


def test_what_is_not_committed_is_not_measured(fleet: Fleet) -> None:
    with (fleet.project.path / "suites/adding.yaml").open("a") as suite:
        suite.write("\n")
    said = fleet.run("run", code=2).stdout
    assert said.strip().endswith(
        "gpubench: suites/adding.yaml is not committed, and machines measure what is committed: "
        "commit it first"
    )


FAILING = """
from gpubench.edge.fleet import checkout
checkout.ASV = 'raise SystemExit("no space left on device")'
"""


def test_a_machine_that_fails_is_named_with_its_last_words(fleet: Fleet) -> None:
    fleet.start("alpha", first=FAILING)
    said = fleet.run("run", code=1).stdout
    assert said.count("ended with code 1:\nno space left on device") == 4  # and at the end again
    assert "alpha gets no more: 2 shares in a row failed" in lines(said)
    assert "0 of 3 shares are measured and kept in .asv/results" in lines(said)
    assert len([line for line in lines(said) if line.startswith("not measured: ")]) == 3


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_with_tls_only_who_shows_a_certificate_takes_part(tmp_path: Path) -> None:
    options = partial(tls_options, tmp_path, trusted="ours")
    with fleet_at(tmp_path / "fleet", options("ours")) as fleet:
        assert fleet.address.startswith("tls://")
        fleet.start("alpha")
        assert "3 of 3 shares are measured" in fleet.run("run").stdout
        fleet.tls = options("others")
        assert "no scheduler of Dask answers at tls://" in fleet.run("status", code=2).stdout
        fleet.tls, fleet.address = (), fleet.address.replace("tls://", "tcp://")
        assert "no scheduler of Dask answers at tcp://" in fleet.run("status", code=2).stdout
