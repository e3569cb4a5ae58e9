"""Putting together what machines send: nothing is lost, mixed, half-written or taken damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpubench.edge.fleet.messages import Malformed
from gpubench.edge.fleet.parcels import (
    Damaged,
    Parcel,
    add_lines,
    begun_before,
    digest,
    going_on,
    merge,
    merged_benchmarks,
    pack,
    remove_leftovers,
    rows_of,
    stored,
)
from gpubench.edge.fleet.shares import Share
from gpubench.errors import GpubenchError
from gpubench.record import CaseRecord, RunRecord, parse_line, to_line

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = "01234567-env"
RECORD = f"{NAME}.gpubench.jsonl"
BLUR, SORT = "suites.blur__plain.time_kernel", "suites.sort__plain.time_kernel"


def share(*classes: str, keeper: str = "lab") -> Share:
    return Share(COMMIT, classes[0].partition("__")[0], classes, keeper, 1.0)


def case(benchmark: str, status: Any = "ok", at: str = "2026-01-01") -> str:
    return to_line(CaseRecord(benchmark, "n=8", status, at))


def run(host: str, run: str) -> str:
    return to_line(RunRecord("2026-01-01", {"host": host, "run": run}))


def machine(
    folder: Path, times: dict[str, float], *lines: str, columns: tuple[str, ...] = ("result",)
) -> Path:
    """Write a results directory as asv leaves it on a machine."""
    of_machine = folder / "lab"
    of_machine.mkdir(parents=True)
    names = [*columns, "params", "version"]
    values = {"params": [["'n=8'"]], "version": "1", "duration": 2.0}
    rows = {n: [{**values, "result": [t]}[c] for c in names] for n, t in times.items()}
    content = {"version": 2, "commit_hash": COMMIT, "env_name": "env", "results": rows}
    content |= {"result_columns": names, "durations": {"<build>": 1.0}, "date": 0}
    content["params"] = {"machine": "lab"}
    (of_machine / f"{NAME}.json").write_text(json.dumps(content))
    (of_machine / f"{NAME}.gpubench.jsonl").write_text("".join(lines))
    (of_machine / "machine.json").write_text(json.dumps({"machine": "lab", "version": 1}))
    described = {name: {"name": name, "version": "1", "params": [["'n=8'"]]} for name in times}
    (folder / "benchmarks.json").write_text(json.dumps({"version": 2, **described}))
    return folder


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    return rows_of(stored(folder / f"lab/{NAME}.json"))


def results(folder: Path) -> dict[str, Any]:
    return {n: row["result"] for n, row in rows(folder).items()}


def text(folder: Path) -> str:
    return (folder / "lab" / RECORD).read_text()


def record(folder: Path) -> list[tuple[str, str]]:
    """Return each line's benchmark, and the host of the run that it belongs to."""
    found, host = [], ""
    for line in text(folder).splitlines():
        parsed = parse_line(line)
        if isinstance(parsed, RunRecord):
            host = str(parsed.facts["host"])
        else:
            found.append((parsed.benchmark, host))
    return found


def test_shares_of_one_commit_from_two_machines_come_together(tmp_path: Path) -> None:
    one = machine(tmp_path / "1", {BLUR: 1.0, SORT: 9.0}, run("a", "1"), case(BLUR), case(SORT))
    columns = ("duration", "result")
    two = machine(tmp_path / "2", {SORT: 3.0}, run("b", "2"), case(SORT), columns=columns)
    here = tmp_path / "here"
    for folder, name in ((one, "blur__plain"), (two, "sort__plain")):
        parcel = pack(folder, share(name), ["env"])
        assert merge(parcel, share(name), ["env"], here, {"fleet": "equal"}, {}) == 1
    assert results(here) == {BLUR: [1.0], SORT: [3.0]}
    assert rows(here)[SORT]["duration"] == 2.0
    assert record(here) == [(BLUR, "a"), (SORT, "b")]
    described = json.loads((here / "lab/machine.json").read_text())
    assert described == {"machine": "lab", "version": 1, "fleet": "equal"}
    assert json.loads((here / "benchmarks.json").read_text()).keys() == {"version", BLUR, SORT}
    assert not list(here.rglob("*.part"))


def test_a_parcel_that_comes_twice_changes_nothing(tmp_path: Path) -> None:
    one = machine(tmp_path / "1", {BLUR: 1.0}, run("a", "1"), case(BLUR, "started"), case(BLUR))
    parcel, here = pack(one, share("blur__plain"), ["env"]), tmp_path / "here"
    for _ in range(2):
        merge(parcel, share("blur__plain"), ["env"], here, {}, {})
    assert record(here) == [(BLUR, "a")] * 2
    assert results(here) == {BLUR: [1.0]}


def test_of_a_benchmark_only_its_last_run_is_taken(tmp_path: Path) -> None:
    lines = [run("a", "1"), case(BLUR), case(SORT), run("a2", "2"), case(BLUR), "half a li"]
    one = machine(tmp_path / "1", {BLUR: 1.0, SORT: 1.0}, *lines)
    both = share("blur__plain", "sort__plain")
    merge(pack(one, both, ["env"]), both, ["env"], tmp_path / "here", {}, {})
    assert record(tmp_path / "here") == [(SORT, "a"), (BLUR, "a2")]


def test_a_benchmark_that_is_measured_again_replaces_its_row(tmp_path: Path) -> None:
    here = machine(tmp_path / "here", {BLUR: 1.0, SORT: 2.0}, run("a", "1"), case(BLUR))
    again = machine(tmp_path / "1", {BLUR: 5.0, SORT: 7.0}, run("a", "2"), case(BLUR))
    merge(pack(again, share("blur__plain"), ["env"]), share("blur__plain"), ["env"], here, {}, {})
    assert results(here) == {BLUR: [5.0], SORT: [2.0]}


def broken(parcel: Parcel, name: str, content: bytes, *, noticed: bool) -> Parcel:
    """With other content of a file; not ``noticed`` by its digest."""
    files = {**parcel.files, name: content}
    sent = {} if noticed else {name: digest(content)}
    return replace(parcel, files=files, digests={**parcel.digests, **sent})


@pytest.mark.parametrize(
    ("name", "content", "noticed", "message"),
    [
        (f"{NAME}.json", b"{}", True, "its digest is not the one that was sent with it"),
        (f"{NAME}.gpubench.jsonl", b"", True, "its digest is not the one that was sent with it"),
        (f"{NAME}.json", b'{"version": 2', False, "is malformed"),
        (f"{NAME}.json", b"[]", False, "it holds a list"),
        (f"{NAME}.json", b'{"results": 3}', False, "a result file that it sent is malformed"),
        ("machine.json", b"\x80", False, "is malformed"),
    ],
)
def test_a_damaged_parcel_is_refused_whole(
    tmp_path: Path, name: str, content: bytes, noticed: bool, message: str
) -> None:
    one = machine(tmp_path / "1", {BLUR: 1.0}, run("a", "1"), case(BLUR))
    parcel = pack(one, share("blur__plain"), ["env"])
    here = tmp_path / "here"
    with pytest.raises((Damaged, Malformed), match=message):
        merge(
            broken(parcel, name, content, noticed=noticed),
            share("blur__plain"),
            ["env"],
            here,
            {},
            {},
        )
    assert not list(here.rglob("*"))


def test_a_parcel_without_the_shares_results_is_an_error(tmp_path: Path) -> None:
    one = machine(tmp_path / "1", {BLUR: 1.0}, run("a", "1"), case(BLUR))
    here, sort = tmp_path / "here", share("sort__plain")
    for folder in (one, tmp_path / "nowhere"):
        with pytest.raises(GpubenchError, match="asv kept no results of 01234567 sort") as refusal:
            merge(pack(folder, sort, ["env"]), sort, ["env"], here, {}, {})
        assert not isinstance(refusal.value, Damaged)
    assert not list(here.rglob("*"))


def test_what_lies_damaged_here_is_named_and_stays(tmp_path: Path) -> None:
    one = machine(tmp_path / "1", {BLUR: 1.0}, run("a", "1"), case(BLUR))
    here = tmp_path / "here"
    (here / "lab").mkdir(parents=True)
    (here / f"lab/{NAME}.json").write_text("{")
    with pytest.raises(GpubenchError, match="is damaged; move it away") as refusal:
        merge(pack(one, share("blur__plain"), ["env"]), share("blur__plain"), ["env"], here, {}, {})
    assert not isinstance(refusal.value, Damaged)
    assert [path.name for path in here.rglob("*.json*")] == [f"{NAME}.json"]


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = machine(tmp_path / "here", {BLUR: 1.0}, run("a", "1"), case(BLUR))
    again = machine(tmp_path / "1", {BLUR: 5.0}, run("a", "2"), case(BLUR))
    parcel, before = pack(again, share("blur__plain"), ["env"]), results(here)

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        merge(parcel, share("blur__plain"), ["env"], here, {}, {})
    assert results(here) == before
    assert not list(here.rglob("*.part"))


def test_the_machine_with_more_cases_describes_a_benchmark() -> None:
    few = {"version": 2, BLUR: {"version": "1", "params": [["'n=8'"]]}}
    many = {"version": 2, BLUR: {"version": "1", "params": [["'n=8'", "'n=16'"]]}}
    other = {"version": 2, BLUR: {"version": "2", "params": [["'n=8'"]]}}
    assert merged_benchmarks(few, many) == merged_benchmarks(many, few) == many
    assert merged_benchmarks(many, other) == other


LINES = [run("a", "1"), case(BLUR, "started"), case(BLUR), case(SORT, "started"), case(SORT)]
BOTH = share("blur__plain", "sort__plain")


def test_lines_that_come_while_a_share_is_measured_stand_together_and_once(tmp_path: Path) -> None:
    here, begun = tmp_path / "here", LINES[0].encode()
    other = [run("b", "1"), case("suites.fill__plain.time_kernel")]
    add_lines(here, BOTH, RECORD, b"", begun)
    assert not here.exists()  # nothing of a case has come
    for first, last in ((1, 2), (2, 5)):
        new = "".join(LINES[first:last]).encode()
        add_lines(here, BOTH, RECORD, begun, new)
        begun += new
        assert "".join(LINES[:last]) in text(here)
        if first == 1:  # of another machine, in between
            add_lines(here, share("fill__plain"), RECORD, b"", "".join(other).encode())
    one = machine(tmp_path / "1", {BLUR: 1.0, SORT: 1.0}, *LINES)
    merge(pack(one, BOTH, ["env"]), BOTH, ["env"], here, {}, {RECORD: begun})
    assert sorted(text(here).splitlines()) == sorted("".join([*LINES, *other]).splitlines())
    assert results(here) == {BLUR: [1.0], SORT: [1.0]}


def test_lines_that_were_lost_on_the_way_come_with_the_share(tmp_path: Path) -> None:
    here, begun = tmp_path / "here", "".join(LINES[:2] + LINES[3:4]).encode()
    add_lines(here, BOTH, RECORD, b"", begun)
    one = machine(tmp_path / "1", {BLUR: 1.0, SORT: 1.0}, *LINES)
    merge(pack(one, BOTH, ["env"]), BOTH, ["env"], here, {}, {RECORD: begun})
    assert text(here) == "".join(LINES)


def test_another_machine_goes_on_with_what_one_has_begun(tmp_path: Path) -> None:
    begun = {RECORD: "".join([*LINES[:3], case("suites.fill__plain.time_kernel")]).encode()}
    asked = going_on(tmp_path, BOTH, ["env"], begun)
    assert asked == replace(BOTH, skip_existing=True)
    assert text(tmp_path) == "".join(LINES[:3])
    assert going_on(tmp_path / "other", BOTH, ["env"], {RECORD: b""}) == BOTH
    assert not (tmp_path / "other").exists()


def test_a_machine_with_results_that_are_not_asked_for_begins_anew(tmp_path: Path) -> None:
    begun = {RECORD: "".join(LINES[:3]).encode()}
    for name, lines in (("results", ()), ("record", (run("b", "2"), case(SORT, "started")))):
        folder = machine(tmp_path / name, {BLUR: 5.0} if name == "results" else {}, *lines)
        before = text(folder)
        assert going_on(folder, BOTH, ["env"], begun) == BOTH
        assert text(folder) == before
        skipping = replace(BOTH, skip_existing=True)
        assert going_on(folder, skipping, ["env"], begun) == skipping
        assert text(folder) == before + "".join(LINES[:3])


def test_what_is_kept_of_a_share_are_the_last_lines_of_each_case(tmp_path: Path) -> None:
    again = [run("b", "2"), case(BLUR, "started"), case(BLUR)]
    larger = to_line(CaseRecord(BLUR, "n=16", "ok", "2026-01-01"))
    lines = [*LINES[:3], larger, LINES[4], *again, case("suites.fill__plain.time_kernel")]
    folder = machine(tmp_path, {}, *lines)
    kept = begun_before(folder, BOTH, ["env", "other"])
    assert kept[RECORD].decode() == "".join([LINES[0], larger, LINES[4], *again])
    assert kept["01234567-other.gpubench.jsonl"] == b""


def test_files_that_a_killed_coordinator_left_half_written_are_removed(tmp_path: Path) -> None:
    folder = machine(tmp_path, {BLUR: 1.0})
    kept = sorted(folder.rglob("*"))
    for place in (folder, folder / "lab"):
        (place / ".fleet-abc123.part").write_text("{")
    remove_leftovers(folder)
    assert sorted(folder.rglob("*")) == kept
