"""Makes kernels of the library work worse, one edit at a time, and counts what their counts notice.

Each edit leaves the results right: a padding taken out, rows and columns exchanged, a tile of
another width, threads that work far apart, a guard that diverges, a cast to float64, work done
twice, a barrier that nobody needs. It counts as found where any cost of a case grew, the rule of
``gpubench compare --fail-on counts``. Harmless edits (new names, comments, another order of
independent statements) must change none. Prints a line for each; exit code 1 where less is found
than the targets.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from queue import SimpleQueue

from figures import add_option, record, recording
from library_faults import KERNELS, Function, copies_of, cuda_functions, kernels_that_use
from mutations import broken, run_in, working_copy

from gpubench.analysis.costs import cost_pairs
from gpubench.results import CaseCounts
from gpubench.results.counts import LineCounts, read_lines, read_profile

TIMEOUT_SECONDS = 600.0
PRESET = "smoke"
FOUND_TARGET = 0.95
"""Part of the edits that make work worse which has to be found: 57 of 60."""

BY_HAND = (
    ("padding", "transposes", "make_transpose_tiled", "tile + padding", "tile"),
    ("padding", "small_matrices", "make_batched_cholesky_block", "pitch = k + 1 ", "pitch = k "),
    (
        "padding",
        "small_matrices",
        "make_batched_cholesky_staged",
        "pitch = square + 1 - k % 2",
        "pitch = square",
    ),
    ("padding", "strings", "crc32_staged_cuda", "_PITCH = 36", "_PITCH = 32"),
    ("padding", "attention", "make_attention_tiled", "// tile, d + 1 ", "// tile, d "),
    ("padding", "nearest", "_group_by_block", "counts.size, d + 1 - d % 2", "counts.size, d"),
    ("width", "strings", "crc32_staged_cuda", "_CHUNK = 32", "_CHUNK = 16"),
    ("width", "nearest", "make_k_nearest_tiled", "_TILE = 64", "_TILE = 32"),
)
"""Kind, module, function, text and what it becomes: what no rule can find in the source."""

SPREAD = (
    "cuda.blockIdx.x * cuda.blockDim.x"
    " + cuda.threadIdx.x % 32 * (cuda.blockDim.x // 32) + cuda.threadIdx.x // 32"
)
"""In place of ``cuda.grid(1)``: the indices of a block of whole warps, a warp's far apart."""


@dataclass(frozen=True)
class Counted:
    """What a case did."""

    counts: CaseCounts
    lines: tuple[LineCounts, ...]
    """With their hints."""


@dataclass(frozen=True)
class Edit:
    """One change of a kernel's source."""

    kind: str
    function: Function
    said: str
    old: str
    new: str
    """Whole file, with the change."""

    @property
    def is_harmless(self) -> bool:
        return self.kind in HARMLESS

    def __str__(self) -> str:
        module, name = self.function
        return f"{self.kind:9} {module}.{name}: {self.said}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="edits whose line contains this")
    parser.add_argument("--worse", type=int, default=80, help="edits that make work worse, at most")
    parser.add_argument("--harmless", type=int, default=100, help="harmless edits, at most")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    add_option(parser)
    given = parser.parse_args()
    if given.child:
        return _child(given.child)
    with recording(given, "numba-cuda"):
        chosen = [
            *take_in_turn(
                [[*by_hand()], *(edits_of(kind, change) for kind, change in WORSE.items())],
                given.worse,
            ),
            *take_in_turn(
                [edits_of(kind, change) for kind, change in HARMLESS.items()], given.harmless
            ),
        ]
        chosen = [edit for edit in chosen if given.only in str(edit)]
        users = [kernels_that_use(edit.function) for edit in chosen]
        with working_copy() as copy:
            before = counts_of(copy, sorted({*chain.from_iterable(users)}))
        if isinstance(before, str):
            sys.exit(f"with nothing edited: {before}")
        outcomes: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
        with ThreadPoolExecutor(given.processes) as pool, copies_of(given.processes) as copies:
            grown = pool.map(
                lambda edit, kernels: noticed(edit, kernels, before, copies), chosen, users
            )
            for edit, said in zip(chosen, grown, strict=True):
                outcomes[edit.is_harmless][said.partition(":")[0]] += 1
                print(f"{str(edit)[:76]:76} {said}", flush=True)
        return _judged(outcomes[False], outcomes[True])


def _judged(worse: Counter[str], harmless: Counter[str]) -> int:
    """Print how many were found, and return the exit code. An edit that is not right is no edit."""
    right = worse["found"] + worse["NOT FOUND"]
    print(f"worse: {worse['found']} of {right} found (target {FOUND_TARGET:.0%})")
    print(f"no edits, since results are not right: {worse['not right']}")
    alarms = harmless["found"]
    print(f"harmless: {alarms} of {alarms + harmless['NOT FOUND']} found (target 0)")
    what = "edits that leave results right and work worse, found by a cost that grew"
    record("softcuda", what, {"figure": f"{worse['found']} of {right}"})
    what = "harmless edits (names, comments, order) that change a cost"
    record("softcuda", what, {"figure": f"{alarms} of {alarms + harmless['NOT FOUND']}"})
    return int(worse["found"] < FOUND_TARGET * right or alarms > 0)


def take_in_turn(kinds: Sequence[Sequence[Edit]], most: int) -> list[Edit]:
    """Return the first edit of each kind, then the second of each, and so on."""
    rows = zip_longest(*kinds)
    return [edit for edit in chain.from_iterable(rows) if edit is not None][:most]


def by_hand() -> Iterator[Edit]:
    """Return edits of the text; raises ``ValueError`` where the text is another by now."""
    for kind, module, name, old, new in BY_HAND:
        text = (KERNELS / f"{module}.py").read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise ValueError(f"{module}.py: {text.count(old)} times in the file: {old!r}")
        yield Edit(kind, (module, name), f"{old} becomes {new}", text, text.replace(old, new))


def edits_of(kind: str, change: Change, functions: Finder = cuda_functions) -> list[Edit]:
    """Return an edit of this kind for each of these functions that has a place for it."""
    found: dict[str, list[Edit]] = {}
    for path in sorted(KERNELS.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        count = sum(1 for _ in functions(ast.parse(text)))
        for number in range(count):
            tree = ast.parse(text)  # anew, since the change is made in it
            outer, function = list(functions(tree))[number]
            if said := change(function):
                new = ast.unparse(ast.fix_missing_locations(tree))
                edit = Edit(kind, (path.stem, outer), said, text, new)
                found.setdefault(path.stem, []).append(edit)
    return take_in_turn([*found.values()], sum(map(len, found.values())))


Finder = Callable[[ast.Module], Iterator[tuple[str, ast.FunctionDef]]]
"""Finds functions of a file, each with the name of the outermost function around it."""

Change = Callable[[ast.FunctionDef], str | None]
"""Changes a function in place, and returns what it changed; ``None`` where there is no place."""


def spread(function: ast.FunctionDef) -> str | None:
    """Have the lanes of a warp work far apart."""
    return _replace_first(function, lambda node: ast.unparse(node) == "cuda.grid(1)", SPREAD)


def exchange(function: ast.FunctionDef) -> str | None:
    """Exchange the two indices of a thread."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and ast.unparse(node.value) == "cuda.grid(2)":
            (target,) = node.targets
            if isinstance(target, ast.Tuple):
                target.elts.reverse()
                return ast.unparse(node)
    return None


def guard(function: ast.FunctionDef) -> str | None:
    """Let odd lanes store after even ones."""
    fence = "cuda.threadfence_block()"
    return _replace_store(
        function, "if cuda.threadIdx.x % 2 == 0:\n    {0}\nelse:\n    " + fence + "\n    {0}"
    )


def twice(function: ast.FunctionDef) -> str | None:
    """Store twice; the fence keeps the compiler from leaving the first one out."""
    return _replace_store(function, "{0}\ncuda.threadfence_block()\n{0}")


def in_double(function: ast.FunctionDef) -> str | None:
    """Multiply in double precision."""
    for node in ast.walk(function):
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Mult)
            and any(isinstance(side, ast.Subscript) for side in (node.left, node.right))
        ):
            said = ast.unparse(node)
            node.left = ast.parse(f"np.float64({ast.unparse(node.left)})", mode="eval").body
            return said
    return None


def barrier(function: ast.FunctionDef) -> str | None:
    """Have the block wait at the beginning of a kernel."""
    if any("device=True" in ast.unparse(one) for one in function.decorator_list):
        return None
    function.body[start_of(function) : start_of(function)] = ast.parse("cuda.syncthreads()").body
    return "at the beginning"


def name_anew(function: ast.FunctionDef) -> str | None:
    """Give a local variable another name."""
    outside = {one.arg for one in function.args.args}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            old = node.id
            if old in outside:
                continue
            for each in ast.walk(function):
                if isinstance(each, ast.Name) and each.id == old:
                    each.id = f"{old}_anew"
            return old
    return None


def document(function: ast.FunctionDef) -> str | None:
    """Write another docstring, and all code without comments."""
    text = ast.Expr(ast.Constant("Say something else."))
    function.body[: start_of(function)] = [text]
    return "docstring and comments"


def reorder(function: ast.FunctionDef) -> str | None:
    """Exchange neighbouring assignments of which neither reads what the other writes."""
    for node in ast.walk(function):
        body = getattr(node, "body", None)
        for i, (one, other) in enumerate(pairwise(body if isinstance(body, list) else [])):
            if _is_free(one, other) and _is_free(other, one):
                node.body[i : i + 2] = [other, one]  # type: ignore[attr-defined]
                return f"{ast.unparse(one)} and {ast.unparse(other)}"
    return None


WORSE: Mapping[str, Change] = {
    "spread": spread,
    "exchange": exchange,
    "guard": guard,
    "twice": twice,
    "float64": in_double,
    "barrier": barrier,
}
HARMLESS: Mapping[str, Change] = {"name": name_anew, "document": document, "order": reorder}


def start_of(function: ast.FunctionDef) -> int:
    """Index of the first statement after the docstring."""
    return int(ast.get_docstring(function) is not None)


def _replace_first(
    function: ast.FunctionDef, is_wanted: Callable[[ast.expr], bool], new: str
) -> str | None:
    """Put other code in place of the first expression of a kind."""
    for node in ast.walk(function):
        for field, value in ast.iter_fields(node):
            for i, each in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(each, ast.expr) and is_wanted(each):
                    replacement = ast.parse(new, mode="eval").body
                    if isinstance(value, list):
                        value[i] = replacement
                    else:
                        setattr(node, field, replacement)
                    return ast.unparse(each)
    return None


def _replace_store(function: ast.FunctionDef, template: str) -> str | None:
    """Put other statements in place of the first store of an element that it does not read."""
    for node in ast.walk(function):
        body = getattr(node, "body", None)
        for i, one in enumerate(body if isinstance(body, list) else []):
            if _is_store(one):
                source = ast.unparse(one)
                node.body[i : i + 1] = ast.parse(template.format(source)).body  # type: ignore[attr-defined]
                return source
    return None


def _is_store(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target = statement.targets[0]
    if not isinstance(target, ast.Subscript):
        return False
    return ast.unparse(target.value) not in _names(statement.value)


def _is_free(one: ast.stmt, other: ast.stmt) -> bool:
    """Return whether an assignment of names calls nothing, and reads nothing the other writes."""
    if not (isinstance(one, ast.Assign) and isinstance(other, ast.Assign)):
        return False
    if any(isinstance(node, ast.Call | ast.Subscript) for node in ast.walk(one)):
        return False
    written = {name for target in other.targets for name in _names(target)}
    touched = _names(one.value).union(*map(_names, one.targets))
    return not written & touched


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def noticed(
    edit: Edit, kernels: Sequence[str], before: Mapping[str, Counted], copies: SimpleQueue[Path]
) -> str:
    """Return the first cost that grew, or that none did, or why the edit is none."""
    after = counted_after(edit, kernels, copies)
    if isinstance(after, str):
        return f"not right: {after}"
    for case, one in after.items():
        for pair in cost_pairs(before[case].counts, one.counts):
            if pair.new > pair.old:
                return f"found: {pair.cost.words} {pair.old:,} to {pair.new:,} ({case})"
    return "NOT FOUND"


def counted_after(
    edit: Edit, kernels: Sequence[str], copies: SimpleQueue[Path]
) -> dict[str, Counted] | str:
    """Return what the CUDA cases of kernels do with an edit, or what is not right."""
    copy = copies.get()
    file = f"gpubench/kernels/{edit.function[0]}.py"
    try:
        with broken(copy, file, edit.old, edit.new):
            return counts_of(copy, kernels)
    finally:
        copies.put(copy)


def counts_of(copy: Path, kernels: Sequence[str]) -> dict[str, Counted] | str:
    """Return the counts of the CUDA cases of kernels in a copy, or what is not right."""
    command = ["scripts/count_mutations.py", "--child", *kernels]
    done = run_in(copy, command, TIMEOUT_SECONDS, GPUBENCH_SOFTCUDA="1", SOFTCUDA_TIMEOUT="30")
    lines = done.output.strip().splitlines() or [""]
    if done.code != 0:
        return lines[-1][:200]
    return {
        case: Counted(read_profile(profile), read_lines(of_lines))
        for case, (profile, of_lines) in json.loads(lines[-1]).items()
    }


def _child(kernels: list[str]) -> int:
    """Print the counts of all CUDA cases of these kernels, or the first that is not right."""
    from gpubench.measure.verify_cases import Manner, verified
    from gpubench.plan.plan import build_plan
    from gpubench.results.counts import lines_text, profile_text
    from gpubench.suite.loading import load_suites

    cases = [
        case
        for case in build_plan(load_suites([Path("suites")], PRESET), gpu_count=1).cases()
        if case.backend == "numba_cuda" and f"{case.suite.suite}.{case.kernel_name}" in kernels
    ]
    profiles = {}
    for place, one in verified(cases, Manner(in_software=True, count=True, processes=1)):
        name = f"{cases[place].group.title} {cases[place].identity}"
        if one.status == "skipped":
            continue
        if one.status != "right" or one.counts is None:
            print(f"{one.status}: {one.reason} ({name})")
            return 1
        profiles[name] = profile_text(one.counts), lines_text(one.counts)
    print(json.dumps(profiles))
    return 0


if __name__ == "__main__":
    sys.exit(main())
