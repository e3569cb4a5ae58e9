"""Formulas in which names get their values: what a formula says where an axis is at its default.

``n * k`` with 1 for ``k`` is ``n``, and ``8 * tile`` with 16 is 128. Only what a value stands in is
computed; every other part stays as it is written. Nothing is computed that could change the value
of the formula or its kind, a boolean, a whole number or one with a fraction.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from gpubench.names import Value
from gpubench.suite.arithmetic import COMPARISONS, FUNCTIONS, OPERATIONS
from gpubench.suite.expressions import CONSTANTS, Expression, parse

Kind = Literal["whole", "number", "any"]
"""What the value of a part of a formula is: a whole number, a number, or also a boolean or text."""

MAX_DENOMINATOR_POWER = 40
"""A quotient with at most so many decimal places is a number that a person could have written."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a formula: its syntax tree, and what is known of it."""

    node: ast.expr
    value: Any = None
    """What it comes to, a fraction exactly; ``None`` where names without a value decide it."""
    is_changed: bool = False
    """Whether a value was put into it."""


@dataclass(frozen=True)
class Folding:
    """Puts values and other names into the formulas of a kernel."""

    values: Mapping[str, Value]
    """Values of the names that get one."""
    renames: Mapping[str, str] = field(default_factory=dict)
    """Other names for names."""
    kind_of: Callable[[str], Kind] = lambda name: "any"
    """What the values of a name are."""

    def fold(self, formula: Expression) -> int | float | bool | str:
        """Return what the formula comes to: a number, a boolean, or the text of a formula.

        Text stands in quotes in the text of a formula, as everywhere in formulas.
        """
        part = self._fold(parse(formula.text))
        value = part.value
        if isinstance(value, Fraction):
            is_decimal = 10**MAX_DENOMINATOR_POWER % value.denominator == 0
            value = float(value) if is_decimal else None
        if part.is_changed and value is not None:
            return repr(value) if isinstance(value, str) else value
        return ast.unparse(part.node)

    def _fold(self, node: ast.expr) -> _Part:
        match node:
            case ast.Constant(value=value):
                return _Part(node, value)
            case ast.Name(id=name) if name in CONSTANTS:
                return _Part(node, CONSTANTS[name])
            case ast.Name(id=name) if name in self.values:
                return _Part(_literal(self.values[name]), self.values[name], is_changed=True)
            case ast.Name(id=name):
                return _Part(ast.Name(self.renames.get(name, name)))
            case ast.BinOp(left=left, op=op, right=right):
                parts = [self._fold(left), self._fold(right)]
                applied = ast.BinOp(parts[0].node, op, parts[1].node)
                folded = self._computed(applied, parts, OPERATIONS[type(op)])
                return self._without_neutral(folded, type(op), parts)
            case ast.UnaryOp(op=op, operand=operand):
                part = self._fold(operand)
                return self._computed(ast.UnaryOp(op, part.node), [part], OPERATIONS[type(op)])
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                parts = [self._fold(left), self._fold(right)]
                compared = ast.Compare(parts[0].node, [op], [parts[1].node])
                return self._computed(compared, parts, COMPARISONS[type(op)])
            case ast.Compare(left=left, ops=ops, comparators=others):
                first, *rest = [self._fold(each) for each in (left, *others)]
                return self._kept(
                    ast.Compare(first.node, ops, [part.node for part in rest]), [first, *rest]
                )
            case ast.BoolOp(op=op, values=operands):
                return self._and_or(op, [self._fold(operand) for operand in operands])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                parts = [self._fold(each) for each in (test, body, orelse)]
                if parts[0].is_changed and parts[0].value is not None:
                    chosen = parts[1] if parts[0].value else parts[2]
                    return _Part(chosen.node, chosen.value, is_changed=True)
                return self._kept(ast.IfExp(*[part.node for part in parts]), parts)
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in FUNCTIONS:
                parts = [self._fold(argument) for argument in arguments]
                call = ast.Call(ast.Name(name), [part.node for part in parts], [])
                folded = self._computed(call, parts, FUNCTIONS[name][0])
                return self._without_rounding(folded, name, parts)
        return _Part(node)  # itemsize(a), size(a)

    def _kept(self, node: ast.expr, parts: list[_Part]) -> _Part:
        return _Part(node, is_changed=any(part.is_changed for part in parts))

    def _computed(self, node: ast.expr, parts: list[_Part], function: Callable[..., Any]) -> _Part:
        """Return the value of a function of parts where all parts and the function have a value,
        else the parts as they are."""
        kept = self._kept(node, parts)
        if any(part.value is None for part in parts):
            return kept
        try:
            value = function(*[part.value for part in parts])
        except (ArithmeticError, ValueError, TypeError):  # which is told where the formula is used
            return kept
        if not kept.is_changed or isinstance(value, Fraction):
            return _Part(node, value, kept.is_changed)
        return _Part(_literal(value), value, is_changed=True)

    def _without_neutral(
        self, folded: _Part, operator: type[ast.operator], parts: list[_Part]
    ) -> _Part:
        """``x`` for ``x * 1``, ``x + 0`` and their like; 0 for ``x * 0`` of whole numbers."""
        if folded.value is not None:
            return folded
        left, right = parts
        for other, part, neutral in ((left, right, _NEUTRAL), (right, left, _NEUTRAL_FIRST)):
            if not part.is_changed or type(part.value) is not int:
                continue
            least: Kind = "whole" if operator is ast.FloorDiv else "number"
            if neutral.get(operator) == part.value and self._is(other.node, least):
                return _Part(other.node, is_changed=True)
            if operator is ast.Mult and part.value == 0 and self._is(other.node, "whole"):
                return _Part(_literal(0), 0, is_changed=True)
        return folded

    def _without_rounding(self, folded: _Part, name: str, parts: list[_Part]) -> _Part:
        """``x`` for ``cdiv(x, 1)``, ``ceil(x)`` and ``floor(x)`` of a whole number."""
        is_by_one = name == "cdiv" and parts[1].is_changed and parts[1].value == 1
        is_rounded = name in ("ceil", "floor") and parts[0].is_changed
        if folded.value is not None or not (is_by_one or is_rounded):
            return folded
        is_whole = self._is(parts[0].node, "whole")
        return _Part(parts[0].node, is_changed=True) if is_whole else folded

    def _and_or(self, op: ast.boolop, parts: list[_Part]) -> _Part:
        """``and`` and ``or`` without leading parts whose values decide nothing."""
        kept = self._kept(ast.BoolOp(op, [part.node for part in parts]), parts)
        rest = list(parts)
        while len(rest) > 1 and rest[0].is_changed and rest[0].value is not None:
            if bool(rest[0].value) is isinstance(op, ast.Or):
                return _Part(rest[0].node, rest[0].value, is_changed=True)
            del rest[0]
        if len(rest) == len(parts):
            return kept
        if len(rest) == 1:
            return _Part(rest[0].node, rest[0].value, is_changed=True)
        return _Part(ast.BoolOp(op, [part.node for part in rest]), is_changed=True)

    def _is(self, node: ast.expr, kind: Kind) -> bool:
        found = kind_of(node, self.kind_of)
        return found == "whole" or found == kind


_NEUTRAL: Mapping[type[ast.operator], int] = {
    **dict.fromkeys((ast.Add, ast.Sub), 0),
    **dict.fromkeys((ast.Mult, ast.Div, ast.FloorDiv, ast.Pow), 1),
}
"""What changes nothing as the second operand."""
_NEUTRAL_FIRST: Mapping[type[ast.operator], int] = {ast.Add: 0, ast.Mult: 1}
"""What changes nothing as the first operand."""


def kind_of(node: ast.expr, kind_of_name: Callable[[str], Kind]) -> Kind:
    """Return what the value of a part of a formula is, as far as its form tells."""

    def all_whole(*nodes: ast.expr) -> Kind:
        kinds = {kind_of(each, kind_of_name) for each in nodes}
        return "whole" if kinds == {"whole"} else "number"

    match node:
        case ast.Constant(value=bool() | str()):
            return "any"
        case ast.Constant(value=value):
            return "whole" if isinstance(value, int) else "number"
        case ast.Name(id=name):
            return "any" if name in CONSTANTS else kind_of_name(name)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod()):
            return all_whole(node.left, node.right)
        case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=int())):
            return all_whole(node.left)
        case ast.UnaryOp(op=ast.UAdd() | ast.USub(), operand=operand):
            return all_whole(operand)
        case ast.BinOp():
            return "number"
        case ast.IfExp(body=body, orelse=orelse):
            kinds = {kind_of(each, kind_of_name) for each in (body, orelse)}
            return "any" if "any" in kinds else all_whole(body, orelse)
        case ast.Call(func=ast.Name(id="itemsize" | "size" | "ceil" | "floor")):
            return "whole"
        case ast.Call(func=ast.Name(id="cdiv"), args=arguments):
            return all_whole(*arguments)
        case ast.Call(func=ast.Name(id="min" | "max" | "abs"), args=arguments):
            kinds = {kind_of(each, kind_of_name) for each in arguments}
            return "any" if "any" in kinds else all_whole(*arguments)
        case ast.Call():
            return "number"
    return "any"


def _literal(value: Value) -> ast.expr:
    """Return the syntax tree of a value as a person writes it."""
    if isinstance(value, bool):
        return ast.Name("true" if value else "false")
    if isinstance(value, str):
        return ast.Constant(value)
    constant = ast.Constant(abs(value))
    return ast.UnaryOp(ast.USub(), constant) if value < 0 else constant
