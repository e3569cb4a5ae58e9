"""Formulas of the format: parsed once to a checked syntax tree, evaluated without ``eval``."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

from gpubench.suite import arithmetic
from gpubench.suite.arithmetic import LIMIT, Result
from gpubench.suite.syntax import (
    ALLOWED,
    ARRAY_FUNCTIONS,
    FUNCTION_NAMES,
    MAX_LENGTH,
    ExpressionError,
    parse,
)

if TYPE_CHECKING:  # formulas are also evaluated where nothing is validated
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema

__all__ = [
    "ARRAY_FUNCTIONS",
    "CONSTANTS",
    "FUNCTIONS",
    "FUNCTION_NAMES",
    "MAX_DEPTH",
    "MAX_LENGTH",
    "ArrayInfo",
    "Expression",
    "ExpressionError",
    "Name",
]

MAX_DEPTH = 100
"""Most operations nested in one another; a sum of 100 terms is that deep."""

FUNCTIONS: Mapping[str, tuple[Callable[..., Result], int, int]] = {
    "cdiv": (arithmetic.cdiv, 2, 2),
    "ceil": (arithmetic.ceil, 1, 1),
    "floor": (arithmetic.floor, 1, 1),
    "min": (arithmetic.smallest, 2, MAX_LENGTH),
    "max": (arithmetic.largest, 2, MAX_LENGTH),
    "abs": (arithmetic.absolute, 1, 1),
    "log2": (arithmetic.log2, 1, 1),
}
"""Functions of values: what computes them, fewest and most arguments."""
CONSTANTS: Mapping[str, bool] = {"true": True, "false": False}
"""Names that are values, spelled as in YAML."""

_BINARY: dict[type[ast.operator], Callable[[Result, Result], Result]] = {
    ast.Add: arithmetic.add,
    ast.Sub: arithmetic.subtract,
    ast.Mult: arithmetic.multiply,
    ast.Div: arithmetic.divide,
    ast.FloorDiv: arithmetic.floor_divide,
    ast.Mod: arithmetic.modulo,
    ast.Pow: arithmetic.power,
}
_ORDER: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_EQUALITY: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class ArrayInfo(Protocol):
    """What ``itemsize`` and ``size`` ask of an array; a NumPy array answers it too."""

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""

    @property
    def size(self) -> int:
        """Number of elements."""


Scope = Mapping[str, Any]
Arrays = Mapping[str, ArrayInfo]
Run = Callable[[Scope, Arrays], Result]
"""One compiled part of a formula."""


class Name(NamedTuple):
    """A name in a formula, and the number of characters before its first use."""

    name: str
    offset: int


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
    name_uses: tuple[Name, ...]
    """First use of each of ``names``, in the order of the text."""
    array_uses: tuple[Name, ...]
    """First use of each of ``arrays``, in the order of the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._run, self.name_uses, self.array_uses = _compile(text)
        self.names = frozenset(use.name for use in self.name_uses)
        self.arrays = frozenset(use.name for use in self.array_uses)

    def evaluate(self, scope: Scope, arrays: Arrays | None = None) -> int | float | bool | str:
        """Value of the formula; whole numbers are ``int``, other quotients ``float``.

        ``scope`` maps names to values, ``arrays`` names to what has ``itemsize`` and ``size``.
        Raises ``ExpressionError`` naming what went wrong and where.
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
        return Expression, (self.text,)

    @classmethod
    def validated(cls, text: str) -> Expression:
        """Like ``Expression(text)``, with the error as pydantic wants it."""
        from pydantic_core import PydanticCustomError

        try:
            return cls(text)
        except ExpressionError as error:
            context = {"problem": error.problem, "offset": error.offset}
            raise PydanticCustomError("expression", "{problem}", context) from error

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            _validate, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": "string", "minLength": 1, "maxLength": MAX_LENGTH}


def _validate(value: object) -> Expression:
    from pydantic_core import PydanticCustomError

    if isinstance(value, Expression):
        return value
    if not isinstance(value, str):
        raise PydanticCustomError("expected", "{allowed}", {"allowed": "a formula"})
    return Expression.validated(value)


@lru_cache(maxsize=4096)
def _compile(text: str) -> tuple[Run, tuple[Name, ...], tuple[Name, ...]]:
    compiler = _Compiler(text)
    run = compiler.compile(parse(text), 0)
    return run, _in_order(compiler.names), _in_order(compiler.arrays)


def _in_order(uses: Mapping[str, int]) -> tuple[Name, ...]:
    return tuple(sorted((Name(*use) for use in uses.items()), key=operator.attrgetter("offset")))


class _Compiler:
    """Turns a syntax tree into nested functions, collecting the names on the way."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: dict[str, int] = {}
        self.arrays: dict[str, int] = {}

    def compile(self, node: ast.expr, depth: int) -> Run:
        if depth > MAX_DEPTH:
            self.fail(node, f"more than {MAX_DEPTH} operations nested in one another")
        method = getattr(self, f"compile_{type(node).__name__}", None)
        if method is None:
            self.fail(node, f"{_kind(node)} not part of a formula; {ALLOWED}")
        run: Run = method(node, depth + 1)
        return run

    def fail(self, node: ast.expr, problem: str) -> NoReturn:
        raise ExpressionError(problem, self.text, self.offset(node))

    def offset(self, node: ast.expr) -> int:
        blank = len(self.text) - len(self.text.lstrip())
        start = self.text.strip().encode()[: node.col_offset]
        return blank + len(start.decode())

    def guard(self, node: ast.expr, run: Run) -> Run:
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

    def compile_Constant(self, node: ast.Constant, depth: int) -> Run:
        value = node.value
        if not isinstance(value, bool | int | float | str):
            self.fail(node, f"{value!r} is not part of a formula")
        if isinstance(value, int | float) and not abs(value) <= LIMIT:
            self.fail(node, "a number larger than 2**128")
        return lambda scope, arrays: value

    def compile_Name(self, node: ast.Name, depth: int) -> Run:
        name, text, offset = node.id, self.text, self.offset(node)
        if name in CONSTANTS:
            constant = CONSTANTS[name]
            return lambda scope, arrays: constant
        if name in FUNCTION_NAMES:
            self.fail(node, f"{name!r} is a function; write {name}(...)")
        self.names.setdefault(name, offset)

        def lookup(scope: Scope, arrays: Arrays) -> Result:
            try:
                value: Result = scope[name]
            except KeyError:
                raise ExpressionError(_unknown(name, scope), text, offset) from None
            return value

        return lookup

    def compile_BinOp(self, node: ast.BinOp, depth: int) -> Run:
        operation = _BINARY.get(type(node.op))
        if operation is None:
            self.fail(node, f"this operator is not part of a formula; {ALLOWED}")
        left, right = self.compile(node.left, depth), self.compile(node.right, depth)
        return self.guard(node, lambda s, a: operation(left(s, a), right(s, a)))

    def compile_UnaryOp(self, node: ast.UnaryOp, depth: int) -> Run:
        operand = self.compile(node.operand, depth)
        if isinstance(node.op, ast.Not):
            return lambda s, a: not operand(s, a)
        if isinstance(node.op, ast.Invert):
            self.fail(node, f"'~' is not part of a formula; {ALLOWED}")
        sign = -1 if isinstance(node.op, ast.USub) else 1
        return self.guard(node, lambda s, a: sign * arithmetic.number(operand(s, a)))

    def compile_BoolOp(self, node: ast.BoolOp, depth: int) -> Run:
        parts = [self.compile(value, depth) for value in node.values]
        stops_at = isinstance(node.op, ast.Or)

        def run(scope: Scope, arrays: Arrays) -> Result:
            result: Result = not stops_at
            for part in parts:
                result = part(scope, arrays)
                if bool(result) is stops_at:
                    break
            return result

        return run

    def compile_IfExp(self, node: ast.IfExp, depth: int) -> Run:
        test, body = self.compile(node.test, depth), self.compile(node.body, depth)
        other = self.compile(node.orelse, depth)
        return lambda s, a: body(s, a) if test(s, a) else other(s, a)

    def compile_Compare(self, node: ast.Compare, depth: int) -> Run:
        first = self.compile(node.left, depth)
        rest = [
            (self.comparison(node, op), self.compile(value, depth))
            for op, value in zip(node.ops, node.comparators, strict=True)
        ]

        def run(scope: Scope, arrays: Arrays) -> Result:
            left = first(scope, arrays)
            for holds, operand in rest:
                right = operand(scope, arrays)
                if not holds(left, right):
                    return False
                left = right
            return True

        return self.guard(node, run)

    def comparison(self, node: ast.expr, op: ast.cmpop) -> Callable[[Result, Result], bool]:
        if equality := _EQUALITY.get(type(op)):
            return equality
        order = _ORDER.get(type(op))
        if order is None:
            self.fail(node, f"'in' and 'is' are not part of a formula; {ALLOWED}")
        return lambda left, right: arithmetic.compare(order, left, right)

    def compile_Call(self, node: ast.Call, depth: int) -> Run:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in ARRAY_FUNCTIONS:
            return self.array_call(name, node)
        if name not in FUNCTIONS:
            self.fail(node, f"unknown function{_near(name, FUNCTION_NAMES)}")
        function, fewest, most = FUNCTIONS[name]
        if node.keywords or not fewest <= len(node.args) <= most:
            self.fail(node, f"{name}() takes {_count(fewest, most)}, found {_found(node)}")
        arguments = [self.compile(argument, depth) for argument in node.args]
        return self.guard(node, lambda s, a: function(*[run(s, a) for run in arguments]))

    def array_call(self, function: str, node: ast.Call) -> Run:
        if node.keywords or len(node.args) != 1 or not isinstance(node.args[0], ast.Name):
            self.fail(node, f"{function}() takes the name of one array")
        array, text, offset = node.args[0].id, self.text, self.offset(node.args[0])
        self.arrays.setdefault(array, offset)

        def run(scope: Scope, arrays: Arrays) -> Result:
            if array not in arrays:
                raise ExpressionError(_unknown(array, arrays, "array"), text, offset)
            return int(getattr(arrays[array], function))

        return run


def _kind(node: ast.expr) -> str:
    kinds = {ast.Attribute: "attributes are", ast.Tuple: "a comma outside a function is"}
    return kinds.get(type(node), "this is")


def _count(fewest: int, most: int) -> str:
    if most > fewest:
        return f"{fewest} arguments or more"
    return "1 argument" if fewest == 1 else f"{fewest} arguments"


def _found(node: ast.Call) -> str:
    return "a named one" if node.keywords else str(len(node.args))


def _near(name: str, known: tuple[str, ...]) -> str:
    from difflib import get_close_matches  # only to say what is wrong

    if close := get_close_matches(name, known, 1):
        return f" {name!r}; did you mean {close[0]!r}?"
    return f" {name!r}; there are {', '.join(known)}" if name else f"; there are {', '.join(known)}"


def _unknown(name: str, known: Mapping[str, Any], kind: str = "name") -> str:
    from difflib import get_close_matches

    if close := get_close_matches(name, list(known), 1):
        return f"unknown {kind} {name!r}; did you mean {close[0]!r}?"
    return f"unknown {kind} {name!r}; there are: {', '.join(sorted(known)) or 'none'}"
