"""The plan: every case of every suite, made when it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from gpubench.backends import registry
from gpubench.errors import Fault, PlanError, SuiteError
from gpubench.names import FRESH_TIMES
from gpubench.plan.case import Case
from gpubench.plan.expansion import Expansion, compiled_apart, expand, nearest
from gpubench.plan.group import Group, kernel_groups
from gpubench.plan.other_sizes import values_beside
from gpubench.plan.rules import skips
from gpubench.plan.source import arrays_by_thread, look_again, reference_of
from gpubench.suite.expressions import ExpressionError
from gpubench.suite.loading import LoadedSuite
from gpubench.suite.model import Implementation, Kernel
from gpubench.waiting import say_each

MAX_CASES = 50_000
"""Of a suite. They take some seconds to plan and 100 MB, and a day or more to measure: the largest
suite of this project has some hundred."""

MAX_KEPT = 20_000
"""Cases of a plan that are kept, in 20 to 40 MB; more are made again where they are asked for
again. All suites of this project have 4,000."""

MAX_RULED = 1_000_000
"""Cases of a suite times the rules of their kernels: a rule takes a case some microseconds."""


class _ExpansionCache:
    """Expansions of a plan, as far as their cases find room."""

    def __init__(self) -> None:
        self._expansions: dict[Group, Expansion] = {}
        self._room = MAX_KEPT

    def expand(self, group: Group) -> Expansion:
        """Return the group's expansion, made again where there was no room to keep it."""
        if group in self._expansions:
            return self._expansions[group]
        expansion = expand(group)
        if (count := len(expansion.by_identity)) <= self._room:
            self._expansions[group] = expansion
            self._room -= count
        return expansion


@dataclass(frozen=True, eq=False)
class Plan:
    """Suites together with what their words for devices stand for on one machine."""

    loaded: tuple[LoadedSuite, ...]
    kernels: tuple[tuple[Group, ...], ...] = field(repr=False)
    """The implementations of each kernel, those too that no device serves."""
    _cache: _ExpansionCache = field(default_factory=_ExpansionCache, repr=False)

    def groups(self) -> tuple[Group, ...]:
        """Return one group for each implementation that a device serves, in the order of the
        files."""
        return tuple(self._by_class.values())

    def cases(self) -> Iterator[Case]:
        """Yield every case, group after group."""
        for expansion in self.expansions():
            yield from expansion.cases

    def expansions(self) -> Iterator[Expansion]:
        """Yield each group that a device serves with its cases, in the order of the files."""
        for groups in self.kernels:
            yield from (self.expansion(group) for group in groups if group.has_cases)

    def expansion(self, group: Group) -> Expansion:
        """Return a group with its cases, made once for all that go through them as long as there
        are not too many to be kept."""
        return self._cache.expand(group)

    def faults(self) -> tuple[Fault, ...]:
        """Return what keeps cases from ever running: a missing function, a formula without a value.

        Goes once through all cases.
        """
        return tuple(fault for faults, _ in self._reviews for fault in faults)

    def warnings(self) -> tuple[Fault, ...]:
        """Return what was met while loading, and rules, devices and repetitions that do nothing.

        Goes once through all cases.
        """
        loading = [warning for loaded in self.loaded for warning in loaded.warnings]
        planning = [warning for _, warnings in self._reviews for warning in warnings]
        return tuple(dict.fromkeys(loading + planning))

    def group(self, benchmark: str) -> Group:
        """Return the group of an asv benchmark (``suites.vector_add__numpy.time_kernel``) or a
        class."""
        name = benchmark.removeprefix("suites.").partition(".")[0]
        try:
            return self._by_class[name]
        except KeyError:
            hint = nearest(name, list(self._by_class))
            raise PlanError(f"the plan has no benchmark {benchmark!r}{hint}") from None

    def find(self, name: str) -> Case:
        """Return the case of that name: an identity, after a benchmark's name where that is needed.

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
            return self.expansion(self.group(benchmark)).find(identity.strip())
        cases = [case for case in self.cases() if case.identity == identity]
        if len(cases) == 1:
            return cases[0]
        if not cases:
            hint = nearest(identity, [case.identity for case in self.cases()])
            raise PlanError(f"the plan has no case {identity!r}{hint}")
        classes = ", ".join(case.group.class_name for case in cases)
        raise PlanError(f"{len(cases)} cases are called {identity!r}; put one of {classes} before")

    def times_of(self, case: Case) -> tuple[str, ...]:
        """Labelled times that are taken of one of its cases: compilation is not taken again of a
        case that is compiled as an earlier one."""
        first = case in self._compiled
        return tuple(time for time in case.group.times if first or time not in FRESH_TIMES)

    @cached_property
    def _compiled(self) -> frozenset[Case]:
        groups = (each for each in self.groups() if set(FRESH_TIMES) & {*each.times})
        expansions = map(self.expansion, groups)
        return frozenset(case for one in expansions for case in compiled_apart(one.cases))

    @cached_property
    def _by_class(self) -> dict[str, Group]:
        groups = (group for groups in self.kernels for group in groups)
        return {group.class_name: group for group in groups if group.has_cases}

    @cached_property
    def _reviews(self) -> list[tuple[list[Fault], list[Fault]]]:
        kernels = say_each(self.kernels, len(self.kernels), "checking kernels")
        return [_review([*map(self.expansion, groups)]) for groups in kernels]


def build_plan(loaded: Sequence[LoadedSuite], gpu_count: int) -> Plan:
    """Plan of these suites; touches no device.

    ``gpu_count`` is the number of CUDA devices that ``cuda:*`` stands for. An implementation that
    does not say its backend is kept, and ``Plan.faults`` has the cause. Raises ``SuiteError`` for a
    suite of more than ``MAX_CASES`` cases, or ``MAX_RULED`` of cases and rules.
    """
    look_again()
    kernels, faults = list[tuple[Group, ...]](), list[Fault]()
    for suite in say_each(loaded, len(loaded), "reading suites"):
        groups = [tuple(kernel_groups(suite, name, gpu_count)) for name in suite.suite.kernels]
        counts = [sum(group.count() for group in of_kernel) for of_kernel in groups]
        rules = [len(first.kernel.exclude) + len(first.kernel.skip) for first, *_ in groups]
        ruled = [count * number for count, number in zip(counts, rules, strict=True)]
        if sum(counts) > MAX_CASES:
            most = counts.index(max(counts))
            message = (
                f"the suite has {sum(counts):,} cases before `exclude`, {counts[most]:,} of them "
                f"of kernel {groups[most][0].kernel_name!r}; at most {MAX_CASES:,} are planned: "
                "give axes, blocks and grids fewer values, or split the suite into several files"
            )
            faults.append(groups[most][0].fault_at((), message))
        elif sum(ruled) > MAX_RULED:
            most = ruled.index(max(ruled))
            message = (
                f"{counts[most]:,} cases before `exclude` times {rules[most]:,} rules; at most "
                f"{MAX_RULED:,} are tried in a suite: put rules together with `or`, or split the "
                "suite into several files"
            )
            faults.append(groups[most][0].fault_at(("exclude",), message))
        kernels += groups
    if faults:
        raise SuiteError(faults)
    return Plan(tuple(loaded), tuple(kernels))


def _review(expansions: Sequence[Expansion]) -> tuple[list[Fault], list[Fault]]:
    """Go once through all cases of one kernel and evaluate every formula of theirs.

    Returns faults, which keep cases from ever running on any machine, and warnings of what does
    nothing: rules without a match, implementations without a device, repetitions. Of the formulas
    of one implementation, the first that fails is a fault. Rules are judged only where all cases
    could be made.
    """
    groups = [expansion.group for expansion in expansions]
    first, faults, warnings = groups[0], [*_unusable(groups)], list[Fault]()
    # Rules that ask no device anything, as long as they have skipped no case.
    names = frozenset[str]().union(*(group.rule_names for group in groups))
    certain = {i for i, rule in enumerate(first.kernel.skip) if first.names(rule.when) <= names}
    idle_skips, filled = set(certain), set[tuple[str, str | None]]()
    excluded = frozenset[int]().union(*(expansion.excluded for expansion in expansions))
    made, runs = Counter[str](), 0
    for expansion in expansions:
        group = expansion.group
        name, declared = group.implementation_name, group.implementation
        formulas = (first.kernel.let, declared.with_, declared.options)
        methods = (Case.constants, Case.with_values, Case.options)
        evaluated = [method for method, of in zip(methods, formulas, strict=True) if of]
        try:
            for case in expansion.cases:
                made[name] += 1
                if case.problem is not None:
                    raise case.problem
                data = case.data_key, declared.cast
                if data not in filled:  # all implementations are given the same
                    _ = case.array_specs, case.table_specs, case.scalars()
                    case.try_fills()
                    filled.add(data)
                _ = case.launch, case.work(), case.memory_limit
                for evaluate in evaluated:
                    evaluate(case)
                skipping = {index for index in certain if skips(case, index, {})}
                idle_skips -= skipping
                runs += not skipping
        except PlanError as error:
            faults.append(error.fault or _at(group, str(error)))
        if not group.has_cases:
            text = (
                f"{name!r} has no cases: its backend {group.backend!r} serves none of the kernel's "
                f"devices: {', '.join(group.devices)}"
            )
            warnings.append(_at(group, text))
        if expansion.repeated:
            identity, *others = expansion.repeated
            more = f" and {len(others)} more" if others else ""
            text = f"{name!r} comes twice to {identity!r}{more}, measured once"
            warnings.append(_at(group, f"{text}; remove the value that repeats"))
    if not faults and excluded and not made[first.kernel.baseline]:
        message = "these rules exclude every case; change their formulas"
        if made:
            message = (
                f"these rules exclude every case of the baseline {first.kernel.baseline!r}, so "
                "that nothing has a speedup"
            )
        faults.append(first.fault_at(("exclude",), message))
    for group in groups:
        warnings.extend(_uncovered(group))
        warnings.extend(_idle_launch(group))
    if not faults:
        included = frozenset[int]().union(*(expansion.included for expansion in expansions))
        idle_excludes = {*range(len(first.kernel.exclude))} - excluded
        idle_excludes -= _rules_over_sizes(first.kernel)
        idle_includes = {*range(len(first.kernel.include))} - included
        warnings.extend(_idle_rules(first, idle_excludes, idle_skips, idle_includes))
        warnings.extend(_twice(groups))
        if made and not runs:
            warnings.append(first.fault_at(("skip",), "these rules skip every case"))
    return faults, warnings


def _rules_over_sizes(kernel: Kernel) -> set[int]:
    """Return the ``exclude`` rules that say which sizes a kernel takes: they leave out sizes beside
    the declared ones, at which `gpubench verify` computes it too. The size 1 does not count: by it
    a lower bound below all declared sizes would count as such a rule."""
    found = set[int]()
    for values in islice(values_beside(kernel), 2):
        for index, rule in enumerate(kernel.exclude):
            if rule.when.names <= values.keys():
                with suppress(ExpressionError):
                    found |= {index} if rule.when.evaluate(values) else set()
    return found


def _uncovered(group: Group) -> Iterator[Fault]:
    """Yield a grid that covers another array than the one that the kernel indexes by its
    threads."""
    launch, reference = group.implementation.launch, group.implementation.function
    if not group.backend or group.missing is not None:
        return
    if launch is None or reference is None or not registry.get(group.backend).needs_launch:
        return
    if launch.over is not None or "cover" not in launch.grids():
        return
    kernel, arguments = group.kernel, group.kernel.arguments(group.implementation_name)
    called = [arguments[place] for place in arrays_by_thread(reference) if place < len(arguments)]
    indexed = [name for name in called if name in kernel.arrays]
    shapes = {name: [*map(str, array.shape)] for name, array in kernel.arrays.items()}
    covered = kernel.written()[0]
    if not indexed or any(shapes[name] == shapes[covered] for name in indexed):
        return
    extents = ", ".join(reversed(shapes[indexed[0]]))
    message = (
        f"`cover` starts a thread for each element of {covered!r}, and {reference} indexes "
        f"{indexed[0]!r} by its threads; write `over: [{extents}]` in `launch`"
    )
    yield group.fault_at(("implementations", group.implementation_name, "launch"), message)


def _idle_launch(group: Group) -> Iterator[Fault]:
    """Yield a launch that means nothing, as the function makes its own."""
    if decorator := group.idle_launch:
        message = f"@{decorator} makes a function that chooses block and grid itself: remove it"
        yield group.fault_at(("implementations", group.implementation_name, "launch"), message)


def _twice(groups: Sequence[Group]) -> Iterator[Fault]:
    """Yield implementations that differ in their names alone."""
    fields = Implementation.model_fields.keys() - {"title", "backend", "was"}
    seen: list[tuple[list[object], str]] = []
    for group in groups:
        plain = [group.backend, *(getattr(group.implementation, name) for name in fields)]
        name = group.implementation_name
        alike = (other for it, other in seen if it == plain and repr(it) == repr(plain))  # 1, 1.0
        if first := next(alike, None):
            yield _at(group, f"{name!r} is {first!r} under another name; remove one of them")
        else:
            seen.append((plain, name))


def _unusable(groups: Sequence[Group]) -> Iterator[Fault]:
    """Yield implementations that no machine can run, and a baseline that runs nowhere."""
    yield from groups[0].data_faults
    for index, device in enumerate(groups[0].kernel.devices):
        first = device.replace("*", "0")
        served = any(group.serves(first) for group in groups)
        if not served and not any(backend.serves(first) for backend in registry.usable()):
            message = f"no backend runs on {device!r}; the processor is cpu, a GPU is cuda:0"
            yield groups[0].fault_at(("devices", index), message)
    alike = Counter(map(_misfit_of_any, groups))
    for group in groups:
        # What its part has is told at the part.
        if group.fault is not None and (group.misfit or not any(p.fault for p in group.parts)):
            general = _misfit_of_any(group)
            yield _at(group, general if general and alike[general] > 1 else group.fault)
    for group in groups:
        if group.baseline is not None and group.baseline_fault is not None:
            if group.baseline.fault is None:  # else it is told already
                yield group.fault_at(("baseline",), group.baseline_fault)
            return


def _misfit_of_any(group: Group) -> str | None:
    """Return why an implementation cannot run, without the name of its function: several that are
    called with an argument too many are one thing to mend."""
    reference = reference_of(group.implementation)
    return group.misfit and group.misfit.replace(reference or "\0", "the function", 1)


def _idle_rules(
    group: Group, idle_excludes: set[int], idle_skips: set[int], idle_includes: set[int]
) -> Iterator[Fault]:
    """Yield the rules and entries of a kernel that do nothing, by their indexes."""
    kernel = group.kernel
    rules = [("exclude", "excludes", i, kernel.exclude[i].when) for i in sorted(idle_excludes)]
    rules += [("skip", "skips", i, kernel.skip[i].when) for i in sorted(idle_skips)]
    for kind, does, index, when in rules:
        text = f"this rule {does} no case: `{when}`; remove it, or change its formula"
        yield group.fault_at((kind, index), text)
    for index in sorted(idle_includes):
        text = (
            f"this entry adds no case to {kernel.include[index].implementation!r}: it is in the "
            "plan already, or no backend serves its device; remove it"
        )
        yield group.fault_at(("include", index), text)


def _at(group: Group, message: str) -> Fault:
    return group.fault_at(("implementations", group.implementation_name), message)
