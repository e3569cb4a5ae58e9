"""The plan: every case of every suite, made when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gpubench.errors import Fault, PlanError
from gpubench.plan.case import Case
from gpubench.plan.group import Group, kernel_groups, nearest
from gpubench.plan.review import Review, review
from gpubench.suite.loading import LoadedSuite, load_suite

__all__ = ["Group", "Plan", "build_plan", "case_at", "locate"]


@dataclass(frozen=True, eq=False)
class Plan:
    """Suites together with what their words for devices stand for on one machine."""

    loaded: tuple[LoadedSuite, ...]
    kernels: tuple[tuple[Group, ...], ...] = field(repr=False)
    """The implementations of each kernel, those too that no device serves."""

    def groups(self) -> tuple[Group, ...]:
        """One group for each implementation that a device serves, in the order of the files."""
        return tuple(self._by_class.values())

    def cases(self) -> Iterator[Case]:
        """Every case, group after group."""
        for group in self.groups():
            yield from group.cases()

    def faults(self) -> tuple[Fault, ...]:
        """What keeps cases from ever running: a missing function, a formula without a value.

        Goes once through all cases.
        """
        return tuple(fault for review in self._reviews for fault in review.faults)

    def warnings(self) -> tuple[Fault, ...]:
        """What was met while loading, and rules, devices and repetitions that do nothing.

        Goes once through all cases.
        """
        loading = (warning for loaded in self.loaded for warning in loaded.warnings)
        planning = (warning for review in self._reviews for warning in review.warnings)
        return tuple(dict.fromkeys((*loading, *planning)))

    def group(self, benchmark: str) -> Group:
        """The group of an asv benchmark (``suites.vector_add__numpy.time_kernel``) or a class."""
        name = benchmark.removeprefix("suites.").partition(".")[0]
        try:
            return self._by_class[name]
        except KeyError:
            hint = nearest(name, list(self._by_class))
            raise PlanError(f"the plan has no benchmark {benchmark!r}{hint}") from None

    def find(self, name: str) -> Case:
        """The case of that name: an identity, after a benchmark's name where that is needed.

        ``suites.vector_add__numba_cuda.time_kernel n=1024 block=256`` for example; asv's own way of
        writing it, ``...time_kernel('n=1024 block=256')``, is understood too. Raises ``PlanError``
        for a name that fits no case or several.
        """
        text = name.strip()
        if text.endswith("')") and "('" in text:
            benchmark, _, identity = text[:-2].partition("('")
        elif "=" in text.partition(" ")[0]:
            benchmark, identity = "", text
        else:
            benchmark, _, identity = text.partition(" ")
        if benchmark:
            return self.group(benchmark).case(identity.strip())
        cases = [case for case in self.cases() if case.identity == identity]
        if len(cases) == 1:
            return cases[0]
        if not cases:
            hint = nearest(identity, [case.identity for case in self.cases()])
            raise PlanError(f"the plan has no case {identity!r}{hint}")
        classes = ", ".join(case.group.class_name for case in cases)
        raise PlanError(f"{len(cases)} cases are called {identity!r}; put one of {classes} before")

    @cached_property
    def _by_class(self) -> dict[str, Group]:
        groups = (group for groups in self.kernels for group in groups)
        return {group.class_name: group for group in groups if group.has_cases}

    @cached_property
    def _reviews(self) -> tuple[Review, ...]:
        return tuple(map(review, self.kernels))


def build_plan(loaded: Sequence[LoadedSuite], gpu_count: int) -> Plan:
    """Plan of these suites; touches no device.

    ``gpu_count`` is the number of CUDA devices that ``cuda:*`` stands for. An implementation that
    does not say its backend is kept, and ``Plan.faults`` has the cause.
    """
    kernels = (
        tuple(kernel_groups(suite, name, gpu_count))
        for suite in loaded
        for name in suite.suite.kernels
    )
    return Plan(tuple(loaded), tuple(kernels))


def locate(case: Case) -> dict[str, Any]:
    """What ``case_at`` needs to make the case again in another process: plain values, for JSON."""
    group = case.group
    return {
        "path": str(group.loaded.path),
        "preset": group.loaded.preset,
        "benchmark": group.class_name,
        "case": case.identity,
        "gpu_count": group.gpu_count,
    }


def case_at(place: Mapping[str, Any]) -> Case:
    """The case that ``locate`` described; raises ``GpubenchError`` when the file has changed."""
    plan = build_plan([load_suite(place["path"], place["preset"])], place["gpu_count"])
    return plan.group(place["benchmark"]).case(place["case"])
