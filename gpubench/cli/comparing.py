"""`gpubench compare --measure`: two commits measured in turn, as a comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from gpubench.cli.console import ERR, interruptible, narrated
from gpubench.errors import GpubenchError

if TYPE_CHECKING:  # a command imports what measures only when it does: --help answers at once
    from gpubench.analysis.differences import SnapshotComparison
    from gpubench.analysis.sequential import Evidence
    from gpubench.measure.direct import Job
    from gpubench.measure.in_turn import Turns
    from gpubench.measure.installing import CommitSide
    from gpubench.measure.two_commits import TwoCommits
    from gpubench.plan.case import Case
    from gpubench.results import CaseName, Row, Snapshot

MAX_NAMED_CALLED = 3
"""Cases that a line of progress names."""


class PairJudge:
    """Judges cases by their evidence, for ``measure_in_turn``."""

    def __init__(self, evidence: Evidence) -> None:
        """Judge the cases of ``evidence``."""
        from gpubench.analysis.sequential import FIRST_PAIRS

        self.evidence, self.first_pairs = evidence, FIRST_PAIRS

    def add(self, place: int, turns: Turns) -> None:
        """Look at a case after its last pair."""
        from gpubench.results.kinds import kind_of
        from gpubench.tables.times import rows_of

        if turns.has_failed:
            self.evidence.close(place)
            return
        kind = self.evidence.cases[place].kind
        if not kind and turns.sides[0]:
            kind = kind_of(rows_of([turns.sides[0]])[0])
        self.evidence.add(place, turns.logs[-1], kind)

    def is_decided(self, place: int) -> bool:
        """Return whether a case needs no more pairs."""
        return self.evidence.is_decided(place)

    def likelihood(self, place: int) -> float:
        """Return by what cases are ordered."""
        return self.evidence.likelihood(place)


def measured_in_turn(
    labels: tuple[str, str],
    cases: Sequence[Case],
    environment: str | None,
    preset: str | None,
    seconds: float,
    factor: float,
) -> tuple[SnapshotComparison, bool]:
    """Measure two commits in turn for so many seconds at most; return them side by side, and
    whether Ctrl-C ended that."""
    from gpubench.analysis.in_turn import compare_in_turn
    from gpubench.analysis.sequential import Evidence
    from gpubench.measure.disturbance import busy_since, core_use
    from gpubench.measure.in_turn import jobs_in_turn
    from gpubench.measure.two_commits import two_commits

    before = core_use()
    work = jobs_in_turn(cases)
    with ExitStack() as stack:
        say = stack.enter_context(narrated("making environments"))
        began = monotonic()
        install = partial(say, is_event=True)
        bench = stack.enter_context(two_commits(labels, work, environment, preset, install))
        installing = monotonic() - began
        warning = busy_since(before)
        if warning:
            ERR.print(f"gpubench: {warning}")
        both, replaced, only_old, only_new = sort_out(work, bench)
        evidence = Evidence(len(both), factor)
        say(measuring_words(len(both), seconds, installing), is_event=True)
        began = monotonic()
        turns, interrupted = measure_pairs(both, bench, evidence, seconds, say)
        taken = monotonic() - began
    old, new = map(_snapshot, bench.sides)
    comparison = compare_in_turn(
        old,
        new,
        _rows(both, turns),
        evidence,
        [turns[place].pair_seconds if place in turns else 0.0 for place in range(len(both))],
        replaced=[name_of(job) for job in replaced],
        only_old=[name_of(job) for job in only_old],
        only_new=[name_of(job) for job in only_new],
    )
    method = _method(comparison, turns, taken, installing)
    return replace(comparison, method=method, busy=warning or ""), interrupted


def measuring_words(cases: int, seconds: float, installing: float) -> str:
    """Say what begins when both commits are installed."""
    from gpubench.report import text

    return (
        f"installed in {text.duration(installing)}, which --time leaves out; measuring "
        f"{text.plural(cases, 'case')} in turn for {text.duration(seconds)} at most"
    )


def measure_pairs(
    work: Sequence[Job],
    bench: TwoCommits,
    evidence: Evidence,
    seconds: float,
    say: Callable[..., None],
) -> tuple[dict[int, Turns], bool]:
    """Measure jobs in turn and show progress; return what was measured by place, and whether Ctrl-C
    ended it."""
    from gpubench.measure.in_turn import measure_in_turn

    turns: dict[int, Turns] = {}
    end = monotonic() + seconds
    with interruptible() as interrupted:
        for place, so_far in measure_in_turn(work, bench, PairJudge(evidence), seconds):
            turns[place] = so_far
            say(_progress_words(work, turns, evidence, end - monotonic()))
    return turns, bool(interrupted)


def _progress_words(
    work: Sequence[Job], turns: Mapping[int, Turns], evidence: Evidence, left: float
) -> str:
    """Say how far measuring is, and what is called so far."""
    from gpubench.report import text

    pairs = sum(len(its.logs) for its in turns.values())
    mean_seconds = sum(its.pair_seconds for its in turns.values()) / len(turns)
    most = pairs + max(round(left / mean_seconds), 0) if mean_seconds else pairs
    parts = [f"{pairs:,} of at most {most:,} pairs, {text.duration(max(left, 0))} left"]
    verdicts = [case.verdict for case in evidence.cases]
    for verdict in ("slower", "faster"):
        called = [place for place, its in enumerate(verdicts) if its == verdict]
        named = [
            f"{work[place].case.group.title} {work[place].case.identity}"
            for place in called[:MAX_NAMED_CALLED]
        ]
        named += [f"{len(called) - len(named)} more"] if len(called) > len(named) else []
        parts += [f"{verdict}: {', '.join(named)}"] if named else []
    if same := verdicts.count("same"):
        parts.append(f"the same: {same} of {text.plural(len(work), 'case')}")
    return "; ".join(parts)


def sort_out(
    work: Sequence[Job], bench: TwoCommits
) -> tuple[list[Job], list[Job], list[Job], list[Job]]:
    """Divide jobs into jobs that both sides have in one version, jobs of two versions, jobs of the
    old side alone and of the new side alone. Raises ``GpubenchError`` where there are none."""
    both: list[Job] = []
    replaced: list[Job] = []
    only_old: list[Job] = []
    only_new: list[Job] = []
    for job in work:
        old, new = (side.find(job) for side in bench.sides)
        if old and new:
            is_same = old[0].get("version") == new[0].get("version")
            (both if is_same else replaced).append(job)
        elif old or new:
            (only_old if old else only_new).append(job)
    if not (both or replaced or only_old or only_new):
        raise GpubenchError(
            "asv finds none of these cases in the project's benchmarks: name suites of the folder "
            "suites/, and run `gpubench plan` to see their cases"
        )
    return both, replaced, only_old, only_new


def _rows(work: Sequence[Job], turns: Mapping[int, Turns]) -> list[tuple[Row, Row]]:
    """Return the rows of both sides of each job."""
    from gpubench.analysis.in_turn import NO_TURN
    from gpubench.measure.direct import Measured
    from gpubench.measure.outcomes import case_record
    from gpubench.tables.times import rows_of

    sides: list[list[Measured]] = [[], []]
    for place, job in enumerate(work):
        no_turn = replace(case_record(job.case, job.time, "skipped"), reason=NO_TURN)
        measured = turns[place].sides if place in turns else (None, None)
        for side, one in zip(sides, measured, strict=True):
            side.append(one or Measured(no_turn))
    by_name = [{row.name: row for row in rows_of(side)} for side in sides]
    return [(by_name[0][name], by_name[1][name]) for name in map(name_of, work)]


def name_of(job: Job) -> CaseName:
    """Return the name of a job's case in results."""
    from gpubench.results import CaseName

    name = job.case.benchmark(job.time)
    return CaseName(name.suite, name.kernel, name.implementation, name.time, job.case.identity)


def _snapshot(side: CommitSide) -> Snapshot:
    from gpubench.results import Commit, Setup, Snapshot

    return Snapshot(
        id=0,
        setup=Setup(side.machine, side.environment.name),
        commit=Commit(side.commit, side.date, side.subject),
        facts=side.run.facts if side.run else {},
        concerns=side.run.concerns if side.run else {},
        measured_at=side.run.at if side.run else None,
    )


def _method(
    comparison: SnapshotComparison, turns: Mapping[int, Turns], seconds: float, installing: float
) -> str:
    """Say what verdicts rest on, and what unclear cases need."""
    from gpubench.analysis.between_runs import SURE_RATE
    from gpubench.analysis.sequential import CALLED_AT, SAME_AT, SAME_FACTOR
    from gpubench.report import text

    in_turn = [one for one in comparison.differences if one.pairs is not None]
    pairs = sum(one.pairs or 0 for one in in_turn)
    excluded = max(SAME_FACTOR, comparison.factor)
    sentences = [
        f"In turn: {text.plural(len(in_turn), 'case')}, {text.plural(pairs, 'pair')} of processes "
        f"of both commits in {text.duration(seconds)}, after {text.duration(installing)} of "
        "installing.",
        f"An unchanged case is called slower or faster with a chance of {100 / CALLED_AT:.2g} % at "
        f"most; of those that are sure {SURE_RATE:.0%} are unchanged at most, on average.",
        f"The same: a change of {text.ratio(excluded)} or more is excluded at "
        f"{1 - 1 / SAME_AT:.0%}.",
    ]
    doubtful = [one for one in in_turn if one.verdict == "unclear"]
    needed = sum(one.seconds_to_decide or 0.0 for one in doubtful)
    if needed:
        sentences.append(
            f"{text.plural(len(doubtful), 'unclear case')}: about {text.duration(needed)} more of "
            "--time would decide them together, or name a few."
        )
    without = sum(one.pairs == 0 and one.verdict == "unclear" for one in in_turn)
    if without:
        sentences.append(f"{text.plural(without, 'case')} had no turn before the time was over.")
    return " ".join(sentences)
