"""Paired mode: samples of baseline and candidate in turn, and their ratios on record."""

from dataclasses import replace
from itertools import cycle
from time import perf_counter

import pytest
from builders import Recording, case_of
from timed import scripted_cases

from gpubench.asv_benchmarks import benchmark_classes
from gpubench.measure.direct import jobs, measure, take_turn
from gpubench.measure.disturbance import Counters, Crowding, Thread, counters
from gpubench.measure.observers.pairs import (
    BRIEF_ROUNDS,
    PAUSE,
    Pairs,
    _in_one_thread,
    divided,
    in_turn,
    opponent_of,
)
from gpubench.measure.sampling import ROUNDS
from gpubench.record import parse_line, to_line

PAIRS = "gpubench.measure.observers.pairs"
"""The module in which limits and clocks are replaced."""

PAIRED = "repeat: 4, paired: true"

THREADS = """
sizes: {n: [8]}
arrays:
  a: {shape: [n], dtype: float32}
  out: {shape: [n], dtype: float32, intent: out}
call: [a, out]
baseline: base
sampling: {paired: true}
implementations:
  base: {function: timed_kernels:two_ms, backend: scripted, threads: [1]}
  candidate: {function: timed_kernels:one_ms, backend: scripted, threads: [2]}
"""


class Noted:
    """Stands where a measurement does: writes down when it is sampled and moved."""

    def __init__(self, log, name, seconds):
        self.log, self.name, self.samples = log, name, cycle(seconds)
        self.taken = []

    def begin_round(self, *, verified=False):
        self.log.append(f"move {self.name}{' and verify' if verified else ''}")

    def warmed_sample(self):
        self.log.append(self.name)
        self.taken.append(next(self.samples))
        return self.taken[-1]

    restored_sample = warmed_sample


def test_the_sides_take_turns_to_begin():
    log = []
    own, other = Noted(log, "own", [1]), Noted(log, "other", [2, 3, 4])
    assert in_turn(own, other, 1, 3) == Pairs((2.0, 3.0, 4.0), (3,))
    assert log == ["other", "own", "own", "other", "other", "own"]


def test_a_ratio_is_kept_to_seven_digits_and_needs_a_time_above_zero():
    own, other = Noted([], "own", [3.0, 0.0, 2.0]), Noted([], "other", [1.0])
    assert in_turn(own, other, 1, 3) == Pairs((0.3333333, 0.5), (2,))


def test_both_sides_are_moved_before_every_round_but_the_first():
    log = []
    pairs = in_turn(Noted(log, "own", [1]), Noted(log, "other", [2]), 20, 3)
    assert pairs.rounds == (3,) * 20
    moves = [entry for entry in log if entry.startswith("move")]
    assert moves[:2] == log[6:8] == ["move own", "move other"]
    assert len(moves) == 2 * 19
    assert moves.count("move own and verify") == moves.count("move other and verify") == 2


@pytest.mark.parametrize(
    ("samples", "runs", "expected"),
    [
        pytest.param(4, 25, (4, 10, 10), id="ten short pairs for each sample"),
        pytest.param(4, 5, (4, 5, 5), id="of few runs fewer"),
        pytest.param(4, 1, (4, 3, 1), id="and three in a round at least"),
        pytest.param(3 * ROUNDS, 25, (ROUNDS, 30, 10), id="samples share the rounds"),
    ],
)
def test_samples_become_several_pairs_of_shorter_ones(samples, runs, expected):
    assert divided(samples, runs) == expected


def case(folder, name, sampling=PAIRED):
    cases = scripted_cases(folder, "one_ms", "waits_at_times", sampling=sampling)
    return next(case for case in cases if case.implementation_name == name)


def test_a_case_is_paired_with_its_baseline_where_the_suite_asks_for_it(tmp_path):
    paired = case(tmp_path, "one_ms")
    assert opponent_of(paired, "end_to_end") == paired.baseline()
    assert opponent_of(paired, "launch") is None
    assert opponent_of(case(tmp_path, "base"), "kernel") is None
    assert opponent_of(case(tmp_path, "one_ms", "paired: false"), "kernel") is None


def test_the_ratios_are_put_on_record(tmp_path):
    recording = Recording(tmp_path, case(tmp_path, "one_ms"))
    recording.run.prepare()
    assert recording.last.pair_ratios == (2.0,) * 12
    assert recording.last.pair_rounds == (3,) * 4
    assert parse_line(to_line(recording.last)) == recording.last


@pytest.mark.parametrize("samples", [10, 30])
def test_without_being_asked_for_short_runs_on_the_cpu_are_paired_briefly(
    tmp_path, monkeypatch, samples
):
    monkeypatch.setattr(f"{PAIRS}.BRIEF", 4.0)  # 40 rounds of 18 ms, twice
    recording = Recording(tmp_path, case(tmp_path, "one_ms", f"repeat: {samples}"))
    recording.run.prepare()
    rounds = min(2 * samples, BRIEF_ROUNDS)
    assert recording.last.pair_ratios == (2.0,) * 3 * rounds
    assert recording.last.pair_rounds == (3,) * rounds


def test_where_that_takes_long_a_round_is_one_pair_and_rounds_are_fewer(tmp_path, monkeypatch):
    """A pair of 1 and 2 ms, each half warmed by a run, is 6 ms."""
    monkeypatch.setattr(f"{PAIRS}.BRIEF", 0.0625)
    # The moves are real, and slow on a busy machine.
    none = property(lambda measurement: 0.0, lambda measurement, seconds: None)
    monkeypatch.setattr("gpubench.measure.sampling.CaseSampler.move_seconds", none, raising=False)
    recording = Recording(tmp_path, case(tmp_path, "one_ms", "repeat: 20, rounds: 1"))
    recording.run.prepare()
    assert recording.last.pair_rounds == (1,) * 10


def test_a_brief_pair_is_a_tenth_of_a_sample(tmp_path, monkeypatch):
    """By time, and by the number of runs where the suite says it; and the sample is as before."""
    # Whether short pairs fit is measured, and runs are long on a busy machine.
    monkeypatch.setattr(f"{PAIRS}.BRIEF", 2.0)
    sides = []

    def noted(mine, theirs, *more):
        sides.append((mine.runs, theirs.runs))
        return in_turn(mine, theirs, *more)

    monkeypatch.setattr(f"{PAIRS}.in_turn", noted)
    text = THREADS.replace(", threads: [1]", "").replace(", threads: [2]", "")
    for sampling in ("sample_time: 0.02", "number: 20"):
        asked = text.replace("paired: true", f"repeat: 10, {sampling}")
        recording = Recording(tmp_path, case_of(tmp_path, asked, "candidate"))
        assert recording.run.prepare().runs == 20
    assert sides == [(2, 1), (2, 2)]


@pytest.mark.parametrize(
    "sampling",
    [
        pytest.param("repeat: 3", id="too few rounds for an interval"),
        pytest.param("repeat: 10, paired: false", id="not wanted"),
    ],
)
def test_otherwise_nothing_is_paired_without_being_asked_for(tmp_path, sampling):
    recording = Recording(tmp_path, case(tmp_path, "one_ms", sampling))
    recording.run.prepare()
    assert (recording.last.pair_ratios, recording.last.warnings) == ((), ())


@pytest.mark.parametrize(("limit", "value"), [("BRIEF_BYTES", 8), ("BRIEF", 0.01)])
def test_large_arrays_and_long_samples_are_not_paired_either(tmp_path, monkeypatch, limit, value):
    """64 bytes, and ten rounds of three pairs of 2 and 4 ms, warmed."""
    monkeypatch.setattr(f"{PAIRS}.{limit}", value)
    recording = Recording(tmp_path, case(tmp_path, "one_ms", "repeat: 10"))
    recording.run.prepare()
    assert recording.last.pair_ratios == ()


def crowded(monkeypatch, is_crowded):
    monkeypatch.setattr(Crowding, "is_crowded", property(lambda self: is_crowded))


@pytest.mark.parametrize("in_one_thread", [(False,), (True, False)])
def test_work_of_several_threads_is_not_paired_without_being_asked_for(
    tmp_path, monkeypatch, in_one_thread
):
    """Of the case or of its baseline."""
    crowded(monkeypatch, False)
    monkeypatch.setattr(f"{PAIRS}.BRIEF", 4.0)
    asked = iter(in_one_thread)
    monkeypatch.setattr(f"{PAIRS}._in_one_thread", lambda side, **_: next(asked))
    recording = Recording(tmp_path, case(tmp_path, "one_ms", "repeat: 10"))
    recording.run.prepare()
    assert (recording.last.pair_ratios, next(asked, None)) == ((), None)


@pytest.mark.parametrize(("threads", "in_one"), [(1, True), (2, False)])
def test_processor_time_tells_of_threads(monkeypatch, threads, in_one):
    monkeypatch.setattr(f"{PAIRS}.waited", lambda before, after: None)
    monkeypatch.setattr(f"{PAIRS}.process_time", lambda: threads * perf_counter())
    assert _in_one_thread(Noted([], "any", [0.0])) == in_one


def test_other_threads_come_to_rest_before_one_is_counted(monkeypatch):
    """Beside others those of the other side spun for so long that one thread seemed to be two."""
    naps, spins = [], 2

    def counters():
        spun = min(len(naps), spins)
        return Counters(perf_counter(), {"1": Thread(float(spun), float(spun))})

    monkeypatch.setattr(f"{PAIRS}.counters", counters)
    monkeypatch.setattr(f"{PAIRS}.sleep", naps.append)
    assert _in_one_thread(Noted([], "any", [0.0]), rested=True)
    assert naps == [PAUSE] * (spins + 1)


def on_a_crowded_machine(tmp_path, monkeypatch, in_one_thread, sampling="repeat: 10"):
    """The record of a case one sample in four of which takes fifty times as long."""
    crowded(monkeypatch, True)
    asked = iter(in_one_thread)
    monkeypatch.setattr(f"{PAIRS}._in_one_thread", lambda side, **_: next(asked))
    monkeypatch.setattr(f"{PAIRS}.PAUSE", 0.0)
    # A sample that waits for a core, because other tests run beside, is left out.
    monkeypatch.setattr(f"{PAIRS}.waited", lambda before, after: 0.0)
    recording = Recording(tmp_path, case(tmp_path, "waits_at_times", sampling))
    recording.run.prepare()
    return recording.last


@pytest.mark.parametrize("in_one_thread", [(False, True), (True, False)])
def test_on_a_crowded_machine_several_threads_are_not_paired_with_one(
    tmp_path, monkeypatch, in_one_thread
):
    """Of these the several wait for others: 8 times as fast came out as 5 times as slow."""
    briefly = on_a_crowded_machine(tmp_path, monkeypatch, in_one_thread)
    assert (briefly.pair_ratios, briefly.warnings) == ((), ())
    asked = on_a_crowded_machine(tmp_path, monkeypatch, in_one_thread, "repeat: 4, paired: true")
    assert asked.pair_ratios == ()
    assert asked.warnings[-1].startswith("not paired: others kept the cores busy")


@pytest.mark.parametrize(("waited", "others_are_busy", "is_crowded"), [
    (0.06, True, False), (0.65, True, True), (0.65, False, False),
])  # fmt: skip
def test_crowded_is_where_threads_wait_for_others(monkeypatch, waited, others_are_busy, is_crowded):
    """The share of the time that was seen without, and beside one neighbour."""
    now = perf_counter()
    readings = iter([Counters(now, None), Counters(now + 1, None)])
    monkeypatch.setattr("gpubench.measure.disturbance.counters", lambda: next(readings))
    monkeypatch.setattr("gpubench.measure.disturbance.waited", lambda before, after: waited)
    busy = "1.0 of 2 cores are busy" if others_are_busy else None
    monkeypatch.setattr("gpubench.measure.disturbance.busy_since", lambda *_: busy)
    assert Crowding().is_crowded == is_crowded


def test_threads_that_shared_one_core_are_not_taken_for_one_thread(tmp_path, monkeypatch):
    """On a busy machine: the other one waited for seconds."""
    crowded(monkeypatch, False)
    waited = iter(range(1000))
    monkeypatch.setattr(
        f"{PAIRS}.counters",
        lambda: replace(counters(), threads={"1": Thread(0.0, float(next(waited)))}),
    )
    recording = Recording(tmp_path, case(tmp_path, "one_ms", "repeat: 10"))
    recording.run.prepare()
    assert next(waited) > 1
    assert recording.last.pair_ratios == ()


def test_two_thread_counts_of_one_pool_are_not_paired_without_being_asked_for(tmp_path):
    text = THREADS.replace("paired: true", "repeat: 10")
    recording = Recording(tmp_path, case_of(tmp_path, text, "candidate"))
    recording.run.prepare()
    assert (recording.last.pair_ratios, recording.last.warnings) == ((), ())


def test_the_baseline_s_runs_are_its_own(tmp_path):
    """2 ms each, against 1, 2 and 3 ms in turn."""
    (uneven,) = (
        case
        for case in scripted_cases(tmp_path, "uneven", sampling="repeat: 6, paired: true")
        if case.implementation_name == "uneven"
    )
    recording = Recording(tmp_path, uneven)
    recording.run.prepare()
    assert sorted(recording.last.pair_ratios) == [0.6666667] * 6 + [1.0] * 6 + [2.0] * 6


def test_two_thread_counts_of_one_pool_are_not_paired_and_a_warning_says_why(tmp_path):
    recording = Recording(tmp_path, case_of(tmp_path, THREADS, "candidate"))
    recording.run.prepare()
    assert recording.last.pair_ratios == ()
    assert (
        "not paired: candidate runs on 2 threads and base on 1 thread of the same pool, "
        "which a process sets once"
    ) in recording.last.warnings


def test_pairs_of_all_turns_come_together(tmp_path):
    work = jobs(scripted_cases(tmp_path, "one_ms", sampling="rounds: 4, repeat: 10, paired: true"))
    found = dict(measure(work, take_turn))
    ratios = {work[i].case.implementation_name: one.record.pair_ratios for i, one in found.items()}
    assert ratios == {"base": (), "one_ms": (2.0,) * 120}
    (rounds,) = {one.record.pair_rounds for one in found.values() if one.record.pair_ratios}
    assert rounds == (3,) * 40


@pytest.mark.parametrize("paired", [True, False])
def test_a_suite_says_whether_it_is_paired(tmp_path, paired):
    sampling = f"paired: {str(paired).lower()}"
    assert case(tmp_path, "one_ms", sampling).kernel.sampling.paired is paired


def test_asv_hears_nothing_of_pairs(tmp_path):
    scripted_cases(tmp_path, sampling="paired: true, rounds: 3")
    (benchmark,) = benchmark_classes(tmp_path).values()
    assert benchmark.rounds == 3
    assert not hasattr(benchmark, "paired")
