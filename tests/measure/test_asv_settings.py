"""What asv was asked for: as the plugin reads it, and as the processes know that asv starts."""

import json
import os
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from gpubench import asv_plugin
from gpubench.measure.asv_settings import (
    NO_PLUGIN,
    VARIABLE,
    AsvSettings,
    asv_settings,
    say_if_without_plugin,
)
from gpubench.measure.recorder import Recorder
from gpubench.record import SUFFIX, CaseRecord, RoundsRecord, RunRecord, finished_runs

COMMIT = "0123456789" * 4
FORKING = ["benchmark.py", "run_server", "benchmarks", "socket"]


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    for name in (VARIABLE, "ASV_CONF_DIR", "ASV_COMMIT", "ASV_ENV_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(asv_plugin, "busy_since", lambda before: None)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Make a repository with a configuration of asv, and a machine that asv has a name for."""
    home = tmp_path / "home"
    home.mkdir()
    machine = {"machine": "desk", "os": "", "arch": "", "cpu": "", "num_cpu": "", "ram": ""}
    (home / ".asv-machine.json").write_text(json.dumps({"desk": machine, "version": 1}))
    monkeypatch.setenv("HOME", str(home))
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "asv.conf.json").write_text(
        '{"version": 1, "repo": ".", // of this folder\n "results_dir": "kept"}'
    )
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run([*git, "init", "--quiet", "-b", "main"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "one"], check=True)
    subprocess.run([*git, "tag", "release"], check=True)
    return folder


def exported(monkeypatch, *words):
    """Return what a process knows that asv starts when it is called with these words."""
    monkeypatch.setattr(sys, "argv", ["asv", *words])
    asv_plugin.export_settings()
    return asv_settings()


@pytest.mark.parametrize(
    ("words", "attributes"),
    [
        (["run"], {}),
        (["run", "-a", "sample_time=0.1", "-a", "rounds=6"], {"sample_time": 0.1, "rounds": 6}),
        (["run", "-arepeat=(1,9,2.5)"], {"repeat": [1, 9, 2.5]}),
        (
            ["run", "--att", "processes=4", "--cpu-affinity", "0"],
            {"rounds": 4, "cpu_affinity": [0]},
        ),
        (["run", "-q"], asv_plugin.QUICK),
        (["continuous", "-f", "1.1", "main", "main", "-a", "rounds=3"], {"rounds": 3}),
    ],
)
def test_attributes_are_those_that_asv_sets(project, monkeypatch, words, attributes):
    assert exported(monkeypatch, *words).attributes == attributes


@pytest.mark.parametrize(
    ("words", "appended"),
    [
        (["run"], False),
        (["run", "--record-samples"], False),
        (["run", "--append-samples"], True),
        (["continuous", "--append-samples", "main", "main"], True),
    ],
)
def test_a_run_that_adds_to_stored_samples_is_known(project, monkeypatch, words, appended):
    assert exported(monkeypatch, *words).append_samples is appended


@pytest.mark.parametrize(
    ("words", "patterns"),
    [
        (["-v", "run"], ()),
        (["run", "-b", "add", "--bench=mul", "HEAD^!"], ("add", "mul")),
        (["find", "a..b", "suites.add"], ("suites.add",)),
    ],
)
def test_benchmarks_that_are_asked_for_are_handed_on(project, monkeypatch, words, patterns):
    assert exported(monkeypatch, *words).benchmarks == patterns


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--dry-run", "HEAD^!"],
        ["run", "-qn"],
        ["find", "--skip-save", "a..b", "x"],
        ["profile", "x"],
        ["check"],
    ],
)
def test_a_command_that_keeps_no_results_has_no_record(project, monkeypatch, words):
    settings = exported(monkeypatch, *words)
    monkeypatch.setenv("ASV_COMMIT", COMMIT)
    assert (settings.results_dir, settings.record) == (None, None)


def test_the_record_lies_beside_the_result_file_of_an_environment(project, monkeypatch):
    settings = exported(monkeypatch, "run")
    monkeypatch.setenv("ASV_COMMIT", COMMIT)
    monkeypatch.setenv("ASV_ENV_NAME", "virtualenv-py3.11")
    assert settings.record == project / "kept/desk/01234567-virtualenv-py3.11.gpubench.jsonl"


def test_an_existing_python_keeps_results_only_under_a_commit_that_is_set(project, monkeypatch):
    assert exported(monkeypatch, "run", "--python=same").record is None
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    settings = exported(monkeypatch, "run", "--python=same", "--set-commit-hash", "release")
    assert settings.commit == head.stdout.strip()
    python = sys.executable.replace("/", "_")
    assert settings.record.name == f"{head.stdout[:8]}-existing-py{python}.gpubench.jsonl"


def test_a_commit_that_is_set_comes_before_the_one_that_is_measured(project, monkeypatch):
    settings = exported(monkeypatch, "run", "--set-commit-hash", "release")
    monkeypatch.setenv("ASV_COMMIT", COMMIT)
    assert settings.record.name.startswith(settings.commit[:8])


def test_a_commit_that_git_does_not_know_is_said_and_leaves_asv_alone(
    project, monkeypatch, capsys, caplog
):
    settings = exported(monkeypatch, "run", "--set-commit-hash", "nowhere")
    assert settings == AsvSettings()
    assert "gpubench: no record is kept: nowhere" in caplog.text
    monkeypatch.setattr(sys, "argv", FORKING)
    say_if_without_plugin()
    assert capsys.readouterr().err == ""


def test_another_configuration_has_other_results(project, monkeypatch):
    (project / "other.json").write_text('{"version": 1, "repo": ".", "results_dir": "others"}')
    settings = exported(monkeypatch, "--config", "elsewhere/other.json", "run")
    assert settings.results_dir == str(project / "others")


def test_a_machine_has_the_name_that_asv_is_given(project, monkeypatch):
    file = project.parent / "home/.asv-machine.json"
    machines = json.loads(file.read_text())
    machines["server"] = {**machines["desk"], "machine": "server"}
    file.write_text(json.dumps(machines))
    assert exported(monkeypatch, "run", "--machine", "server").machine == "server"


@pytest.mark.parametrize(
    ("words", "configured", "seconds"),
    [(["run"], None, 60.0), (["run"], 7.5, 7.5), (["run", "-a", "timeout=90"], 7.5, 90.0)],
)
def test_the_timeout_is_the_one_that_asv_will_use(project, monkeypatch, words, configured, seconds):
    content = {"version": 1, "repo": "."}
    if configured is not None:
        content["default_benchmark_timeout"] = configured
    (project / "asv.conf.json").write_text(json.dumps(content))
    assert exported(monkeypatch, *words).timeout == seconds


def test_a_plugin_of_another_release_is_understood_as_far_as_it_goes(monkeypatch):
    monkeypatch.setenv(VARIABLE, '{"run": "1-2", "benchmarks": ["a"], "of_a_later_release": 1}')
    assert asv_settings() == AsvSettings(run="1-2", benchmarks=("a",))


def test_each_command_is_a_run_of_its_own(project, monkeypatch):
    clock = SimpleNamespace(time=iter([1.0, 2.0]).__next__)
    monkeypatch.setattr(asv_plugin, "time", clock)
    assert exported(monkeypatch, "run").run != exported(monkeypatch, "run").run


@pytest.mark.parametrize("words", [["-q", "tests"], ["--help"], []])
def test_in_a_process_that_is_not_asv_s_nothing_is_exported(monkeypatch, capsys, words):
    assert exported(monkeypatch, *words) == AsvSettings()
    assert VARIABLE not in os.environ
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(FORKING, True), (["benchmark.py", "run", "b", "x-0"], True), (["pytest", "tests"], False)],
)
def test_a_run_without_the_plugin_says_which_line_to_add(monkeypatch, capsys, arguments, said):
    monkeypatch.setattr(sys, "argv", arguments)
    say_if_without_plugin()
    assert capsys.readouterr().err == (f"{NO_PLUGIN}\n" if said else "")
    assert '"plugins": [".gpubench.asv_plugin"]' in NO_PLUGIN


def test_what_cases_compiled_anew_is_said_once_at_the_end_of_a_run(project, monkeypatch):
    settings = exported(monkeypatch, "run")
    recorder = Recorder(project / "kept" / "desk" / f"{COMMIT[:8]}-environment{SUFFIX}")

    def case(identity, seconds):
        conditions = {"compile_seconds": seconds}
        name = "suites.sort__numba.time_kernel"
        return CaseRecord(name, identity, "ok", "now", conditions=conditions)

    for run, seconds in (("of another", 40.0), (settings.run, 1.5)):
        recorder.write(RunRecord("now", {"run": run}))
        for line in (case("n=8", seconds), case("n=8", seconds), case("n=16", seconds)):
            recorder.write(line)
    said = []
    monkeypatch.setattr(asv_plugin.log, "info", said.append)
    asv_plugin.say_what_is_compiled_anew()
    assert [line.replace("\N{NARROW NO-BREAK SPACE}", " ") for line in said] == [
        "gpubench: 3.00 s went into compiling sort numba, which is done again in every process; "
        "with `cache=True` Numba keeps the code"
    ]


@pytest.mark.parametrize("jump", [-3600, 3600], ids=["back", "forward"])
def test_lines_of_a_run_are_read_however_clocks_jump(project, monkeypatch, jump):
    recorder = Recorder(project / "kept" / "desk" / f"{COMMIT[:8]}-environment{SUFFIX}")
    other = Recorder(project / "kept" / "desk" / f"{COMMIT[:7]}0-environment{SUFFIX}")
    for each in (recorder, other):
        each.write(RunRecord("now", {"run": "of another"}))
    settings = exported(monkeypatch, "run")
    recorder.write(RunRecord("now", {"run": settings.run}))
    recorder.write(RoundsRecord("suites.sort__numba.time_kernel", "n=8", "now", (1.0,)))
    for each in (recorder, other):
        os.utime(each.path, (time.time() + jump,) * 2)

    read = []
    lines = Recorder.backwards
    monkeypatch.setattr(
        Recorder, "backwards", lambda self, *words: read.append(self.path) or lines(self, *words)
    )
    assert [line.case for _, line in asv_plugin._lines_of_run("rounds")] == ["n=8"]
    assert read == [recorder.path]  # of what has not grown nothing is read


def test_who_lost_its_device_is_said_at_the_end_of_a_run(project, monkeypatch):
    """By an address at which nobody answers; a case that goes on may be ended by anything else."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        lost = f"ray:127.0.0.1:{nobody.getsockname()[1]}"
        settings = exported(monkeypatch, "run")
        recorder = Recorder(project / "kept" / "desk" / f"{COMMIT[:8]}-environment{SUFFIX}")
        name = "suites.sort__ray.time_kernel"
        begun = [("n=8", "cpu"), *((case, lost) for case in ("n=16", "n=32", "n=64", "n=128"))]
        recorder.write(RunRecord("now", {"run": "of another"}))
        recorder.write(CaseRecord(name, "n=4", "started", "now", backend="ray", device=lost))
        recorder.write(RunRecord("now", {"run": settings.run}))
        for case, device in begun:
            for status in ("started", "ok") if case in ("n=32", "n=64") else ("started",):
                line = CaseRecord(name, case, status, "now", backend="ray", device=device)
                recorder.write(line)
        recorder.write(RoundsRecord(name, "n=64", "now", (1.0,)))
        recorder.write(CaseRecord(name, "n=128", "failed", "now", backend="ray", device=lost))
        before = recorder.lines()
        asv_plugin.record_what_was_lost()
    lines = recorder.lines()
    assert lines[: len(before)] == before
    assert [(line.case, line.status) for line in lines[len(before) :]] == [
        ("n=16", "killed"),
        ("n=32", "killed"),
    ]
    reason = f"its process ended without an outcome; {lost} lost its head: nothing answers at "
    assert all(line.reason.startswith(reason) for line in lines[len(before) :])
    (finished,) = (of for run, of in finished_runs(lines).items() if run == settings.run)
    assert finished.keys() == {(name, "n=64"), (name, "n=128")}
