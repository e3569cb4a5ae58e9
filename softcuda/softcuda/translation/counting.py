"""Basic blocks of functions: what each does, what it touches, and where lanes that part meet again.

A warp executes a basic block as a whole, with the lanes that came there together. So a trace of the
blocks that each thread went through, with the addresses that it touched, tells what warps did
(``native/counts.c``). What a block does is known before it runs, and is written down here.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from softcuda.translation.instructions import HALVES, element_of, kinds_of
from softcuda.translation.layout import WAITING
from softcuda.translation.memory import accesses_of
from softcuda.translation.operands import Code
from softcuda.translation.ptx import Block, Function, Instruction, Label, Targets

SPACES = ("generic", "global", "shared", "local", "guard")
"""Where an access goes; ``guard``: nowhere, it tells which lanes execute an instruction."""
KINDS_OF_ACCESS = ("load", "store", "atomic")
NOWHERE = 0xFFFFFFFF
"""In place of a block: lanes do not meet before they end."""

_LEAVING = {"ret", "exit", "trap", "brkpt"}
_CONTROL = {"bra", "brx", "call", *_LEAVING}
# Where a thread waits, all that its trace has so far is complete.
_ENDS_BLOCK = _CONTROL | WAITING
_MEMORY = {"ld", "ldu", "st", "atom", "red", "cp"}
_MOVES = {"mov", "cvta", "selp", "slct", "prmt"}
_OTHER = {
    *("bar", "barrier", "membar", "fence", "shfl", "vote", "match", "redux", "elect"),
    *("activemask", "nanosleep", "pragma", "griddepcontrol", "setmaxnreg"),
    *("prefetch", "prefetchu", "discard", "applypriority", "createpolicy", "mapa", "getctarank"),
}
_SPECIAL = {"div", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"}
_FLOPS = {"add": 1, "sub": 1, "mul": 1, "fma": 2, "mad": 2}
_FLOAT_BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}


@dataclass(frozen=True)
class Access:
    """What an instruction tells of each lane that comes to it."""

    space: str
    kind: str
    size: int
    guarded: bool
    file: int
    line: int
    counts: Mapping[str, int] = field(default_factory=dict)
    """For ``guard``: what lanes count that execute the instruction."""
    number: str = ""
    """Type of what is accessed, as PTX has it: ``f64``."""


@dataclass
class BasicBlock:
    """Instructions that run one after another once the first of them runs."""

    number: int
    depth: int = 0
    """1 where a function begins, -1 where it returns."""
    rows: dict[tuple[int, int], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """What each line does, by file and line."""
    accesses: list[Access] = field(default_factory=list)
    branch: tuple[int, int] | None = None
    """File and line of the branch at its end, where lanes may part."""
    meets: int = NOWHERE


class Blocks:
    """The basic blocks of a function, numbered from ``first``.

    Blocks of a device function are its beginning, its instructions and its end; an entry has only
    instructions, since no lane goes on behind its end.
    """

    def __init__(self, function: Function, first: int) -> None:
        flow = _Flow(function)
        before = int(not function.entry)
        count = len(flow.starts) + 2 * before
        self.blocks = [BasicBlock(first + i) for i in range(count)]
        self.begin = first
        self.end = first + count - 1
        """Where a device function returns."""
        self.starts = {at: first + before + i for i, at in enumerate(flow.starts)}
        """Numbers of blocks by the ordinals of their first instructions."""
        if before:
            self.blocks[0].depth = 1
            self.blocks[-1].depth = -1
        wraps = _index_wraps(flow.instructions)
        for i, (begin, until) in enumerate(flow.extents):
            block = self.blocks[before + i]
            for one in flow.instructions[begin:until]:
                _add(block, one, wraps)
            last = flow.instructions[until - 1]
            if len(flow.after[i]) > 1 and last.opcode in ("bra", "brx"):
                block.branch = last.file, last.line
            if (meets := flow.meets[i]) < len(flow.starts) or before:
                block.meets = first + before + meets

    def accesses_at(self, ordinal: int) -> int:
        """Return how many accesses the block has that begins at an instruction."""
        number = self.starts[ordinal]
        return len(self.blocks[number - self.begin].accesses)


# ---- the flow of control -----------------------------------------------------------------------


class _Flow:
    """Which blocks of a function follow which; the number behind the last block is the end."""

    def __init__(self, function: Function) -> None:
        self.instructions: list[Instruction] = []
        self._targets: list[list[int]] = []  # of the branch with that ordinal, as ordinals
        self._flatten(function)
        count = len(self.instructions)
        leaders = {0, *(place for places in self._targets for place in places)}
        leaders |= {i + 1 for i, one in enumerate(self.instructions) if one.opcode in _ENDS_BLOCK}
        self.starts = sorted(one for one in leaders if one < count)
        self.extents = list(zip(self.starts, [*self.starts[1:], count], strict=False))
        numbers = {at: i for i, at in enumerate(self.starts)}
        end = len(self.starts)
        self.after = [self._after(numbers, end, *extent) for extent in self.extents]
        self.meets = self._meet(function.entry)

    def _flatten(self, function: Function) -> None:
        """List the instructions. A label belongs to its scope, and may be used before it."""
        branches: list[tuple[int, Sequence[str], list[dict[str, int]]]] = []

        def walk(block: Block, around: list[dict[str, int]]) -> None:
            labels: dict[str, int] = {}
            scopes = [labels, *around]
            lists = {one.name: one.labels for one in block.statements if isinstance(one, Targets)}
            listed.insert(0, lists)
            for one in block.statements:
                if isinstance(one, Block):
                    walk(one, scopes)
                elif isinstance(one, Label):
                    labels[one.name] = len(self.instructions)
                elif isinstance(one, Instruction):
                    if one.opcode in ("bra", "brx"):
                        names = _target_names(one, listed)
                        branches.append((len(self.instructions), names, scopes))
                    self.instructions.append(one)
            listed.pop(0)

        listed: list[dict[str, tuple[str, ...]]] = []
        if function.body:
            walk(function.body, [])
        self._targets = [[] for _ in self.instructions]
        for ordinal, names, scopes in branches:
            for name in names:  # one that is missing is refused where it is translated
                place = next((labels[name] for labels in scopes if name in labels), None)
                if place is not None:
                    self._targets[ordinal].append(place)

    def _after(self, numbers: Mapping[int, int], end: int, begin: int, until: int) -> set[int]:
        """Return the blocks that may follow; none where threads end."""
        last = self.instructions[until - 1]
        falls = numbers.get(until, end)
        after = {falls}
        if last.opcode in ("bra", "brx"):
            after = {numbers.get(place, end) for place in self._targets[until - 1]} or {end}
        elif last.opcode in _LEAVING:
            after = set()
        return after | {falls} if last.guard else after

    def _meet(self, entry: bool) -> list[int]:
        """Return where lanes meet that part at the end of each block: in its immediate
        postdominator, where every path comes by that does not end the thread."""
        end = len(self.starts)
        returns = {"ret", "exit"} if entry else {"ret"}
        lasts = [self.instructions[until - 1].opcode for _, until in self.extents]
        after = [set(one) for one in self.after]
        for i, opcode in enumerate(lasts):
            if opcode in returns:
                after[i].add(end)
        # Paths that only end the thread, by a trap or, in a function, by an exit.
        after = _drop(after, set(range(end)) - _reaching(after, end))
        # A branch to a return that does nothing else: the compiler makes it an exit of these lanes.
        alone = {i for i, (begin, until) in enumerate(self.extents) if until - begin == 1}
        after = _drop_returns(after, {i for i in alone if entry and after[i] == {end}}, end)
        _let_all_reach(after, end)
        return _postdominators(after, end)


def _drop(after: Sequence[set[int]], dropped: set[int]) -> list[set[int]]:
    """Return the flow without steps to these blocks, where a block has another step."""
    return [one - dropped or one for one in after]


def _drop_returns(after: Sequence[set[int]], returns: set[int], end: int) -> list[set[int]]:
    """Return the flow without steps to these returns, as far as all blocks still reach the end.

    A loop that ends by a return alone keeps that step, of its last block.
    """
    dropped = _drop(after, returns)
    while missing := set(range(end)) - _reaching(dropped, end):
        changed = [i for i in missing if dropped[i] != after[i]]
        if not changed:
            break
        dropped[max(changed)] = after[max(changed)]
    return dropped


def _reaching(after: Sequence[Iterable[int]], end: int) -> set[int]:
    """Return the blocks from which a path leads to the end, which is one of them."""
    before = _before(after, end)
    reached = {end}
    waiting = [end]
    while waiting:
        for one in before[waiting.pop()]:
            if one not in reached:
                reached.add(one)
                waiting.append(one)
    return reached


def _before(after: Sequence[Iterable[int]], end: int) -> list[list[int]]:
    before: list[list[int]] = [[] for _ in range(end + 1)]
    for i, successors in enumerate(after):
        for one in successors:
            before[one].append(i)
    return before


def _let_all_reach(after: list[set[int]], end: int) -> None:
    """Add steps to the end, so that loops without an end have a postdominator too."""
    while missing := set(range(end)) - _reaching(after, end):
        after[max(missing)].add(end)


def _postdominators(after: Sequence[set[int]], end: int) -> list[int]:
    """Return the immediate postdominator of each block.

    Cooper, Harvey and Kennedy: A Simple, Fast Dominance Algorithm (2001), on the reversed flow.
    """
    before = _before(after, end)
    order: list[int] = []  # postorder of the reversed flow
    seen = {end}
    stack = [(end, iter(before[end]))]
    while stack:
        block, rest = stack[-1]
        following = next((one for one in rest if one not in seen), None)
        if following is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(before[following])))
    rank = {block: i for i, block in enumerate(order)}
    nearest = {end: end}

    def meet(a: int, b: int) -> int:
        while a != b:
            while rank[a] < rank[b]:
                a = nearest[a]
            while rank[b] < rank[a]:
                b = nearest[b]
        return a

    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            known = [one for one in after[block] if one in nearest]
            new = known[0]
            for one in known[1:]:
                new = meet(new, one)
            changed |= nearest.get(block) != new
            nearest[block] = new
    return [nearest[i] for i in range(end)]


def _target_names(one: Instruction, listed: list[dict[str, tuple[str, ...]]]) -> Sequence[str]:
    if one.opcode == "bra":
        return one.operands[:1]
    name = one.operands[1] if len(one.operands) > 1 else ""
    return next((lists[name] for lists in listed if name in lists), ())


# ---- what an instruction does ------------------------------------------------------------------


def _index_wraps(instructions: Iterable[Instruction]) -> set[int]:
    """Return the additions, by their ``id``, that bring a negative index to the end of an array:
    Numba adds the length where a signed index is below zero.

    The length comes by a mask of the sign (``shr.s64`` by 63, ``and``) or by a choice
    (``setp.lt.s64``, ``selp``). Of a length that is a power of two it is the shifted sign.
    """
    made: dict[str, Instruction] = {}
    wraps: set[int] = set()
    for one in instructions:
        if one.opcode == "add" and "s64" in one.modifiers:
            first, second = one.operands[1:3]
            if any(_sign_of(made, *pair) for pair in ((first, second), (second, first))):
                wraps.add(id(one))
        if one.operands and one.opcode not in ("st", "red", *_CONTROL):
            made[one.operands[0]] = one
    return wraps


def _sign_of(made: Mapping[str, Instruction], length: str, index: str) -> bool:
    """Return whether a register holds a length where ``index`` is negative, and else zero."""
    chosen = made.get(length)
    if chosen is None:
        return False
    if chosen.opcode == "selp" and chosen.operands[2] == "0":
        test = made.get(chosen.operands[3])
        return bool(test and test.opcode == "setp" and test.operands[1:3] == (index, "0"))
    if chosen.opcode == "and":
        masks = [made.get(name) for name in chosen.operands[1:3]]
        return any(
            mask is not None and mask.opcode == "shr" and mask.operands[1:3] == (index, "63")
            for mask in masks
        )
    if chosen.opcode == "shr":
        sign = made.get(chosen.operands[1])
        return bool(
            sign and sign.opcode == "and" and sign.operands[1:3] == (index, "-9223372036854775808")
        )
    return False


def _add(block: BasicBlock, one: Instruction, wraps: Set[int]) -> None:
    place = one.file, one.line
    row = block.rows[place]
    row["ptx_instructions"] += 1
    row["ptx_thread_instructions"] += 1
    row[f"ptx_{_class_of(one)}"] += 1
    counts = _counts_of(one)
    if id(one) in wraps:
        row["index_wraps"] += 1
    if one.opcode in ("div", "rem") and _class_of(one) == "integer":
        row["integer_divisions"] += 1
    if one.opcode == "cvt" and (kinds := kinds_of(one))[0] == "f64" and kinds[-1] != "f64":
        source = "float32" if kinds[-1] == "f32" else "integer"
        row[f"float64_from_{source}"] += 1
    if _tells_guard(one):
        block.accesses.append(Access("guard", "load", 0, True, *place, counts))
    else:
        row.update(counts)
    block.accesses += [
        Access(space, kind, size, bool(one.guard), *place, number=(kinds_of(one) or [""])[0])
        for _, space, kind, size in accesses_of(one)
    ]


def _tells_guard(one: Instruction) -> bool:
    """Return whether something is counted that lanes do not do whose guard is off."""
    return bool(one.guard) and one.opcode not in _CONTROL and bool(_counts_of(one))


def tell_guard(code: Code, one: Instruction, number: int) -> list[str]:
    """Write the statement that tells whether a lane executes the instruction, as access ``number``
    of its basic block."""
    if not _tells_guard(one):
        return []
    return [f"SC_TOUCH({number}, {'!' * one.negated}{code.read(one.guard, 'pred')});"]


def _class_of(one: Instruction) -> str:
    opcode = one.opcode
    if opcode in _CONTROL:
        return "control"
    if opcode in _MEMORY:
        return "memory"
    if opcode in _MOVES:
        return "move"
    if opcode == "cvt":
        return "convert"
    if opcode in _OTHER:
        return "other"
    if not _FLOAT_BITS.keys() & {element_of(kind) for kind in kinds_of(one)}:
        return "integer"
    return "special" if opcode in _SPECIAL else "float"


def _counts_of(one: Instruction) -> dict[str, int]:
    """Return what an instruction counts besides itself, for each warp or each lane."""
    opcode = one.opcode
    if opcode in ("bra", "brx"):
        return {"branches": 1} if one.guard or opcode == "brx" else {}
    if opcode in ("bar", "barrier"):
        return {} if "warp" in one.modifiers else {"barriers": 1}
    kind = next((kind for kind in kinds_of(one) if element_of(kind) in _FLOAT_BITS), None)
    if kind is None:
        return {}
    numbers = 2 if kind in HALVES else 1
    if opcode in _SPECIAL:
        return {"special_functions": numbers}
    if opcode in _FLOPS:
        return {f"flops_float{_FLOAT_BITS[element_of(kind)]}": numbers * _FLOPS[opcode]}
    return {}


# ---- tables ------------------------------------------------------------------------------------


def write_tables(blocks: Sequence[BasicBlock]) -> Iterator[str]:
    """Write what ``counts.c`` needs of the blocks, as C."""
    accesses: list[str] = []
    rows: list[str] = []
    for block in blocks:
        first = len(accesses)
        for one in block.accesses:
            kind = KINDS_OF_ACCESS.index(one.kind)
            space, guarded = SPACES.index(one.space), int(one.guarded)
            accesses.append(f"{{{space}, {kind}, {one.size}, {guarded}}}")
        count = len(accesses) - first
        instructions = sum(row["ptx_instructions"] for row in block.rows.values())
        rows.append(f"{{{block.meets}u, {block.depth}, {first}, {count}, {instructions}}}")
    if accesses:
        yield f"static const sc_code_access accesses[] = {{{', '.join(accesses)}}};"
    yield f"static const sc_code_block blocks[] = {{{', '.join(rows)}}};"


def describe(
    blocks: Sequence[BasicBlock], files: Mapping[int, str], kernels: Mapping[str, int]
) -> str:
    """Describe as JSON what the blocks do, for ``softcuda.counts``.

    ``kernels`` has the number of the first block of each.
    """
    rows = [[[*place, dict(row)] for place, row in block.rows.items() if row] for block in blocks]
    accesses = [
        [
            *(SPACES.index(one.space), one.kind, one.size, one.file, one.line),
            *(dict(one.counts), one.number),
        ]
        for block in blocks
        for one in block.accesses
    ]
    return json.dumps(
        {
            "files": {str(number): path for number, path in files.items()},
            "kernels": dict(kernels),
            "rows": rows,
            "branches": [block.branch for block in blocks],
            "accesses": accesses,
        }
    )
