"""What asv's command line tells of a run, and where the record of such a run belongs."""

import os
import subprocess
import sys

import pytest

from gpubench.measure import asv_command
from gpubench.measure.asv_command import asv_attributes, parsed, started_by_asv
from gpubench.measure.asv_record import asv_timeout, record_path

PYTHON = "/usr/bin/python3"
ENVIRONMENT = "virtualenv-py3.11"
SPAWNED = ["benchmark.py", "run", "benchmarks", "suites.a__numpy.time_kernel-0", "{}", "None", "f"]
FORKED = ["benchmark.py", "run_server", "benchmarks", "socket"]


@pytest.fixture
def processes(tmp_path, monkeypatch):
    """Puts command lines above this process: its parent's first."""
    proc, project = tmp_path / "proc", tmp_path / "project"
    (project / "results/desk").mkdir(parents=True)
    (project / "results/desk/machine.json").write_text("{}")
    monkeypatch.setattr(asv_command, "PROC", proc)
    for name in ("ASV_CONF_DIR", "ASV_COMMIT", "ASV_ENV_NAME"):
        monkeypatch.delenv(name, raising=False)

    def put(*lines):
        numbers = [os.getppid(), *range(900_000, 900_000 + len(lines))]
        for number, parent, line in zip(numbers, numbers[1:], lines, strict=False):
            folder = proc / str(number)
            folder.mkdir(parents=True)
            (folder / "cmdline").write_text("".join(f"{word}\0" for word in line))
            (folder / "stat").write_text(f"{number} (a (b) c) S {parent} 1 1")
            (folder / "cwd").symlink_to(project)
        return project

    return put


def asv(*words):
    return [PYTHON, "/venv/bin/asv", *words]


def in_an_environment(project, monkeypatch):
    """What asv puts into the environment of a Python that it made."""
    monkeypatch.setenv("ASV_CONF_DIR", str(project))
    monkeypatch.setenv("ASV_COMMIT", "0123456789abcdef")
    monkeypatch.setenv("ASV_ENV_NAME", ENVIRONMENT)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run"], {"name": "run"}),
        (["-v", "run", "--bench", "add", "-e"], {"name": "run", "discards": False}),
        (["run", "-b", "add", "--bench=mul", "HEAD^!"], {"benchmarks": ("add", "mul")}),
        (["--help"], None),
        (["run", "--dry-run", "HEAD^!"], {"discards": True}),
        (["run", "--dry", "--att", "rounds=2"], {"discards": True, "attributes": {"rounds": 2}}),
        (["run", "-qn"], {"discards": True, "attributes": asv_command.QUICK}),
        (["find", "--skip-save", "a..b", "x"], {"name": "find", "discards": True}),
        (["--config", "/far/other.json", "run"], {"name": "run", "config": "other.json"}),
        (["run", "--config=../other.json", "-v"], {"config": "other.json"}),
        (["run", "--set-commit-hash", "v1", "--python", "same"], {"commit": "v1"}),
        (["run", "--bench", "-n", "-a", "rounds=3"], None),
        (["continuous", "-f", "1.1", "a", "b", "-a", "rounds=3"], {"attributes": {"rounds": 3}}),
        (
            ["run", "-arepeat=(1,9,2.5)", "--attribute", "sample_time=0.1", "-a", "version=x"],
            {"attributes": {"repeat": [1, 9, 2.5], "sample_time": 0.1, "version": "x"}},
        ),
        (["run", "-a", "processes=4", "--cpu-affinity", "0-3"], {"attributes": {"rounds": 4}}),
    ],
)
def test_arguments_are_read_as_asv_reads_them(words, expected, tmp_path):
    found = parsed(words, tmp_path)
    if expected is None:
        assert found is None
    else:
        assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    "above",
    [
        [asv("run", "-n")],
        [[PYTHON, "-m", "asv", "run", "-n"]],
        [[PYTHON, "/venv/lib/asv/benchmark.py", "run_server", "b", "s"], asv("run", "-n")],
        [[PYTHON, "wrapper.py"], [PYTHON, "-m", "coverage", "run", "-m", "asv", "run", "-n"]],
    ],
)
def test_asv_is_found_above_what_it_started(above, processes):
    project = processes(*above)
    found = asv_command.asv_command()
    assert (found.name, found.discards, found.folder) == ("run", True, project)


def test_no_command_is_known_where_nothing_above_is_asv(processes):
    processes(["/bin/bash"], ["/usr/bin/make", "bench"])
    assert asv_command.asv_command() is None
    assert record_path() is None


def test_attributes_reach_processes_that_are_spawned_and_those_that_are_forked(processes):
    processes(asv("run", "-a", "sample_time=0.5"))
    spawned = [*SPAWNED[:4], '{"sample_time": 0.25}', *SPAWNED[5:]]
    assert asv_attributes(spawned) == {"sample_time": 0.25}
    assert asv_attributes(FORKED) == {"sample_time": 0.5}
    assert asv_attributes(["pytest", "-q"]) == {}
    assert [started_by_asv(words) for words in (spawned, FORKED, ["pytest"])] == [True, True, False]


@pytest.mark.parametrize(
    "words", [("run", "--dry-run"), ("profile", "x"), ("find", "--skip-save", "a..b", "x")]
)
def test_no_record_is_kept_where_asv_keeps_no_results(words, processes, monkeypatch):
    in_an_environment(processes(asv(*words)), monkeypatch)
    assert record_path() is None


def test_an_existing_python_keeps_results_only_under_a_commit_that_is_set(processes):
    processes(asv("run", "--python=same"))
    assert record_path() is None


def test_the_record_of_an_existing_python_lies_beside_its_result_file(processes):
    full = "0123456789" * 4
    project = processes(asv("run", "--python=same", "--set-commit-hash", full))
    python = sys.executable.replace("/", "_")
    assert record_path() == project / f"results/desk/01234567-existing-py{python}.gpubench.jsonl"


def test_a_commit_that_is_set_comes_before_the_one_that_is_measured(processes, monkeypatch):
    project = processes(asv("run", "--set-commit-hash", "release"))
    (project / "asv.conf.json").write_text('{"repo": "code", "results_dir": "results"}')
    (project / "code").mkdir()
    git = ["git", "-C", str(project / "code"), "-c", "user.name=x", "-c", "user.email=x@x"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "one"], check=True)
    subprocess.run([*git, "tag", "release"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    in_an_environment(project, monkeypatch)
    assert record_path().name == f"{head.stdout[:8]}-{ENVIRONMENT}.gpubench.jsonl"


def test_a_commit_that_cannot_be_found_is_told(processes, monkeypatch, capsys):
    project = processes(asv("run", "--set-commit-hash", "nowhere"))
    (project / "asv.conf.json").write_text('{"repo": "code", "project": "clone"}')
    in_an_environment(project, monkeypatch)
    monkeypatch.setattr(sys, "argv", SPAWNED)
    assert record_path() is None
    assert capsys.readouterr().err == (
        "gpubench: no record is kept: git knows no commit 'nowhere' in code or clone; "
        "give --set-commit-hash all 40 digits\n"
    )


def test_another_configuration_has_other_results(processes, monkeypatch):
    project = processes(asv("run", "--config", "/elsewhere/other.json"))
    (project / "asv.conf.json").write_text('{"results_dir": "results"}')
    (project / "other.json").write_text("{results_dir: 'kept/here', // json5\n}")
    in_an_environment(project, monkeypatch)
    assert record_path().parent.parent == project / "kept/here"


@pytest.mark.parametrize(
    ("words", "configuration", "seconds"),
    [
        (["run"], "{}", 60.0),
        (["run"], '{"default_benchmark_timeout": 7.5}', 7.5),
        (["run", "-a", "timeout=90"], '{"default_benchmark_timeout": 7.5}', 90.0),
    ],
)
def test_the_timeout_is_the_one_that_asv_will_use(words, configuration, seconds, processes):
    project = processes(asv(*words))
    (project / "asv.conf.json").write_text(configuration)
    assert asv_timeout(asv_attributes(FORKED)) == seconds
