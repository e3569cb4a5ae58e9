"""Formulas of the format: checked when they are read, exact and bounded when they are evaluated.

A formula is parsed once, by Python's own parser, and turned into nested functions. Nothing is
handed to ``eval``: what a suite says is data. Every operand and every result lies within
``MAX_NUMBER``, so that a formula costs neither time nor memory beyond a few words.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from gpubench.errors import GpubenchError, did_you_mean
from gpubench.names import MAX_NUMBER
from gpubench.suite.arithmetic import COMPARISONS, FUNCTIONS, OPERATIONS, as_array

MAX_LENGTH = 500
"""Most characters in a formula."""
MAX_FORMULA_DEPTH = 100
"""Most operations nested in one another; a sum of 100 terms is that deep. Python's own limit on
recursion is 1,000 calls."""

ARRAYFUNCTIONS = ("itemsize", "size")
"""Functions of an array's name: bytes of one element, number of elements."""
FUNCTION_NAMES = (*FUNCTIONS, *ARRAYFUNCTIONS)
CONSTANTS: Mapping[str, bool] = {"true": True, "false": False}
"""Names that are values, spelled as in YAML."""
ALLOWED = (
    "allowed are + - * / // % ** ( ), comparisons, and, or, not, 'x if c else y' and "
    + ", ".join(f"{name}()" for name in FUNCTION_NAMES)
)
"""Words for messages."""

ByName = Mapping[str, Any]
"""Values of names, or arrays, of which a formula reads the attributes ``itemsize`` and ``size``."""
Compiled = Callable[[ByName, ByName], Any]
"""One compiled part of a formula; fractions stay inside a formula."""


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

    def __init__(self, text: str) -> None:
        self.text = text
        """As written."""
        self._run, self.name_uses, self.array_uses = _compile(text)
        self.names = frozenset(self.name_uses)
        """Names of values that it reads."""
        self.arrays = frozenset(self.array_uses)
        """Names of arrays that it asks ``itemsize`` or ``size`` of."""

    def evaluate(self, scope: ByName, arrays: ByName | None = None) -> int | float | bool | str:
        """Value of the formula; whole numbers are ``int``, other quotients ``float``.

        Raises ``ExpressionError`` for a name that is in neither mapping and for what has no value
        (a division by zero, the logarithm of 0, a number beyond ``MAX_NUMBER``).
        """
        result: int | float | bool | str | Fraction = self._run(scope, arrays or {})
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


def parse(text: str) -> ast.expr:
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
            decimal = f"{literal[0]!r} is not a number; write it in decimal, 1024 or 0.5 or 1e6"
            problem = f"{decimal}, or for the text {_quoted(literal[0], text)}"
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
        if re.fullmatch(r"\S*\d\S*", text.strip()) and '"' not in text and "'" not in text:
            problem += f"; a text is written {_quoted(text.strip(), text)}"
        at = at or len(text.strip()) + 1  # 0 is Python's word for the end of the text
        at = min(blank + at - 1, len(text))
        raise ExpressionError(f"not a formula: {problem}", text, at) from None


def _quoted(word: str, text: str) -> str:
    """Return a word as the text that a formula may hold; where it is all of the formula, YAML takes
    one pair of quotes away."""
    return f"\"'{word}'\"" if word == text.strip() else f"'{word}'"


# --- from a syntax tree to nested functions


_REFUSED: Mapping[type[ast.expr], str] = {
    ast.BinOp: "this operator is",
    ast.UnaryOp: "'~' is",
    ast.Attribute: "attributes are",
    ast.Tuple: "a comma outside a function is",
}
"""What to call a part of Python that is no part of a formula."""


@lru_cache(maxsize=4096)
def _compile(text: str) -> tuple[Compiled, Mapping[str, int], Mapping[str, int]]:
    """Return what computes a formula, and the names and arrays that it reads, each with the
    characters before its first use."""
    compiler = _Compiler(text)
    return compiler.compile(parse(text), 0), compiler.names, compiler.arrays


class _Compiler:
    """Turns a formula into nested functions, collecting the names on the way."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: dict[str, int] = {}
        self.arrays: dict[str, int] = {}

    def compile(self, node: ast.expr, depth: int) -> Compiled:
        if depth > MAX_FORMULA_DEPTH:
            raise self.error(node, f"more than {MAX_FORMULA_DEPTH} operations nested; use `let`")
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as constant):
                if not isinstance(constant, str) and not abs(constant) <= MAX_NUMBER:
                    raise self.error(node, "a number larger than 2**128")
                return lambda scope, arrays: constant
            case ast.Constant(value=value):
                raise self.error(node, f"{value!r} is not part of a formula")
            case ast.Name(id=name) if name in CONSTANTS:
                return lambda scope, arrays: CONSTANTS[name]
            case ast.Name(id=name) if name in FUNCTION_NAMES:
                raise self.error(node, f"{name!r} is a function; write {name}(...)")
            case ast.Name(id=name):
                self.names.setdefault(name, self.offset(node))
                return self.guarded(node, lambda scope, arrays: _known("name", name, scope))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATIONS:
                return self.applied(node, OPERATIONS[type(op)], [left, right], depth)
            case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATIONS:
                return self.applied(node, OPERATIONS[type(op)], [operand], depth)
            case ast.BoolOp(op=op, values=values):
                return _and_or(self.parts(values, depth), stops_at=isinstance(op, ast.Or))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return _chosen(*self.parts([test, body, orelse], depth))
            case ast.Compare(left=left, ops=ops, comparators=operands):
                if not all(type(op) in COMPARISONS for op in ops):
                    raise self.error(node, f"'in' and 'is' are not part of a formula; {ALLOWED}")
                first, *rest = self.parts([left, *operands], depth)
                holds = [COMPARISONS[type(op)] for op in ops]
                return self.guarded(node, _compared(first, [*zip(holds, rest, strict=True)]))
            case ast.Call():
                return self.call(node, depth)
        what = _REFUSED.get(type(node), "this is")
        raise self.error(node, f"{what} not part of a formula; {ALLOWED}")

    def parts(self, nodes: Iterable[ast.expr], depth: int) -> list[Compiled]:
        return [self.compile(node, depth + 1) for node in nodes]

    def error(self, node: ast.expr, problem: str) -> ExpressionError:
        return ExpressionError(problem, self.text, self.offset(node))

    def offset(self, node: ast.expr) -> int:
        """Characters before a node; Python counts bytes of UTF-8."""
        blank = len(self.text) - len(self.text.lstrip())
        return blank + len(self.text.strip().encode()[: node.col_offset].decode())

    def applied(
        self, node: ast.expr, function: Callable[..., Any], operands: list[ast.expr], depth: int
    ) -> Compiled:
        """Return a function of the operands' values."""
        runs = self.parts(operands, depth)
        return self.guarded(node, lambda s, a: function(*[run(s, a) for run in runs]))

    def guarded(self, node: ast.expr, run: Compiled) -> Compiled:
        """``run`` with what goes wrong in it told with the place of ``node``."""
        text, offset = self.text, self.offset(node)

        def guarded(scope: ByName, arrays: ByName) -> Any:
            try:
                return run(scope, arrays)
            except ZeroDivisionError:
                raise ExpressionError("division by zero", text, offset) from None
            except (ValueError, OverflowError) as error:
                raise ExpressionError(str(error), text, offset) from None

        return guarded

    def call(self, node: ast.Call, depth: int) -> Compiled:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in ARRAYFUNCTIONS:
            match node:
                case ast.Call(args=[ast.Name(id=array) as argument], keywords=[]):
                    self.arrays.setdefault(array, self.offset(argument))
                    return self.guarded(
                        argument, lambda s, arrays: getattr(_known("array", array, arrays), name)
                    )
            raise self.error(node, f"{name}() takes the name of one array")
        if name not in FUNCTIONS:
            shown = f" {name!r}" if name else ""
            hint = did_you_mean(name, FUNCTION_NAMES) or f"; there are {', '.join(FUNCTION_NAMES)}"
            raise self.error(node, f"unknown function{shown}{hint}")
        function, count, or_more = FUNCTIONS[name]
        given = len(node.args)
        if node.keywords or given < count or (given > count and not or_more):
            needed = "1 argument" if count == 1 else f"{count} arguments"
            needed += " or more" if or_more else ""
            found = "a named one" if node.keywords else given
            raise self.error(node, f"{name}() takes {needed}, found {found}")
        return self.applied(node, function, node.args, depth)


def _compared(first: Compiled, rest: list[tuple[Callable[[Any, Any], Any], Compiled]]) -> Compiled:
    """Compile ``a < b <= c``: each operand is computed once, and none after the first that
    fails."""

    def run(scope: ByName, arrays: ByName) -> Any:
        left, held = first(scope, arrays), True
        for holds, operand in rest:
            right = operand(scope, arrays)
            held = holds(left, right) if held is True else held & holds(left, right)
            if held is False:
                break
            left = right
        return held

    return run


def _chosen(condition: Compiled, yes: Compiled, no: Compiled) -> Compiled:
    """``yes if condition else no``: one of the two is computed, for arrays both."""

    def run(scope: ByName, arrays: ByName) -> Any:
        holds = condition(scope, arrays)
        if isinstance(holds, np.ndarray):
            return np.where(holds, as_array(yes(scope, arrays)), as_array(no(scope, arrays)))
        return yes(scope, arrays) if holds else no(scope, arrays)

    return run


def _and_or(parts: list[Compiled], stops_at: bool) -> Compiled:
    """``and`` and ``or`` as in Python: parts after the one that decides are not computed."""

    def run(scope: ByName, arrays: ByName) -> Any:
        result = parts[0](scope, arrays)
        for part in parts[1:]:
            if isinstance(result, np.ndarray):
                decided = result.astype(bool) == stops_at
                result = np.where(decided, result, as_array(part(scope, arrays)))
            elif bool(result) is stops_at:
                break
            else:
                result = part(scope, arrays)
        return result

    return run


def _known(kind: str, name: str, values: ByName) -> Any:
    """Return the value of a name or array; raises ``ValueError`` where there is none."""
    if name in values:
        return values[name]
    hint = did_you_mean(name, values) or f"; there are: {', '.join(sorted(values)) or 'none'}"
    raise ValueError(f"unknown {kind} {name!r}{hint}")
