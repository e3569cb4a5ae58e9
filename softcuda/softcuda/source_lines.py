"""What the text of a line of a kernel tells: what leads to float64, and whether it is a loop."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping


def explain_double(
    counts: Mapping[str, int], of_line: Mapping[str, int], file: str, line: int
) -> tuple[str, str]:
    """Return cause and change where a line leads to float64, by the counts of the launch and of the
    line, and by its text."""
    if literals := _literals(file, line, float):
        return (
            f"the literal {literals[0]} is float64, and so is what is calculated with it",
            f"write float32({literals[0]})",
        )
    if not counts["float64_from_float32"] and not counts["flops_float32"]:
        return (
            "no number is float32: scalars and divisions of integers are float64",
            "where float32 would do, pass scalars as numpy.float32, and convert integers by "
            "float32(...)",
        )
    if integers := _literals(file, line, int):
        return (
            f"the integer {integers[0]} is int64, and a float32 element with it becomes float64",
            f"write float32({integers[0]})",
        )
    if of_line.get("float64_from_integer"):
        return (
            "an integer becomes float64 where it meets a floating-point number or a division",
            "convert the integer by float32(...) first",
        )
    return (
        "a float64 scalar or variable, or a division of integers, makes float32 values float64",
        "pass the scalar as numpy.float32, begin sums with float32(0), and divide float32 numbers",
    )


def _literals(file: str, line: int, kind: type) -> list[str]:
    """Return the literals of a line of source that are float64; integers where an array's element
    is added to them or multiplied, alone."""
    text = linecache.getline(file, line).strip()
    for source in (text, f"{text}\n    pass", f"if 1:\n    pass\n{text}\n    pass"):
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue
        found = _beside_elements(tree) if kind is int else _outside_float32(tree)
        return [ast.unparse(one) for one in found if type(one.value) is kind]
    return []


def _outside_float32(tree: ast.AST) -> Iterator[ast.Constant]:
    wrapped = {
        id(argument)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("float32")
        for argument in call.args
    }
    for one in ast.walk(tree):
        if isinstance(one, ast.Constant) and id(one) not in wrapped:
            yield one


def _beside_elements(tree: ast.AST) -> Iterator[ast.Constant]:
    indices = (one.slice for one in ast.walk(tree) if isinstance(one, ast.Subscript))
    inside = {id(one) for index in indices for one in ast.walk(index)}
    for one in ast.walk(tree):
        if not isinstance(one, ast.BinOp) or id(one) in inside or isinstance(one.op, ast.Pow):
            continue
        for side, other in ((one.left, one.right), (one.right, one.left)):
            if isinstance(side, ast.Constant) and isinstance(other, ast.Subscript):
                yield side


def is_loop(file: str, line: int) -> bool:
    """Return whether a loop begins at a line."""
    return linecache.getline(file, line).lstrip().startswith(("for ", "while "))
