"""Formulas of the format: checked when they are read, exact and bounded when they are evaluated.

A formula is parsed once, by Python's own parser, and turned into nested functions. Nothing is
handed to ``eval``: what a suite says is data. Every operand and every result lies within ``LIMIT``,
so that a formula costs neither time nor memory beyond a few words.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

from gpubench.errors import GpubenchError, did_you_mean

MAX_LENGTH = 500
"""Most characters in a formula."""
MAX_DEPTH = 100
"""Most operations nested in one another; a sum of 100 terms is that deep. Python's own limit on
recursion is 1,000 calls."""
LIMIT = 2**128
"""Largest magnitude of a number, and of a fraction's numerator and denominator: beyond every size
and seed of NumPy (64 bits), and still a few words of memory."""

ARRAYFUNCTIONS = ("itemsize", "size")
"""Functions of an array's name: bytes of one element, number of elements."""
FUNCTION_NAMES = ("cdiv", "ceil", "floor", "min", "max", "abs", "log2", *ARRAYFUNCTIONS)
CONSTANTS: Mapping[str, bool] = {"true": True, "false": False}
"""Names that are values, spelled as in YAML."""

ALLOWED = (
    "allowed are + - * / // % ** ( ), comparisons, and, or, not, 'x if c else y' and "
    + ", ".join(f"{name}()" for name in FUNCTION_NAMES)
)
"""Words for messages."""

Result = int | float | bool | str | Fraction
"""What a part of a formula gives; fractions stay inside a formula."""
Number = int | float | Fraction


Scope = Mapping[str, Any]
Arrays = Mapping[str, Any]
"""Arrays by name, for ``itemsize`` and ``size``, which are attributes as of NumPy's arrays."""
Run = Callable[[Scope, Arrays], Result]
"""One compiled part of a formula."""
Comparisons = list[tuple[Callable[..., Any], Run]]
"""What has to hold between an operand and the one before it, and that operand."""


class ExpressionError(GpubenchError):
    """A text that is no formula, or a formula that has no value in a scope."""

    def __init__(self, problem: str, text: str, offset: int) -> None:
        super().__init__(f"{problem} (at character {offset + 1} of '{text}')")
        self.problem = problem
        """What is wrong, without the place."""
        self.text = text
        self.offset = offset
        """Characters before the place in ``text``."""


class Expression:
    """A formula over named values; immutable, equal to another of the same text.

    ``Expression(text)`` raises ``ExpressionError`` (with the offset inside ``text``) when the text
    is not a formula of the format.
    """

    __slots__ = ("_run", "array_uses", "arrays", "name_uses", "names", "text")

    text: str
    """As written."""
    names: frozenset[str]
    """Names of values that it reads (functions and arrays inside ``itemsize``/``size`` apart)."""
    arrays: frozenset[str]
    """Names of arrays that it asks ``itemsize`` or ``size`` of."""
    name_uses: Mapping[str, int]
    """Characters before the first use of each of ``names``, in the order of the text."""
    array_uses: Mapping[str, int]
    """Characters before the first use of each of ``arrays``, in the order of the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._run, self.name_uses, self.array_uses = _compile(text)
        self.names, self.arrays = frozenset(self.name_uses), frozenset(self.array_uses)

    def evaluate(self, scope: Scope, arrays: Arrays | None = None) -> int | float | bool | str:
        """Value of the formula; whole numbers are ``int``, other quotients ``float``.

        Raises ``ExpressionError`` for a name that is in neither mapping and for what has no value
        (a division by zero, the logarithm of 0, a number beyond ``LIMIT``).
        """
        result = self._run(scope, arrays or {})
        return float(result) if isinstance(result, Fraction) else result

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Expression) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[type[Expression], tuple[str]]:
        """Other processes get the text: what is compiled of it are functions."""
        return Expression, (self.text,)


# --- from text to a syntax tree


_TEXT = re.compile(r"'[^']*'|\"[^\"]*\"")
_FOREIGN = re.compile(r"[^\w\s.+\-*/%()<>=!,'\"]|[^\x00-\x7f]")
_NUMBER_LIKE = re.compile(r"(?<![\w.])\d(?:[eE][+-](?=\d)|[\w.])*")
_NUMBER = re.compile(r"(0|[1-9]\d*)(\.\d*)?([eE][+-]?\d{1,3})?")


def _parse(text: str) -> ast.expr:
    """Syntax tree of a text of characters and numbers that a formula may hold."""
    if not text.strip():
        raise ExpressionError("an empty formula", text, 0)
    if len(text) > MAX_LENGTH:
        problem = f"a formula of {len(text)} characters; at most {MAX_LENGTH}: use `let`"
        raise ExpressionError(problem, f"{text[:60]}...", 0)
    if "\\" in text:
        raise ExpressionError("'\\' is not part of a formula", text, text.index("\\"))
    masked = _TEXT.sub(lambda match: "_" * len(match[0]), text)
    if foreign := _FOREIGN.search(masked):
        problem = f"{foreign[0]!r} is not part of a formula; {ALLOWED}"
        raise ExpressionError(problem, text, foreign.start())
    for literal in _NUMBER_LIKE.finditer(masked):
        if not _NUMBER.fullmatch(literal[0]):
            problem = f"{literal[0]!r} is not a number; write it in decimal, 1024 or 0.5 or 1e6"
            raise ExpressionError(problem, text, literal.start())
    blank = len(text) - len(text.lstrip())
    try:
        return ast.parse(re.sub(r"\s", " ", text).strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        at = getattr(error, "offset", None) or 0
        if re.search(r"(?<![<>=!])=(?!=)", masked):
            problem = "write == to compare"
        elif masked.count("(") != masked.count(")"):
            problem = "the parentheses do not match"
        else:
            problem = "something else belongs here" if at else "it ends too early"
        at = at or len(text.strip()) + 1  # 0 is Python's word for the end of the text
        at = min(blank + at - 1, len(text))
        raise ExpressionError(f"not a formula: {problem}", text, at) from None


# --- arithmetic: exact for whole numbers, and bounded in size before it is done


def _bounded(value: Number) -> Number:
    """``value`` in its simplest type; raises ``ValueError`` when it is too large or not finite."""
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise ValueError("the result is not a finite number")
    numerator, denominator = value.numerator, value.denominator
    if -LIMIT <= numerator <= LIMIT and denominator <= LIMIT:
        return numerator if denominator == 1 else value
    raise ValueError("the result is larger than 2**128")


def _number(value: Result) -> Number:
    if isinstance(value, str):
        raise ValueError(f"a number is needed here, found {value!r}")
    return value


def _exact(operation: Callable[[Number, Number], Number]) -> Callable[[Result, Result], Number]:
    def apply(left: Result, right: Result) -> Number:
        if type(left) is int and type(right) is int:  # nearly always, and much faster
            result = operation(left, right)
            if -LIMIT <= result <= LIMIT:
                return result
        return _bounded(operation(_number(left), _number(right)))

    return apply


_floor_divide = _exact(operator.floordiv)


def _divide(left: Result, right: Result) -> Number:
    """Quotient; exact, and whole where it can be, when neither operand is a float."""
    dividend, divisor = _number(left), _number(right)
    if not isinstance(dividend, float) and not isinstance(divisor, float):
        dividend = Fraction(dividend)
    return _bounded(dividend / divisor)


def _power(left: Result, right: Result) -> Number:
    """Power; the size of an exact result is bounded before it is computed."""
    base, exponent = _number(left), _number(right)
    if isinstance(base, float) or not isinstance(exponent, int):
        base, exponent = float(base), float(exponent)
        if base < 0 and not exponent.is_integer():
            raise ValueError(f"{base} to the power of {exponent} is not a real number")
        try:
            return _bounded(math.pow(base, exponent))
        except OverflowError:
            raise ValueError("the result is larger than a number can be") from None
    bits = max(abs(base.numerator), base.denominator).bit_length() - 1
    if bits * abs(exponent) > LIMIT.bit_length():
        raise ValueError("the result is larger than 2**128")
    return _bounded(Fraction(base) ** exponent)


def _log2(value: Result) -> int | float:
    """Binary logarithm; a whole number for powers of two."""
    operand = _number(value)
    if operand <= 0:
        raise ValueError(f"log2 needs a number above 0, found {operand}")
    if isinstance(operand, int) and operand & (operand - 1) == 0:
        return operand.bit_length() - 1
    return math.log2(operand)


def _ordered(operation: Callable[[Any, Any], bool]) -> Callable[[Result, Result], bool]:
    """Order of two numbers or of two texts."""

    def apply(left: Result, right: Result) -> bool:
        if isinstance(left, str) != isinstance(right, str):
            raise ValueError(f"{left!r} and {right!r} have no order")
        return operation(left, right)

    return apply


OPERATIONS: Mapping[type[ast.operator | ast.unaryop], Callable[..., Result]] = {
    ast.Add: _exact(operator.add),
    ast.Sub: _exact(operator.sub),
    ast.Mult: _exact(operator.mul),
    ast.Div: _divide,
    ast.FloorDiv: _floor_divide,
    ast.Mod: _exact(operator.mod),
    ast.Pow: _power,
    ast.UAdd: lambda value: +_number(value),
    ast.USub: lambda value: -_number(value),
    ast.Not: operator.not_,
}
COMPARISONS: Mapping[type[ast.cmpop], Callable[[Result, Result], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: _ordered(operator.lt),
    ast.LtE: _ordered(operator.le),
    ast.Gt: _ordered(operator.gt),
    ast.GtE: _ordered(operator.ge),
}
FUNCTIONS: Mapping[str, tuple[Callable[..., Result], int, int]] = {
    # ceil(a / b) in whole numbers: how many blocks of b hold a
    "cdiv": (lambda left, right: -_floor_divide(-_number(left), right), 2, 2),
    "ceil": (lambda value: math.ceil(_number(value)), 1, 1),
    "floor": (lambda value: math.floor(_number(value)), 1, 1),
    "min": (lambda *values: min(map(_number, values)), 2, MAX_LENGTH),
    "max": (lambda *values: max(map(_number, values)), 2, MAX_LENGTH),
    # not Python's abs(), which makes a number of a boolean
    "abs": (lambda value: max(_number(value), -_number(value)), 1, 1),
    "log2": (_log2, 1, 1),
}
"""Functions of values: what computes them, fewest and most arguments."""


# --- from a syntax tree to nested functions


_REFUSED: Mapping[type[ast.expr], str] = {
    ast.BinOp: "this operator is",
    ast.UnaryOp: "'~' is",
    ast.Attribute: "attributes are",
    ast.Tuple: "a comma outside a function is",
}
"""What to call a part of Python that is no part of a formula."""


@lru_cache(maxsize=4096)
def _compile(text: str) -> tuple[Run, Mapping[str, int], Mapping[str, int]]:
    compiler = Compiler(text)
    run = compiler.compiled()
    names, arrays = (
        dict(sorted(uses.items(), key=operator.itemgetter(1)))
        for uses in (compiler.names, compiler.arrays)
    )
    return run, names, arrays


class Compiler:
    """Turns a formula into nested functions, collecting the names on the way.

    What they do to values stands in the three tables and in ``compared``, ``chosen`` and
    ``and_or``: another kind of arithmetic replaces these.
    """

    operations: ClassVar[Mapping[Any, Callable[..., Any]]] = OPERATIONS
    comparisons: ClassVar[Mapping[Any, Callable[..., Any]]] = COMPARISONS
    functions: ClassVar[Mapping[str, tuple[Callable[..., Any], int, int]]] = FUNCTIONS

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: dict[str, int] = {}
        self.arrays: dict[str, int] = {}

    def compiled(self) -> Run:
        """The whole formula; raises ``ExpressionError`` where the text is none."""
        return self.compile(_parse(self.text), 0)

    def compile(self, node: ast.expr, depth: int) -> Run:
        if depth > MAX_DEPTH:
            raise self.error(node, f"more than {MAX_DEPTH} operations nested; use `let`")
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as constant):
                if not isinstance(constant, str) and not abs(constant) <= LIMIT:
                    raise self.error(node, "a number larger than 2**128")
                return lambda scope, arrays: constant
            case ast.Constant(value=value):
                raise self.error(node, f"{value!r} is not part of a formula")
            case ast.Name(id=name):
                return self.name(node, name)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATIONS:
                return self.applied(node, self.operations[type(op)], (left, right), depth)
            case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATIONS:
                return self.applied(node, self.operations[type(op)], (operand,), depth)
            case ast.BoolOp(op=op, values=values):
                parts = [self.compile(value, depth + 1) for value in values]
                return self.and_or(parts, stops_at=isinstance(op, ast.Or))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition, yes, no = (self.compile(n, depth + 1) for n in (test, body, orelse))
                return self.chosen(condition, yes, no)
            case ast.Compare():
                return self.comparison(node, depth)
            case ast.Call():
                return self.call(node, depth)
        what = _REFUSED.get(type(node), "this is")
        raise self.error(node, f"{what} not part of a formula; {ALLOWED}")

    def error(self, node: ast.expr, problem: str) -> ExpressionError:
        return ExpressionError(problem, self.text, self.offset(node))

    def offset(self, node: ast.expr) -> int:
        """Characters before a node; Python counts bytes of UTF-8."""
        blank = len(self.text) - len(self.text.lstrip())
        return blank + len(self.text.strip().encode()[: node.col_offset].decode())

    def applied(
        self,
        node: ast.expr,
        function: Callable[..., Result],
        operands: Iterable[ast.expr],
        depth: int,
    ) -> Run:
        """A function of the operands' values."""
        runs = [self.compile(operand, depth + 1) for operand in operands]
        return self.guarded(node, lambda s, a: function(*[run(s, a) for run in runs]))

    def guarded(self, node: ast.expr, run: Run) -> Run:
        """``run`` with what goes wrong in it told with the place of ``node``."""
        text, offset = self.text, self.offset(node)

        def guarded(scope: Scope, arrays: Arrays) -> Result:
            try:
                return run(scope, arrays)
            except ZeroDivisionError:
                raise ExpressionError("division by zero", text, offset) from None
            except (ValueError, OverflowError) as error:
                raise ExpressionError(str(error), text, offset) from None

        return guarded

    def name(self, node: ast.expr, name: str) -> Run:
        if name in CONSTANTS:
            return lambda scope, arrays: CONSTANTS[name]
        if name in FUNCTION_NAMES:
            raise self.error(node, f"{name!r} is a function; write {name}(...)")
        text, offset = self.text, self.offset(node)
        self.names.setdefault(name, offset)

        def lookup(scope: Scope, arrays: Arrays) -> Result:
            try:
                value: Result = scope[name]
            except KeyError:
                raise ExpressionError(_unknown("name", name, scope), text, offset) from None
            return value

        return lookup

    def comparison(self, node: ast.Compare, depth: int) -> Run:
        """``a < b <= c``."""
        first = self.compile(node.left, depth + 1)
        rest = []
        for op, operand in zip(node.ops, node.comparators, strict=True):
            if type(op) not in COMPARISONS:
                raise self.error(node, f"'in' and 'is' are not part of a formula; {ALLOWED}")
            rest.append((self.comparisons[type(op)], self.compile(operand, depth + 1)))

        return self.guarded(node, self.compared(first, rest))

    def compared(self, first: Run, rest: Comparisons) -> Run:
        """Each operand is computed once, and none after the first that fails."""

        def run(scope: Scope, arrays: Arrays) -> Result:
            left = first(scope, arrays)
            for holds, operand in rest:
                right = operand(scope, arrays)
                if not holds(left, right):
                    return False
                left = right
            return True

        return run

    def chosen(self, condition: Run, yes: Run, no: Run) -> Run:
        """``yes if condition else no``: one of the two is computed."""
        return lambda s, a: yes(s, a) if condition(s, a) else no(s, a)

    def and_or(self, parts: list[Run], stops_at: bool) -> Run:
        """``and`` and ``or`` as in Python: parts after the one that decides are not computed."""

        def run(scope: Scope, arrays: Arrays) -> Result:
            for part in parts:
                result = part(scope, arrays)
                if bool(result) is stops_at:
                    break
            return result

        return run

    def call(self, node: ast.Call, depth: int) -> Run:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in ARRAYFUNCTIONS:
            match node:
                case ast.Call(args=[ast.Name(id=array) as argument], keywords=[]):
                    self.arrays.setdefault(array, self.offset(argument))
                    return self.guarded(argument, lambda scope, arrays: _asked(name, array, arrays))
            raise self.error(node, f"{name}() takes the name of one array")
        if name not in FUNCTIONS:
            shown = f" {name!r}" if name else ""
            hint = did_you_mean(name, FUNCTION_NAMES) or f"; there are {', '.join(FUNCTION_NAMES)}"
            raise self.error(node, f"unknown function{shown}{hint}")
        function, fewest, most = self.functions[name]
        if node.keywords or not fewest <= len(node.args) <= most:
            count = "1 argument" if fewest == 1 else f"{fewest} arguments"
            needed = f"{count} or more" if most > fewest else count
            given = "a named one" if node.keywords else len(node.args)
            raise self.error(node, f"{name}() takes {needed}, found {given}")
        return self.applied(node, function, node.args, depth)


def _asked(function: str, array: str, arrays: Arrays) -> int:
    """``itemsize`` or ``size`` of an array."""
    if array not in arrays:
        raise ValueError(_unknown("array", array, arrays))
    return int(getattr(arrays[array], function))


def _unknown(kind: str, name: str, candidates: Iterable[str]) -> str:
    names = ", ".join(sorted(candidates)) or "none"
    return f"unknown {kind} {name!r}{did_you_mean(name, candidates) or f'; there are: {names}'}"
