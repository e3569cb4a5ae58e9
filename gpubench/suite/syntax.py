"""Text of a formula to a syntax tree, once it holds nothing but what a formula may hold."""

from __future__ import annotations

import ast
import re

from gpubench.errors import GpubenchError

MAX_LENGTH = 500
"""Most characters in a formula."""

ARRAY_FUNCTIONS = ("itemsize", "size")
"""Functions of an array's name: bytes of one element, number of elements."""
FUNCTION_NAMES = ("cdiv", "ceil", "floor", "min", "max", "abs", "log2", *ARRAY_FUNCTIONS)

ALLOWED = (
    "allowed are + - * / // % ** ( ), comparisons, and, or, not, 'x if c else y' and "
    + ", ".join(f"{name}()" for name in FUNCTION_NAMES)
)
"""Words for messages."""

_TEXT = re.compile(r"'[^']*'|\"[^\"]*\"")
_FOREIGN = re.compile(r"[^\w\s.+\-*/%()<>=!,'\"]|[^\x00-\x7f]")
_NUMBER_LIKE = re.compile(r"(?<![\w.])\d(?:[eE][+-](?=\d)|[\w.])*")
_NUMBER = re.compile(r"(0|[1-9]\d*)(\.\d*)?([eE][+-]?\d{1,3})?")


class ExpressionError(GpubenchError):
    """A text that is no formula, or a formula that has no value in a scope."""

    def __init__(self, problem: str, text: str, offset: int) -> None:
        super().__init__(f"{problem} (at character {offset + 1} of '{text}')")
        self.problem = problem
        """What is wrong, without the place."""
        self.text = text
        self.offset = offset
        """Characters before the place in ``text``."""

    def __reduce__(self) -> tuple[type[ExpressionError], tuple[str, str, int]]:
        return ExpressionError, (self.problem, self.text, self.offset)


def parse(text: str) -> ast.expr:
    """Syntax tree of a text that holds only what a formula may hold."""
    _check_text(text)
    blank = len(text) - len(text.lstrip())
    try:
        tree = ast.parse(re.sub(r"\s", " ", text).strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        at = getattr(error, "offset", None) or 0
        if not at:  # Python's word for the end of the text
            problem, at = _syntax_problem(text, "it ends too early"), len(text.strip()) + 1
        else:
            problem = _syntax_problem(text, "something else belongs here")
        raise ExpressionError(problem, text, min(blank + at - 1, len(text))) from None
    return tree.body


def _syntax_problem(text: str, otherwise: str) -> str:
    masked = _TEXT.sub(lambda match: "_" * len(match[0]), text)
    if re.search(r"(?<![<>=!])=(?!=)", masked):
        return "not a formula: write == to compare"
    if masked.count("(") != masked.count(")"):
        return "not a formula: the parentheses do not match"
    return f"not a formula: {otherwise}"


def _check_text(text: str) -> None:
    if not text.strip():
        raise ExpressionError("an empty formula", text, 0)
    if len(text) > MAX_LENGTH:
        problem = f"a formula of {len(text)} characters; at most {MAX_LENGTH} are allowed"
        raise ExpressionError(problem, f"{text[:60]}...", 0)
    if "\\" in text:
        raise ExpressionError("'\\' is not part of a formula", text, text.index("\\"))
    masked = _TEXT.sub(lambda match: "_" * len(match[0]), text)
    if foreign := _FOREIGN.search(masked):
        problem = f"{foreign[0]!r} is not part of a formula; {ALLOWED}"
        raise ExpressionError(problem, text, foreign.start())
    for found in _NUMBER_LIKE.finditer(masked):
        _check_number(found[0], text, found.start())


def _check_number(literal: str, text: str, offset: int) -> None:
    if not _NUMBER.fullmatch(literal):
        problem = f"{literal!r} is not a number; write it in decimal, 1024 or 0.5 or 1e6"
        raise ExpressionError(problem, text, offset)
