"""``tables`` of a kernel: what is read and what is returned, and every fault at its place."""

# ruff: noqa: E501 -- a table with one case a line

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpubench.suite.sampling import Check

Faults = Callable[..., list[str]]

SUITE = """\
version: 1
suite: small
kernels:
  total:
    sizes: {n: [4, 8]}
    parameters: {missing: [0, 0.5], type: [int32, text]}
    tables:
      x:
        rows: n
        columns:
          id: {dtype: category, fill: {function: some.module:words}}
          max: {dtype: float64, nulls: missing}
          row: {dtype: int64, fill: {formula: i * n}}
          any: {dtype: type, fill: {function: some.module:any}}
      answer: {intent: out, key: [id]}
    call: [x]
    returns: [answer]
    implementations:
      numpy: {function: some.module:total}
"""


def test_a_suite_with_tables_has_no_fault(load: Callable[..., object]) -> None:
    kernel = load(SUITE).suite.kernels["total"]
    assert list(kernel.tables["x"].columns) == ["id", "max", "row", "any"]
    assert kernel.tables["answer"].key == ("id",)
    assert kernel.arguments("numpy") == ("x",)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        # tables
        ("rows: n\n", "rows: ¦k\n", "unknown name 'k'; allowed: n, missing, type (in 'k')"),
        (
            "      x:\n        rows: n",
            "      ¦x:\n        key: [id]",
            "table 'x' is read: it needs rows",
        ),
        ("rows: n\n", "rows: n\n        ¦key: [id]\n", "table 'x' is read: it takes no key"),
        ("key: [id]", "key: [id], ¦rows: n", "table 'answer' is returned: it takes no rows"),
        ("key: [id]", "key: [id, ¦id]", "key[1]: id is there twice"),
        (
            "key: [id]",
            "key: [¦a b]",
            "key[0]: 'a b' is not a name of a column; allowed are letters, digits and underscores, starting with a letter or underscore",
        ),
        (
            "intent: out",
            "intent: ¦inout",
            "intent: found 'inout'; did you mean 'out'? Allowed: 'in' or 'out'",
        ),
        (
            "      answer: {intent: out, key: [id]}",
            "      ¦answer: {rows: n, columns: {v: {dtype: int8}}}",
            "table 'answer' is returned: give it `intent: out`",
        ),
        (
            "returns: [answer]",
            "returns: [other]",
            "table 'answer' has intent out; name it in the kernel's `returns`",
        ),
        (
            "call: [x]",
            "call: [x, ¦answer]",
            "table 'answer' is returned, and no argument of the call",
        ),
        ("call: [x]", "call: [¦y]", "unknown argument 'y'; allowed: x, answer, n, missing, type"),
        ("call: [x]", "call: [n]", "table 'x' is used by nothing; name it in call"),
        (
            "    call: [x]",
            "    scalars: {¦x: {value: 1}}\n    call: [x]",
            "'x' is declared twice in kernel 'total'; rename one of them",
        ),
        (
            "    call: [x]",
            "    work: {bytes: 8 * ¦x}\n    call: [x]",
            "'x' is a table; formulas use sizes and parameters (in '8 * x')",
        ),
        # columns
        ("dtype: float64", "dtype: ¦flaot64", "unknown dtype 'flaot64'; did you mean 'float64'?"),
        (
            "dtype: float64",
            "dtype: ¦complex64",
            "unknown dtype 'complex64'; allowed: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, text, category, missing, type",
        ),
        (
            "[int32, text]",
            "[int32, ¦words]",
            "unknown dtype 'words'; allowed: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, text, category",
        ),
        (
            "nulls: missing",
            "nulls: ¦1.5",
            "nulls: found 1.5; allowed: a share of the rows, from 0 to 1",
        ),
        (
            "nulls: missing",
            "nulls: ¦messing",
            "unknown name 'messing'; did you mean 'missing'? (in 'messing')",
        ),
        (
            "nulls: missing",
            "¦nul: missing",
            "unknown field 'nul' in column 'max'; did you mean 'nulls'?",
        ),
        (
            "dtype: category, fill: {function: some.module:words}",
            "dtype: category, fill: ¦uniform",
            "column 'x.id' is category: it needs fill: {function: module:name}",
        ),
        (
            "{formula: i * n}",
            "¦{like: id}",
            "column 'x.row' takes no like; name one function for both",
        ),
        (
            "{formula: i * n}",
            "{formula: i * n, indices: ¦[i, j]}",
            "found 2 indices; column 'x.row' needs 1, one for each dimension: indices: [i, j] for example",
        ),
        (
            "{formula: i * n}",
            "{formula: ¦j * n}",
            "unknown name 'j'; allowed: n, missing, type, i (in 'j * n')",
        ),
    ],
)
def test_a_fault_of_a_table_lies_at_its_place(
    old: str, new: str, fault: str, faults: Faults
) -> None:
    assert SUITE.count(old) == 1
    text = SUITE.replace(old, new)
    place, found = text.find("¦"), faults(text.replace("¦", ""))
    messages = [each.partition(": ")[2] for each in found]
    assert fault in messages
    if place >= 0:
        line = text.count("\n", 0, place) + 1
        column = place - text.rfind("\n", 0, place)
        assert f"{line}:{column}: {fault}" in found


def test_axes_that_columns_use_are_used(faults: Faults) -> None:
    without = (
        SUITE.replace(", type: [int32, text]", "")
        .replace("          any: {dtype: type, fill: {function: some.module:any}}\n", "")
        .replace("dtype: category, fill: {function: some.module:words}", "dtype: int8")
    )
    assert faults(without) == []
    (fault,) = faults(without.replace("nulls: missing", "nulls: 0.5"))
    assert "'missing' is used by no array" in fault


def test_a_column_is_compared_as_its_table_is() -> None:
    check = Check.model_validate({"rtol": 1e-3, "outputs": {"answer": {"rtol": 1e-9}}})
    assert check.of("answer.v1").rtol == 1e-9
    assert check.of("other.v1").rtol == 1e-3
