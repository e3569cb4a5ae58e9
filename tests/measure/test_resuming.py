"""With ``--skip-existing`` asv gets what a stopped run had finished, and nothing is measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_looking_again import Asv, first_call

from gpubench.asv_benchmarks import TimedBenchmark
from gpubench.errors import GpubenchError
from gpubench.measure.asv_settings import AsvSettings
from gpubench.measure.outcomes import WrongResult
from gpubench.plan.expansion import expand
from gpubench.record import CaseRecord, RoundsRecord, to_line

assert first_call  # a fixture, for these tests too

SKIP = {"skip_successful": True, "skip_failed": True}


def run(asv, monkeypatch, name, version="v1", **settings):
    """What asv reads from the timer for each sample of the case in a process of a run."""
    monkeypatch.setattr(
        "gpubench.asv_benchmarks.asv_settings", lambda: AsvSettings(run=name, **settings)
    )
    timed, identity = TimedBenchmark(expand(asv.case.group), "kernel", version), asv.case.identity
    samples = []
    timed.setup(identity)
    try:
        for number in range(timed.repeat):
            if number:
                timed.teardown(identity)
                timed.setup(identity)
            before = timed.elapsed()
            timed.run(identity)
            samples.append(timed.elapsed() - before)
    finally:
        timed.teardown(identity)
    return samples


def measured(asv):
    """How often the case was begun."""
    return [line.status for line in asv.lines if isinstance(line, CaseRecord)].count("started")


@pytest.fixture
def steady(tmp_path, monkeypatch):
    return Asv(tmp_path, monkeypatch, "steady")


def test_asv_gets_the_same_samples_and_the_record_is_whole(steady, monkeypatch):
    taken = run(steady, monkeypatch, "one")
    again = run(steady, monkeypatch, "two", **SKIP)
    assert again == pytest.approx(taken)
    assert measured(steady) == 1
    *_, outcome, rounds = steady.lines
    assert isinstance(outcome, CaseRecord) and (outcome.status, outcome.version) == ("ok", "v1")
    assert isinstance(rounds, RoundsRecord) and rounds.rounds == pytest.approx(taken)


def test_each_process_gets_its_own(steady, monkeypatch):
    first, second = (run(steady, monkeypatch, "one") for _ in range(2))
    second = [2 * seconds for seconds in second]  # scripted, they are all the same
    *before, last = steady.lines
    last = replace(last, rounds=tuple(second))
    steady.recording.path.write_text("".join(map(to_line, (*before, last))))
    given = [run(steady, monkeypatch, "two", **SKIP) for _ in range(2)]
    assert given == [pytest.approx(first), pytest.approx(second)]
    assert measured(steady) == 2
    run(steady, monkeypatch, "two", **SKIP)  # which had no counterpart
    assert measured(steady) == 3


def test_a_later_process_of_a_run_takes_as_many_runs_in_a_sample_as_the_first(steady, monkeypatch):
    def last_measured() -> CaseRecord:
        return [x for x in steady.lines if isinstance(x, CaseRecord) and x.status == "ok"][-1]

    run(steady, monkeypatch, "one")
    first = last_measured()
    changed = replace(first, runs_per_sample=7)
    steady.recording.path.write_text(
        "".join(to_line(changed if line == first else line) for line in steady.lines)
    )
    run(steady, monkeypatch, "one")
    assert last_measured().runs_per_sample == 7
    run(steady, monkeypatch, "two")
    assert last_measured().runs_per_sample == first.runs_per_sample != 7


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"skip_failed": True},
        {"version": "v2", **SKIP},
        {"attributes": {"repeat": 5}, **SKIP},
        {"attributes": {"warmup_time": 0.0}, **SKIP},
        {"append_samples": True, **SKIP},
    ],
    ids=["not asked", "failed only", "another version", "other samples", "warm-up", "appended"],
)
def test_else_it_is_measured(steady, monkeypatch, settings):
    run(steady, monkeypatch, "one")
    run(steady, monkeypatch, "two", **settings)
    assert measured(steady) == 2


def test_what_is_wrong_stays_wrong(tmp_path, monkeypatch):
    asv = Asv(tmp_path, monkeypatch, "wrong_later")
    with pytest.raises(WrongResult, match="right at first"):
        run(asv, monkeypatch, "one")
    with pytest.raises(GpubenchError, match="right at first"):
        run(asv, monkeypatch, "two", **SKIP)
    assert measured(asv) == 1
    assert asv.recording.last.status == "wrong"


def test_samples_beyond_rounds_are_kept(steady, monkeypatch):
    taken = run(steady, monkeypatch, "one", attributes={"repeat": 30})
    rounds = steady.lines[-1]
    assert isinstance(rounds, RoundsRecord)
    assert (len(rounds.rounds), rounds.samples) == (20, pytest.approx(tuple(taken)))
    assert run(steady, monkeypatch, "two", **SKIP) == pytest.approx(taken)
