"""Hints: which line of a kernel costs more than it must, why, and what to change.

A hint rests on exact counts of ``softcuda.counts`` and says nothing of time. Rules look at counts
by access and by line, never at what a line looks like; the text of a line only names its literal,
and tells a loop from a choice.
``docs/softcuda.md`` lists the rules.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from softcuda.counts import AccessCounts, LaunchCounts
from softcuda.source_lines import explain_double, is_loop

MAX_HINTS = 3
"""Of a kernel, largest share first."""
MIN_SHARE = 0.05
"""Of what a kernel does of a kind; what is less pays nothing."""

MIN_EXCESS = 1.9
"""Sectors over the ideal: rows that lie off by one take 1.25, and edges a little more."""
MIN_CONFLICTS = 1.5
"""Wavefronts over the ideal."""
MIN_LANES = 8
"""Of a request on average; with fewer, lanes that are off are the matter."""
MIN_UNEVEN = 0.5
"""Of the requests; a border that wraps around makes fewer of them uneven."""
MAX_FIELDS = 8
"""Elements between neighbours that are still fields of one record."""
MIN_REUSE = 8
"""How often a block asks for a sector, before shared memory is worth its barrier."""
MIN_SAME_ADDRESS = 0.4
"""Of the lanes of atomic operations: with 16 bins at random 0.41 of 32 lanes meet another."""
MIN_PAD_GAIN = 0.75
"""A pad that leaves more of the wavefronts is none."""
MIN_WRAP_SHARE = 0.25
"""Of the instructions of a kernel."""
WRAP_INSTRUCTIONS = 3
"""Of a negative index: the sign, the length or zero, the addition."""
MIN_LANES_OFF = 0.15
"""Of the lanes of all instructions."""
MIN_FLOAT64_SHARE = 0.005
"""Of the floating-point operations. Most GPUs do 1 in float64 where they do 64 in float32 (CUDA C++
Programming Guide, "Arithmetic Instructions"): so few take a third of what the others do."""
CONSTANT_BYTES = 65536
"""Constant memory of a kernel (CUDA C++ Programming Guide, "Technical Specifications per Compute
Capability")."""
WARP, SECTOR_BYTES, BANK_BYTES, JOINED_BYTES = 32, 32, 4, 16


@dataclass(frozen=True)
class Predicted:
    """What a change leaves of a count, recomputed from the addresses."""

    count: str
    now: int
    then: int


@dataclass(frozen=True)
class Hint:
    """One thing to change at one line."""

    rule: str
    file: str
    line: int
    evidence: str
    """Two exact counts."""
    cause: str
    change: str
    share: float
    """Of the kernel's sectors, wavefronts or instructions, which ``of`` names; 0 to 1."""
    of: str
    predicted: Predicted | None = None
    """``None`` where the change is no pad and no swap."""


def hints_of(launches: Iterable[LaunchCounts]) -> dict[str, tuple[Hint, ...]]:
    """Return at most ``MAX_HINTS`` of each kernel that was counted, largest share first.

    Of several launches of a kernel, that with the largest share counts for a rule and a line.
    """
    best: dict[str, dict[tuple[str, str, int], Hint]] = {}
    for launch in launches:
        if launch.missing is not None:
            continue
        of_kernel = best.setdefault(launch.kernel, {})
        for hint in find_hints(launch):
            place = hint.rule, hint.file, hint.line
            if place not in of_kernel or of_kernel[place].share < hint.share:
                of_kernel[place] = hint
    return {kernel: _chosen(of_kernel.values()) for kernel, of_kernel in best.items()}


def _chosen(hints: Iterable[Hint]) -> tuple[Hint, ...]:
    """Return those of a kernel that are shown: before others of a rule, the largest of each."""
    rest = sorted(hints, key=_order_of)
    first = list({hint.rule: hint for hint in reversed(rest)}.values())
    others = [hint for hint in rest if hint not in first]
    kept = [*sorted(first, key=_order_of), *others][:MAX_HINTS]
    return tuple(sorted(kept, key=_order_of))


def _order_of(hint: Hint) -> tuple[float, str, int, str]:
    return -hint.share, hint.file, hint.line, hint.rule


def find_hints(launch: LaunchCounts) -> Iterator[Hint]:
    """Yield what every rule finds in a launch, in no order."""
    launch = replace(launch, counts=Counter(launch.counts))  # a count that is left out is 0
    for rule in _RULES:
        yield from rule(launch)


def format_hint(hint: Hint) -> list[str]:
    """Return a hint as lines of text: place and evidence, cause, change."""
    head = f"{hint.file}:{hint.line}: {hint.rule}, {hint.share:.0%} of the {hint.of}"
    lines = [f"{head}: {hint.evidence}", f"    {hint.cause}", f"    {hint.change}"]
    if hint.predicted is not None:
        now, then = hint.predicted.now, hint.predicted.then
        lines[-1] += f": {now:,} {hint.of} become {then:,}"
    return lines


def format_hints(launches: Iterable[LaunchCounts]) -> list[str]:
    """Return the hints of all kernels as lines of text."""
    lines = []
    for kernel, hints in hints_of(launches).items():
        lines += [f"hints for {kernel}:" if hints else f"no hints for {kernel}"]
        lines += [f"  {line}" for hint in hints for line in format_hint(hint)]
    return lines


# ---- what rules share ----------------------------------------------------------------------------


def _by_line(accesses: Iterable[AccessCounts]) -> dict[tuple[str, int], list[AccessCounts]]:
    """Group by file and line, in each group the access with the most excess first."""
    groups: dict[tuple[str, int], list[AccessCounts]] = defaultdict(list)
    for one in sorted(accesses, key=lambda one: one.ideal - one.passes):
        groups[one.file, one.line].append(one)
    return groups


def _excess_words(one: AccessCounts, unit: str) -> str:
    each = f"{one.passes / one.requests:.1f}".removesuffix(".0")
    return (
        f"{one.passes:,} {unit} in {one.requests:,} {one.kind}s, where {one.ideal:,} would do "
        f"({each} {unit} for each {one.kind})"
    )


def _global(launch: LaunchCounts) -> list[AccessCounts]:
    return [one for one in launch.accesses if one.space == "global" and one.kind != "atomic"]


def _bytes(step: int) -> str:
    return f"{step:,} byte{'' if abs(step) == 1 else 's'}"


def _worst_line(launch: LaunchCounts, *names: str) -> tuple[str, int, int] | None:
    """Return file and line with the most of these counts, and how many; ``None`` without any."""
    rows = [(sum(one.counts.get(n, 0) for n in names), one.file, one.line) for one in launch.lines]
    most, file, line = max(rows, default=(0, "", 0))
    return (file, line, most) if most else None


# ---- global memory -------------------------------------------------------------------------------


def _coalescing(launch: LaunchCounts) -> Iterator[Hint]:
    accesses = _global(launch)
    all_sectors = sum(one.passes for one in accesses)
    scattered = [
        one
        for one in accesses
        if one.passes >= MIN_EXCESS * one.ideal and one.lanes >= MIN_LANES * one.requests
    ]
    for (file, line), group in _by_line(scattered).items():
        excess = sum(one.passes - one.ideal for one in group)
        words = _scattered_words(group[0], launch.block, _has_rows_by_x(accesses))
        if words is None or excess < MIN_SHARE * all_sectors:
            continue
        cause, change, predicted = words
        yield Hint(
            *("coalescing", file, line, _excess_words(group[0], "sectors"), cause, change),
            *(excess / all_sectors, "sectors", predicted),
        )


def _has_rows_by_x(accesses: Iterable[AccessCounts]) -> bool:
    return any(
        one.step_x == one.size and isinstance(one.step_y, int) and abs(one.step_y) > one.size
        for one in accesses
    )


def _scattered_words(
    one: AccessCounts, block: tuple[int, int, int], has_rows_by_x: bool
) -> tuple[str, str, Predicted | None] | None:
    """Return cause and change of an access with too many sectors, and what a swap leaves of it.

    ``has_rows_by_x``: another access goes along rows by threadIdx.x, which a swap would spoil.
    """
    step, size = one.step_x, one.size
    if step is None or (_may_be_rows(one) and one.passes <= one.ideal + one.requests):
        return None  # rows that begin within a sector touch one more
    if step == "varies":
        if one.uneven >= MIN_UNEVEN * one.requests:
            return (
                "threadIdx.x has no fixed step: the index comes from data",
                "sort or tile the data so that neighbouring threads read neighbouring places",
                None,
            )
        return (
            "threadIdx.x has no fixed step: its stride changes between requests or where rows end",
            "let neighbouring threads take neighbouring elements in every turn of the loop",
            None,
        )
    if abs(step) <= size:
        if block[0] >= WARP or block[1] * block[2] == 1:
            return None
        return (
            f"a row of the block has {block[0]} threads, and a warp has {WARP}",
            f"make blockDim.x a multiple of {WARP}",
            None,
        )
    if one.step_y is not None and one.step_y != "varies" and abs(one.step_y) == size:
        return (
            f"threadIdx.x steps {_bytes(step)} and threadIdx.y {_bytes(one.step_y)}: "
            "x chooses the row",
            "bring a tile through shared memory: threadIdx.x then goes along rows of both arrays"
            if has_rows_by_x
            else "exchange threadIdx.x and threadIdx.y in the indices, and in block and grid",
            Predicted(f"global_{one.kind}_sectors", one.passes, one.ideal),
        )
    if abs(step) <= MAX_FIELDS * size:
        return (
            f"threadIdx.x steps {_bytes(step)} for elements of {size}: fields of one record lie "
            "side by side, or elements between are left out",
            "keep each field in an array of its own, or let neighbouring threads take "
            "neighbouring elements",
            None,
        )
    return (
        f"threadIdx.x steps {_bytes(step)}: each thread has a row of its own, or a stride lies "
        "between",
        "let threadIdx.x choose the last index, or bring a tile through shared memory",
        None,
    )


def _may_be_rows(one: AccessCounts) -> bool:
    """Return whether threads may read side by side: only some borders have another step."""
    return one.step_x == "varies" or (isinstance(one.step_x, int) and abs(one.step_x) <= one.size)


def _reuse(launch: LaunchCounts) -> Iterator[Hint]:
    accesses = _global(launch)
    loads = [one for one in accesses if one.kind == "load"]
    asked, loaded = sum(one.ideal for one in loads), launch.loaded_block_sectors
    all_sectors = sum(one.passes for one in accesses)
    if not loaded or asked < MIN_REUSE * loaded or asked < all_sectors / 2:
        return
    if prod(launch.block) < WARP:
        return  # few lanes take a sector one part after another
    if sum(map(_read_bytes, loads)) <= SECTOR_BYTES * loaded:
        return  # one lane after another reads the next element of a sector
    top = max(loads, key=lambda one: one.ideal - one.block_sectors)
    is_small = top.sectors * SECTOR_BYTES <= CONSTANT_BYTES
    if top.uniform == top.requests and is_small:
        cause = f"all lanes read one place, of {top.sectors * SECTOR_BYTES:,} bytes in all"
        change = "use constant memory, or fill shared memory once"
    else:
        cause = "the threads of a block read the same sectors again"
        change = "bring a tile to shared memory once, or keep more results in each thread"
    evidence = f"{asked:,} sectors are read, of which the blocks have {loaded:,} different ones"
    share = (asked - loaded) / all_sectors
    yield Hint("reuse", top.file, top.line, evidence, cause, change, share, "sectors")


def _read_bytes(one: AccessCounts) -> int:
    """Return the bytes of all requests, once for all lanes where they have one place."""
    return one.size * (one.requests if one.uniform == one.requests else one.lanes)


def _written_again(launch: LaunchCounts) -> Iterator[Hint]:
    accesses = _global(launch)
    all_sectors = sum(one.passes for one in accesses)
    stores = [one for one in accesses if one.kind == "store"]
    for (file, line), group in _by_line(stores).items():
        passes, ideal = sum(one.passes for one in group), sum(one.ideal for one in group)
        different = max(one.sectors for one in group)  # the compiler has unrolled the loop
        # Neighbouring blocks, or one lane after another, write other elements of a sector.
        of_blocks = max(one.block_sectors for one in group)
        bytes_written = sum(one.lanes * one.size for one in group)
        room = SECTOR_BYTES * sum(one.sectors for one in group)
        if ideal < MIN_REUSE * of_blocks or bytes_written <= room:
            continue
        if passes < MIN_SHARE * all_sectors:
            continue
        yield Hint(
            *("written again", file, line),
            f"{passes:,} sectors are written, of which {different:,} are different",
            "a loop keeps its result in global memory",
            "keep it in a local variable or in shared memory, and store it once behind the loop",
            *(passes / all_sectors, "sectors"),
        )


# ---- shared memory -------------------------------------------------------------------------------


def _bank_conflicts(launch: LaunchCounts) -> Iterator[Hint]:
    accesses = [one for one in launch.accesses if one.space == "shared"]
    all_passes = sum(one.passes for one in accesses)
    conflicts = [
        one
        for one in accesses
        if one.kind != "atomic"
        and one.passes >= MIN_CONFLICTS * max(one.ideal, _parts_of(one))
        and not _may_be_joined(one, accesses)
    ]
    for (file, line), group in _by_line(conflicts).items():
        excess = sum(one.passes - one.ideal for one in group)
        if excess < MIN_SHARE * all_passes:
            continue
        cause, change, predicted = _conflict_words(group[0], launch.block)
        yield Hint(
            *("bank conflicts", file, line, _excess_words(group[0], "wavefronts"), cause, change),
            *(excess / all_passes, "wavefronts", predicted),
        )


def _may_be_joined(one: AccessCounts, accesses: Iterable[AccessCounts]) -> bool:
    """Return whether ptxas makes one load of 16 bytes of four neighbouring ones (docs/counts.md,
    "Joined loads of shared memory"), which sends rows of the block that read one place each through
    the banks one after another anyway."""
    if one.kind != "load" or one.size != BANK_BYTES or one.step_x != 0:
        return False
    if not isinstance(one.pitch, int) or one.pitch % JOINED_BYTES:
        return False
    place = one.file, one.line, one.requests, one.pitch, one.step_x
    alike = sum((o.file, o.line, o.requests, o.pitch, o.step_x) == place for o in accesses)
    return alike >= JOINED_BYTES // BANK_BYTES


def _parts_of(one: AccessCounts) -> int:
    """Return the wavefronts of requests with lanes in all parts of the warp, where no bank has two:
    8 bytes go by halves, 16 by quarters, also where few lanes take part."""
    return one.requests * one.size // BANK_BYTES


def _conflict_words(
    one: AccessCounts, block: tuple[int, int, int]
) -> tuple[str, str, Predicted | None]:
    """Return cause and change of an access with conflicts, and what a pad leaves of it."""
    if isinstance(one.pitch, int) and one.pitch % one.size == 0:
        elements = one.pitch // one.size
        cause = f"threads of a request stand {_bytes(one.pitch)} apart, in the same banks"
        if one.padded < MIN_PAD_GAIN * one.passes:
            predicted = Predicted(f"shared_{one.kind}_wavefronts", one.passes, one.padded)
            longer = elements + max(1, BANK_BYTES // one.size)
            return cause, f"pad rows of {elements} elements to {longer}", predicted
        if one.step_x == one.size and block[0] < WARP:
            cause = f"a warp has {WARP // block[0]} rows of the block, and their banks overlap"
            return cause, f"make blockDim.x a multiple of {WARP}", None
    elif one.uneven >= MIN_UNEVEN * one.requests:
        cause = "the index comes from data, which sends threads of a request to one bank"
        return cause, "keep a copy of the table for each lane, each in banks of its own", None
    elif one.pitch == "varies" or one.step_x == "varies":
        cause = "the step between neighbouring threads changes, and brings several to one bank"
    else:
        cause = "threads of a request meet in one bank"
    return cause, "let neighbouring threads take neighbouring elements", None


# ---- atomic operations, local memory -------------------------------------------------------------


def _atomics(launch: LaunchCounts) -> Iterator[Hint]:
    for space, unit in (("global", "sectors"), ("shared", "wavefronts")):
        accesses = [one for one in launch.accesses if one.space == space]
        all_passes = sum(one.passes for one in accesses)
        for one in accesses:
            if one.kind != "atomic" or one.same_address < MIN_SAME_ADDRESS * one.lanes:
                continue
            if one.passes < MIN_SHARE * all_passes:
                continue
            change = "add up within the warp or the block first, then do one atomic operation"
            if space == "global" and one.sectors > 1:
                change += "; or keep a histogram of each block in shared memory"
            yield Hint(
                *("atomics", one.file, one.line),
                f"{one.same_address:,} of {one.lanes:,} lanes have an address that a lane before "
                "them has",
                f"atomic operations on one address in {space} memory come one after another",
                change,
                *(one.passes / all_passes, unit),
            )


def _local_memory(launch: LaunchCounts) -> Iterator[Hint]:
    names = "local_load_requests", "local_store_requests"
    local = sum(launch.counts[name] for name in names)
    memory = launch.counts["ptx_memory"]
    worst = _worst_line(launch, *names)
    if worst is None or local < MIN_SHARE * memory:
        return
    file, line, requests = worst
    yield Hint(
        *("local memory", file, line),
        f"{local:,} of {memory:,} accesses go to local memory, {requests:,} of them here",
        "an array of each thread is indexed by what is not known when compiling",
        "make its indices constant (a loop of fixed length), or use shared memory",
        *(local / memory, "accesses to memory"),
    )


# ---- operations ----------------------------------------------------------------------------------


def _float64(launch: LaunchCounts) -> Iterator[Hint]:
    counts = launch.counts
    flops = {bits: counts[f"flops_float{bits}"] for bits in (16, 32, 64)}
    accesses = [one for one in launch.accesses if one.space in ("global", "shared")]
    has_double = any(one.number == "f64" for one in accesses)
    if has_double or not accesses or flops[64] <= MIN_FLOAT64_SHARE * sum(flops.values()):
        return
    conversions = "float64_from_float32", "float64_from_integer"
    worst = _worst_line(launch, *conversions) or _worst_line(launch, "flops_float64")
    if worst is None:
        return
    file, line = worst[:2]
    of_line = next(one.counts for one in launch.lines if (one.file, one.line) == (file, line))
    cause, change = explain_double(launch.counts, of_line, file, line)
    converted = sum(counts[name] for name in conversions)
    yield Hint(
        *("float64", file, line),
        f"{flops[64]:,} operations are in float64 and {converted:,} conversions lead there, but no "
        "access is to float64",
        cause,
        change,
        flops[64] / sum(flops.values()),
        "floating-point operations",
    )


def _signed_indices(launch: LaunchCounts) -> Iterator[Hint]:
    wraps, instructions = launch.counts["index_wraps"], launch.counts["ptx_instructions"]
    worst = _worst_line(launch, "index_wraps")
    if worst is None or WRAP_INSTRUCTIONS * wraps < MIN_WRAP_SHARE * instructions:
        return
    file, line, here = worst
    yield Hint(
        *("signed indices", file, line),
        f"{wraps:,} times an index is looked at whether it is negative, {here:,} of them here, in "
        f"{instructions:,} instructions",
        f"a signed index may count from the end; each takes {WRAP_INSTRUCTIONS} instructions",
        "make the index unsigned, by numba.uint32(...) or numba.uint64(...)",
        *(WRAP_INSTRUCTIONS * wraps / instructions, "instructions"),
    )


def _divergence(launch: LaunchCounts) -> Iterator[Hint]:
    counts = launch.counts
    slots = WARP * counts["ptx_instructions"]
    off = slots - counts["ptx_thread_instructions"] + counts["guarded_off_lanes"]
    if not slots or off < MIN_LANES_OFF * slots:
        return
    if prod(launch.block) < WARP:
        return  # the block is small, whatever its lanes do
    if off <= slots * _idle_share(launch):
        return  # there are more threads than elements: they have nothing to do on any way
    parting = _worst_line(launch, "waiting_lanes")
    guarded = _worst_line(launch, "guarded_off_lanes")
    if guarded and (not parting or counts["guarded_off_lanes"] > off / 2):
        file, line, number = guarded
        where = f"at this line guards turn {number:,} off"
    elif parting:
        file, line, number = parting
        where = f"those that part here are off {number:,} times"
    else:
        return
    if is_loop(file, line):
        cause = "lanes of one warp leave a loop after different turns, and wait for the last"
        change = "give the threads of a warp as many turns each: sort the work, or share out a loop"
    else:
        cause = "lanes of one warp go different ways, and each way takes its turn"
        change = (
            "let the threads of a warp take the same way, or leave in the branch only what differs"
        )
    evidence = f"{off:,} of {slots:,} lanes are off; {where}"
    yield Hint("divergence", file, line, evidence, cause, change, off / slots, "lanes")


def _idle_share(launch: LaunchCounts) -> float:
    """Return the lanes that are off in the access with most lanes; 0 where threads come there more
    than once."""
    most = max(launch.accesses, key=lambda one: one.lanes, default=None)
    if most is None or most.lanes > launch.counts["threads"]:
        return 0.0
    return 1 - most.lanes / (WARP * most.requests)


_RULES: Sequence[Callable[[LaunchCounts], Iterator[Hint]]] = (
    *(_coalescing, _reuse, _written_again, _bank_conflicts, _atomics, _local_memory),
    *(_float64, _signed_indices, _divergence),
)
