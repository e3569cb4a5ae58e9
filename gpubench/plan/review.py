"""What a person should know about a plan: parts of a suite that can never run, or do nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gpubench.errors import Fault, PlanError
from gpubench.plan.case import Case
from gpubench.plan.group import Group, Tally
from gpubench.plan.rules import case_names, holds
from gpubench.suite.model import Skip


@dataclass
class Review:
    """What is wrong, or does nothing, in one kernel."""

    faults: list[Fault] = field(default_factory=list)
    """What keeps cases from ever running, on any machine."""
    warnings: list[Fault] = field(default_factory=list)
    """What does nothing: rules without a match, implementations without a device, repetitions."""


def review(groups: Sequence[Group]) -> Review:
    """Go once through all cases of one kernel and evaluate every formula of theirs.

    Of the formulas of one implementation, the first that fails is a fault. Rules are judged only
    where all cases could be made.
    """
    result = Review([*_unusable(groups)])
    # Rules that ask no device anything, as long as they have skipped no case.
    names = frozenset[str]().union(*map(case_names, groups))
    rules = enumerate(groups[0].kernel.skip)
    idle_skips = {index: rule for index, rule in rules if rule.when.names <= names}
    tally = Tally()
    for group in groups:
        tally.repeated = []
        try:
            for case in group.cases(tally):
                _evaluate(case)
                for index in [i for i, rule in idle_skips.items() if _skips(case, i, rule)]:
                    del idle_skips[index]
        except PlanError as error:
            result.faults.append(error.fault or _at(group, str(error)))
        if not group.has_cases:
            text = (
                f"{group.implementation_name!r} has no cases: its backend {group.backend!r} serves "
                f"none of the kernel's devices: {', '.join(group.devices)}"
            )
            result.warnings.append(_at(group, text))
        if tally.repeated:
            first, *others = tally.repeated
            more = f" and {len(others)} more" if others else ""
            text = f"{group.implementation_name!r} comes twice to {first!r}{more}, measured once"
            result.warnings.append(_at(group, f"{text}; remove the value that repeats"))
    if not result.faults:
        result.warnings.extend(_idle_rules(groups[0], tally, idle_skips))
    return result


def _unusable(groups: Sequence[Group]) -> Iterator[Fault]:
    """Implementations that no machine can run, and a baseline that runs nowhere."""
    for group in groups:
        if group.fault is not None:
            yield _at(group, group.fault)
    for group in groups:
        if group.baseline is not None and group.baseline_fault is not None:
            if group.baseline.fault is None:  # else it is told already
                yield group.fault_at(("baseline",), group.baseline_fault)
            return


def _evaluate(case: Case) -> None:
    if case.problem is not None:
        raise case.problem
    case.array_specs()
    _ = case.launch
    case.scalars()
    case.with_values()
    case.work()


def _skips(case: Case, index: int, rule: Skip) -> bool:
    return holds(case, rule.when, ("skip", index, "when"), {})


def _idle_rules(group: Group, tally: Tally, idle_skips: dict[int, Skip]) -> Iterator[Fault]:
    for index, exclude in enumerate(group.kernel.exclude):
        if index not in tally.excluded:
            text = f"this rule excludes no case: `{exclude.when}`; remove it, or change its formula"
            yield group.fault_at(("exclude", index), text)
    for index, skip in idle_skips.items():
        text = f"this rule skips no case: `{skip.when}`; remove it, or change its formula"
        yield group.fault_at(("skip", index), text)
    for index, entry in enumerate(group.kernel.include):
        if index not in tally.included:
            text = (
                f"this entry adds no case to {entry.implementation!r}: it is in the plan already, "
                "or no backend serves its device; remove it"
            )
            yield group.fault_at(("include", index), text)


def _at(group: Group, message: str) -> Fault:
    return group.fault_at(("implementations", group.implementation_name), message)
