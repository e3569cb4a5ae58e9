"""What a person should know about a plan: parts of a suite that can never run, or do nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gpubench.errors import Fault, PlanError
from gpubench.plan.case import Case
from gpubench.plan.expansion import Tally, expand
from gpubench.plan.rules import case_names, holds
from gpubench.plan.subject import Subject
from gpubench.suite.model import Skip


@dataclass
class Review:
    """What was found in one kernel."""

    faults: list[Fault] = field(default_factory=list)
    """What keeps cases from ever running, on any machine."""
    warnings: list[Fault] = field(default_factory=list)
    """What does nothing: rules without a match, implementations without a device, repetitions."""


def review(subjects: Sequence[Subject]) -> Review:
    """Go once through all cases of one kernel and evaluate every formula of theirs.

    Of the formulas of one implementation, the first that fails is a fault. Rules are judged only
    where all cases could be made.
    """
    found = Review([*_unusable(subjects)])
    skips = _judged_skips(subjects)
    tallies = []
    for subject in subjects:
        tally = Tally()
        tallies.append(tally)
        try:
            for case in expand(subject, tally):
                _evaluate(case)
                skips = {i: rule for i, rule in skips.items() if not _skips(case, i, rule)}
        except PlanError as error:
            found.faults.append(error.fault or _at(subject, str(error)))
        found.warnings.extend(_subject_warnings(subject, tally))
    if not found.faults:
        found.warnings.extend(_idle_rules(subjects[0], tallies, skips))
    return found


def _unusable(subjects: Sequence[Subject]) -> Iterator[Fault]:
    """Implementations that no machine can run, and a baseline that runs nowhere."""
    for subject in subjects:
        if subject.fault is not None:
            yield _at(subject, subject.fault)
    for subject in subjects:
        if subject.baseline is None or subject.baseline_fault is None:
            continue
        if subject.baseline.fault is None:
            yield subject.fault_at(("baseline",), subject.baseline_fault)
        return


def _evaluate(case: Case) -> None:
    if case.problem is not None:
        raise case.problem
    case.array_specs()
    _ = case.launch
    case.scalars()
    case.with_values()
    case.work()


def _subject_warnings(subject: Subject, tally: Tally) -> Iterator[Fault]:
    if not subject.has_cases:
        yield _at(subject, _unserved(subject))
    if tally.repeated:
        yield _at(subject, _repeats(subject, tally))


def _skips(case: Case, index: int, rule: Skip) -> bool:
    return holds(case, rule.when, ("skip", index, "when"), {})


def _idle_rules(
    subject: Subject, tallies: Sequence[Tally], skips: dict[int, Skip]
) -> Iterator[Fault]:
    kernel = subject.kernel
    excluded = set[int]().union(*(tally.excluded for tally in tallies))
    included = set[int]().union(*(tally.included for tally in tallies))
    for index, exclude in enumerate(kernel.exclude):
        if index not in excluded:
            text = f"this rule excludes no case: `{exclude.when}`; remove it, or change its formula"
            yield subject.fault_at(("exclude", index), text)
    for index, skip in skips.items():
        text = f"this rule skips no case: `{skip.when}`; remove it, or change its formula"
        yield subject.fault_at(("skip", index), text)
    for index, entry in enumerate(kernel.include):
        if index not in included:
            text = (
                f"this entry adds no case to {entry.implementation!r}: it is in the plan already, "
                "or no backend serves its device; remove it"
            )
            yield subject.fault_at(("include", index), text)


def _judged_skips(subjects: Sequence[Subject]) -> dict[int, Skip]:
    """``skip`` rules that ask no device anything: whether they match is known here."""
    known = frozenset[str]().union(*map(case_names, subjects))
    rules = enumerate(subjects[0].kernel.skip)
    return {index: rule for index, rule in rules if rule.when.names <= known}


def _unserved(subject: Subject) -> str:
    return (
        f"{subject.implementation_name!r} has no cases: its backend {subject.backend!r} serves "
        f"none of the kernel's devices: {', '.join(subject.devices)}"
    )


def _repeats(subject: Subject, tally: Tally) -> str:
    more = len(tally.repeated) - 1
    return (
        f"{subject.implementation_name!r} comes twice to {tally.repeated[0]!r}"
        f"{f' and {more} more' if more else ''}, measured once; remove the value that repeats"
    )


def _at(subject: Subject, message: str) -> Fault:
    return subject.fault_at(("implementations", subject.implementation_name), message)
