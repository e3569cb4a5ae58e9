"""Takes barriers and bound checks out of the kernel library, one at a time, and counts what the
device in software notices.

Every ``syncthreads()`` becomes ``pass`` and every comparison with a size that guards an access
becomes true, each in a copy of its own. The kernels that use the function then run at small and odd
sizes under softcuda's sanitizer (the cases of ``tests/kernels``), until one is not right. Prints a
line for each: what was found, or NOT FOUND. Exit code 1 where less is found than the targets.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from queue import SimpleQueue

from figures import add_option, record, recording
from mutations import ROOT, broken, run_in, working_copy

KERNELS = ROOT / "gpubench" / "kernels"
TIMEOUT = 300.0
FOUND = 3
"""Exit code of a check that has found something; others mean that it failed itself."""
TARGETS = {"barrier": 0.95, "bound": 1.0}
"""Part of each that has to be found."""

KINDS = {"barrier": "barriers", "bound": "bound checks"}

_WRAPS = "without it the index is -1, which Numba takes for the last element: the same"
_LARGER = "the array has room for more, and what is read there goes nowhere"
_EXACT = "launches of this kernel have a thread for each element, and no more"
HARMLESS = {
    ("cellular", "game_of_life_cuda", "x > 0"): _WRAPS,
    ("cellular", "game_of_life_cuda", "y > 0"): _WRAPS,
    ("stencils", "stencil_1d_cuda_shared", "i > 0"): _WRAPS + ", and unused",
    ("stencils", "heat_3d_cuda_march", "z + 1 < n"): "what is read is unused, and not compiled",
    ("scans", "_scan_totals", "i < count"): _LARGER,
    ("threads_and_blocks", "thread_index_cuda", "x < width"): _EXACT,
    ("threads_and_blocks", "thread_index_cuda", "y < height"): _EXACT,
    ("threads_and_blocks", "thread_index_cuda", "z < depth"): _EXACT,
}
"""Bound checks whose absence does no harm in any case of the suites, and why; they do not count."""

Function = tuple[str, str]
"""Module of the library, name."""


@dataclass(frozen=True)
class Mutation:
    """One barrier or bound check that is taken out."""

    kind: str
    function: Function
    line: int
    old: str
    new: str
    """Whole file, without it."""

    @property
    def harmless(self) -> str | None:
        return HARMLESS.get((*self.function, self.old))

    def __str__(self) -> str:
        module, name = self.function
        return f"{self.kind:8} {module}.py:{self.line} {name}: {self.old}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="mutations whose line contains this")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    add_option(parser)
    given = parser.parse_args()
    if given.child:
        return _child(given.child)
    with recording(given, "numba-cuda"):
        chosen = [one for one in mutations() if given.only in str(one)]
        # Not in the threads: two in ast.parse at once end in a SystemError on Python 3.11.7.
        users = [kernels_that_use(one.function) for one in chosen]
        with working_copy() as copy:
            # A case that is not right as it is would be found whatever is taken out.
            if said := wrong_in(copy, sorted({*chain.from_iterable(users)})):
                sys.exit(f"with nothing taken out: {said}")
        found: Counter[str] = Counter()
        with ThreadPoolExecutor(given.processes) as pool, copies_of(given.processes) as copies:
            outcomes = pool.map(lambda one, kernels: noticed(one, kernels, copies), chosen, users)
            for one, by in zip(chosen, outcomes, strict=True):
                found[one.kind] += by is not None and not one.harmless
                said = by or (f"harmless: {one.harmless}" if one.harmless else "NOT FOUND")
                print(f"{str(one)[:88]:88} {said}", flush=True)
        total = Counter(one.kind for one in chosen if not one.harmless)
        for kind, target in TARGETS.items():
            print(f"{kind}: {found[kind]} of {total[kind]} found (target {target:.0%})")
            what = f"{KINDS[kind]} taken out of the library, one at a time, that are noticed"
            record("softcuda", what, {"figure": f"{found[kind]} of {total[kind]}"})
        return int(any(found[kind] < target * total[kind] for kind, target in TARGETS.items()))


def noticed(one: Mutation, kernels: Sequence[str], copies: SimpleQueue[Path]) -> str | None:
    """Return what the first case of these kernels that is wrong says; ``None`` where none is."""
    if not kernels:
        return None
    copy = copies.get()
    file = f"gpubench/kernels/{one.function[0]}.py"
    try:
        with broken(copy, file, (copy / file).read_text(encoding="utf-8"), one.new):
            # A check taken out of a loop may leave one without an end.
            return wrong_in(copy, kernels, TIMEOUT)
    finally:
        copies.put(copy)


def wrong_in(copy: Path, kernels: Sequence[str], timeout: float | None = None) -> str | None:
    """Return what the first case of these kernels that is not right in a copy says; ``None`` where
    all are."""
    command = ["scripts/library_faults.py", "--child", *kernels]
    done = run_in(copy, command, timeout, SOFTCUDA_TIMEOUT="10", GPUBENCH_SOFTCUDA="1")
    if done.code == 0:
        return None
    if done.code is None:
        return f"no end within {timeout:g} s"
    if done.code != FOUND:
        sys.exit(f"checking {', '.join(kernels)} failed:\n{done.output}")
    return (done.output.strip().splitlines() or [""])[-1][:150]


def _child(kernels: list[str]) -> int:
    """Verify small cases of these kernels until one is not right, whose fault is printed.

    Where the right result of a few elements is zero, the check of that size proves nothing and is
    refused, whatever the kernel does: such a case finds nothing.
    """
    sys.path.insert(0, "tests/kernels")
    from library_cases import checked_cases, name, small_plan

    from gpubench.measure.verify_cases import Manner, verified

    cases = [
        case
        for case in checked_cases(small_plan(), ("numba_cuda",))
        if f"{case.suite.suite}.{case.kernel_name}" in kernels
    ]
    for place, one in verified(cases, Manner(in_software=True, sanitize=True, processes=1)):
        proves_nothing = not one.faults and (one.reason or "").startswith("vacuous check")
        if one.status != "right" and not proves_nothing:
            said = one.faults[0] if one.faults else one.reason
            print(f"{one.status}: {said} ({name(cases[place])})")
            return FOUND
    return 0


def mutations() -> Iterator[Mutation]:
    """Yield all barriers, then all bound checks, in the order of the files."""
    for kind, find in (("barrier", _barriers), ("bound", _bounds)):
        for path in sorted(KERNELS.glob("*.py")):
            text = path.read_text(encoding="utf-8")
            for outer, function in cuda_functions(ast.parse(text)):
                for node, new in find(function):
                    source = " ".join((ast.get_source_segment(text, node) or "").split())
                    place = (path.stem, outer)
                    yield Mutation(kind, place, node.lineno, source, _replaced(text, node, new))


def cuda_functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions under ``cuda.jit``, also those that a factory makes, with the outermost's name."""
    for outer in tree.body:
        for node in ast.walk(outer):
            if isinstance(outer, ast.FunctionDef) and isinstance(node, ast.FunctionDef):
                decorators = map(ast.unparse, node.decorator_list)
                if any(text.startswith("cuda.jit") for text in decorators):
                    yield outer.name, node


def _barriers(function: ast.FunctionDef) -> Iterator[tuple[ast.expr, str]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Expr) and ast.unparse(node) == "cuda.syncthreads()":
            yield node.value, "None"


def _bounds(function: ast.FunctionDef) -> Iterator[tuple[ast.expr, str]]:
    """Comparisons of an index with a size or a number, in the test of an ``if`` or ``while``.

    An index is a name that stands between brackets somewhere in the function; a size is what is
    read from ``size`` or ``shape``, or a parameter that is never indexed.
    """
    sizes, indices = _sizes(function), _indices(function)
    for node in ast.walk(function):
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            leaves = isinstance(node, ast.If) and _leaves(node.body[-1])
            for part in _conjuncts(node.test):
                if isinstance(part, ast.Compare) and _is_bound(part, sizes, indices):
                    yield part, "False" if leaves else "True"


def _leaves(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Return | ast.Continue | ast.Break)


def _indices(function: ast.FunctionDef) -> set[str]:
    slices = (node.slice for node in ast.walk(function) if isinstance(node, ast.Subscript))
    return {name for each in slices for name in _names(each)}


def _names(node: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _conjuncts(test: ast.expr) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) else [test]


def _is_bound(compare: ast.Compare, sizes: set[str], indices: set[str]) -> bool:
    ordered = all(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in compare.ops)
    if any(isinstance(node, ast.Subscript) for node in ast.walk(compare)):
        return False  # it compares elements
    sides = [compare.left, *compare.comparators]
    limits = [side for side in sides if _is_limit(side, sizes)]
    return ordered and bool(limits) and any(_names(side) & indices for side in sides)


def _is_limit(side: ast.expr, sizes: set[str]) -> bool:
    return isinstance(side, ast.Constant) or bool(_names(side) & sizes)


def _sizes(function: ast.FunctionDef) -> set[str]:
    indexed = {
        ast.unparse(node.value) for node in ast.walk(function) if isinstance(node, ast.Subscript)
    }
    sizes = {argument.arg for argument in function.args.args} - indexed
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            source = ast.unparse(node.value)
            if ".size" in source or ".shape" in source:
                sizes |= {name for target in node.targets for name in _names(target)}
    return sizes


def _replaced(text: str, node: ast.expr, new: str) -> str:
    """Return the text with a node's source replaced; lines keep their numbers."""
    lines = text.splitlines(keepends=True)
    begin, end = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    before = lines[begin].encode()[: node.col_offset].decode()
    after = lines[end].encode()[node.end_col_offset :].decode()
    broken_lines = "\\\n" * (end - begin)
    return "".join([*lines[:begin], before + new + " " + broken_lines + after, *lines[end + 1 :]])


@cache
def kernels_that_use(function: Function) -> tuple[str, ...]:
    """``suite.kernel`` of all whose CUDA forms use a function, themselves or through others."""
    return tuple(sorted(k for k, roots in _roots().items() if function in _reached(roots)))


def implementations_that_use(function: Function, backend: str) -> list[str]:
    """Return ``suite.kernel.implementation`` of forms for a backend that use a function."""
    return sorted(
        name
        for name, (of, root) in _implementations().items()
        if of == backend and function in _reached(frozenset([root]))
    )


@cache
def _roots() -> dict[str, frozenset[Function]]:
    """Return the functions of each kernel's implementations."""
    found: dict[str, frozenset[Function]] = {}
    for name, (_, root) in _implementations().items():
        kernel = name.rpartition(".")[0]
        found[kernel] = found.get(kernel, frozenset()) | {root}
    return found


@cache
def _implementations() -> dict[str, tuple[str, Function]]:
    """Return backend and function of each implementation that is a function of the library."""
    from gpubench.plan.plan import build_plan
    from gpubench.suite.loading import load_suites

    found = {}
    for expansion in build_plan(load_suites([ROOT / "suites"]), gpu_count=1).expansions():
        group, one = expansion.group, expansion.group.implementation
        path = str(one.function or one.launcher or one.factory or "")
        if path.startswith("gpubench.kernels."):
            key = f"{group.loaded.suite.suite}.{group.kernel_name}.{group.implementation_name}"
            found[key] = group.backend, _function(path)
    return found


def _function(path: str) -> Function:
    module, _, name = path.removeprefix("gpubench.kernels.").partition(":")
    return module, name


@cache
def _reached(roots: frozenset[Function]) -> frozenset[Function]:
    reached: set[Function] = set()
    waiting = list(roots)
    while waiting:
        function = waiting.pop()
        if function not in reached:
            reached.add(function)
            waiting += _graph().get(function, ())
    return frozenset(reached)


@cache
def _graph() -> dict[Function, set[Function]]:
    """Return which functions of the library name which others, from the source."""
    trees = {p.stem: ast.parse(p.read_text(encoding="utf-8")) for p in KERNELS.glob("*.py")}
    graph: dict[Function, set[Function]] = {}
    for module, tree in trees.items():
        names: dict[str, Function] = {}
        for node in tree.body:
            home = getattr(node, "module", None) or ""
            if isinstance(node, ast.ImportFrom) and home.startswith("gpubench.kernels."):
                home = home.removeprefix("gpubench.kernels.")
                names |= {(a.asname or a.name): (home, a.name) for a in node.names}
            if name := _name_of(node):
                names[name] = (module, name)
        for node in tree.body:
            if name := _name_of(node):
                used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
                graph[module, name] = {names[each] for each in used & names.keys()}
    return graph


def _name_of(node: ast.stmt) -> str | None:
    if isinstance(node, ast.FunctionDef):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


@contextmanager
def copies_of(count: int) -> Iterator[SimpleQueue[Path]]:
    """Yield as many working copies as there are processes, each used by one at a time."""
    queue: SimpleQueue[Path] = SimpleQueue()
    with ExitStack() as stack:
        for _ in range(count):
            queue.put(stack.enter_context(working_copy()))
        yield queue


if __name__ == "__main__":
    sys.exit(main())
