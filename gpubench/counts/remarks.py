"""Why LLVM has not vectorized a loop: in LLVM's words and plain ones, with a remedy and its cost.

LLVM writes remarks to the process's standard error, each with a line of Python where code has a
table of lines (https://llvm.org/docs/Vectorizers.html, "Diagnostics").
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

_OPTIONS = (
    "-pass-remarks=loop-vectorize",
    "-pass-remarks-missed=loop-vectorize",
    "-pass-remarks-analysis=loop-vectorize",
)
_STDERR = 2
_REMARK = re.compile(rb"^remark: (?P<file>.*?):(?P<line>\d+):\d+: (?P<words>.*)$")
_VECTORIZED = re.compile(
    r"vectorized loop \(vectorization width: (\d+), interleaved count: (\d+)\)"
)
_NOT_VECTORIZED = "loop not vectorized"
_IS_VECTORIZED = "vectorization and interleaving are explicitly disabled, or the loop has already"
"""Beginning of what LLVM says of the rest of a loop that it has vectorized."""
_CONTINUATIONS = (b"Backward loop carried", b"Forward loop carried", b"Unknown data dependence")
"""Beginnings of second lines of remarks (LLVM, ``LoopAccessAnalysis.cpp``)."""


@dataclass(frozen=True, slots=True)
class LoopRemark:
    """What LLVM says of one loop."""

    file: str
    """Name of the file, without its folder."""
    line: int
    """Of the loop."""
    reason: str | None
    """LLVM's, why the loop is not vectorized; ``None`` where it is."""
    reason_line: int | None = None
    """Line that the reason is about."""
    width: int | None = None
    """Numbers that a vector holds; ``None`` where the loop is not vectorized."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A reason of LLVM's in plain words."""

    pattern: str
    """How LLVM's words begin."""
    plain: str
    remedy: str
    cost: str


ADVICE = (
    Advice(
        "cannot prove it is safe to reorder floating-point operations",
        "a sum or product of floating-point numbers has an order, and vectors take another",
        "compile with fastmath={'reassoc'} or fastmath=True",
        "last digits differ from the loop's order; True also assumes that no NaN and no infinity "
        "occurs",
    ),
    Advice(
        "cannot identify array bounds",
        "an index comes out of memory or of a calculation, so that LLVM cannot tell which elements "
        "two accesses may share",
        "index by the loop's variable; put what goes by another index into a loop of its own",
        "a second pass over memory, and an array between the two loops",
    ),
    Advice(
        "call instruction cannot be vectorized",
        "the loop calls a function that has no form for vectors",
        "for functions of math install SVML (icc_rt, intel-cmplr-lib-rt); have functions of your "
        "own inlined (forceinline=True); take new arrays out of the loop; a `prange` whose calls "
        "do the work may stay as it is",
        "SVML's last digits may differ (up to 4 ULP with fastmath); inlined code compiles longer",
    ),
    Advice(
        "loop control flow is not understood by vectorizer",
        "the loop can end in its middle: by break, return, an exception, a check of bounds or of "
        "division by zero",
        "compile with error_model='numpy' where it divides; take break, return, raise and "
        "boundscheck=True out of the loop",
        "division by zero gives inf or NaN and raises nothing; without break all turns are made",
    ),
    Advice(
        "Cannot vectorize early exit loop",
        "the loop can end in its middle, as a search does, or one that compares shapes",
        "take break, return and raise out of the loop",
        "all turns are made",
    ),
    Advice(
        "Early exit loop with store",
        "the loop can end in its middle, and what it has stored by then would count: a check of "
        "bounds or of division by zero, break, raise",
        "compile with error_model='numpy' where it divides; take break, raise and boundscheck=True "
        "out of the loop",
        "division by zero gives inf or NaN and raises nothing; without break all turns are made",
    ),
    Advice(
        "Cannot vectorize uncountable loop",
        "how often the loop runs is known only when it ends, as in `while`",
        "write `for i in range(n)` with n known before the loop",
        "turns beyond the old end are made and their results are not used",
    ),
    Advice(
        "loop contains a switch statement",
        "a choice among many stands in the loop",
        "choose before the loop, or calculate with a table",
        "a copy of the loop for each choice",
    ),
    Advice(
        "could not determine number of loop iterations",
        "how often the loop runs is known only when it ends, as in `while`",
        "write `for i in range(n)` with n known before the loop",
        "turns beyond the old end are made and their results are not used",
    ),
    Advice(
        "value that could not be identified as reduction is used outside the loop",
        "a variable goes from turn to turn, and it is no sum, product, minimum or maximum that "
        "LLVM knows",
        "compute it for each element in an array, then reduce that; a minimum of floats needs "
        "fastmath={'nnan', 'nsz'}",
        "an array more; with nnan a NaN may be lost",
    ),
    Advice(
        "unsafe dependent memory operations in loop",
        "a turn may read what a turn before has written",
        "write to another array than is read from; where no element is shared, pass separate "
        "arrays",
        "memory for another array",
    ),
    Advice(
        "cannot check memory dependencies at runtime",
        "LLVM cannot test before the loop whether arrays overlap",
        "index by the loop's variable; copy what is used into local arrays that are contiguous",
        "a copy",
    ),
    Advice(
        "cannot prove it is safe to reorder memory operations",
        "accesses of several turns may meet in one element",
        "write to another array than is read from; index by the loop's variable",
        "memory for another array",
    ),
    Advice(
        "Too many SCEV assumptions need to be made and checked at runtime",
        "LLVM would have to test too much before the loop: strides, bounds, overlaps",
        "declare arrays contiguous (`::1`); take shapes into local variables; write fewer arrays "
        "in one loop",
        "a second pass over memory where a loop is split",
    ),
    Advice(
        "runtime SCEV checks needed",
        "LLVM would have to test before the loop, in code that it makes small",
        "declare arrays contiguous (`::1`); take the loop out of paths that end in an exception",
        "nothing",
    ),
    Advice(
        "control flow cannot be substituted for a select",
        "an `if` guards work that must not be done for other elements",
        "compute both sides and choose: `x if condition else y` over values that are loaded anyway",
        "both sides are calculated for all elements",
    ),
    Advice(
        "store that is conditionally executed prevents vectorization",
        "an `if` guards a store",
        "store always: the old value where the condition does not hold",
        "all elements are written",
    ),
    Advice(
        "the cost-model indicates that vectorization is not beneficial",
        "LLVM expects no gain: elements lie apart in memory, or there is little to calculate",
        "go along the last axis of arrays in C order; declare arrays contiguous (`::1`)",
        "another order of loops or a transposed copy",
    ),
    Advice(
        "integer loop induction variable could not be identified",
        "the loop does not count by a whole number that LLVM can follow",
        "write `for i in range(n)` with whole numbers",
        "nothing",
    ),
    Advice(
        # LLVM's ``LoopAccessAnalysis.cpp``: what reads or writes memory and is no load or store.
        "instruction cannot be vectorized",
        "the loop does more with memory than load and store: it copies memory, or counts "
        "references to arrays and other objects",
        "take new arrays, slices that are kept, lists and strings out of the loop",
        "an array that all turns share",
    ),
    Advice(
        "instruction return type cannot be vectorized",
        "the loop handles tuples, records or complex structures, which vectors do not hold, or "
        "vectors that LLVM has made of a loop inside it",
        "keep each field in an array of its own; of a loop around vectors there is nothing to do",
        "another layout of data",
    ),
)
"""The first whose pattern LLVM's words begin with counts."""

UNKNOWN_ADVICE = Advice(
    "",
    "LLVM's words are all that is known here",
    "make the loop smaller until it is vectorized",
    "unknown",
)


def advice_for(reason: str) -> Advice:
    """Return a reason of LLVM's in plain words."""
    return next((one for one in ADVICE if reason.startswith(one.pattern)), UNKNOWN_ADVICE)


class RemarkReader:
    """Takes LLVM's remarks out of standard error; everything else that is written there goes on."""

    def __init__(self) -> None:
        llvm = import_module("llvmlite.binding")
        for option in _OPTIONS:
            llvm.set_option("", option)
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  (for as long as the process lives)
        self._stderr = os.dup(_STDERR)
        os.dup2(self._file.fileno(), _STDERR)
        self._place = 0

    def take(self) -> list[LoopRemark]:
        """Return what LLVM has said since this was called last."""
        return parse_remarks(self.pass_on())

    def pass_on(self) -> list[bytes]:
        """Return the new lines with remarks, and write the others where they would have gone."""
        end = os.fstat(self._file.fileno()).st_size
        content = os.pread(self._file.fileno(), end - self._place, self._place)
        self._place = end
        remarks = []
        for line in content.splitlines(keepends=True):
            if line.startswith(b"remark: "):
                remarks.append(line.rstrip())
            elif remarks and line.startswith(_CONTINUATIONS):
                remarks[-1] += b" " + line.rstrip()
            else:
                with suppress(OSError):
                    os.write(self._stderr, line)
        return remarks


def parse_remarks(lines: Iterable[bytes]) -> list[LoopRemark]:
    """Read LLVM's remarks of a module. That a loop is missed follows the reasons, at its line.

    The first reason is taken, at which LLVM would stop if it were not asked for all: others mostly
    follow from it.

    LLVM looks at each loop several times: what it has vectorized at last has no reason.
    """
    remarks: list[LoopRemark] = []
    reason: tuple[str, int] | None = None
    for line in lines:
        match = _REMARK.match(line)
        if match is None:
            continue
        file, number = Path(match["file"].decode(errors="replace")).name, int(match["line"])
        words = match["words"].decode(errors="replace")
        if vectorized := _VECTORIZED.search(words):
            remarks.append(LoopRemark(file, number, None, width=int(vectorized[1])))
            reason = None
        elif words.startswith(f"{_NOT_VECTORIZED}: "):
            reason = reason or (words.removeprefix(f"{_NOT_VECTORIZED}: "), number)
        elif words == _NOT_VECTORIZED:
            said, where = reason or ("LLVM gives no reason", number)
            if not said.startswith(_IS_VECTORIZED):
                remarks.append(LoopRemark(file, number, said, where))
            reason = None
    vectorized_lines = {(one.file, one.line) for one in remarks if one.reason is None}
    return [
        one for one in remarks if one.reason is None or (one.file, one.line) not in vectorized_lines
    ]
