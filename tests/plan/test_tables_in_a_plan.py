"""Tables in a plan: their columns at each case, what they make of names, versions and backends."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from gpubench.errors import PlanError
from gpubench.plan.explanation import explain
from gpubench.plan.plan import Plan
from gpubench.plan.version import benchmark_version
from gpubench.suite.arrays import Array
from gpubench.suite.model import Kernel

PlanOf = Callable[..., Plan]

KERNEL = """
sizes: {n: [4, 10]}
parameters: {missing: [0, 0.25], type: [int32, category], tile: [1, 2]}
tables:
  x:
    rows: 2 * n
    columns:
      row: {dtype: int16, fill: {formula: i * n}}
      v: {dtype: float32, nulls: missing}
      k: {dtype: type, fill: {function: "pkg:draw"}}
  answer: {intent: out, key: [row]}
call: [x]
returns: [answer]
implementations:
  numpy: {function: "pkg:f"}
  numba: {factory: "pkg:make", with: {tile: tile}}
"""


def cases(plan: Plan, implementation: str) -> dict[str, object]:
    found = (case for case in plan.cases() if case.implementation_name == implementation)
    return {case.identity: case for case in found}


def test_columns_are_as_long_as_their_table_at_each_case(plan_of: PlanOf) -> None:
    case = cases(plan_of(KERNEL), "numpy")["n=10 missing=0.25 type=category"]
    columns = case.table_specs["x"]
    assert {name: one.values.shape for name, one in columns.items()} == {
        "row": (20,),
        "v": (20,),
        "k": (20,),
    }
    assert columns["row"].values.dtype == np.int16
    assert columns["v"].nulls == 0.25
    assert columns["k"].is_category and columns["k"].values.dtype == object
    np.testing.assert_array_equal(case.filled(columns["row"].values), 10 * np.arange(20))


def test_axes_of_tables_are_axes_of_the_data(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL)
    assert plan.faults() == ()
    assert len(cases(plan, "numpy")) == 2 * 2 * 2
    assert len(cases(plan, "numba")) == 2 * 2 * 2 * 2
    case = cases(plan, "numba")["n=4 missing=0 tile=1 type=int32"]
    assert case.data_values() == {"n": 4, "missing": 0, "type": "int32"}


def test_a_backend_without_tables_is_a_fault(plan_of: PlanOf) -> None:
    (fault,) = plan_of(KERNEL.replace("  numba:", "  scripted:")).faults()
    said, _, usable = fault.message.partition("; use one of ")
    assert said == "the backend scripted takes no tables, and the kernel declares x, answer"
    assert {"numpy", "numba"} <= {*re.findall(r"\w+", usable)}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("missing: [0, 0.25]", "missing: [0, 2]", "is 2; a share of the rows is needed"),
        ("rows: 2 * n", "rows: n / 3", "a whole number of at least 0 is needed"),
        ("formula: i * n", "formula: i * 10000 * n", "int16 takes whole numbers"),
        (', fill: {function: "pkg:draw"}', ", fill: uniform", "is text, which needs fill"),
    ],
)
def test_a_value_that_a_table_cannot_have_is_a_fault_of_its_case(
    old: str, new: str, problem: str, plan_of: PlanOf
) -> None:
    faults = plan_of(KERNEL.replace(old, new)).faults()
    assert any(problem in fault.message for fault in faults)


def test_a_function_of_a_column_that_is_not_there_is_a_fault(plan_of: PlanOf) -> None:
    faults = plan_of(KERNEL.replace("pkg:draw", "pkg:drow")).faults()
    assert any("drow" in fault.message for fault in faults)


def test_a_case_explains_its_columns(plan_of: PlanOf) -> None:
    case = cases(plan_of(KERNEL), "numpy")["n=4 missing=0.25 type=category"]
    told = {field: (text, origin) for field, text, origin in explain(case)}
    assert told["tables.x.v"][0] == "float32 [8] 0.25 nulls"
    assert told["tables.x.k"][0] == "category [8]"
    assert told["tables.x.row"][1].endswith("small.yaml:12:16")


def test_tables_are_part_of_a_benchmarks_version_and_their_absence_is_not(plan_of: PlanOf) -> None:
    def version(text: str) -> str:
        kernel = plan_of(text).loaded[0].suite.kernels["small"]
        return benchmark_version(kernel, "numpy", "kernel")

    assert version(KERNEL) != version(KERNEL.replace("float32", "float64"))
    assert version(KERNEL) != version(KERNEL.replace("key: [row]", "key: [row, v]"))
    assert version(KERNEL) == version(KERNEL.replace("[4, 10]", "[4]"))
    # As it was before there were tables.
    plain = Kernel.model_validate(
        {
            "arrays": {"a": Array(shape=(4,), dtype="float32", intent="inout")},
            "call": ["a"],
            "implementations": {"numpy": {"function": "pkg:f"}},
        }
    )
    assert benchmark_version(plain, "numpy", "kernel") == "bbc4fe7d751b87a8"


def test_a_formula_of_a_table_without_a_value_names_the_place(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL.replace("rows: 2 * n", "rows: 8 // (n - 4)"))
    with pytest.raises(PlanError, match=r"tables\.x\.rows"):
        _ = cases(plan, "numpy")["n=4 missing=0 type=int32"].table_specs
