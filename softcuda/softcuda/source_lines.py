"""What the text of a line of a kernel tells: its literals, and whether it is a loop."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator


def find_literals(file: str, line: int, kind: type) -> list[str]:
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
