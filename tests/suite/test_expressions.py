"""Formulas: their values, and what is refused where."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpubench.suite.expressions import Expression, ExpressionError

SCOPE = {"n": 10, "tile": 16, "dtype": "float64", "fast": True}
ARRAYS = {"b": SimpleNamespace(itemsize=8, size=30)}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n", 10),
        ("42", 42),
        (" n ", 10),
        ("2 * n + 1", 21),
        ("n / 3 * 3", 10),
        ("n / 4", 2.5),
        ("n // 3", 3),
        ("-n % 3", 2),
        ("2 ** n", 1024),
        ("2 ** -2", 0.25),
        ("(-1) ** 10 ** 18", 1),
        ("cdiv(n, 4)", 3),
        ("cdiv(n, 5)", 2),
        ("ceil(n / 3)", 4),
        ("floor(n / 3)", 3),
        ("min(n, tile, 3)", 3),
        ("max(n, tile)", 16),
        ("abs(-n)", 10),
        ("log2(1024)", 10),
        ("log2(2 ** 100)", 100),
        ("3 * n * itemsize(b)", 240),
        ("size(b)", 30),
        ("dtype == 'float64' and tile == 16", True),
        ("dtype != 'float64'", False),
        ("1 < n <= 10", True),
        ("not n", False),
        ("n if tile > 16 else tile", 16),
        ("fast == true", True),
        ("0.5 * n", 5.0),
    ],
)
def test_a_formula_has_the_value_that_arithmetic_gives_it(text: str, value: object) -> None:
    result = Expression(text).evaluate(SCOPE, ARRAYS)
    assert result == value
    assert type(result) is type(value)


NO_NUMBER = "is not a number; write it in decimal, 1024 or 0.5 or 1e6, or for the text"


@pytest.mark.parametrize(
    ("text", "offset", "problem"),
    [
        ("n[0]", 1, "'[' is not part of a formula"),
        ("n.real", 0, "attributes are not part of a formula"),
        ("n = 3", 2, "not a formula: write == to compare"),
        ("cdiv(n", 4, "not a formula: the parentheses do not match"),
        ("cdiv(n)", 0, "cdiv() takes 2 arguments, found 1"),
        ("2 + cdv(n, 2)", 4, "unknown function 'cdv'; did you mean 'cdiv'?"),
        ("1_000", 0, f"'1_000' {NO_NUMBER} \"'1_000'\""),
        ("n + 0x10", 4, f"'0x10' {NO_NUMBER} '0x10'"),
        ("5pt", 0, f"'5pt' {NO_NUMBER} \"'5pt'\""),
        ("100%", 4, "not a formula: it ends too early; a text is written \"'100%'\""),
        ("lambda: 1", 6, "':' is not part of a formula"),
        ("n in tile", 0, "'in' and 'is' are not part of a formula"),
        ("min(*n)", 0, "min() takes 2 arguments or more, found 1"),
        ("__import__('os')", 0, "unknown function '__import__'"),
        ("f'{n}'", 0, "this is not part of a formula"),
        ("'\\x41'", 1, "'\\' is not part of a formula"),
        ("min", 0, "'min' is a function; write min(...)"),
        ("itemsize(4)", 0, "itemsize() takes the name of one array"),
        ("", 0, "an empty formula"),
        ("n" * 501, 0, "a formula of 501 characters; at most 500: use `let`"),
        ("-" * 400 + "1", 101, "more than 100 operations nested; use `let`"),
        (str(2**129), 0, "a number larger than 2**128"),
    ],
)
def test_what_is_no_formula_is_refused_at_its_place(text: str, offset: int, problem: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        Expression(text)
    assert caught.value.problem.startswith(problem)
    assert caught.value.offset == offset


@pytest.mark.parametrize(
    ("text", "offset", "problem"),
    [
        ("1 + nn", 4, "unknown name 'nn'; did you mean 'n'?"),
        ("itemsize(c)", 9, "unknown array 'c'; there are: b"),
        ("2 * (n / 0)", 5, "division by zero"),
        ("10 ** 10 ** 10", 0, "the result is larger than 2**128"),
        ("2.0 ** 5000", 0, "the result is larger than a number can be"),
        ("(0 - 8) ** 0.5", 0, "-8.0 to the power of 0.5 is not a real number"),
        ("ceil(2.0 ** 500)", 0, "the result is larger than 2**128"),
        ("log2(0)", 0, "log2 needs a number above 0, found 0"),
        ("dtype + 1", 0, "a number is needed here, found 'float64'"),
        ("dtype < 3", 0, "'float64' and 3 have no order"),
    ],
)
def test_a_formula_without_a_value_says_why_and_where(text: str, offset: int, problem: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        Expression(text).evaluate(SCOPE, ARRAYS)
    assert caught.value.problem == problem
    assert caught.value.offset == offset
    assert str(caught.value) == f"{problem} (at character {offset + 1} of '{text}')"


def test_a_comparison_ends_where_it_is_decided() -> None:
    formula = Expression("0 < n < 10 // n and 10 // n > 2 or n == 0")
    assert [formula.evaluate({"n": n}) for n in (0, 1, 2, 4)] == [True, True, True, False]


def test_comparisons_inside_one_another_cost_no_more_than_their_length() -> None:
    formula = Expression("0<(" * 60 + "1" + ")<2" * 60)
    assert formula.evaluate({}) is True


def test_a_formula_knows_the_names_and_arrays_that_it_reads() -> None:
    formula = Expression("cdiv(n, tile) * itemsize(b) if n > m else size(c)")
    assert formula.names == {"n", "tile", "m"}
    assert formula.arrays == {"b", "c"}


def test_offsets_count_characters_and_not_bytes() -> None:
    assert Expression("'é' == n").name_uses == {"n": 7}


def test_formulas_of_one_text_are_equal() -> None:
    assert Expression("2 * n") == Expression("2 * n") != Expression("n * 2")
    assert len({Expression("2 * n"), Expression("2 * n")}) == 1


def _formulas() -> st.SearchStrategy[str]:
    leaves = st.one_of(st.integers(0, 50).map(str), st.sampled_from(["n", "tile"]))
    pairs = st.sampled_from(["+", "-", "*", "//", "%", "<", "==", ">=", "and", "or"])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, pairs, inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
            inner.map(lambda text: f"(not {text})"),
            inner.map(lambda text: f"(-{text})"),
            st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
            st.tuples(inner, inner).map(lambda t: f"min({t[0]}, {t[1]})"),
        ),
        max_leaves=8,
    )


@settings(max_examples=150, deadline=None)
@given(_formulas())
def test_a_formula_agrees_with_python_on_whole_numbers(text: str) -> None:
    try:
        expected = eval(text, {"__builtins__": {}, "min": min}, dict(SCOPE))
    except ZeroDivisionError:
        with pytest.raises(ExpressionError, match="division by zero"):
            Expression(text).evaluate(SCOPE)
        return
    assert Expression(text).evaluate(SCOPE) == expected


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_formula_or_an_expression_error(text: str) -> None:
    try:
        Expression(text).evaluate(SCOPE, ARRAYS)
    except ExpressionError as error:
        assert 0 <= error.offset <= max(0, len(text))
