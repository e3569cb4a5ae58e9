"""Pairs on record: those of all rounds of a run, and the speedup that comes from them."""

import pytest

from gpubench.analysis.baseline import compare
from gpubench.record import CaseRecord, RunRecord, to_line
from gpubench.results.model import CaseName, Outcome, Timing
from gpubench.results.records import read_record
from gpubench.results.samples import outcome, timing

BENCHMARK = "suites.scale__numba.time_kernel"


def line(status, *ratios):
    return CaseRecord(BENCHMARK, "n=8", status, "2026-01-01T00:00:00+00:00", pair_ratios=ratios)


def run(number):
    return RunRecord("2026-01-01T00:00:00+00:00", {"run": number})


def told(folder, *records):
    path = folder / "record.gpubench.jsonl"
    path.write_text("".join(map(to_line, records)))
    outcome = read_record(path).whole.told[BENCHMARK, "n=8"].outcome
    return outcome.pair_ratios, outcome.pair_rounds


def test_the_rounds_of_one_run_come_together(tmp_path):
    rounds = (line("started"), line("ok", 2.0, 2.1), line("started"), line("ok", 2.2))
    assert told(tmp_path, run(1), *rounds) == ((2.0, 2.1, 2.2), (2, 1))


def test_a_line_that_is_written_again_counts_once(tmp_path):
    again = (line("started"), line("ok", 2.0, 2.1), line("ok", 2.0, 2.1))
    assert told(tmp_path, run(1), *again, *again) == ((2.0, 2.1, 2.0, 2.1), (2, 2))


def test_another_run_begins_anew(tmp_path):
    first, second = (line("started"), line("ok", 1.0)), (line("started"), line("ok", 3.0))
    assert told(tmp_path, run(1), *first, run(2), *second) == ((3.0,), (1,))


def test_pairs_come_before_the_ratio_of_the_medians():
    names = [CaseName("scale", "scale", name, "kernel", "n=8") for name in ("numpy", "numba")]
    baseline = Outcome(names[0], "ok", timing=Timing(4.0, 3.9, 4.1))
    candidate = timing([1.0] * 10)
    unpaired = Outcome(names[1], "ok", timing=candidate)
    paired = Outcome(names[1], "ok", timing=candidate, record=line("ok", *[2.0] * 10))

    def speedup(other):
        return compare({names[0]: baseline, names[1]: other})[names[1]].speedup

    assert speedup(unpaired).value == 4.0
    assert (speedup(paired).value, speedup(paired).verdict) == (2.0, "faster")


def test_samples_become_the_timing_that_asv_would_store():
    found = timing([5.0, *map(float, range(1, 10))], 7)
    assert (found.median, found.low, found.high) == (5.0, 1.0, 9.0)
    assert (found.q25, found.q75, found.number, found.repeat) == (3.25, 6.75, 7, 10)


@pytest.mark.parametrize(
    ("record", "samples", "status", "reason"),
    [
        (line("ok"), [1.0], "ok", None),
        (line("ok"), [], "killed", "it gave no samples"),
        (line("started"), [1.0], "killed", "it gave no samples"),
        (line("wrong"), [], "wrong", "it gave no samples"),
    ],
)
def test_a_case_measured_without_asv_has_an_outcome(record, samples, status, reason):
    found = outcome(record, samples)
    assert (found.status, found.reason) == (status, reason)
    assert (found.timing is None) == (status != "ok")
