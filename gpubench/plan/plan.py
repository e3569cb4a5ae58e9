"""The plan: every case of every suite, made when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from gpubench.errors import Fault, PlanError
from gpubench.plan.building import kernel_subjects
from gpubench.plan.case import Case
from gpubench.plan.group import Group, nearest
from gpubench.plan.machine import Machine
from gpubench.plan.review import Review, review
from gpubench.plan.subject import Subject
from gpubench.suite.loaded import LoadedSuite

__all__ = ["Group", "Plan", "build_plan"]


@dataclass(frozen=True, eq=False)
class Plan:
    """Suites together with what their words for devices stand for on one machine."""

    loaded: tuple[LoadedSuite, ...]
    machine: Machine
    subjects: tuple[Subject, ...] = field(repr=False)

    def groups(self) -> tuple[Group, ...]:
        """One group for each implementation that a device serves, in the order of the files."""
        return self._groups

    def cases(self) -> Iterator[Case]:
        """Every case, group after group."""
        for group in self._groups:
            yield from group.cases()

    def faults(self) -> tuple[Fault, ...]:
        """What keeps cases from ever running: a missing function, a formula without a value.

        Goes once through all cases.
        """
        return tuple(fault for review in self._reviews for fault in review.faults)

    def warnings(self) -> tuple[Fault, ...]:
        """What was found while loading, and rules, devices and repetitions that do nothing.

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
        benchmark, identity = _taken_apart(name)
        if benchmark:
            return self.group(benchmark).case(identity)
        found = [case for case in self.cases() if case.identity == identity]
        if len(found) == 1:
            return found[0]
        if not found:
            hint = nearest(identity, [case.identity for case in self.cases()])
            raise PlanError(f"the plan has no case {identity!r}{hint}")
        classes = ", ".join(case.benchmark("kernel").class_name for case in found)
        raise PlanError(f"{len(found)} cases are called {identity!r}; put one of {classes} before")

    def times_of(self, case: Case) -> tuple[str, ...]:
        """Labelled times that asv takes of one of the plan's cases."""
        return self.group(case.benchmark("kernel").class_name).times_of(case)

    @cached_property
    def _groups(self) -> tuple[Group, ...]:
        return tuple(Group(subject) for subject in self.subjects if subject.has_cases)

    @cached_property
    def _by_class(self) -> dict[str, Group]:
        return {group.class_name: group for group in self._groups}

    @cached_property
    def _reviews(self) -> tuple[Review, ...]:
        """One for each kernel."""
        kernels: dict[tuple[str, str], list[Subject]] = {}
        for subject in self.subjects:
            kernels.setdefault((subject.suite.suite, subject.kernel_name), []).append(subject)
        return tuple(map(review, kernels.values()))


def build_plan(loaded: Sequence[LoadedSuite], gpu_count: int) -> Plan:
    """Plan of these suites; touches no device.

    ``gpu_count`` is the number of CUDA devices that ``cuda:*`` stands for. An implementation whose
    backend cannot be told is kept, and ``Plan.faults`` has the cause.
    """
    machine = Machine(gpu_count)
    subjects = tuple(
        subject
        for one in loaded
        for name in one.suite.kernels
        for subject in kernel_subjects(one, name, machine)
    )
    return Plan(tuple(loaded), machine, subjects)


def _taken_apart(name: str) -> tuple[str, str]:
    """Benchmark (may be empty) and identity."""
    text = name.strip()
    if text.endswith("')") and "('" in text:
        benchmark, _, identity = text[:-2].partition("('")
        return benchmark, identity
    first, _, rest = text.partition(" ")
    return ("", text) if "=" in first else (first, rest.strip())
