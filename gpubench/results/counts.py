"""Counted work of cases: what a record says of the launches of one run, kept once for all commits.

Counts repeat exactly, so that most commits have the counts of the one before. The table holds
each *profile* once, the launches of one run of a case with their counts, and each set of lines.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from gpubench.names import parse_benchmark_name
from gpubench.record import CountsRecord, CountTarget, HintRecord, LaunchRecord
from gpubench.results.model import CaseName
from gpubench.results.records import RecordFile
from gpubench.statuses import FAILURES
from gpubench.work.declared import MAX_DEVIATION
from gpubench.work.derived import CPU_BYTES, FLOPS, GLOBAL_SECTORS, SECTOR_BYTES


@dataclass(frozen=True)
class CaseCounts:
    """What one run of a case did, counted on the device in software or in Numba's code."""

    model: int
    """Version of the rules by which it was counted."""
    missing: str | None
    """Why there are no counts; then there are no launches."""
    launches: tuple[LaunchRecord, ...]
    """Equal launches are one; their lines are read apart (``Table.count_lines``)."""
    target: CountTarget = "cuda"
    made_by: str | None = None
    """Compiler and processor of code on the CPU; ``None`` of CUDA."""

    @cached_property
    def totals(self) -> Mapping[str, int]:
        """Counts of all launches of one run; absent is 0."""
        totals: Counter[str] = Counter()
        for launch in self.launches:
            totals.update({name: launch.times * n for name, n in launch.counts.items()})
        return totals

    @cached_property
    def kernels(self) -> tuple[Mapping[str, int] | None, ...]:
        """Resources of each kernel, in the order of the first launches; ``None``: not known."""
        kernels: dict[object, Mapping[str, int] | None] = {}
        for launch in self.launches:
            resources = launch.resources
            kernels[launch.kernel, repr(sorted((resources or {}).items()))] = resources
        return tuple(kernels.values())

    @property
    def architectures(self) -> frozenset[tuple[int, int]]:
        """Compute capabilities of the device in software."""
        return frozenset(launch.architecture for launch in self.launches)


@dataclass(frozen=True, slots=True)
class LineCounts:
    """What one line of Python did in one run of a case."""

    kernel: str
    """Name of the kernel that was launched; the line may be of a function that it calls."""
    file: str
    line: int
    counts: Mapping[str, int]
    reason: str | None = None
    """Why LLVM has not vectorized the loop of this line, in its words; ``None`` where it has, or
    was not asked."""
    hints: tuple[HintRecord, ...] = ()


PROFILE = {
    "model": "INTEGER",
    "missing": "VARCHAR",
    "target": "VARCHAR",
    "made_by": "VARCHAR",
    "launches": [
        {
            "kernel": "VARCHAR",
            "times": "BIGINT",
            "summed": "BIGINT",
            "grid": ["BIGINT"],
            "block": ["BIGINT"],
            "shared_bytes": "BIGINT",
            "architecture": ["BIGINT"],
            "counts": "MAP(VARCHAR, BIGINT)",
            "resources": "MAP(VARCHAR, BIGINT)",
        }
    ],
}
"""SQL types of a profile as ``profile_text`` writes it."""

LINES_SQL_TYPE = [
    {
        "kernel": "VARCHAR",
        "file": "VARCHAR",
        "line": "BIGINT",
        "counts": "MAP(VARCHAR, BIGINT)",
        "reason": "VARCHAR",
    }
]
"""SQL types of lines as ``lines_text`` writes them."""


_WORK_COUNTS = ("special_functions", *GLOBAL_SECTORS, *CPU_BYTES, *FLOPS)
_WORK_DETAILS = {"bytes": "BIGINT", "flops": "BIGINT"}
_ACCESSED = (
    f"({SECTOR_BYTES} * ({' + '.join(f'p.{name}' for name in GLOBAL_SECTORS)})"
    f" + {' + '.join(f'p.{name}' for name in CPU_BYTES)})"
)
_COUNTED_FLOPS = f"({' + '.join(f'p.{name}' for name in FLOPS)})"


def _summed(count: str) -> str:
    """Return SQL of a count of all launches together."""
    return f"coalesce(sum(l.times * l.counts['{count}']), 0) as {count}"


Columns = Sequence[tuple[str, str, str]]
"""Names, SQL and meanings."""


def schema_of_counts(of_case: Columns) -> str:
    """Return SQL that makes the views of counted work, ``counts`` the first of them, and says
    what each column means; ``of_case`` are columns that name a case and its snapshot."""
    views: dict[str, tuple[str, Columns]] = {
        "counts": (
            """(
                select id, model, target, made_by, launch, l.kernel as launch_kernel,
                    l.times * l.summed as launches, l.grid, l.block,
                    l.shared_bytes, l.architecture, unnest(list_concat(
                        [{'name': e.key, 'value': e.value * l.times}
                            for e in map_entries(l.counts)],
                        [{'name': e.key, 'value': e.value}
                            for e in map_entries(coalesce(l.resources, map()))]
                    )) as counted
                from (
                    select id, model, target, made_by, unnest(launches) as l,
                        generate_subscripts(launches, 1) as launch
                    from contents
                )
            ) p on p.id = k.profile""",
            (
                ("model", "p.model", "version of the rules by which it was counted"),
                (
                    "target",
                    "p.target",
                    "cuda: launches on the device in software; cpu: Numba's code",
                ),
                ("made_by", "p.made_by", "of cpu: versions of the compiler, and the processor"),
                ("launch", "p.launch", "number of the launch within one run, from 1 on"),
                ("launch_kernel", "p.launch_kernel", "name of the kernel that was launched"),
                ("launches", "p.launches", "how many equal launches the row stands for"),
                ("grid", "p.grid", "blocks in the grid"),
                ("block", "p.block", "threads in a block"),
                ("shared_bytes", "p.shared_bytes", "dynamic shared memory of a block"),
                (
                    "architecture",
                    "array_to_string(p.architecture, '.')",
                    "compute capability of the device in software",
                ),
                ("count", "p.counted.name", "name of the count, as in docs/counts.md"),
                (
                    "value",
                    "p.counted.value",
                    "how often: all equal launches together; of registers and bytes, one launch",
                ),
            ),
        ),
        "declared_work": (
            f"""(
                select id, {", ".join(map(_summed, _WORK_COUNTS))}
                from (select id, unnest(launches) as l from contents)
                group by id
            ) p on p.id = k.profile
            join rows r on r.snapshot = k.snapshot and r."case" = k."case"
            join (
                select id, unnest(from_json(content, '{json.dumps(_WORK_DETAILS)}')) from details
            ) d on d.id = r.detail and (d.bytes is not null or d.flops is not null)""",
            (
                ("declared_bytes", "d.bytes", "bytes moved by one run, by the suite's formula"),
                (
                    "accessed_bytes",
                    _ACCESSED,
                    "bytes of the sectors that its accesses touch; on the CPU those that it moves",
                ),
                ("declared_flops", "d.flops", "operations of one run, by the suite's formula"),
                ("counted_flops", _COUNTED_FLOPS, "operations that were counted"),
                ("special_functions", "p.special_functions", "special functions, counted apart"),
                (
                    "are_bytes_off",
                    f"coalesce(d.bytes > {1 + MAX_DEVIATION} * ({_ACCESSED}), false)",
                    "whether more bytes are declared than accesses touch: GB/s does not rest on "
                    "counted work",
                ),
                (
                    "are_flops_off",
                    f"""coalesce(d.flops < {1 - MAX_DEVIATION} * ({_COUNTED_FLOPS})
                    or d.flops > {1 + MAX_DEVIATION} * ({_COUNTED_FLOPS} + p.special_functions),
                    false)""",
                    "whether declared operations are not those that were counted: GFLOP/s does not "
                    "rest on counted work",
                ),
            ),
        ),
        "missing_counts": (
            "contents p on p.id = k.profile and p.missing is not null",
            (
                ("model", "p.model", "version of the rules by which it was counted"),
                ("missing", "p.missing", "why the case has no counts"),
            ),
        ),
        "count_lines": (
            f"""(
                select id, l.kernel, l.file, l.line, l.reason,
                    unnest(map_entries(l.counts)) as counted
                from (
                    select id, unnest(from_json(content, '{json.dumps(LINES_SQL_TYPE)}')) as l
                    from count_line_sets
                )
            ) p on p.id = k.lines""",
            (
                ("launch_kernel", "p.kernel", "name of the kernel that was launched"),
                ("file", "p.file", "file of the line, in the project or by its package"),
                ("line", "p.line", "number of the line"),
                ("count", "p.counted.key", "name of the count, as in docs/counts.md"),
                ("value", "p.counted.value", "how often, all launches of one run together"),
                ("reason", "p.reason", "why LLVM has not vectorized the loop of this line"),
            ),
        ),
    }
    statements = []
    for view, (source, columns_of_view) in views.items():
        columns = [*of_case, *columns_of_view]
        named = ", ".join(f'{source_of} as "{name}"' for name, source_of, _ in columns)
        statements.append(f"""
            create view {view} as with contents as (
                select id, unnest(from_json(content, '{json.dumps(PROFILE)}')) from profiles
            ) select {named} from counted k
            join snapshots s on s.id = k.snapshot
            join cases c on c.id = k."case"
            join {source}
            left join superseded_cases old on old.snapshot = k.snapshot and old."case" = k."case"
            where old."case" is null;
        """)
        statements += (
            f"""comment on column {view}."{name}" is '{meaning.replace("'", "''")}';"""
            for name, _, meaning in columns
        )
    return "".join(statements)


@dataclass(slots=True)
class CountedFiles:
    """Counts of files that are read one after the other; what they have in common is given once."""

    profiles: dict[str, int] = field(default_factory=dict)
    """Numbers of all profiles, by their texts."""
    lines: dict[str, int] = field(default_factory=dict)
    """Numbers of all sets of lines, by their texts."""
    _known: dict[int, tuple[CountsRecord, int, int]] = field(default_factory=dict)
    """By the identity of a record's line, which the reader of records decodes once, the line and
    its two numbers."""

    def numbers(self, record: CountsRecord) -> tuple[int, int]:
        """Return the numbers of a record's profile and of its lines."""
        if id(record) not in self._known:
            profile, lines = profile_text(record), lines_text(record)
            numbers = (
                self.profiles.setdefault(profile, len(self.profiles)),
                self.lines.setdefault(lines, len(self.lines)),
            )
            self._known[id(record)] = record, *numbers
        return self._known[id(record)][1:]


def counted_cases(record: RecordFile) -> Iterable[tuple[CaseName, CountsRecord]]:
    """Find the cases of a record with counts, or with a reason why they have none.

    A case that gave wrong results, or none, has no counts, whatever was counted.
    """
    for benchmark, of_benchmark in record.counted.items():
        name = parse_benchmark_name(benchmark)
        stories = record.stories.get(benchmark, {})
        for case, counts in of_benchmark.items():
            story = stories.get(case)
            failed = (
                story and story.outcome and story.outcome.status in FAILURES
            )  # what it did is not the work
            if name and not failed:
                parts = (name.suite, name.kernel, name.implementation, name.time)
                yield CaseName(*parts, case), counts


def profile_text(record: CountsRecord) -> str:
    """Write the launches of a record, without their lines, as JSON."""
    launches = [
        {
            "kernel": _clean(launch.kernel),
            "times": launch.times,
            "summed": launch.summed,
            "grid": launch.grid,
            "block": launch.block,
            "shared_bytes": launch.shared_bytes,
            "architecture": launch.architecture,
            "counts": _named(launch.counts),
            "resources": None if launch.resources is None else _named(launch.resources),
        }
        for launch in record.launches
    ]
    missing = None if record.missing is None else _clean(record.missing)
    made_by = None if record.made_by is None else _clean(record.made_by)
    profile = {
        "model": record.model,
        "missing": missing,
        "target": record.target,
        "made_by": made_by,
    }
    return json.dumps({**profile, "launches": launches})


def lines_text(record: CountsRecord) -> str:
    """Write the lines of a record as JSON, each once for all launches of its kernel."""
    totals: dict[tuple[str, str, int], Counter[str]] = defaultdict(Counter)
    reasons: dict[tuple[str, str, int], str] = {}
    hints: dict[tuple[str, str, int], list[dict[str, Any]]] = defaultdict(list)
    for launch in record.launches:
        for line in launch.lines:
            place = _clean(launch.kernel), _clean(line.file), line.line
            totals[place].update({n: launch.times * c for n, c in _named(line.counts).items()})
            if line.reason is not None:
                reasons[place] = _clean(line.reason)
            hints[place] += map(asdict, line.hints)
    return json.dumps(
        [
            dict(zip(("kernel", "file", "line"), place, strict=True))
            | {"counts": dict(sorted(counts.items())), "reason": reasons.get(place)}
            | ({"hints": of_line} if (of_line := hints[place]) else {})
            for place, counts in sorted(totals.items())
        ]
    )


def read_profile(text: str) -> CaseCounts:
    """Read what ``profile_text`` wrote."""
    content: dict[str, Any] = json.loads(text)
    launches = tuple(
        LaunchRecord(
            **launch
            | {name: tuple(launch[name]) for name in ("grid", "block", "architecture")}
            | {"lines": ()}
        )
        for launch in content["launches"]
    )
    return CaseCounts(**content | {"launches": launches})


def read_lines(text: str) -> tuple[LineCounts, ...]:
    """Read what ``lines_text`` wrote."""
    lines: list[dict[str, Any]] = json.loads(text)
    return tuple(
        LineCounts(**line | {"hints": tuple(HintRecord(**one) for one in line.get("hints", ()))})
        for line in lines
    )


def _named(counts: Mapping[str, int]) -> dict[str, int]:
    return {_clean(name): count for name, count in sorted(counts.items()) if count}


def _clean(text: str) -> str:
    """Replace halves of characters: a record may hold them, and DuckDB refuses the whole table."""
    return text.encode(errors="replace").decode()
