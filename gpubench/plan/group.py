"""A group of cases: one implementation of one kernel, which is one class of asv."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gpubench.errors import PlanError
from gpubench.names import BenchmarkName, join_source
from gpubench.plan.case import Case
from gpubench.plan.expansion import expand
from gpubench.plan.subject import Subject

if TYPE_CHECKING:
    from gpubench.suite.model import Kernel


@dataclass(frozen=True, eq=False)
class Group:
    """The cases of one implementation of one kernel: one class of asv."""

    subject: Subject

    @property
    def class_name(self) -> str:
        """Name of the class that asv discovers: ``vector_add__numba_cuda``."""
        return self.subject.benchmark("kernel").class_name

    @property
    def kernel(self) -> Kernel:
        return self.subject.kernel

    @property
    def implementation_name(self) -> str:
        return self.subject.implementation_name

    @property
    def times(self) -> tuple[str, ...]:
        """Labelled times that are taken of every case."""
        return self.subject.times

    @property
    def benchmarks(self) -> tuple[BenchmarkName, ...]:
        """asv benchmarks, one for each labelled time."""
        return tuple(map(self.subject.benchmark, self.times))

    def cases(self) -> Iterator[Case]:
        """Its cases in a stable order, no identity twice. One without a shape has a ``fault``."""
        return expand(self.subject)

    def case(self, identity: str) -> Case:
        """The case of that identity; raises ``PlanError`` with the nearest one that there is."""
        try:
            return self._by_identity[identity]
        except KeyError:
            hint = nearest(identity, list(self._by_identity))
            raise PlanError(f"{self.class_name} has no case {identity!r}{hint}") from None

    def times_of(self, case: Case) -> tuple[str, ...]:
        """Labelled times that are taken of one of its cases: compilation is not taken again of a
        case that is compiled as an earlier one."""
        compiled = case.identity in self._compiled
        return tuple(time for time in self.times if compiled or time != "compile")

    def source_text(self) -> str:
        """Source of what the implementation names, read without importing it, and the suite's lines
        of its kernel."""
        from gpubench.backends.definitions import source_text  # where a class is described only
        from gpubench.suite.excerpt import kernel_excerpt

        subject = self.subject
        declared = kernel_excerpt(subject.loaded, subject.kernel_name)
        code = source_text(subject.implementation, subject.loaded.path)
        return join_source(code, declared.place, declared.text)

    @cached_property
    def _compiled(self) -> frozenset[str]:
        compiled = compiled_apart(self.cases()) if "compile" in self.times else ()
        return frozenset(case.identity for case in compiled)

    @cached_property
    def _by_identity(self) -> dict[str, Case]:
        return {case.identity: case for case in self.cases()}


def compiled_apart(cases: Iterable[Case]) -> tuple[Case, ...]:
    """The first of those that are compiled alike.

    A size, a launch and a number of threads do not change what is compiled, unless a factory is
    called with them.
    """
    first: dict[str, Case] = {}
    for case in cases:
        first.setdefault(_compiled_as(case), case)
    return tuple(first.values())


def _compiled_as(case: Case) -> str:
    parameters = {name: one for name, one in case.values.items() if name not in case.sizes}
    try:
        given = case.with_values()
    except PlanError:  # a formula without a value, of which the case itself will fail
        given = {}
    return repr((case.subject.title, case.device, parameters, given))


def nearest(name: str, known: list[str]) -> str:
    """For the end of a message: the nearest name that there is."""
    import difflib  # only to say what is wrong

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; the first of {len(known)} is {known[0]!r}" if known else "; it has none"
