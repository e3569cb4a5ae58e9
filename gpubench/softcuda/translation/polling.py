"""Finds loops in which a thread waits for what another one writes.

The threads of a block take turns on one thread of the host, so that such a loop has to let others
run. It reads the same place again and again: with a load that the compiler must not save, or an
atomic operation that changes nothing until the awaited value is there. A loop that only repeats an
update which another thread came before (compare and swap with the value that was read last) gets on
by itself, and is left as fast as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpubench.softcuda.translation.ptx import Block, Instruction, Label, Statement

_REGISTER = re.compile(r"%[\w$]+")
_STORES = {"st", "red", "bra", "bar", "barrier", "call", "ret", "exit", "membar", "fence"}
_FRESH = {"volatile", "relaxed", "acquire", "mmio"}


def polling_branches(body: Block) -> frozenset[int]:
    """The numbers, among the instructions of a function, of branches that close such a loop."""
    statements = [one for one in body.walk() if isinstance(one, (Instruction, Label))]
    reads = [i for i, one in enumerate(statements) if _reads_again(one)]
    if not reads:
        return frozenset()
    places = {one.name: i for i, one in enumerate(statements) if isinstance(one, Label)}
    found, number = set(), -1
    for i, one in enumerate(statements):
        if isinstance(one, Label):
            continue
        number += 1
        start = places.get(one.operands[0], i) if one.opcode == "bra" else i
        if any(start <= read < i for read in reads):
            written = _written(statements[start:i])
            if any(_is_fixed(statements[read], written) for read in reads if start <= read < i):
                found.add(number)
    return frozenset(found)


def _reads_again(one: Statement) -> bool:
    if not isinstance(one, Instruction):
        return False
    if one.opcode == "ld":
        return bool(_FRESH.intersection(one.modifiers)) and "local" not in one.modifiers
    if one.opcode == "atom":
        kept = one.operands[2] == "0" and bool({"add", "or"}.intersection(one.modifiers))
        return kept or bool({"cas", "exch"}.intersection(one.modifiers))
    return False


def _is_fixed(one: Statement, written: set[str]) -> bool:
    """Whether place and comparison are the same each time that the loop comes by."""
    assert isinstance(one, Instruction)
    operands = one.operands[1:3] if "cas" in one.modifiers else one.operands[1:2]
    return not written.intersection(_REGISTER.findall(" ".join(operands)))


def _written(statements: Sequence[Statement]) -> set[str]:
    written: set[str] = set()
    for one in statements:
        if isinstance(one, Instruction) and one.operands and one.opcode not in _STORES:
            written.update(_REGISTER.findall(one.operands[0]))
    return written
