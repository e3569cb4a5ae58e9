"""A batch of runs is allowed only where time does not depend on what the run before left."""

import pytest
import stateful_kernels
from builders import Recording, case_of

from gpubench.measure.direct import Job, take_turn
from gpubench.measure.times import DISSENT, PAIRS, leftover_ratio
from gpubench.results.ratio import VERDICT_ERROR, paired_speedup

IN_PLACE = """
sizes: {n: [64]}
arrays:
  a: {shape: [n], dtype: float64, fill: FILL, intent: inout}
call: [a]
sampling: {SAMPLING}
baseline: candidate
implementations:
  candidate: {function: stateful_kernels:FUNCTION, backend: scripted}
"""

OUT = """
sizes: {n: [64]}
arrays:
  a: {shape: [n], dtype: float64}
  out: {shape: [n], dtype: float64, intent: out}
call: [a, out]
sampling: {SAMPLING}
baseline: steady
implementations:
  steady: {function: stateful_kernels:steady, backend: scripted}
  candidate: {function: stateful_kernels:FUNCTION, backend: scripted}
"""

QUICK = "rounds: 1, repeat: 5, warmup_time: 0"


def candidate(folder, kernel, function, sampling=QUICK, fill="normal"):
    text = kernel.replace("FUNCTION", function).replace("FILL", fill)
    return case_of(folder, text.replace("SAMPLING", sampling), "candidate")


def measured(folder, kernel, function, sampling=QUICK, fill="normal"):
    return take_turn(Job(candidate(folder, kernel, function, sampling, fill)))


def fresh(record):
    """The warning that each run gets fresh inputs, if there is one."""
    return [words for words in record.warnings if words.startswith("fresh inputs for each run:")]


def test_what_is_sorted_in_place_is_sorted_anew_in_every_run(tmp_path):
    alone = measured(tmp_path, IN_PLACE, "sort_in_place", f"number: 1, {QUICK}")
    batch = measured(tmp_path, IN_PLACE, "sort_in_place")
    assert batch.samples == pytest.approx(alone.samples)
    assert batch.samples[0] > 3e-3
    assert batch.record.runs_per_sample > 1
    assert batch.record.method == "scripted, fresh inputs for each run"
    (words,) = fresh(batch.record)
    assert words.startswith(
        "fresh inputs for each run: on what the runs before left, a run takes 0.000"
    )
    assert words.endswith(" times as long")
    assert (alone.record.method, fresh(alone.record)) == ("scripted", [])


def test_the_runs_of_a_sample_are_still_as_many_as_the_suite_says(tmp_path):
    found = measured(tmp_path, IN_PLACE, "sort_in_place", f"number: 7, {QUICK}")
    assert found.record.runs_per_sample == 7
    assert found.samples[0] > 3e-3
    assert len(fresh(found.record)) == 1


@pytest.mark.parametrize("function", ["increase_in_place", "noisy_in_place"])
def test_a_batch_is_taken_where_time_does_not_depend_on_the_data(tmp_path, function):
    found = measured(tmp_path, IN_PLACE, function)
    assert found.record.method == "scripted"
    assert fresh(found.record) == []


def test_a_run_that_undoes_the_one_before_is_no_way_round(tmp_path):
    found = measured(tmp_path, IN_PLACE, "negate_in_place", fill="uniform")
    assert found.samples == pytest.approx([1e-4] * 5)
    assert len(fresh(found.record)) == 1


@pytest.mark.slow
def test_work_that_is_skipped_where_the_output_holds_the_result_is_done_in_every_run(tmp_path):
    found = measured(tmp_path, OUT, "skips_what_is_done")
    assert found.samples == pytest.approx([1e-3] * 5)
    (words,) = fresh(found.record)
    assert "a run takes 0.0001 times as long" in words


@pytest.mark.parametrize("sampling", [QUICK, f"number: 1, {QUICK}"])
def test_a_sample_of_one_run_finds_no_result_either(tmp_path, sampling):
    function = "skips_a_long_run" if sampling == QUICK else "skips_what_is_done"
    found = measured(tmp_path, OUT, function, sampling)
    assert found.record.runs_per_sample == 1
    assert found.samples == pytest.approx([2e-2 if sampling == QUICK else 1e-3] * 5)


@pytest.mark.slow
def test_pairs_are_of_single_runs_too(tmp_path):
    found = measured(tmp_path, OUT, "skips_what_is_done", f"paired: true, {QUICK}")
    assert set(found.record.pair_ratios) == {1.0}


@pytest.mark.parametrize(
    ("time", "asked"), [("kernel", True), ("launch", True), ("cold", False), ("end_to_end", False)]
)
def test_times_whose_runs_share_arrays_in_a_batch_are_asked(tmp_path, monkeypatch, time, asked):
    monkeypatch.setattr("gpubench.measure.times.leftover_ratio", lambda *_: 0.5)
    recording = Recording(tmp_path, candidate(tmp_path, OUT, "steady"), time)
    measurement = recording.run.prepare()
    assert measurement.method.endswith("fresh inputs for each run") == asked
    assert len(fresh(recording.last)) == asked


class Sampler:
    """Gives these seconds for single runs, one after another; the batch is the first."""

    method, warnings = "scripted", ()

    def __init__(self, *seconds):
        self.batches, self._seconds = [], iter(seconds)

    def seconds(self, runs):
        self.batches.append(runs)
        return 1.0 if len(self.batches) == 1 else next(self._seconds)


class Arrays:
    """Stands where an execution does, and notes what is put into its arrays."""

    changing = ("a",)

    def __init__(self):
        self.put = []

    def fresh(self):
        return "fresh"

    def left(self):
        return "left"

    def putter(self, state):
        return lambda: self.put.append(state)


def in_turn(fresh, left):
    """Seconds in the order in which the two states are taken: the leftover first, then turned."""
    pairs = ((left, fresh), (fresh, left))
    return [seconds for pair in range(PAIRS) for seconds in pairs[pair % 2]]


@pytest.mark.parametrize(("runs", "batch"), [(1000, 1001), (999, 999)])
def test_the_states_take_turns_to_begin_and_a_batch_is_odd(runs, batch):
    arrays, sampler = Arrays(), Sampler(*in_turn(1.0, 3.0))
    assert leftover_ratio(arrays, sampler, runs) == 3.0
    assert sampler.batches == [batch, *[1] * 2 * PAIRS]
    assert arrays.put == ["fresh", *["left", "fresh", "fresh", "left"] * (PAIRS // 2)]


def test_a_few_pairs_are_enough_where_they_do_not_agree():
    arrays = Arrays()
    assert leftover_ratio(arrays, Sampler(*in_turn(1.0, 1.01)), 10) is None
    assert len(arrays.put) == 1 + 2 * (DISSENT + 1)


@pytest.mark.parametrize(("odd", "ratio"), [(DISSENT, 3.0), (DISSENT + 1, None)])
def test_so_many_disturbed_pairs_are_borne(odd, ratio):
    seconds = in_turn(1.0, 3.0)
    seconds[: 2 * odd] = [1.0] * 2 * odd
    assert leftover_ratio(Arrays(), Sampler(*seconds), 10) == ratio


def test_the_pairs_that_agree_have_an_interval_apart_from_one():
    ratios = [1.0] * DISSENT + [3.0] * (PAIRS - DISSENT)
    assert paired_speedup(ratios).low > 1
    assert VERDICT_ERROR == 0.01


def test_what_writes_nothing_needs_no_proof(tmp_path):
    kernel = OUT.replace("  out: {shape: [n], dtype: float64, intent: out}\n", "")
    kernel = kernel.replace("call: [a, out]", "call: [a]\nreturns: [b]").replace(
        "steady", "returns"
    )
    found = measured(tmp_path, kernel, "returns")
    assert found.record.status == "ok"
    assert found.record.warnings == ()


@pytest.fixture(autouse=True)
def first_call(monkeypatch):
    monkeypatch.setattr(stateful_kernels, "calls", stateful_kernels.itertools.count())
