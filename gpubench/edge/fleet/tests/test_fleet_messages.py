"""Whatever a worker sends, it is kept whole or refused in one way, and stays where it belongs."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hostile_messages import keep_hostile_parcel, read_words
from test_fleet_parcels import BLUR, COMMIT, NAME, RECORD, SORT, case, machine, run, share

from gpubench.edge.fleet.messages import (
    MAX_ENVIRONMENTS,
    MAX_GPUS,
    MAX_WORD,
    Malformed,
    Said,
    SentTimes,
    is_file_name,
    read,
    read_machine,
)
from gpubench.edge.fleet.parcels import Damaged, Parcel, digest, merge, pack, stored
from gpubench.edge.fleet.shares import Machine
from gpubench.errors import GpubenchError

HOSTILE = "<script>\x1b[31m\u202e../../x"
NAMES = (
    *(
        "",
        ".",
        "..",
        "-x",
        "a\n",
        "../../evil",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "a\0b",
        ".hidden",
        "a.",
        "a ",
    ),
    *("con", "NUL.txt", "com1", "benchmarks.json", "a:b", "a\nb", "a\u202eb", "\ud800", "a\u200bb"),
    *(
        "\uff0e\uff0e\uff0fevil",
        "\ufb01ne",
        "e\u0301",
        "x" * 201,
        "\u00e9" * 101,
        "a*b",
        "\x1b[31m",
    ),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_no_file_s_on_every_system_is_refused(name: str) -> None:
    assert not is_file_name(name)
    said = Machine(name, "tcp://x", {}, (), ("env",))
    with pytest.raises(Malformed):
        read_machine(said, name, "tcp://x")
    with pytest.raises(Malformed):
        read_machine(Machine("lab", "tcp://x", {}, (), (name,)), "lab", "tcp://x")


@pytest.mark.parametrize(
    "name", ["lab", "gpu-7.example.org", "J\u00f6rg's PC", "existing-py_usr_bin", "x" * 200]
)
def test_names_that_people_give_are_taken(name: str) -> None:
    assert is_file_name(name)


HONEST = Machine("lab", "tcp://x", {"cpu": "A", "threads": 2}, ("H100",), ("env",))


@pytest.mark.parametrize(
    "said",
    [
        None,
        5,
        {"name": "lab"},
        replace(HONEST, name="other"),
        replace(HONEST, address="tcp://other"),
        replace(HONEST, name=["lab"]),  # type: ignore[arg-type]
        replace(HONEST, facts={"run": {1, 2}}),  # type: ignore[dict-item]
        replace(HONEST, facts={"cpu": "x" * (MAX_WORD + 1)}),
        replace(HONEST, facts=5),  # type: ignore[arg-type]
        replace(HONEST, facts={"memory_bytes": "much"}),
        replace(HONEST, facts={"memory_bytes": float("inf")}),
        replace(HONEST, facts={"memory_bytes": 10**400}),
        replace(HONEST, gpus=("H100",) * (MAX_GPUS + 1)),
        replace(HONEST, environments=()),
        replace(HONEST, environments=("env",) * (MAX_ENVIRONMENTS + 1)),
        replace(HONEST, environments=(5,)),  # type: ignore[arg-type]
    ],
)
def test_a_machine_that_describes_itself_otherwise_takes_no_part(said: object) -> None:
    assert read_machine(HONEST, "lab", "tcp://x") == HONEST
    with pytest.raises(Malformed):
        read_machine(said, "lab", "tcp://x")


@pytest.mark.parametrize("event", [{}, {"machine": "a"}, None, "x", 5, {"machine": 5, "line": 5}])
def test_events_without_their_fields_are_refused(event: object) -> None:
    with pytest.raises(Malformed):
        read(Said, event, "a line")
    with pytest.raises(Malformed):
        read(SentTimes, {"case": event}, "times")


# --- parcels


def sent(parcel: Parcel, **files: Any) -> Parcel:
    """Return a parcel with these files, each with the digest that it has."""
    contents = {
        name: content if isinstance(content, bytes) else json.dumps(content).encode()
        for name, content in {**parcel.files, **files}.items()
    }
    return Parcel(contents, {name: digest(content) for name, content in contents.items()})


def with_results(**changes: Any) -> Callable[[Parcel], Parcel]:
    name = f"{NAME}.json"
    return lambda parcel: sent(parcel, **{name: {**parcel.json(name), **changes}})


def with_row(*row: Any) -> Callable[[Parcel], Parcel]:
    return with_results(results={BLUR: list(row)})


def with_benchmarks(**changes: Any) -> Callable[[Parcel], Parcel]:
    name = "benchmarks.json"
    return lambda parcel: sent(parcel, **{name: {**parcel.json(name), **changes}})


def with_machine(**changes: Any) -> Callable[[Parcel], Parcel]:
    name = "machine.json"
    return lambda parcel: sent(parcel, **{name: {**parcel.json(name), **changes}})


def without(parcel: Parcel, name: str) -> Parcel:
    files = {each: content for each, content in parcel.files.items() if each != name}
    return sent(Parcel(files, {}))


NAMELESS = {"version": "1", "params": [["'n=8'"]]}
CASES = [["'n=8'"]]
PARCELS: dict[str, Callable[[Parcel], object]] = {
    "nothing": lambda _: None,
    "a mapping": lambda _: {"files": 1},
    "another object": lambda _: object(),
    "files that are a list": lambda p: Parcel([*p.files], p.digests),  # type: ignore[arg-type]
    "files of numbers": lambda p: Parcel(dict.fromkeys(p.files, 5), p.digests),  # type: ignore[arg-type]
    "files of text": lambda p: Parcel(dict.fromkeys(p.files, "text"), p.digests),  # type: ignore[arg-type]
    "no digests": lambda p: Parcel(p.files, {}),
    "files of text with its digest": lambda p: Parcel(  # type: ignore[arg-type]
        dict.fromkeys(p.files, "text"), dict.fromkeys(p.files, digest(b"\xb5\xecm"))
    ),
    "digests that are nothing": lambda p: Parcel(p.files, None),  # type: ignore[arg-type]
    "wrong digests": lambda p: Parcel(p.files, dict.fromkeys(p.files, "0" * 64)),
    "a digest too many": lambda p: Parcel(p.files, {**p.digests, "x": ""}),
    "no files": lambda _: Parcel({}, {}),
    "a path upwards": lambda p: sent(p, **{"../../pwned": b"x"}),
    "an absolute path": lambda p: sent(p, **{"/tmp/pwned": b"x"}),
    "another machine's file": lambda p: sent(p, **{"../other/x.json": b"{}"}),
    "another commit's file": lambda p: sent(p, **{"ffffffff-env.json": b"{}"}),
    "no benchmarks": lambda p: without(p, "benchmarks.json"),
    "JSON of any depth": lambda p: sent(p, **{f"{NAME}.json": b"[" * 100_000}),
    "a list": lambda p: sent(p, **{f"{NAME}.json": []}),
    "another version": with_results(version=3),
    "another commit": with_results(commit_hash="f" * 40),
    "another environment": with_results(env_name="other"),
    "another machine": with_results(params={"machine": "another"}),
    "no machine": with_results(params={}),
    "a date that is a text": with_results(date="yesterday"),
    "a date of another age": with_results(date=1e300),
    "results that are a number": with_results(results=3),
    "no results": with_results(results={}),
    "only results of others": with_results(results={SORT: [[1.0], CASES, "1"]}),
    "a row that is a number": with_results(results={BLUR: 5}),
    "a row of texts": with_row(["x"], CASES, "1"),
    "times below nothing": with_row([-1.0], CASES, "1"),
    "more times than cases": with_row([1.0, 2.0], CASES, "1"),
    "cases that are no texts": with_row([1.0], [[5]], "1"),
    "columns that are a number": with_results(result_columns=5),
    "other columns": with_results(result_columns=["a", "b", "c"]),
    "requirements of numbers": with_results(requirements={"numpy": 5}),
    "durations of texts": with_results(durations={BLUR: "long"}),
    "benchmarks of another version": with_benchmarks(version=99),
    "a benchmark that is a number": with_benchmarks(**{BLUR: 5}),
    "a benchmark of another name": with_benchmarks(**{BLUR: {**NAMELESS, "name": SORT}}),
    "a benchmark without cases": with_benchmarks(**{BLUR: {"name": BLUR}}),
    "a machine of another name": with_machine(machine="../../evil"),
    "a machine of another version": with_machine(version="x"),
    "a machine of lists": with_machine(cpu=[1]),
}  # fmt: skip


@pytest.fixture
def honest(tmp_path: Path) -> Parcel:
    made = machine(tmp_path / "made", {BLUR: 1.0}, run("a", "1"), case(BLUR))
    return pack(made, share("blur__plain"), ["env"])


OTHER_REFUSALS = {
    # Damaged on the way: it is asked for again.
    "wrong digests": Damaged,
    # asv kept nothing, as where a benchmark cannot be imported.
    "no files": GpubenchError,
    "no results": GpubenchError,
    "only results of others": GpubenchError,
}


@pytest.mark.parametrize("name", PARCELS)
def test_a_parcel_that_no_reader_would_accept_changes_nothing(
    tmp_path: Path, honest: Parcel, name: str
) -> None:
    change = PARCELS[name]
    here = machine(tmp_path / "here", {SORT: 2.0}, run("b", "1"), case(SORT))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(GpubenchError) as refusal:
        merge(change(honest), share("blur__plain"), ["env"], here, {}, {})
    assert refusal.type is OTHER_REFUSALS.get(name, Malformed)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert merge(honest, share("blur__plain"), ["env"], here, {}, {}) == 1


def test_of_shared_files_only_what_is_of_the_share_is_taken(tmp_path: Path, honest: Parcel) -> None:
    here = machine(tmp_path / "here", {SORT: 2.0}, run("b", "1"), case(SORT))
    foreign = {"name": SORT, "version": "2", "params": [], "code": HOSTILE}
    changed = with_benchmarks(**{SORT: foreign, "junk": 5})(honest)
    changed = with_results(pad="x" * 1000, durations={SORT: 1e9, BLUR: 1.0, "<build>": 2.0})(
        changed
    )
    changed = sent(changed, **{RECORD: changed.files[RECORD] + case(SORT, "wrong").encode()})
    assert merge(changed, share("blur__plain"), ["env"], here, {}, {}) == 1

    described, results = (stored(here / name) for name in ("benchmarks.json", f"lab/{NAME}.json"))
    assert described[SORT]["version"] == "1" and {*described} == {"version", SORT, BLUR}
    assert "pad" not in results and {*results["results"]} == {SORT, BLUR}
    assert results["durations"] == {"<build>": 2.0, BLUR: 1.0}
    assert (here / "lab" / RECORD).read_text().count(SORT) == 1
    assert results["commit_hash"] == COMMIT


@pytest.mark.parametrize("seed", range(40))
def test_messages_at_random_are_refused_in_one_way_or_can_be_read(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    read_words(rng)
    keep_hostile_parcel(rng, tmp_path)
