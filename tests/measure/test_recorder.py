"""The record lies beside asv's result file and can be read line by line."""

import json

import pytest

from gpubench.errors import GpubenchError
from gpubench.measure.asv_settings import VARIABLE
from gpubench.measure.recorder import Recorder
from gpubench.record import (
    APPENDED,
    CaseRecord,
    RoundsRecord,
    RunRecord,
    parse_line,
    record_name,
    to_line,
)


def test_without_a_file_nothing_is_recorded():
    recorder = Recorder(None)
    recorder.write(RunRecord("2026-01-01T00:00:00+00:00", {}))
    recorder.write_facts("1-2")
    assert list(recorder.backwards("run")) == []


def test_the_facts_of_a_run_are_recorded_once_whatever_is_measured_between(tmp_path):
    recorder = Recorder(tmp_path / "r.jsonl")
    recorder.write_facts("1-2")
    recorder.write(CaseRecord("suites.a__numpy.time_kernel", "n=1", "ok", "2026-01-01"))
    recorder.write_facts("1-2")
    recorder.write_facts("3-4")
    lines = [parse_line(line) for line in recorder.path.read_text().splitlines()]
    runs = [line for line in lines if isinstance(line, RunRecord)]
    assert [run.facts["run"] for run in runs] == ["1-2", "3-4"]
    assert {"cpu", "numpy", "numba", "numpy_blas", "gpubench"} <= runs[0].facts.keys()


def test_a_run_says_whether_asv_adds_its_samples_to_those_before(tmp_path, monkeypatch):
    recorder = Recorder(tmp_path / "r.jsonl")
    recorder.write_facts("1-2")
    monkeypatch.setenv(VARIABLE, '{"append_samples": true}')
    recorder.write_facts("3-4")
    runs = [line for line in recorder.lines() if isinstance(line, RunRecord)]
    assert [run.facts.get(APPENDED) for run in runs] == [None, True]


def test_a_run_says_which_facts_concern_which_backends(tmp_path):
    recorder = Recorder(tmp_path / "r.jsonl")
    recorder.write_facts("1-2")
    concerns = parse_line(recorder.path.read_text()).concerns
    assert "llvmlite" in concerns["numba"]
    assert "driver" in concerns["numba_cuda"]
    assert not any("numpy" in names or "cpu" in names for names in concerns.values())


def test_looking_back_passes_over_what_is_no_line_of_a_record(tmp_path):
    recorder = Recorder(tmp_path / "r.jsonl")
    record = RoundsRecord("suites.a__numpy.time_kernel", "n=1", "2026-01-01", (1.0, 2.0))
    recorder.write(record)
    with recorder.path.open("a") as file:
        file.write('{"kind": "rounds", "format"')
    assert list(recorder.backwards('"rounds"')) == [record]
    assert list(recorder.backwards('"run"')) == []


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
