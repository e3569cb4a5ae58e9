"""Break the engine at random places, one at a time, and count what its tests notice.

    python scripts/random_mutations.py --count 60 --seed 1            # all that make test runs
    python scripts/random_mutations.py --seed 1 --nearest             # the nearest tests alone
    python scripts/random_mutations.py --seed 1 --skip 30             # the second half of the same

A mutation changes an operator, a comparison, a number or a truth value of a random module of the
engine, in a copy of the repository. The tests that name the module run first, then those of its
room, then the rest of ``make test`` without a GPU. Each line says what was broken and which test
noticed it first, or ``survived``: such a place needs a test. Tests that run out of time decide
nothing: the mutation may hang them, or the machine is busy. The seed is in the name of the run.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mutations import ROOT, run_in, working_copy

APART = ("kernels", "edge", "library", "scaffold")
"""Rooms that are left out: kernels and what is at the edge have tests of another kind."""
SELECTION = "not gpu and not ci and not systems and not thorough and not browser"
OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
SECONDS = 3600
"""Of one stage of tests."""
UNDECIDED = "undecided: its tests ran out of time"


@dataclass(frozen=True)
class Mutation:
    """One text of a file in place of another."""

    file: str
    line: int
    start: int
    """Offset in the file's bytes."""
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.old} -> {self.new}"

    def apply(self, copy: Path) -> None:
        """Write the mutated file into the copy."""
        text = (ROOT / self.file).read_bytes()
        end = self.start + len(self.old.encode())
        assert text[self.start : end] == self.old.encode()
        (copy / self.file).write_bytes(text[: self.start] + self.new.encode() + text[end:])

    def undo(self, copy: Path) -> None:
        (copy / self.file).write_bytes((ROOT / self.file).read_bytes())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0, help="leave out so many of the drawn")
    parser.add_argument("--nearest", action="store_true", help="run the nearest tests alone")
    parser.add_argument("--list", action="store_true", help="list the mutations and run nothing")
    options = parser.parse_args()
    chosen = draw(options.count, options.seed)[options.skip :]
    print(f"mutations-seed-{options.seed}: {len(chosen)} of the engine", flush=True)
    if options.list:
        print(*chosen, sep="\n")
        return
    survived, undecided = [], 0
    failing: list[str] = []
    with working_copy() as copy:
        for mutation in chosen:
            mutation.apply(copy)
            began = time.monotonic()
            killer = first_failure(copy, mutation, failing, nearest=options.nearest)
            mutation.undo(copy)
            undecided += killer == UNDECIDED
            if killer is None:
                survived.append(mutation)
            print(
                f"{mutation}: {killer or 'survived'} ({time.monotonic() - began:.0f} s)", flush=True
            )
    killed = len(chosen) - len(survived) - undecided
    print(f"mutations-seed-{options.seed}: {killed} killed of {len(chosen)}, {undecided} undecided")
    print(*(f"survived: {mutation}" for mutation in survived), sep="\n")


def draw(count: int, seed: int) -> list[Mutation]:
    """Return so many mutations: each place of the engine has the same chance."""
    engine = sorted((ROOT / "gpubench").rglob("*.py"))
    rooms = {path: path.relative_to(ROOT / "gpubench").parts[0] for path in engine}
    every = [
        mutation for path in engine if rooms[path] not in APART for mutation in mutations_of(path)
    ]
    return random.Random(seed).sample(every, count)


def mutations_of(path: Path) -> Iterator[Mutation]:
    """Yield what can be broken in a file: annotations and docstrings hold nothing of it."""
    text = path.read_bytes()
    starts = [0, *(match.end() for match in re.finditer(b"\n", text))]
    file = path.relative_to(ROOT).as_posix()

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + column

    def between(left: ast.expr, operator: ast.AST, right: ast.expr) -> Iterator[Mutation]:
        if type(operator) not in OPERATORS:
            return
        old, new = OPERATORS[type(operator)]
        assert left.end_lineno is not None and left.end_col_offset is not None
        start = offset(left.end_lineno, left.end_col_offset)
        end = offset(right.lineno, right.col_offset)
        words = rf"(?<!\w){old}(?!\w)" if old[0].isalpha() else re.escape(old)
        found = re.search(words.encode(), text[start:end])
        if found is not None:
            yield Mutation(file, left.end_lineno, start + found.start(), old, new)

    for node in ast.walk(without_annotations(ast.parse(text))):
        if isinstance(node, ast.BinOp):
            yield from between(node.left, node.op, node.right)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from between(node.left, node.ops[0], node.comparators[0])
        elif isinstance(node, ast.BoolOp):
            yield from between(node.values[0], node.op, node.values[1])
        elif isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
            start = offset(node.lineno, node.col_offset)
            assert node.end_lineno is not None and node.end_col_offset is not None
            old = text[start : offset(node.end_lineno, node.end_col_offset)].decode()
            new = str(not node.value) if isinstance(node.value, bool) else f"({old} + 1)"
            yield Mutation(file, node.lineno, start, old, new)


class _Plain(ast.NodeTransformer):
    """Takes annotations out: what they say is never computed."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        return self.generic_visit(ast.Expr(node.value)) if node.value else None

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)


def without_annotations(tree: ast.Module) -> ast.AST:
    return _Plain().visit(tree)


def first_failure(
    copy: Path, mutation: Mutation, failing: list[str], *, nearest: bool
) -> str | None:
    """Return the first test that fails on a broken copy, the nearest tests first. What fails on the
    copy as it was notices nothing: it joins ``failing``, and the stage runs without it."""
    for tests in stages(copy, mutation.file)[: 2 if nearest else None]:
        while (failed := _failure(copy, [*tests, *without(failing)])) is not None:
            if "::" not in failed:
                return failed
            mutation.undo(copy)
            fails_anyway = _failure(copy, [failed]) is not None
            mutation.apply(copy)
            if not fails_anyway:
                return failed
            failing.append(failed)
    return None


def without(failing: list[str]) -> Iterator[str]:
    for test in failing:
        yield f"--deselect={test}"


def _failure(copy: Path, tests: list[str]) -> str | None:
    """Return the first of some tests that fails, or why it has no name."""
    command = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", SELECTION, *tests]
    done = run_in(copy, command, SECONDS)
    if done.code is None:
        return UNDECIDED
    if done.code in (0, 5):  # 5: of these files none is selected
        return None
    found = re.search(r"^(?:FAILED|ERROR) (\S+::.*?)(?: - |$)", done.output, re.MULTILINE)
    return found[1] if found else f"pytest ended with {done.code}"


def stages(copy: Path, file: str) -> list[list[str]]:
    """Return test files that import the module, then the others of its room, then all others."""
    module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    package, _, name = module.rpartition(".")
    imports = re.compile(rf"\b{re.escape(module)}\b|from {re.escape(package)} import .*\b{name}\b")
    every = sorted((copy / "tests").rglob("test_*.py"))
    room = module.split(".")[1]
    near = [path for path in every if imports.search(path.read_text(encoding="utf-8"))]
    of_room = [path for path in every if path.parent.name == room and path not in near]
    rest = [path for path in every if path not in near and path not in of_room]
    parts = (near, of_room, rest)
    return [[path.relative_to(copy).as_posix() for path in part] for part in parts if part]


if __name__ == "__main__":
    main()
