"""No time is ever taken on a device in software, by whichever way a time is asked for."""

import pytest
from builders import Recording
from timed import scripted_cases

from gpubench.backends.scripted import ScriptedBackend, ScriptedSession
from gpubench.measure.case_run import NO_TIMES
from gpubench.measure.direct import jobs, measure, take_turn, twins
from gpubench.measure.outcomes import Skipped
from gpubench.names import TIMES
from gpubench.tables import times

PAIRED = "repeat: 4, paired: true"


class SoftwareSession(ScriptedSession):
    """Says that it is in software, and fails where its time is read."""

    simulated = True

    def sampler(self, call):
        raise AssertionError("a time is taken")

    def ceilings(self):
        raise AssertionError("bandwidth is measured")


@pytest.fixture(autouse=True)
def in_software(monkeypatch):
    """The devices of the scripted backend are in software, its CPU is not."""

    def opened(self, device, threads=None, options=None):
        session = ScriptedSession if device == "cpu" else SoftwareSession
        return session(device, threads)

    monkeypatch.setattr(ScriptedBackend, "open", opened)


def case(folder, sampling="repeat: 4", devices="['scripted:0']"):
    cases = scripted_cases(folder, "one_ms", sampling=sampling, devices=devices)
    return next(case for case in cases if case.implementation_name == "one_ms")


@pytest.mark.parametrize("time", TIMES)
def test_each_labelled_time_is_verified_instead(tmp_path, time):
    recording = Recording(tmp_path, case(tmp_path), time)
    record = recording.refusal(Skipped)
    assert (record.status, record.reason) == ("verified", NO_TIMES)
    assert (record.max_abs_error, record.method, record.pair_ratios) == (0.0, None, ())


def test_paired_mode_takes_no_time_of_a_candidate_in_software(tmp_path):
    record = Recording(tmp_path, case(tmp_path, PAIRED)).refusal(Skipped)
    assert (record.status, record.pair_ratios) == ("verified", ())


def test_paired_mode_takes_no_time_of_a_baseline_in_software(tmp_path, monkeypatch):
    paired = case(tmp_path, PAIRED, "[cpu]")
    baseline = case(tmp_path, PAIRED, "['scripted:0']").baseline()
    recording = Recording(tmp_path, paired)
    monkeypatch.setattr("gpubench.measure.observers.pairs.opponent_of", lambda *_: baseline)
    recording.run.prepare()
    assert recording.last.status == "ok"
    assert recording.last.pair_ratios == ()
    assert "not paired: base runs on softcuda, without times" in recording.last.warnings


def test_the_command_that_times_shows_that_it_is_right_and_no_time(tmp_path):
    work = jobs([case(tmp_path)])
    found = [one for _, one in measure(work, take_turn)]
    rows = times.rows_of(found)
    assert [(row.status, row.seconds) for row in rows] == [("verified", None)] * 2
    (line,) = times.report(rows)
    assert str(line).startswith("  right, no time: 2 cases, first sample base")


def test_a_control_measures_nothing(tmp_path):
    (found,) = twins([case(tmp_path)], 1, take_turn)
    assert (found.succeeded, found.first.samples) == (False, ())
