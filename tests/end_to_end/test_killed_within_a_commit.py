"""A run that is killed within a commit: asv has stored nothing, and no finished case is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from asv_project import HERE, SPAWNING, Project, isolated_environment
from stepping_project import (
    RUN,
    Place,
    kill,
    lines,
    make_stepping_project,
    processes_of,
    start,
    started,
)

from gpubench.names import BenchmarkName
from gpubench.record import CaseRecord, FinishedProcess, RoundsRecord, finished_runs

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Project:
    """The project, measured in one go."""
    path = tmp_path_factory.mktemp("whole") / "steps"
    project = make_stepping_project(path, isolated_environment(home))
    project.asv(*RUN, code=2)
    return project


@pytest.fixture
def copy(measured: Project, tmp_path: Path) -> Project:
    """The same, not measured."""
    path = measured.copy(tmp_path / "steps").path
    return Project(path, {**measured.environment, "ASV_PYTHONPATH": str(path)})


def timed(project: Project) -> int:
    """Processes that have all of their samples on record."""
    return sum(isinstance(line, RoundsRecord) for line in lines(project))


def stopped_run(project: Project, after: int, how: str, *arguments: str) -> None:
    """Start a run and end it when so many more processes have their samples on record."""
    wanted, begun = timed(project) + after, len(started(project))
    process = start(project, "asv", *RUN, *arguments)
    while process.poll() is None and (timed(project) < wanted or len(started(project)) == begun):
        time.sleep(0.01)
    assert process.poll() is None, "it was not killed but ended"
    assert kill(process, how) != 0


def rows(project: Project) -> dict[Place, dict[str, Any]]:
    """What `gpubench query` answers of each case."""
    columns = 'suite, kernel, implementation, "time", "case", status, seconds, warnings'
    said = project.run("gpubench", "query", f"select {columns} from results", "--json").stdout
    found = {}
    for row in json.loads(said):
        name = BenchmarkName(row["suite"], row["kernel"], row["implementation"], row["time"])
        found[name.asv_name, row["case"]] = row
    return found


def is_unfinished(row: dict[str, Any]) -> bool:
    return any(warning.startswith("unfinished run: ") for warning in row["warnings"] or ())


@pytest.mark.parametrize(
    ("how", "after"),
    [
        ("first", 1),
        pytest.param("all", 0, marks=pytest.mark.thorough),
        ("all", 4),
        ("ctrl-c", 8),
        pytest.param("SIGTERM", 4, marks=pytest.mark.thorough),
        pytest.param("SIGHUP", 2, marks=pytest.mark.thorough),
    ],
)
def test_a_finished_case_is_shown_and_is_not_measured_again(
    measured: Project, copy: Project, how: str, after: int
) -> None:
    stopped_run(copy, after, how)
    assert not copy.has_result("only")
    (finished,) = finished_runs(lines(copy)).values()
    times = {place: of for place, of in finished.items() if of[0].samples}
    assert len(times) >= min(after, 1)
    shown = rows(copy)
    assert {place for place, row in shown.items() if row["status"] == "ok"} == times.keys()
    assert all(is_unfinished(shown[place]) for place in times)
    for place, processes in times.items():
        assert shown[place]["seconds"] == pytest.approx(middle(processes))
    assert copy.run("gpubench", "report").returncode == 0
    record, last = bytes_of_record(copy), lines(copy)[-1]
    cut = (last.benchmark, last.case) if isinstance(last, CaseRecord) else None
    assert not copy.has_result("only")  # nobody but asv writes it

    copy.asv(*RUN, "--skip-existing", code=2)

    assert bytes_of_record(copy).startswith(record)
    assert copy.times("only").keys() == measured.times("only").keys()
    for place, processes in times.items():
        begun = started(copy).count(place)  # by both runs together
        assert begun == started(measured).count(place) + (place == cut), place
        taken = copy.times("only")[place]
        assert taken is not None
        if begun == len(processes):
            assert taken == pytest.approx(middle(processes))
    shown = rows(copy)
    assert not any(map(is_unfinished, shown.values()))
    assert {row["status"] for row in shown.values()} == {"ok", "failed"}


def test_runs_that_are_killed_one_after_the_other_get_to_the_end(
    measured: Project, copy: Project
) -> None:
    stopped_run(copy, 2, "all")
    stopped_run(copy, 4, "all", "--skip-existing")  # two of them are the first run's
    stopped_run(copy, 6, "all", "--skip-existing")

    assert not copy.has_result("only")
    copy.asv(*RUN, "--skip-existing", code=2)

    finished = [key for key, of in finished_runs(lines(measured)).popitem()[1].items() for _ in of]
    again = [place for place in started(copy) if started(copy).count(place) > finished.count(place)]
    assert len({*again}) <= 3  # those that were being measured when a run was killed
    assert all(
        seconds is not None or "failing" in name
        for (name, _), seconds in copy.times("only").items()
    )


def test_who_does_not_ask_to_skip_measures_anew(copy: Project) -> None:
    stopped_run(copy, 3, "all")
    copy.asv(*RUN, "--bench", "twice__numpy")
    assert started(copy).count(("suites.steps__twice__numpy.time_kernel", "n=8")) == 3


def test_what_asv_rm_removes_is_unfinished_and_comes_back_unmeasured(
    measured: Project, tmp_path: Path
) -> None:
    path = measured.copy(tmp_path / "steps", results=True).path
    project = Project(path, {**measured.environment, "ASV_PYTHONPATH": str(path)})
    record, times = started(project), project.times("only")
    removed = "suites.steps__add__numpy.time_kernel"
    project.asv("rm", "-y", f"benchmark={removed}")

    assert removed not in {name for name, _ in project.times("only")}
    shown = rows(project)
    assert {name for (name, _), row in shown.items() if is_unfinished(row)} == {removed}
    project.asv(*RUN, "--skip-existing")
    again = project.times("only")
    assert again.keys() == times.keys()
    for place, seconds in times.items():
        assert again[place] == (None if seconds is None else pytest.approx(seconds))
    assert started(project) == record


ENDING = 60.0
"""Seconds that processes may take to be gone on a busy machine."""

HANGING = """\
version: 1
suite: hanging
kernels:
  sleep:
    arrays: {a: {shape: [8], dtype: float64, fill: normal, intent: inout}}
    call: [a]
    implementations:
      numpy: {function: "hanging_kernels:sleep", backend: numpy}
    sampling: {timeout: 3600}
"""


def children(process: int) -> str:
    return Path(f"/proc/{process}/task/{process}/children").read_text()


def killed_with_all_it_started(process: subprocess.Popen[bytes]) -> bool:
    """Kill asv alone, as by a lack of memory; whether all that it had started ends."""
    session = process.pid
    try:
        process.kill()
        process.wait()
        end = time.monotonic() + ENDING
        while (left := processes_of(session)) and time.monotonic() < end:
            time.sleep(0.02)
        return not left
    finally:
        for one in processes_of(session):
            os.kill(one, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="a process ends with its parent on Linux alone")
def test_what_asv_forks_for_each_case_ends_with_it_between_two_cases(copy: Project) -> None:
    process = start(copy, "asv", *RUN)
    while process.poll() is None and not timed(copy):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGSTOP)  # it gives no further case
    # asv's own process has a child, which forks one for each case.
    while children(server := int(children(process.pid))):
        time.sleep(0.01)
    assert processes_of(process.pid) == [process.pid, server]

    assert killed_with_all_it_started(process)


@pytest.mark.skipif(sys.platform != "linux", reason="a process ends with its parent on Linux alone")
@pytest.mark.parametrize("here", [SPAWNING, HERE], ids=["spawned", "forked"])
def test_a_case_ends_with_asv(copy: Project, here: tuple[str, ...]) -> None:
    """The limit of its time is asv's to keep."""
    (copy.path / "suites/hanging.yaml").write_text(HANGING)
    kernels = "import time\n\n\ndef sleep(a):\n    time.sleep(3600)\n"
    (copy.path / "hanging_kernels.py").write_text(kernels)
    process = start(copy, "asv", "run", *here, "--bench", "hanging")
    while process.poll() is None and not (copy.results.exists() and started(copy)):
        time.sleep(0.01)

    assert killed_with_all_it_started(process)


def middle(processes: list[FinishedProcess]) -> float:
    """Median of their samples together, as asv takes it."""
    return median(seconds for process in processes for seconds in process.samples)


def bytes_of_record(project: Project) -> bytes:
    (file,) = project.results.glob("*/*.gpubench.jsonl")
    return file.read_bytes()
