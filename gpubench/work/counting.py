"""From launches that the device in software counted to what goes on record of a case."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from gpubench.record import CountsRecord, HintRecord, LaunchRecord, LineRecord

if TYPE_CHECKING:  # the device in software is imported only where it is asked for
    from softcuda.counts import LaunchCounts
    from softcuda.sass import KernelCode, ModuleCode

MAX_LAUNCHES = 16
"""Launches of a case that are kept one by one. A sort by pairs makes a hundred of one kernel, and
each would bring the counts of all lines into the record."""

NO_LAUNCH = "it launched no kernel"


def counts_record(
    benchmark: str, case: str, model: int, launches: Sequence[LaunchCounts]
) -> CountsRecord:
    """Return what one run's launches counted, equal ones merged.

    A launch without counts leaves the case without: its sums would be too small.
    """
    missing = next((one.missing for one in launches if one.missing), None)
    if not launches:
        missing = NO_LAUNCH
    if missing is not None:
        return CountsRecord(benchmark, case, model, missing)
    records = with_hints(merged(map(_launch_record, launches)), launches)
    return CountsRecord(benchmark, case, model, None, records)


def with_hints(
    records: Iterable[LaunchRecord], launches: Sequence[LaunchCounts]
) -> tuple[LaunchRecord, ...]:
    """Return records whose lines have the hints that these launches give.

    A hint stands once, in the first record of its kernel with that line.
    """
    from softcuda.hints import hints_of

    of_lines: dict[tuple[str, str, int], list[HintRecord]] = defaultdict(list)
    for kernel, hints in hints_of(launches).items():
        for hint in hints:
            predicted = None if hint.predicted is None else asdict(hint.predicted)
            words = hint.rule, hint.evidence, hint.cause, hint.change
            of_lines[kernel, import_path(hint.file), hint.line].append(
                HintRecord(*words, hint.share, hint.of, predicted)
            )

    def add(record: LaunchRecord) -> LaunchRecord:
        lines = [
            replace(line, hints=tuple(of_lines.pop((record.kernel, line.file, line.line), ())))
            for line in record.lines
        ]
        return replace(record, lines=tuple(lines))

    return tuple(map(add, records))


def merged(launches: Iterable[LaunchRecord]) -> tuple[LaunchRecord, ...]:
    """Merge equal launches. Where more than ``MAX_LAUNCHES`` are left, add up the counts of one
    kernel's launches of one shape, and where that leaves too many, of one kernel's."""
    kept = _merge_equal(launches)
    for key in (_shape, _kernel):
        if len(kept) > MAX_LAUNCHES:
            kept = _add_up(kept, key)
    return tuple(kept)


@dataclass(frozen=True, slots=True)
class MachineCode:
    """The machine code of the kernels of a case, each instruction counted once."""

    kernels: Mapping[str, KernelCode]
    """By the kernel's name, with files as in ``LineRecord``."""
    missing: str | None
    """Why a kernel has none; ``None`` where all have."""


def machine_code_of(
    launches: Iterable[LaunchCounts], code_of: Callable[[LaunchCounts], ModuleCode | None]
) -> MachineCode:
    """Return the machine code of these launches' kernels, as ``code_of`` gives it."""
    kernels: dict[str, KernelCode] = {}
    missing: str | None = None
    for name, launch in {launch.kernel: launch for launch in launches}.items():
        module = code_of(launch)
        if module is not None and (code := module.kernels.get(launch.symbol)):
            lines = (replace(one, file=import_path(one.file)) for one in code.lines)
            loops = (replace(one, file=import_path(one.file)) for one in code.loops)
            kernels[name] = replace(code, lines=tuple(lines), loops=tuple(loops))
        elif module is not None:
            missing = module.missing or f"the linked code of {name} has no such kernel"
    return MachineCode(kernels, missing)


def difference_between(one: Mapping[str, int], other: Mapping[str, int]) -> str | None:
    """Return how the counts of two runs differ, by the count that does most; ``None`` where they
    are the same."""
    names = [name for name in {**one, **other} if one.get(name, 0) != other.get(name, 0)]
    if not names:
        return None
    name = max(names, key=lambda name: abs(one.get(name, 0) - other.get(name, 0)))
    return f"{name} is {one.get(name, 0):,} in one and {other.get(name, 0):,} in another"


def _launch_record(launch: LaunchCounts) -> LaunchRecord:
    by_line: dict[tuple[str, int], dict[str, int]] = {}
    for line in launch.lines:
        counts = by_line.setdefault((import_path(line.file), line.line), {})
        for name, count in line.counts.items():
            counts[name] = counts.get(name, 0) + count
    resources = None
    if launch.resources is not None:
        told = asdict(launch.resources).items()
        resources = {name: int(value) for name, value in told if name != "architecture"}
    return LaunchRecord(
        kernel=launch.kernel,
        grid=launch.grid,
        block=launch.block,
        shared_bytes=launch.shared_bytes,
        architecture=launch.architecture,
        counts={name: count for name, count in launch.counts.items() if count},
        resources=resources,
        lines=tuple(LineRecord(*place, counts) for place, counts in sorted(by_line.items())),
    )


def import_path(file: str) -> str:
    """Return a file by the folder that Python imports it from.

    The same code has one name then, whether it is imported from a checkout or from what pip
    installed of it.
    """
    path = PurePath(file)
    folders = [folder for folder in map(PurePath, filter(None, sys.path)) if folder in path.parents]
    if not folders:
        return file
    return path.relative_to(max(folders, key=lambda folder: len(folder.parts))).as_posix()


def _merge_equal(launches: Iterable[LaunchRecord]) -> list[LaunchRecord]:
    kept: list[LaunchRecord] = []
    places: dict[Hashable, int] = {}
    for launch in launches:
        key = (*_shape(launch), tuple(sorted(launch.counts.items())), repr(launch.lines))
        place = places.setdefault(key, len(kept))
        if place == len(kept):
            kept.append(launch)
        else:
            kept[place] = replace(kept[place], times=kept[place].times + launch.times)
    return kept


def _add_up(
    launches: Iterable[LaunchRecord], key: Callable[[LaunchRecord], Hashable]
) -> list[LaunchRecord]:
    """Return one launch for each key, with the shape of the one that has the most warps."""
    groups: dict[Hashable, list[LaunchRecord]] = {}
    for launch in launches:
        groups.setdefault(key(launch), []).append(launch)
    return [_sum(group) if len(group) > 1 else group[0] for group in groups.values()]


def _sum(launches: Sequence[LaunchRecord]) -> LaunchRecord:
    counts: dict[str, int] = defaultdict(int)
    lines: dict[tuple[str, int], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for launch in launches:
        for name, count in launch.counts.items():
            counts[name] += launch.times * count
        for line in launch.lines:
            for name, count in line.counts.items():
                lines[line.file, line.line][name] += launch.times * count
    return replace(
        max(launches, key=lambda launch: launch.counts.get("warps", 0)),
        times=1,
        summed=sum(launch.times * launch.summed for launch in launches),
        counts=dict(counts),
        lines=tuple(LineRecord(*place, dict(of)) for place, of in sorted(lines.items())),
    )


def _shape(launch: LaunchRecord) -> tuple[Hashable, ...]:
    size = launch.grid, launch.block, launch.shared_bytes
    return *_kernel(launch), *size


def _kernel(launch: LaunchRecord) -> tuple[Hashable, ...]:
    resources = tuple(sorted((launch.resources or {}).items()))
    return launch.kernel, launch.architecture, resources
