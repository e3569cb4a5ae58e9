"""Tables and views of the table file, with the meaning of each column of ``results``."""

from __future__ import annotations

import json
import re
from functools import cache

from gpubench.names import QUANTITIES
from gpubench.record import UNCOMMITTED
from gpubench.results.counts import schema_of_counts
from gpubench.results.model import CELLS, DETAILS, ROW_COLUMNS
from gpubench.results.ratio import VERDICTS
from gpubench.statuses import STATUSES

_STATUS = f"{[*STATUSES]}[p.status + 1]"

_VERDICT = f"{[*VERDICTS]}[p.verdict + 1]"

_SOURCES = {
    "status": _STATUS,
    "missing": "if(p.unmeasured, d.missing, p.missing)",
    "pairs": "if(p.speedup is null, 0, d.pairs)",
    "seconds": f"if(c.time in {QUANTITIES}, null, p.seconds)",
    "value": "p.seconds",
    "baseline": "b.implementation",
}
"""Where columns of the view ``results`` come from that a table does not have as they are."""

_FIRST_COLUMNS = (
    ("snapshot", "s.id", "number of the snapshot: one commit on one machine in one environment"),
    ("machine", "s.machine", "name of the machine"),
    ("environment", "s.environment", "asv's name of the environment"),
    ("commit", 's."commit"', "hash of the commit"),
    ("date", "make_timestamp((s.date * 1000000)::bigint)", "date of the commit, UTC"),
    ("measured_at", "s.measured_at", "when the last process began to measure, UTC"),
    (
        "uncommitted",
        f"json_extract_string(s.facts, '$.{UNCOMMITTED}')",
        "files that differed from the commit when it was measured",
    ),
    ("suite", "c.suite", "suite"),
    ("kernel", "c.kernel", "kernel"),
    ("implementation", "c.implementation", "implementation of the kernel"),
    (
        "time",
        "c.time",
        "which time: kernel, end_to_end, transfer, launch, compile, cold, start; or what else a "
        "benchmark gives: memory, peak_memory, tracked",
    ),
    ("identity", 'c."case"', "identity of the case: its parameters"),
)

_COLUMNS_AFTER = {
    "baseline": [("baseline_case", 'b."case"', "identity of the baseline's case")],
    "speedup": [
        ("speedup_low", "p.speedup_low", "lower end of its interval"),
        ("speedup_high", "p.speedup_high", "upper end of its interval"),
        ("verdict", _VERDICT, "faster, slower or unclear"),
    ],
}

_TABLES = f"""
create table meta (key varchar);
create table snapshots (
    id integer, name varchar, stamp bigint[], machine varchar, environment varchar,
    "commit" varchar, has_result boolean, date double, measured_at varchar, facts varchar,
    concerns varchar, params varchar, faults varchar, is_empty boolean, python varchar,
    requirements varchar, env_vars varchar, started_at double, duration double, unlisted varchar
);
create table versions (snapshot integer, benchmark varchar, version varchar, started_at double);
create table superseded (snapshot integer, benchmark varchar);
create table cases (
    id integer, benchmark varchar, suite varchar, kernel varchar, implementation varchar,
    time varchar, "case" varchar
);
create table details (id integer, key varchar, content varchar);
create table rows (
    snapshot integer, "case" integer, detail integer, status utinyint, baseline integer,
    speedup double, speedup_low double, speedup_high double, verdict utinyint, missing varchar,
    {", ".join(f"{name} {sql_type}" for name, sql_type in CELLS.items())}
);

create table profiles (id integer, key varchar, content varchar);
create table count_line_sets (id integer, key varchar, content varchar);
create table counted (snapshot integer, "case" integer, profile integer, lines integer);

create view superseded_cases as
select s.snapshot, c.id as "case" from superseded s join cases c using (benchmark);

-- Without rows of versions that were superseded, and without speedups against such.
create view present as
select r.* replace (
    if(lost."case" is null, r.baseline, null) as baseline,
    if(lost."case" is null, r.speedup, null) as speedup,
    if(lost."case" is null, r.speedup_low, null) as speedup_low,
    if(lost."case" is null, r.speedup_high, null) as speedup_high,
    if(lost."case" is null, r.verdict, null) as verdict
), lost."case" is not null and coalesce(r.missing, r.speedup::varchar) is not null as unmeasured
from rows r
left join superseded_cases old on old.snapshot = r.snapshot and old."case" = r."case"
left join superseded_cases lost on lost.snapshot = r.snapshot and lost."case" = r.baseline
where old."case" is null;
"""

_RUNS_VIEW = """
create view runs as select id as snapshot, machine, environment, "commit",
    if(started_at > 0, make_timestamp((started_at * 1000000)::bigint), null) as started_at,
    duration, measured_at, nullif(python, '') as python, requirements::json as requirements,
    env_vars::json as env_vars, params::json as params, facts::json as facts, has_result
from snapshots where not is_empty;
comment on column runs.snapshot is 'number of the snapshot, as in results';
comment on column runs.machine is 'name of the machine';
comment on column runs.environment is 'asv''s name of the environment';
comment on column runs."commit" is 'hash of the commit';
comment on column runs.started_at is 'when the first of its benchmarks started, UTC';
comment on column runs.duration is 'seconds that its benchmarks took in sum';
comment on column runs.measured_at is 'when the last process began to measure, UTC, by the record';
comment on column runs.python is 'version of Python';
comment on column runs.requirements is 'versions of requirements by name, JSON';
comment on column runs.env_vars is 'environment variables that asv set, JSON';
comment on column runs.params is 'what asv says of machine and environment, JSON';
comment on column runs.facts is 'what the record says of machine and software, JSON';
comment on column runs.has_result is 'whether there is a result file, and not only a record';
"""
"""The view ``runs``: one row for each commit on one machine in one environment."""

OLD_NAMES = ("results", "counts", "missing_counts", "count_lines")
"""Views whose column ``identity`` was called ``case``, which SQL has for a word of its own."""


def with_old_names(sql: str) -> str:
    """Return a query in which ``"case"``, in quotes, is the column ``identity``."""
    if not re.search('"case"', sql, re.IGNORECASE):
        return sql
    views = ", ".join(
        f'{view} as (select *, identity as "case" from main.{view})'
        for view in OLD_NAMES
        if re.search(rf"\b{view}\b", sql, re.IGNORECASE)
    )
    match = re.match(r"\s*with\b(\s+recursive\b)?", sql, re.IGNORECASE)
    if not views:
        return sql
    if match is None:
        return f"with {views} {sql}"
    return f"with{match[1] or ''} {views}, {sql[match.end() :]}"


@cache
def schema() -> str:
    """Return the tables and the view ``results``, for people: all columns with their meaning."""
    columns = [*_FIRST_COLUMNS]
    for name, (meaning, *_) in ROW_COLUMNS.items():
        table = "d" if name in DETAILS else "p"
        columns.append((name, _SOURCES.get(name, f'{table}."{name}"'), meaning))
        columns += _COLUMNS_AFTER.get(name, ())
    sources = ", ".join(f'{source} as "{name}"' for name, source, _ in columns)
    comments = "; ".join(
        f"""comment on column results."{name}" is '{meaning.replace("'", "''")}'"""
        for name, _, meaning in columns
    )
    return f"""
        {_TABLES}
        create view results as select {sources} from present p
        join snapshots s on s.id = p.snapshot
        join cases c on c.id = p."case"
        left join cases b on b.id = p.baseline
        join (
            select id, unnest(from_json(content, '{json.dumps(DETAILS)}')) from details
        ) d on d.id = p.detail;
        {comments};
        {_RUNS_VIEW}
        {schema_of_counts(_FIRST_COLUMNS)}
    """
