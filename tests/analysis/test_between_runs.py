"""The rule between two stored runs, on simulated processes with heavy tails."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpubench.analysis.between_runs import CaseRuns, Judgement, judge

KINDS = ("one thread, up to 32 MiB", "several threads, up to 32 MiB")


def simulated(
    processes: int, *, changed: float = 0.0, factor: float = 2.0, machine: float = 1.0
) -> tuple[Judgement, list[bool]]:
    """Judge 400 cases, whose processes scatter by some 3 % as Student's t with three degrees of
    freedom; the first of them changed by a factor, and the machine by another."""
    random = np.random.default_rng(7)
    cases = []
    is_changed = [place < 400 * changed for place in range(400)]
    for place, changes in enumerate(is_changed):
        scatter = 0.02 * math.exp(random.normal(0, 0.4))
        old, new = scatter * random.standard_t(3, (2, processes))
        new = new + math.log(machine) + (math.log(factor) if changes else 0.0)
        cases.append(CaseRuns(KINDS[place % 2], old.tolist(), new.tolist()))
    return judge(cases), is_changed


def share(judgement: Judgement, of: list[bool], call: str) -> float:
    return float(np.mean([one.call == call for one, counts in zip(judgement.cases, of, strict=True)
                          if counts]))  # fmt: skip


@pytest.mark.parametrize("changed", [0.05, 0.3])
def test_four_processes_find_a_doubling_and_call_nothing_else(changed: float) -> None:
    judgement, is_changed = simulated(4, changed=changed)
    others = [not one for one in is_changed]

    assert share(judgement, is_changed, "slower") >= 0.95
    assert share(judgement, others, "slower") + share(judgement, others, "faster") <= 0.01
    assert not any(one.is_sure for one, other in zip(judgement.cases, others, strict=True) if other)


@pytest.mark.parametrize("processes", [1, 2, 4, 8])
def test_where_nothing_changed_next_to_nothing_is_called(processes: int) -> None:
    judgement, _ = simulated(processes)
    calls = [one.call for one in judgement.cases]

    assert calls.count("slower") + calls.count("faster") <= 4
    assert calls.count("suspect") <= (28 if processes == 1 else 0)
    assert not any(one.is_sure for one in judgement.cases)


def test_one_process_a_side_gives_suspects_alone() -> None:
    judgement, is_changed = simulated(1, changed=0.1, factor=3.0)

    assert {one.call for one in judgement.cases} == {"suspect", "unchanged"}
    assert share(judgement, is_changed, "suspect") >= 0.9


def test_what_four_of_five_cases_share_is_taken_out_though_the_fifth_does_not() -> None:
    judgement, _ = simulated(4, changed=0.2, factor=1 / 1.1, machine=1.1)

    assert [one.log for one in judgement.shared] == pytest.approx([math.log(1.1)] * 2, abs=0.03)
    assert not any(one.is_large for one in judgement.shared)


def test_a_slower_machine_is_taken_out_and_forbids_sure() -> None:
    judgement, is_changed = simulated(4, changed=0.05, factor=4.0, machine=1.38)

    assert [one.log for one in judgement.shared] == pytest.approx([math.log(1.38)] * 2, abs=0.03)
    assert all(one.is_large for one in judgement.shared)
    assert share(judgement, is_changed, "slower") >= 0.95
    assert share(judgement, [not one for one in is_changed], "slower") <= 0.01
    assert not any(one.is_sure for one in judgement.cases)


def test_what_would_have_shown_shrinks_with_processes() -> None:
    few, more, many = (simulated(count)[0].cases[0].detectable for count in (2, 4, 8))

    assert few > more > many > 0


def test_a_disturbed_case_has_a_ratio_and_is_never_called() -> None:
    quiet = [CaseRuns(KINDS[0], [0.0, 0.01, 0.0, 0.01], [2.0, 2.01, 2.0, 2.01]) for _ in range(2)]
    disturbed = CaseRuns(KINDS[0], quiet[0].old, quiet[0].new, is_disturbed=True)

    one, other = judge([quiet[0], disturbed]).cases

    assert (one.call, other.call) == ("slower", "unchanged")
    assert other.log == one.log and other.half_width > 0


def test_nothing_is_judged_of_nothing() -> None:
    assert judge([]) == Judgement((), ())
