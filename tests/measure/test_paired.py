"""Paired mode: samples of baseline and candidate in turn, and their ratios on record."""

import pytest
from builders import Recording, case_of
from timed import scripted_cases

from gpubench.asv_planning import plan_blueprints
from gpubench.measure.direct import jobs, measure, take_round
from gpubench.measure.paired import Opponent, opponent_of, take_pairs, unpaired_reason
from gpubench.measure.repeats import Repeats
from gpubench.record import parse_line, to_line

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


class Side:
    """One side of the pairs: writes down when it is sampled and restored."""

    def __init__(self, log, name, seconds):
        self.log, self.name, self.samples = log, name, iter(seconds)

    def restored_sample(self):
        self.log.append(self.name)
        return next(self.samples)


def test_the_sides_take_turns_to_begin():
    log = []
    own, other = Side(log, "own", [1, 1, 1]), Side(log, "other", [2, 3, 4])
    assert take_pairs(own, other, Repeats(1, 3, 3, 60.0, 0.0)) == (2.0, 3.0, 4.0)
    assert log == ["other", "own", "own", "other", "other", "own"]


def test_a_ratio_is_kept_to_seven_digits_and_needs_a_time_above_zero():
    own, other = Side([], "own", [3.0, 0.0]), Side([], "other", [1.0, 1.0])
    assert take_pairs(own, other, Repeats(1, 2, 2, 60.0, 0.0)) == (0.3333333,)


def test_a_sample_becomes_several_pairs_of_shorter_ones(tmp_path):
    sampling = "number: 10, warmup_time: 0, repeat: 4, paired: true"
    kernel = THREADS.replace("paired: true", sampling).replace("[2]", "[1]")
    recording = Recording(tmp_path, case_of(tmp_path, kernel, "candidate"))
    assert recording.preparation.prepare().runs == 10
    assert recording.last.pair_ratios == (2.0,) * 40


def case(folder, name, sampling=PAIRED):
    cases = scripted_cases(folder, "one_ms", sampling=sampling)
    return next(case for case in cases if case.implementation_name == name)


def test_a_case_is_paired_with_its_baseline_where_the_suite_asks_for_it(tmp_path):
    paired = case(tmp_path, "one_ms")
    opponent = opponent_of(paired, "end_to_end")
    assert (opponent.case, opponent.time) == (paired.baseline(), "kernel")
    assert opponent_of(paired, "launch") is None
    assert opponent_of(case(tmp_path, "base"), "kernel") is None
    assert opponent_of(case(tmp_path, "one_ms", "repeat: 4"), "kernel") is None


def test_the_ratios_are_put_on_record(tmp_path):
    recording = Recording(tmp_path, case(tmp_path, "one_ms"))
    recording.preparation.prepare()
    assert recording.last.pair_ratios == (2.0, 2.0, 2.0, 2.0)
    assert parse_line(to_line(recording.last)) == recording.last


def test_nothing_is_paired_without_being_asked_for(tmp_path):
    recording = Recording(tmp_path, case(tmp_path, "one_ms", "repeat: 4"))
    recording.preparation.prepare()
    assert recording.last.pair_ratios == ()


def test_each_side_starts_from_the_same_place_in_its_cycle(tmp_path):
    """The baseline's runs are its own: 2 ms each, against 1, 2 and 3 ms in turn."""
    (uneven,) = (
        case
        for case in scripted_cases(tmp_path, "uneven", sampling="repeat: 6, paired: true")
        if case.implementation_name == "uneven"
    )
    recording = Recording(tmp_path, uneven)
    recording.preparation.prepare()
    assert sorted(recording.last.pair_ratios) == [0.6666667, 0.6666667, 1.0, 1.0, 2.0, 2.0]


def test_two_thread_counts_of_one_pool_are_not_paired_and_a_warning_says_why(tmp_path):
    candidate = case_of(tmp_path, THREADS, "candidate")
    reason = unpaired_reason(candidate, Opponent(candidate.baseline()))
    assert reason == (
        "not paired: candidate runs on 2 threads and base on 1 thread of the same pool, "
        "which a process sets once"
    )
    recording = Recording(tmp_path, candidate)
    recording.preparation.prepare()
    assert recording.last.pair_ratios == ()
    assert reason in recording.last.warnings


def test_pairs_of_all_rounds_come_together(tmp_path):
    work = jobs(scripted_cases(tmp_path, "one_ms", sampling="rounds: 4, repeat: 10, paired: true"))
    found = dict(measure(work, take_round))
    ratios = {work[i].case.implementation_name: one.record.pair_ratios for i, one in found.items()}
    assert ratios == {"base": (), "one_ms": (2.0,) * 60}
    assert {job.plan.rounds for job in work} == {20}
    (rounds,) = {one.record.pair_rounds for one in found.values() if one.record.pair_ratios}
    assert rounds == (3,) * 20


@pytest.mark.parametrize("paired", [True, False])
def test_a_suite_says_whether_it_is_paired(tmp_path, paired):
    sampling = f"paired: {str(paired).lower()}"
    assert case(tmp_path, "one_ms", sampling).kernel.sampling.paired is paired


@pytest.mark.parametrize(("sampling", "rounds"), [("", 8), ("rounds: 3", 3)])
def test_asv_takes_eight_rounds_of_a_paired_kernel_unless_it_is_told(tmp_path, sampling, rounds):
    scripted_cases(tmp_path, sampling=f"paired: true, {sampling}")
    (blueprint,) = plan_blueprints(tmp_path, None)
    assert blueprint.attributes["rounds"] == rounds
    assert "paired" not in blueprint.attributes
