"""The record lies beside asv's result file and can be read line by line."""

import json

import pytest

from gpubench.errors import GpubenchError
from gpubench.measure.recorder import Recorder, recorder_of_asv
from gpubench.record import CaseRecord, RunRecord, parse_line, record_name, to_line


@pytest.fixture
def asv_project(tmp_path, monkeypatch):
    (tmp_path / "asv.conf.json").write_text(
        '{\n  // "results_dir": "commented",\n  "results_dir": ".asv/results"\n}'
    )
    monkeypatch.setenv("ASV_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("ASV_COMMIT", "0123456789abcdef")
    monkeypatch.setenv("ASV_ENV_NAME", "virtualenv-py3.11-numba")
    return tmp_path


def begin_run(project, machine, when):
    folder = project / ".asv" / "results" / machine
    folder.mkdir(parents=True)
    (folder / "machine.json").write_text("{}")
    import os

    os.utime(folder / "machine.json", (when, when))


def test_the_record_belongs_to_the_machine_whose_run_began_last(asv_project):
    begin_run(asv_project, "desk", 1000)
    begin_run(asv_project, "server", 2000)
    assert recorder_of_asv().path == (
        asv_project / ".asv/results/server/01234567-virtualenv-py3.11-numba.gpubench.jsonl"
    )


def test_outside_asv_nothing_is_recorded(monkeypatch):
    for name in ("ASV_CONF_DIR", "ASV_COMMIT", "ASV_ENV_NAME"):
        monkeypatch.delenv(name, raising=False)
    recorder = recorder_of_asv()
    assert recorder.path is None
    recorder.write(RunRecord("2026-01-01T00:00:00+00:00", {}))


def test_long_environment_names_are_hashed_as_asv_does():
    from asv.results import get_filename

    for environment in ("short", "x" * 128):
        asv_name = get_filename("m", "0123456789", environment).removeprefix("m/")
        assert record_name("0123456789", environment) == asv_name.replace(
            ".json", ".gpubench.jsonl"
        )


def test_a_line_comes_back_as_it_was_written(tmp_path):
    record = CaseRecord(
        "suites.a__numpy.time_kernel", "n=1", "ok", "2026-01-01", block=(4, 1, 1), warnings=("w",)
    )
    recorder = Recorder(tmp_path / "new" / "folder" / "r.jsonl")
    recorder.write(record)
    recorder.write(RunRecord("2026-01-01", {"cpu": "x"}))
    lines = recorder.path.read_text().splitlines()
    assert [parse_line(line) for line in lines] == [record, RunRecord("2026-01-01", {"cpu": "x"})]


def test_a_later_field_is_ignored_and_a_foreign_line_is_refused():
    line = json.loads(to_line(RunRecord("2026-01-01", {})))
    assert parse_line(json.dumps({**line, "new": 1})) == RunRecord("2026-01-01", {})
    for foreign in ("{", "[]", "{}", '{"format": 99, "kind": "run"}', '{"format": 1, "kind": "x"}'):
        with pytest.raises(GpubenchError):
            parse_line(foreign)
