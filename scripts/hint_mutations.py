"""Makes kernels of the library cost more, one edit at a time, and says whether that hint appears.

Each edit leaves the results right: a padding taken out, the two indices of a thread exchanged, a
literal in place of a float32, and a piece for each thread in place of steps over all of them. An
edit that does not make the count grow that its hint is about is no edit. Prints a line for each:
``exactly`` the hint that the edit calls for, ``both`` it and another one whose count the edit makes
grow too, or MISSING. A hint that is new while its count does not grow is not the edit's: the rest
of the kernel has shrunk, so that the share of the hint is above its threshold. The line names it.
Exit code 1 where a hint is missing.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from queue import SimpleQueue

from count_mutations import (
    Change,
    Counted,
    Edit,
    by_hand,
    counted_after,
    counts_of,
    edits_of,
    exchange,
)
from figures import add_option, record, recording
from library_faults import copies_of, kernels_that_use

MIN_GROWTH = 1.5
"""Of the count that a hint is about: below it the edit is no fault."""


def literal(function: ast.FunctionDef) -> str | None:
    """Write the first number of a dtype as a literal, which is float64."""
    for node in ast.walk(function):
        for field, value in ast.iter_fields(node):
            for i, each in enumerate(value if isinstance(value, list) else [value]):
                if not (isinstance(each, ast.Call) and _is_number(each)):
                    continue
                (number,) = each.args
                new = ast.Constant(float(ast.literal_eval(number)))
                if isinstance(value, list):
                    value[i] = new
                else:
                    setattr(node, field, new)
                return f"{ast.unparse(each)} becomes {new.value!r}"
    return None


def _is_number(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    given = len(call.args) == 1 and isinstance(call.args[0], ast.Constant)
    return given and (name in ("number", "np.float32") or name.endswith(".dtype.type"))


def pieces(function: ast.FunctionDef) -> str | None:
    """Give each thread elements one after another, where threads stride over all: a row in place
    of a column."""
    for node in ast.walk(function):
        if not (isinstance(node, ast.For) and isinstance(node.iter, ast.Call)):
            continue
        said = ast.unparse(node.iter)
        if not said.startswith("range(") or len(node.iter.args) != 3:
            continue
        first, end, step = map(ast.unparse, node.iter.args)
        if (first, step) not in STRIDES:
            continue
        each = f"(({end}) + {step} - 1) // {step}"
        new = f"range({first} * ({each}), min({first} * ({each}) + {each}, {end}))"
        node.iter = ast.parse(new, mode="eval").body
        return said
    return None


STRIDES = {
    ("cuda.grid(1)", "cuda.gridsize(1)"),
    ("cuda.threadIdx.x", "cuda.blockDim.x"),
    ("thread", "threads"),
}
"""First element and step of loops in which threads stride over all elements."""


@dataclass(frozen=True)
class Kind:
    """Edits that call for one hint."""

    change: Change | None
    """``None`` for those of the text, by hand."""
    rule: str
    words: str
    """For the page of measurements."""


KINDS: Mapping[str, Kind] = {
    "padding": Kind(None, "bank conflicts", "paddings taken out of the library's tiles"),
    "exchange": Kind(
        exchange,
        "coalescing",
        "kernels of the library whose two indices of a thread are exchanged",
    ),
    "literal": Kind(literal, "float64", "numbers of float32 in the library that become literals"),
    "pieces": Kind(
        pieces,
        "coalescing",
        "loops of the library in which each thread takes neighbouring elements alone",
    ),
}
COUNTS_OF_RULES: Mapping[str, tuple[str, ...]] = {
    "coalescing": ("global_load_sectors", "global_store_sectors"),
    "bank conflicts": ("shared_load_wavefronts", "shared_store_wavefronts"),
    "reuse": ("global_load_ideal_sectors",),
    "written again": ("global_store_ideal_sectors",),
    "atomics": ("global_atomic_same_address", "shared_atomic_same_address"),
    "local memory": ("local_load_requests", "local_store_requests"),
    "float64": ("flops_float64",),
    "signed indices": ("index_wraps",),
    "divergence": ("waiting_lanes", "guarded_off_lanes"),
}
"""The counts that a hint is about, of which the sum has to grow."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="edits whose line contains this")
    parser.add_argument("--processes", type=int, default=2)
    add_option(parser)
    given = parser.parse_args()
    with recording(given, "numba-cuda"):
        by_users: dict[tuple[str, ...], list[Edit]] = defaultdict(list)
        for edit in _edits():
            if given.only in str(edit):
                by_users[kernels_that_use(edit.function)].append(edit)
        outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        with ThreadPoolExecutor(given.processes) as pool, copies_of(given.processes) as copies:
            for found in pool.map(
                lambda one: _hints_of_all(one[0], one[1], copies), by_users.items()
            ):
                for edit, said in found:
                    outcomes[edit.kind][said.partition(":")[0]] += 1
                    print(f"{str(edit)[:76]:76} {said}", flush=True)
        return _judged(outcomes)


def _hints_of_all(
    kernels: tuple[str, ...], edits: Sequence[Edit], copies: SimpleQueue[Path]
) -> list[tuple[Edit, str]]:
    """Return each edit of what these kernels use, with what it says."""
    copy = copies.get()
    try:
        before = counts_of(copy, kernels)
    finally:
        copies.put(copy)
    if isinstance(before, str):
        raise RuntimeError(f"with nothing edited: {before}")
    return [(edit, hints_after(edit, kernels, before, copies)) for edit in edits]


def _edits() -> list[Edit]:
    of_text = [edit for edit in by_hand() if edit.kind in KINDS]
    made = (edits_of(name, kind.change) for name, kind in KINDS.items() if kind.change)
    return [*of_text, *chain.from_iterable(made)]


def hints_after(
    edit: Edit, kernels: Sequence[str], before: Mapping[str, Counted], copies: SimpleQueue[Path]
) -> str:
    """Return which hints are new with an edit, or why the edit is none."""
    after = counted_after(edit, kernels, copies)
    if isinstance(after, str):
        return f"not right: {after}"
    wanted = KINDS[edit.kind].rule
    grown = [case for case, one in after.items() if _has_grown(before[case], one, wanted)]
    if not grown:
        return f"no edit: {' and '.join(COUNTS_OF_RULES[wanted])} do not grow"
    caused, others = set[str](), set[str]()
    for case in grown:
        new = new_rules(before[case], after[case], wanted)
        if wanted not in new:
            return f"MISSING: {case}"
        worse = {rule for rule in new if _has_grown(before[case], after[case], rule)}
        caused |= worse - {wanted}
        others |= new - worse - {wanted}
    return outcome_of(caused, others)


def outcome_of(caused: set[str], others: set[str]) -> str:
    """Return what an edit with the wanted hint says.

    ``caused``: rules of further new hints whose count the edit makes grow; ``others``: of those
    whose count it does not.
    """
    said = [f"{rule}, whose count grows too" for rule in sorted(caused)]
    said += [f"{rule} by its share, while its count does not grow" for rule in sorted(others)]
    word = "both" if caused else "exactly"
    return f"{word}: {'; '.join(said)}" if said else word


def _has_grown(before: Counted, after: Counted, rule: str) -> bool:
    names = COUNTS_OF_RULES[rule]
    old, new = (
        sum(launch.times * launch.counts.get(name, 0) for launch in one.counts.launches
            for name in names)
        for one in (before, after)
    )  # fmt: skip
    return new > MIN_GROWTH * old


def new_rules(before: Counted, after: Counted, wanted: str) -> set[str]:
    """Return the rules that a kernel has more hints of than before; of the rule that is wanted, a
    hint with other counts is new too."""
    old, new = (
        Counter((line.kernel, hint.rule) for line in one.lines for hint in line.hints)
        for one in (before, after)
    )
    rules = {rule for (_, rule), number in (new - old).items() if number}
    old_words, new_words = (
        {hint.evidence for line in one.lines for hint in line.hints if hint.rule == wanted}
        for one in (before, after)
    )
    return rules | ({wanted} if new_words - old_words else set())


def _judged(outcomes: Mapping[str, Counter[str]]) -> int:
    """Print and record how many edits of each kind have that hint; return the exit code."""
    total = Counter[str]()
    for name, kind in KINDS.items():
        of_kind = outcomes.get(name, Counter())
        total += of_kind
        edits = of_kind["exactly"] + of_kind["both"] + of_kind["MISSING"]
        if not edits:
            continue
        figure = f"{of_kind['exactly']} of {edits}"
        more = f"; {of_kind['both']} make another count grow too" if of_kind["both"] else ""
        print(f"{name}: {figure} have exactly the hint {kind.rule!r}{more}")
        what = f"{kind.words}, of which the hints are exactly {kind.rule!r}"
        record("softcuda", what, {"figure": figure + more})
    print(f"no edits: {total['no edit']} do not cost more, {total['not right']} are not right")
    return int(total["MISSING"] > 0)


if __name__ == "__main__":
    sys.exit(main())
