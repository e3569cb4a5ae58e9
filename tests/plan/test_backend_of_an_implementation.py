"""The backend of an implementation is said: beside it, by its name, or once for the suite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpubench.plan.expansion import expand
from gpubench.plan.plan import Plan, build_plan
from gpubench.suite.loading import load_suite

PlanOf = Callable[..., Plan]

SUITE = """\
version: 1
suite: small
kernels:
  small:
    sizes: {n: [8]}
    arrays: {a: {shape: [n], dtype: float32, intent: inout}}
    call: [a]
    implementations:
      numpy: {function: "pkg:f"}
      numba: {function: "pkg:f"}
      numba_cuda: {function: "pkg:f", launch: {block: [32]}}
      fast: {function: "pkg:g"}
      other: {function: "pkg:h", backend: scripted}
    devices: [cpu, "cuda:0"]
"""


def plan_of_file(path: Path, text: str) -> Plan:
    path.write_text(text, encoding="utf-8")
    return build_plan([load_suite(path)], 0)


def backends(plan: Plan) -> dict[str, str]:
    return {group.implementation_name: group.backend for group in plan.groups()}


def test_a_name_of_a_backend_says_it_and_the_suite_says_it_for_the_rest(tmp_path: Path) -> None:
    text = SUITE.replace("suite: small\n", "suite: small\nbackend: numba\n")

    plan = plan_of_file(tmp_path / "small.yaml", text)

    assert plan.faults() == ()
    assert backends(plan) == {
        "numpy": "numpy",
        "numba": "numba",
        "numba_cuda": "numba_cuda",
        "fast": "numba",
        "other": "scripted",
    }


def test_what_stands_beside_the_function_comes_before_the_name(tmp_path: Path) -> None:
    text = SUITE.replace('numpy: {function: "pkg:f"}', 'numpy: {function: "pkg:f", backend: numba}')

    assert backends(plan_of_file(tmp_path / "small.yaml", text))["numpy"] == "numba"


def test_a_suite_that_extends_another_takes_its_backend_or_gives_its_own(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    base = SUITE.replace("suite: small\n", "suite: small\nbackend: numba\n")
    (tmp_path / "base" / "small.yaml").write_text(base, encoding="utf-8")
    taking = plan_of_file(tmp_path / "one.yaml", "suite: one\nextends: base/small.yaml\n")
    giving = plan_of_file(
        tmp_path / "two.yaml", "suite: two\nextends: base/small.yaml\nbackend: numpy\n"
    )

    assert backends(taking)["fast"] == "numba"
    assert backends(giving)["fast"] == "numpy"


def test_an_implementation_that_says_no_backend_is_a_fault_that_says_what_to_write(
    tmp_path: Path,
) -> None:
    plan = plan_of_file(tmp_path / "small.yaml", SUITE)

    (fault,) = plan.faults()

    assert (fault.line, fault.column) == (12, 7)
    assert fault.message == (
        "no backend is said; write `backend: numpy` in it, as its source has no decorator"
    )
    assert [case.fault for case in expand(plan.group("small__fast")).cases] == [fault.message]
    assert plan.group("small__fast").backends == {"numpy"}


def test_a_misspelt_name_of_a_backend_is_told_with_the_nearest(tmp_path: Path) -> None:
    plan = plan_of_file(tmp_path / "small.yaml", SUITE.replace("numba_cuda:", "numba_cdua:"))

    first, _ = plan.faults()

    assert first.message == (
        "no backend is said; call it numba_cuda, or write `backend: numba_cuda` in it"
    )


def test_a_backend_that_is_not_installed_is_a_fault_of_those_that_use_it(tmp_path: Path) -> None:
    text = SUITE.replace("suite: small\n", "suite: small\nbackend: nonesuch\n")

    (fault,) = plan_of_file(tmp_path / "small.yaml", text).faults()

    assert fault.line == 13
    assert fault.message.startswith("unknown backend 'nonesuch'")


def test_cases_without_a_backend_keep_the_names_that_they_had(tmp_path: Path) -> None:
    launch = 'fast: {function: "pkg:g", launch: {block: [4]}}'
    launched = SUITE.replace('fast: {function: "pkg:g"}', launch)
    plan = plan_of_file(tmp_path / "small.yaml", launched)

    assert [case.identity for case in expand(plan.group("small__fast")).cases] == [
        "n=8 block=4 device=cuda:0"
    ]


def test_a_function_is_proved_to_be_there_whichever_way_its_backend_is_said(tmp_path: Path) -> None:
    text = SUITE.replace("suite: small\n", "suite: small\nbackend: numba\n")
    for name in "fgh":
        text = text.replace(f"pkg:{name}", f"pkg:{name}_missing")

    faults = plan_of_file(tmp_path / "small.yaml", text).faults()

    assert [fault.line for fault in faults] == [10, 11, 12, 13, 14]
    assert {fault.message for fault in faults} == {
        f"module 'pkg' has no '{name}_missing'" for name in "fgh"
    }
    assert not any(fault.message.startswith("the baseline") for fault in faults)
