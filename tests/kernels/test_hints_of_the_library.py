"""The hints that the library's kernels get are those that were judged, each with a reason."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml
from library_cases import checked_cases, small_plan

from gpubench.backends.devices import is_cuda
from gpubench.backends.software import requested
from gpubench.measure.verify_cases import Manner, verified
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites

pytestmark = pytest.mark.gpu

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
JUDGED: dict[str, list[dict[str, str]]] = yaml.safe_load(
    (HERE / "library_hints.yaml").read_text(encoding="utf-8")
)

Place = tuple[str, str, str]
"""Module, rule, line of code: numbers of lines move with every edit."""


def judged() -> set[Place]:
    """Return the places that the preset has."""
    return _places(by_case=False)


def _places(*, by_case: bool) -> set[Place]:
    return {
        (module, one["rule"], one["code"])
        for module, ones in JUDGED.items()
        for one in ones
        if ("case" in one) == by_case
    }


def cuda_cases(suite: str = "") -> list[Case]:
    plan = build_plan(load_suites([ROOT / "suites" / suite], "smoke"), gpu_count=1)
    return [case for case in plan.cases() if is_cuda(case.device)]


def places_of_hints(cases: list[Case]) -> set[Place]:
    found: set[Place] = set()
    for _, one in verified(cases, Manner(in_software=True, count=True)):
        if one.counts is not None and one.counts.missing is None:
            found |= {_place(line.file, line.line, hint.rule) for _, line, hint in one.counts.hints}
    return found


def _place(file: str, line: int, rule: str) -> Place:
    path = Path(file)
    path = path if path.is_absolute() else ROOT / path
    return path.stem, rule, path.read_text(encoding="utf-8").splitlines()[line - 1].strip()


def of_modules(places: Iterable[Place], *modules: str) -> set[Place]:
    return {place for place in places if place[0] in modules}


def test_every_judged_hint_is_of_a_line_that_is_there_and_has_a_reason() -> None:
    for module, ones in JUDGED.items():
        code = (ROOT / f"gpubench/kernels/{module}.py").read_text(encoding="utf-8")
        lines = {line.strip() for line in code.splitlines()}
        for one in ones:
            assert one["code"] in lines, (module, one)
            assert one["why"]


needs_softcuda = pytest.mark.skipif(not requested(), reason="counts are softcuda's")


@needs_softcuda
def test_the_transposes_have_the_hints_that_were_judged() -> None:
    cases = [case for case in cuda_cases("linear_algebra.yaml") if case.kernel_name == "transpose"]
    assert places_of_hints(cases) == of_modules(judged(), "transposes")


@needs_softcuda
@pytest.mark.ci  # the test above has the rule, for one kernel
def test_all_kernels_have_the_hints_that_were_judged_and_no_other() -> None:
    assert places_of_hints(cuda_cases()) == judged()


@needs_softcuda
@pytest.mark.ci  # the rules are those of the tests above, at other sizes
def test_small_cases_have_the_hints_that_were_judged_and_no_other() -> None:
    names = {one["case"] for ones in JUDGED.values() for one in ones if "case" in one}
    small = checked_cases(small_plan(own_parameters=True), ("numba_cuda",))
    cases = [case for case in small if f"{case.group.title} {case.identity}" in names]
    assert len(cases) == len(names)
    found = places_of_hints(cases)
    assert _places(by_case=True) - found == set()
    assert found - judged() - _places(by_case=True) == set()
