"""Makes Numba's CPU kernels of the library work worse, one edit at a time, and counts what their
counts notice.

Each edit leaves the results right: a loop that runs twice, ``fastmath`` or ``parallel=True`` taken
away, arithmetic in float64, loops in the other order, a division, a load, a call, a function of
libm, an allocation or a remainder more in a loop, checks of bounds. Values that are 1 or 0 when it
runs, and that no compiler knows, keep the compiler from taking the edit out. An edit counts as
found where a cost of any case of the form fails ``gpubench compare --fail-on counts``: of
checks of bounds LLVM leaves a few turns at the end of a loop, which weigh in small cases alone.
Harmless edits must fail none. Prints a line for each; exit code 1 where less is found than the
targets.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue

from count_mutations import (
    FOUND_TARGET,
    PRESET,
    Change,
    Edit,
    document,
    edits_of,
    name_anew,
    reorder,
    start_of,
    take_in_turn,
)
from figures import add_option, record, recording
from library_faults import copies_of, implementations_that_use
from mutations import run_in

from gpubench.analysis.costs import cost_pairs
from gpubench.backends import registry
from gpubench.counts.processor import counting_variables
from gpubench.measure.verify_cases import Manner, Verifier
from gpubench.plan.case import Case
from gpubench.results import CaseCounts
from gpubench.results.counts import profile_text, read_profile

TIMEOUT_SECONDS = 600
"""After which a trial is ended: an edit may have taken a loop's end away."""

TOGETHER = 16
"""Trials for which one process imports what they need."""

MIN_SHARE = 0.05
"""Share of a form's instructions that the edited function does, at least: twice a copy that is
0.5 % of a product is no slowdown, and below the 2 % by which costs may differ."""


@dataclass(frozen=True)
class FormCounts:
    """What the cases of one form did."""

    cases: Mapping[str, CaseCounts]
    """By the case's identity."""
    lines: Mapping[str, Mapping[str, int]]
    """Instructions of each line, by file and number, of all cases."""

    def share_of(self, function: tuple[str, str]) -> float:
        """Return the share of instructions that come from a function of a module of kernels."""
        module, name = function
        file = f"gpubench/kernels/{module}.py"
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
        (node,) = (
            one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name == name
        )
        its = (n for line, n in self.lines.get(file, {}).items()
               if node.lineno <= int(line) <= (node.end_lineno or 0))  # fmt: skip
        return sum(its) / sum(n for lines in self.lines.values() for n in lines.values())


ANSWER = "answer: "
"""Beginning of the lines with what a trial gave."""

SAME = "same code"
"""An edit after which all counts are equal to the last: the compiler makes the same of it."""

LITTLE = "little of the work"
"""An edit that no cost shows, of a function that does less than ``MIN_SHARE`` of the work."""

MAY_BE_SAME = ("fastmath", "float64", "bounds")
"""Kinds that change nothing where a function has no sum, no float32 or no index."""

OPAQUE = """\
_one = {array}.dtype.type(1 if {array}.size > 0 else 2)
_zero = {array}.dtype.type(0 if {array}.size > 0 else 2)
_wide = 1.0 if {array}.size > 0 else 2.0
_two = 2 if {array}.size > 0 else 3
"""
"""Values that are known when the function runs."""


@dataclass(frozen=True)
class Trial:
    """One form of the library that is counted, with an edit or as it is."""

    form: str
    """``suite.kernel.implementation``."""
    edit: Edit | None

    @property
    def asked(self) -> tuple[str, str | None, str]:
        """File, its text with the edit, and the form, for the process that counts."""
        if self.edit is None:
            return "__init__.py", None, self.form
        return f"{self.edit.function[0]}.py", self.edit.new, self.form


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="edits whose line contains this")
    parser.add_argument("--worse", type=int, default=100, help="edits that make work worse, most")
    parser.add_argument("--harmless", type=int, default=110, help="harmless edits, at most")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    add_option(parser)
    given = parser.parse_args()
    if given.child:
        return _child(given.child)
    with recording(given):
        chosen = [
            edit
            for changes, most in ((WORSE, given.worse), (HARMLESS, given.harmless))
            for edit in take_in_turn(
                [edits_of(kind, change, cpu_functions) for kind, change in changes.items()], most
            )
            if given.only in str(edit)
        ]
        # One form is enough: what a function does is counted where any form calls it.
        forms = [implementations_that_use(edit.function, "numba")[:1] for edit in chosen]
        tried = [Trial(form, edit) for edit, of in zip(chosen, forms, strict=True) for form in of]
        plain = [Trial(form, None) for form in sorted({one.form for one in tried})]
        before: dict[str, FormCounts] = {}
        for one, counts in counts_of(plain, given.processes):
            if isinstance(counts, str):
                sys.exit(f"with nothing edited: {one.form}: {counts}")
            before[one.form] = counts
        outcomes: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
        for one, counts in counts_of(tried, given.processes):
            assert one.edit is not None
            said = _noticed(one, before[one.form], counts)
            outcomes[one.edit.kind in HARMLESS][said.partition(":")[0]] += 1
            print(f"{str(one.edit)[:76]:76} {said}", flush=True)
        return _judged(outcomes[False], outcomes[True])


def _judged(worse: Counter[str], harmless: Counter[str]) -> int:
    """Print how many were found, and return the exit code. An edit that is not right is no edit."""
    right = worse["found"] + worse["NOT FOUND"]
    alarms, tried = harmless["found"], harmless["found"] + harmless["NOT FOUND"] + harmless[SAME]
    print(f"worse: {worse['found']} of {right} found (target {FOUND_TARGET:.0%})")
    print(
        f"no edits: {worse['not right']} with wrong results, {worse[SAME]} of the same code, "
        f"{worse[LITTLE]} of functions that do less than {MIN_SHARE:.0%} of the work"
    )
    print(f"harmless: {alarms} of {tried} found (target 0)")
    what = (
        "edits of the library that leave results right and work worse, found by `--fail-on counts`"
    )
    record("counts_on_the_cpu", what, {"figure": f"{worse['found']} of {right}"})
    what = "harmless edits of the library (names, comments, order, formatting) that fail the gate"
    record("counts_on_the_cpu", what, {"figure": f"{alarms} of {tried}"})
    return int(worse["found"] < FOUND_TARGET * right or alarms > 0)


def cpu_functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield functions under ``njit`` with their names."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and _njit(node):
            yield node.name, node


def _njit(function: ast.FunctionDef) -> ast.Call | None:
    """Return the call of ``njit`` above a function; ``None`` without one."""
    for one in function.decorator_list:
        if isinstance(one, ast.Call) and ast.unparse(one.func) == "njit":
            return one
    return None


def _without(option: str) -> Change:
    """Take an option of ``njit`` away."""

    def change(function: ast.FunctionDef) -> str | None:
        call = _njit(function)
        assert call is not None
        kept = [one for one in call.keywords if one.arg != option]
        taken = [*map(ast.unparse, (one for one in call.keywords if one.arg == option))]
        call.keywords = kept
        return taken[0] if taken else None

    return change


def check_bounds(function: ast.FunctionDef) -> str | None:
    """Check each index."""
    call = _njit(function)
    if call is None or not _subscripted(function):
        return None
    call.keywords.append(ast.keyword("boundscheck", ast.Constant(value=True)))
    return "boundscheck=True"


def twice(function: ast.FunctionDef) -> str | None:
    """Run the first outermost loop twice."""
    array = _array(function)
    for place, node in enumerate(function.body):
        if isinstance(node, ast.For) and array:
            (again,) = ast.parse("for _again in range(_two):\n    pass").body
            assert isinstance(again, ast.For)
            again.body = [node]
            function.body[place] = again
            _begin_with(function, OPAQUE.format(array=array))
            return f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
    return None


def exchange(function: ast.FunctionDef) -> str | None:
    """Exchange two loops of which one is all that the other holds and goes along rows."""
    for node in ast.walk(function):
        if isinstance(node, ast.For) and len(node.body) == 1:
            (inner,) = node.body
            if not isinstance(inner, ast.For) or _names(node.target) & _names(inner.iter):
                continue
            elements = (one for one in ast.walk(inner) if isinstance(one, ast.Subscript))
            last = (one.slice.elts[-1] if isinstance(one.slice, ast.Tuple) else one.slice
                    for one in elements)  # fmt: skip
            if not any(_names(inner.target) & _names(one) for one in last):
                continue
            said = f"{ast.unparse(node.target)} and {ast.unparse(inner.target)}"
            node.target, inner.target = inner.target, node.target
            node.iter, inner.iter = inner.iter, node.iter
            return said
    return None


def _weigh(template: str, before: str = "", helper: str = "", *, serial: bool = False) -> Change:
    """Put more work around the value of the statement that stands deepest in loops.

    ``before`` stands before it; ``helper`` is a function that stands before the edited one.
    """

    def change(function: ast.FunctionDef) -> str | None:
        array, found = _array(function), _deepest(function)
        if not array or found is None or (serial and "parallel" in ast.unparse(function)[:200]):
            return None
        body, place = found
        statement = body[place]
        assert isinstance(statement, ast.Assign | ast.AugAssign)
        said = ast.unparse(statement)
        value = ast.unparse(statement.value)
        statement.value = ast.parse(template.format(value=value, array=array), mode="eval").body
        body[place:place] = ast.parse(before.format(array=array)).body
        _begin_with(function, OPAQUE.format(array=array) + helper)
        return said

    return change


def load_more(function: ast.FunctionDef) -> str | None:
    """Read an element from the other end too."""
    array, found = _array(function), _deepest(function)
    if not array or found is None:
        return None
    body, place = found
    for node in ast.walk(body[place].value):  # type: ignore[attr-defined]
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name | ast.BinOp):
            base, index = ast.unparse(node.value), ast.unparse(node.slice)
            if base not in _parameters(function):
                continue
            said = ast.unparse(body[place])
            other = f"{base}.dtype.type(_zero) * {base}[{base}.shape[0] - 1 - ({index})]"
            new = ast.parse(f"{base}[{index}] + {other}", mode="eval").body
            body[place].value = _Replace(node, new).visit(body[place].value)  # type: ignore[attr-defined]
            _begin_with(function, OPAQUE.format(array=array))
            return said
    return None


def wrap_index(function: ast.FunctionDef) -> str | None:
    """Take the remainder of the first index of an element that is read."""
    found = _deepest(function)
    if found is None:
        return None
    body, place = found
    for node in ast.walk(body[place].value):  # type: ignore[attr-defined]
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name | ast.BinOp):
            base = ast.unparse(node.value)
            if base in _parameters(function):
                said = ast.unparse(node)
                node.slice = ast.parse(
                    f"({ast.unparse(node.slice)}) % {base}.shape[0]", mode="eval"
                ).body
                return said
    return None


WORSE: Mapping[str, Change] = {
    "twice": twice,
    "fastmath": _without("fastmath"),
    "parallel": _without("parallel"),
    "float64": _weigh("({value}) * _wide"),
    "exchange": exchange,
    "division": _weigh("({value}) / _one"),
    "load": load_more,
    "remainder": wrap_index,
    "libm": _weigh("({value}) * np.cos(_zero * ({value}))"),
    "allocation": _weigh(
        "({value}) * _room[0]",
        "_room = np.empty(2, {array}.dtype)\n_room[0] = _one",
        serial=True,
    ),
    "bounds": check_bounds,
}


def format_anew(function: ast.FunctionDef) -> str | None:
    """Write the code as ``ast`` does: other lines, parentheses, quotes; no comments."""
    return "formatting"


def unused_constant(function: ast.FunctionDef) -> str | None:
    """Begin with a constant that nobody reads."""
    _begin_with(function, "_unused = 3")
    return "_unused = 3"


def same_literal(function: ast.FunctionDef) -> str | None:
    """Write a number as a sum of two of its type."""
    for node in ast.walk(ast.Module(function.body, [])):
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.Constant) and type(value.value) is float:
                half = value.value / 2
                setattr(node, name, ast.parse(f"({half!r} + {half!r})", mode="eval").body)
                return f"{value.value!r}"
    return None


def whole_range(function: ast.FunctionDef) -> str | None:
    """Begin ranges with 0 in words."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "range" and len(node.args) == 1:
            node.args.insert(0, ast.Constant(0))
            return ast.unparse(node)
    return None


def in_full(function: ast.FunctionDef) -> str | None:
    """Write ``x += y`` as ``x = x + y``."""
    for node in ast.walk(function):
        body = getattr(node, "body", None)
        for i, one in enumerate(body if isinstance(body, list) else []):
            if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name):
                said = ast.unparse(one)
                load = ast.Name(one.target.id, ast.Load())
                value = ast.BinOp(load, one.op, one.value)
                body[i] = ast.Assign([one.target], value)  # type: ignore[index]
                return said
    return None


def name_step(function: ast.FunctionDef) -> str | None:
    """Give the value of a statement a name first."""
    found = _deepest(function)
    if found is None:
        return None
    body, place = found
    statement = body[place]
    assert isinstance(statement, ast.Assign | ast.AugAssign)
    said = ast.unparse(statement)
    body[place:place] = [ast.Assign([ast.Name("_value", ast.Store())], statement.value)]
    statement.value = ast.Name("_value", ast.Load())
    return said


def commute(function: ast.FunctionDef) -> str | None:
    """Exchange the sides of a product of two simple values."""
    for node in ast.walk(function):
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Mult)
            and all(isinstance(side, ast.Name | ast.Subscript) for side in (node.left, node.right))
        ):
            node.left, node.right = node.right, node.left
            return ast.unparse(node)
    return None


HARMLESS: Mapping[str, Change] = {
    "name": name_anew,
    "document": document,
    "order": reorder,
    "format": format_anew,
    "unused": unused_constant,
    "literal": same_literal,
    "range": whole_range,
    "in full": in_full,
    "step": name_step,
    "commute": commute,
}


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else super().visit(node)


def _begin_with(function: ast.FunctionDef, code: str) -> None:
    function.body[start_of(function) : start_of(function)] = ast.parse(code).body


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _parameters(function: ast.FunctionDef) -> set[str]:
    return {each.arg for each in function.args.args}


def _subscripted(function: ast.FunctionDef) -> list[str]:
    """Return the parameters of which elements are read or written, in their order."""
    bases = {
        ast.unparse(node.value) for node in ast.walk(function) if isinstance(node, ast.Subscript)
    }
    return [each.arg for each in function.args.args if each.arg in bases]


def _array(function: ast.FunctionDef) -> str:
    return next(iter(reversed(_subscripted(function))), "")


def _deepest(function: ast.FunctionDef) -> tuple[list[ast.stmt], int] | None:
    """Return the body and the place of the assignment with an element that stands in most loops."""
    best: tuple[int, list[ast.stmt], int] | None = None

    def look(body: list[ast.stmt], depth: int) -> None:
        nonlocal best
        for place, one in enumerate(body):
            if isinstance(one, ast.Assign | ast.AugAssign):
                has_element = any(isinstance(node, ast.Subscript) for node in ast.walk(one))
                is_single = not isinstance(one, ast.Assign) or not isinstance(
                    one.targets[0], ast.Tuple
                )
                if depth and has_element and is_single and (best is None or depth > best[0]):
                    best = depth, body, place
            elif isinstance(one, ast.For | ast.While | ast.If):
                deeper = depth + isinstance(one, ast.For | ast.While)
                look(one.body, deeper)
                look(one.orelse, deeper)

    look(function.body, 0)
    return best[1:] if best else None


def _noticed(one: Trial, before: FormCounts, after: FormCounts | str) -> str:
    """Return the first cost that grew, that none did, or why the edit is none."""
    assert one.edit is not None
    if isinstance(after, str):
        return f"not right: {after}"
    for case, old in before.cases.items():
        for pair in cost_pairs(old, after.cases[case]):
            if pair.new > pair.old and pair.is_change:
                grew = f"{pair.cost.words} {pair.old:,} to {pair.new:,}"
                return f"found: {grew} ({one.form} {case})"
    are_same = all(old.totals == after.cases[case].totals for case, old in before.cases.items())
    if are_same and (one.edit.kind in MAY_BE_SAME or one.edit.kind in HARMLESS):
        return SAME
    if one.edit.kind in WORSE and before.share_of(one.edit.function) < MIN_SHARE:
        return f"{LITTLE}: {before.share_of(one.edit.function):.1%} of {one.form}"
    return f"NOT FOUND: {one.form}"


def counts_of(trials: Sequence[Trial], processes: int) -> Iterator[tuple[Trial, FormCounts | str]]:
    """Yield trials with their counts, or with what is not right, in so many processes."""
    parts = [trials[start : start + TOGETHER] for start in range(0, len(trials), TOGETHER)]
    with ThreadPoolExecutor(processes) as pool, copies_of(processes) as copies:
        for answers in pool.map(lambda part: [*_counts_of_part(part, copies)], parts):
            yield from answers


def _counts_of_part(
    trials: Sequence[Trial], copies: SimpleQueue[Path]
) -> Iterator[tuple[Trial, FormCounts | str]]:
    """Yield the answers of one process, which works in a copy of its own."""
    copy = copies.get()
    asked = copy / "trials.json"
    asked.write_text(json.dumps([one.asked for one in trials]), encoding="utf-8")
    done = run_in(copy, [__file__, "--child", str(asked)], None, **counting_variables())
    answers = [line for line in done.output.splitlines() if line.startswith(ANSWER)]
    if len(answers) < len(trials):
        sys.exit(done.output)
    for one, answer in zip(trials, answers, strict=True):
        content = json.loads(answer.removeprefix(ANSWER))
        if "wrong" in content:
            yield one, content["wrong"]
            continue
        counts = {case: read_profile(text) for case, text in content["counts"].items()}
        yield one, FormCounts(counts, content["lines"])
    copies.put(copy)


def _child(trials: Path) -> int:
    """Print an answer for each trial. Each runs in a process forked from this one, which has
    imported what all need and compiled nothing."""
    cpu_target = import_module("numba.core.registry").cpu_target
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    import_module("numba.parfors.parfor")
    for backend in ("numpy", "numba"):
        registry.get(backend).preload()
    from gpubench.measure.cpu_counting import is_counted_on_cpu, why_not_with_one_thread
    from gpubench.plan.plan import build_plan
    from gpubench.suite.loading import load_suites

    cases: dict[str, list[Case]] = defaultdict(list)
    for case in build_plan(load_suites([Path("suites")], PRESET), gpu_count=0).cases():
        if is_counted_on_cpu(case) and not why_not_with_one_thread(case):
            form = f"{case.suite.suite}.{case.kernel_name}.{case.implementation_name}"
            cases[form].append(case)
    for name, text, form in json.loads(trials.read_text(encoding="utf-8")):
        file = Path("gpubench/kernels", name)
        before = file.read_text(encoding="utf-8")
        file.write_text(text or before, encoding="utf-8")
        if (process := os.fork()) == 0:
            signal.alarm(TIMEOUT_SECONDS)
            print(ANSWER + json.dumps(_answer(cases[form])), flush=True)
            os._exit(0)
        if os.waitpid(process, 0)[1]:
            print(ANSWER + json.dumps({"wrong": "its process ended"}), flush=True)
        file.write_text(before, encoding="utf-8")
    return 0


def _answer(cases: Sequence[Case]) -> Mapping[str, object]:
    """Return the counts of the cases of a form as JSON, or what is not right."""
    verify, counts = Verifier(Manner(count_on_cpu=True)), {}
    lines: dict[str, Counter[int]] = defaultdict(Counter)
    for place, case in enumerate(cases):
        one = verify((place, case))
        if one.status != "right" or one.counts is None or one.counts.missing:
            why = one.reason or (one.counts and one.counts.missing) or ""
            return {"wrong": f"{one.status}: {why}"[:200].replace("\n", " ")}
        counts[case.identity] = profile_text(one.counts)
        for line in one.counts.launches[0].lines:
            lines[line.file][line.line] += line.counts.get("ir_instructions", 0)
    return {"counts": counts, "lines": lines}


if __name__ == "__main__":
    sys.exit(main())
