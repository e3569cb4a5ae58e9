"""`gpubench compare --measure`: two commits measured in turn, as a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from gpubench.cli.console import ERR, watched
from gpubench.errors import GpubenchError

if TYPE_CHECKING:  # a command imports what measures only when it does: --help answers at once
    from gpubench.analysis.comparison import SnapshotComparison
    from gpubench.measure.direct import Job
    from gpubench.measure.in_turn import Turns
    from gpubench.measure.two_commits import CommitSide, TwoCommits
    from gpubench.plan.case import Case
    from gpubench.results import CaseName, Row, Snapshot


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
    from gpubench.analysis.sequential import doubt_of
    from gpubench.measure.disturbance import busy_since, core_use
    from gpubench.measure.in_turn import jobs_in_turn, measure_in_turn
    from gpubench.measure.two_commits import two_commits

    before = core_use()
    work = jobs_in_turn(cases)
    with ExitStack() as stack:
        with ERR.rich.status("making environments") as status:
            bench = stack.enter_context(
                two_commits(labels, work, environment, preset, lambda words: status.update(words))
            )
        if warning := busy_since(before):
            ERR.print(f"gpubench: {warning}")
        both, replaced, only_old, only_new = _sort_out(work, bench)
        turns: dict[int, Turns] = {}
        began = monotonic()
        doubt = partial(doubt_of, cases=max(len(both), 1), factor=factor)
        with watched(len(both), "measuring in turn") as waiting:
            for place, so_far in measure_in_turn(both, bench, doubt, seconds):
                turns[place] = so_far
                job = so_far.job
                waiting.advance(f"{job.case.group.title} {job.case.identity}", so_far.is_sure)
        taken = monotonic() - began
    rows, logs = _rows(both, turns)
    old, new = map(_snapshot, bench.sides)
    comparison = compare_in_turn(
        old,
        new,
        rows,
        logs,
        cases=max(len(both), 1),
        replaced=[_name(job) for job in replaced],
        only_old=[_name(job) for job in only_old],
        only_new=[_name(job) for job in only_new],
        factor=factor,
        method=_method(len(both), logs, taken),
    )
    return comparison, waiting.interrupted


def _sort_out(
    work: Sequence[Job], bench: TwoCommits
) -> tuple[list[Job], list[Job], list[Job], list[Job]]:
    """Divide jobs into those that both sides have in one version, those of two versions, and those
    of one side alone. Raises ``GpubenchError`` where neither side has any."""
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


def _rows(
    work: Sequence[Job], turns: Mapping[int, Turns]
) -> tuple[dict[CaseName, tuple[Row, Row]], dict[CaseName, Sequence[float]]]:
    """Return the rows of both sides and the logarithms of the pairs of each case, by its name."""
    from gpubench.analysis.in_turn import UNSURE
    from gpubench.measure.direct import Measured
    from gpubench.measure.outcomes import case_record
    from gpubench.tables.times import rows_of

    sides: list[list[Measured]] = [[], []]
    for place, job in enumerate(work):
        no_turn = replace(case_record(job.case, job.time, "skipped"), reason=UNSURE)
        measured = turns[place].sides if place in turns else (None, None)
        for side, one in zip(sides, measured, strict=True):
            side.append(one or Measured(no_turn))
    by_name = [{row.name: row for row in rows_of(side)} for side in sides]
    logs: dict[CaseName, Sequence[float]] = {
        _name(job): turns[place].logs if place in turns else () for place, job in enumerate(work)
    }
    return {name: (by_name[0][name], by_name[1][name]) for name in logs}, logs


def _name(job: Job) -> CaseName:
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


def _method(cases: int, logs: Mapping[CaseName, Sequence[float]], seconds: float) -> str:
    """Say what verdicts rest on."""
    from gpubench.report import text

    pairs = sum(map(len, logs.values()))
    return (
        f"In turn: {text.plural(cases, 'case')}, {text.plural(pairs, 'pair')} of processes of both "
        f"commits in {seconds:.0f} s. Slower and faster hold at 99 % for all cases together, same "
        "at 99 % for each; unclear cases need more --time."
    )
