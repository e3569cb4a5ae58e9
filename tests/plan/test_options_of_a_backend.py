"""``options`` of an implementation: what its backend is opened with, and what it calls unknown; and
what a backend passes to functions before the call's arguments."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpubench.backends.scripted import ScriptedBackend
from gpubench.plan.expansion import expand
from gpubench.plan.plan import Plan
from gpubench.plan.version import benchmark_version

PlanOf = Callable[..., Plan]

KERNEL = """
sizes: {n: [8, 64]}
parameters: {pieces: [2, 4]}
arrays: {a: {shape: [n], dtype: float32, intent: inout}}
call: [a]
implementations:
  numpy: {function: "pkg:f", backend: numpy}
  other: {function: "pkg:g", backend: scripted, options: {chunks: n // pieces}}
"""


@pytest.fixture(autouse=True)
def scripted_options(monkeypatch: pytest.MonkeyPatch) -> None:
    meanings = {"chunks": "elements of a piece", "eager": "whether to begin at once"}
    monkeypatch.setattr(ScriptedBackend, "options", meanings)


def identities(plan: Plan, name: str) -> list[str]:
    return [case.identity for case in expand(plan.group(f"small__{name}")).cases]


def test_an_implementation_multiplies_over_the_axes_of_its_options(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL)

    assert plan.faults() == ()
    assert identities(plan, "numpy") == ["n=8", "n=64"]
    assert identities(plan, "other") == [
        "n=8 pieces=2",
        "n=8 pieces=4",
        "n=64 pieces=2",
        "n=64 pieces=4",
    ]


def test_a_formula_has_a_value_at_each_case(plan_of: PlanOf) -> None:
    cases = expand(plan_of(KERNEL).group("small__other")).cases

    assert [case.options() for case in cases] == [{"chunks": chunks} for chunks in (4, 2, 32, 16)]


def test_numbers_flags_and_quoted_words_are_values(plan_of: PlanOf) -> None:
    text = KERNEL.replace("n // pieces}", "\"'jit'\", eager: true}").replace(
        "parameters: {pieces: [2, 4]}\n", ""
    )

    case, _ = expand(plan_of(text).group("small__other")).cases

    assert case.options() == {"chunks": "jit", "eager": True}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "{chunk: 1}",
            "the backend scripted has no option 'chunk'; did you mean 'chunks'? It takes chunks, "
            "eager",
        ),
        ("{speed: 1}", "the backend scripted has no option 'speed'; it takes chunks, eager"),
    ],
)
def test_an_unknown_option_is_a_fault_of_its_implementation(
    options: str, message: str, plan_of: PlanOf
) -> None:
    text = KERNEL.replace("{chunks: n // pieces}", options)

    plan = plan_of(text.replace("parameters: {pieces: [2, 4]}\n", ""))

    (fault,) = plan.faults()
    assert (fault.line, fault.message) == (11, message)
    assert {case.fault for case in expand(plan.group("small__other")).cases} == {message}
    assert {case.fault for case in expand(plan.group("small__numpy")).cases} == {None}


def test_a_backend_without_options_takes_none(plan_of: PlanOf) -> None:
    text = KERNEL.replace("backend: scripted", "backend: numba")

    (fault,) = plan_of(text).faults()

    assert fault.message == "the backend numba has no option 'chunks'; it takes none"


def test_a_formula_without_a_value_is_a_fault_at_its_place(plan_of: PlanOf) -> None:
    (fault,) = plan_of(KERNEL.replace("n // pieces", "n // (pieces - 2)")).faults()

    assert (fault.line, fault.column) == (12, 71)
    assert "n // (pieces - 2)" in fault.message


def test_history_starts_anew_with_other_options_and_not_with_other_values(plan_of: PlanOf) -> None:
    def version(text: str) -> str:
        kernel = plan_of(text).loaded[0].suite.kernels["small"]
        return benchmark_version(kernel, "other", "kernel")

    changed = KERNEL.replace("n // pieces", "n // pieces + 1")
    added = KERNEL.replace("n // pieces}", "n // pieces, eager: true}")
    assert len({version(text) for text in (KERNEL, changed, added)}) == 3
    assert version(KERNEL.replace("pieces: [2, 4]", "pieces: [2, 8]")) == version(KERNEL)


def test_what_a_backend_passes_comes_before_the_arguments_of_the_call(
    plan_of: PlanOf, monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    (tmp_path / "pools.py").write_text("def one(a): ...\ndef two(pool, a): ...\n")
    one, two = (KERNEL.replace("pkg:g", f"pools:{name}") for name in ("one", "two"))
    assert plan_of(one).faults() == ()

    monkeypatch.setattr(ScriptedBackend, "passes", ("pool",))

    assert plan_of(two).faults() == ()
    (fault,) = plan_of(one).faults()
    assert fault.message == (
        "pools:one takes (a), and is called with (pool, a): change the function, or what the suite "
        "gives it"
    )
