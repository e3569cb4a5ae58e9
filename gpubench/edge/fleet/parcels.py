"""What comes back of a share, and how it is put with the rest in one results directory.

A parcel holds asv's files whole, as they lie on the machine, each with a digest that was taken
where it was read. Of these files only the share's benchmarks are taken. Before that, while a share
is measured, lines of its records come as they are written: what a stopped run would have left.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from gpubench.edge.fleet.messages import (
    MAX_WORD,
    Fact,
    Malformed,
    SentBenchmark,
    SentMachine,
    SentParcel,
    SentResults,
    Word,
    read,
)
from gpubench.edge.fleet.shares import Share, class_of
from gpubench.errors import GpubenchError, describe_error
from gpubench.files import MAX_BYTES, read_regular
from gpubench.record import SUFFIX, RunRecord, parse_line, record_name
from gpubench.results.asv_files import read_result_file
from gpubench.results.pairs import BenchmarkPairs
from gpubench.suite.tree import shortened

BENCHMARKS, MACHINE = "benchmarks.json", "machine.json"
ASV_FORMAT = 2
"""Version of asv's result files and of its ``benchmarks.json``."""


class Damaged(GpubenchError):
    """A parcel that is not what was sent: it is asked for again."""


@dataclass(frozen=True)
class Parcel:
    """asv's files of one commit, by their names."""

    files: Mapping[str, bytes]
    digests: Mapping[str, str]
    """SHA-256 of each, taken on the machine."""

    def json(self, name: str) -> dict[str, Any]:
        """Return a file's content; raises ``Malformed`` for what is no object of JSON."""
        try:
            content = json.loads(self.files[name])
        except (KeyError, ValueError, RecursionError) as error:
            raise Malformed(f"{name} is malformed: {describe_error(error)}") from error
        if not isinstance(content, dict):
            raise Malformed(f"{name} is malformed: it holds a {type(content).__name__}")
        return content


def digest(content: bytes) -> str:
    """SHA-256, hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def result_name(commit: str, environment: str) -> str:
    """asv's name for a result file."""
    return record_name(commit, environment).removesuffix(SUFFIX) + ".json"


def record_names(share: Share, environments: Sequence[str]) -> list[str]:
    """Return names of the records that measuring a share writes to."""
    return [record_name(share.commit, environment) for environment in environments]


def pack(results_dir: Path, share: Share, environments: Sequence[str]) -> Parcel:
    """Return what there is of a share's commit."""
    folder = results_dir / share.keeper
    paths = [results_dir / BENCHMARKS, folder / MACHINE]
    for environment in environments:
        paths.append(folder / result_name(share.commit, environment))
        paths.append(folder / record_name(share.commit, environment))
    files = {path.name: read_regular(path, MAX_BYTES) for path in paths if path.exists()}
    return Parcel(files, {name: digest(content) for name, content in files.items()})


def merge(
    sent: object,
    share: Share,
    environments: Sequence[str],
    results_dir: Path,
    facts: Mapping[str, str],
    begun: Mapping[str, bytes],
) -> int:
    """Put a share's results and record with those in ``results_dir``; how many benchmarks they are.

    Each file is replaced in one step, the record before the results, as asv does. ``facts`` are
    added to asv's description of the machine; ``begun`` are the lines that ``add_lines`` has put
    into records meanwhile. Nothing is replaced unless gpubench can read all that would be there.

    Raises ``Damaged``, ``Malformed``, and ``GpubenchError`` where nothing was measured, or where
    what lies in ``results_dir`` cannot be read.
    """
    parcel = read_parcel(sent, share, environments)
    folder, files, taken = results_dir / share.keeper, dict[Path, bytes](), set[str]()
    for environment in environments:
        name, record = (f(share.commit, environment) for f in (result_name, record_name))
        if name in parcel.files:
            arrived = _read_results(parcel.json(name), share, environment)
            results, names = merged_results(stored(folder / name), arrived, share.classes)
            if names:
                before = _without(folder / record, begun.get(record, b""), share)
                lines = parcel.files.get(record, b"")
                files[folder / record] = merged_record(before, lines, share.classes)
                files[folder / name] = json.dumps(results).encode()
                _refuse_unreadable(name, files[folder / name], share.keeper)
                taken |= names
    if not taken:
        raise GpubenchError(f"asv kept no results of {share.title}")
    arrived = _read_benchmarks(parcel.json(BENCHMARKS), share.classes)
    described = merged_benchmarks(stored(results_dir / BENCHMARKS), arrived)
    for path, content in (
        (results_dir / BENCHMARKS, described),
        (folder / MACHINE, {**_read_machine(parcel.json(MACHINE), share.keeper), **facts}),
    ):
        files[path] = json.dumps(content, indent=4, sort_keys=True).encode()
    for path, data in files.items():
        if len(data) > MAX_BYTES:
            raise Malformed(f"{path} would have {len(data):,} bytes; {MAX_BYTES:,} are read")
    for path, data in files.items():
        _replace(path, data)
    return len(taken)


def read_parcel(sent: object, share: Share, environments: Sequence[str]) -> Parcel:
    """Return what came of a share as files of the names that it can have, each as it was sent.

    Raises ``Malformed`` for a file of another name and for a file without a digest. Raises
    ``Damaged`` for a file whose content has another digest than the parcel says.
    """
    parcel = read(SentParcel, sent, "what it sent")
    names = {BENCHMARKS, MACHINE, *record_names(share, environments)}
    names |= {result_name(share.commit, environment) for environment in environments}
    if strange := sorted(parcel.files.keys() - names):
        raise Malformed(f"it sent {shortened(strange[0], 80)!r}, which is no file of {share.title}")
    if parcel.files.keys() != parcel.digests.keys():
        raise Malformed("it sent files without digests, or digests without files")
    for name, content in parcel.files.items():
        if len(content) > MAX_BYTES:
            raise Malformed(f"it sent {name} of {len(content):,} bytes; {MAX_BYTES:,} are read")
        if digest(content) != parcel.digests[name]:
            raise Damaged(f"{name} is damaged: its digest is not the one that was sent with it")
    return Parcel(parcel.files, parcel.digests)


def _read_results(content: Mapping[str, Any], share: Share, environment: str) -> dict[str, Any]:
    """Return a result file that is of this share; raises ``Malformed``."""
    results = read(SentResults, content, "a result file that it sent")
    of = (results.commit_hash, results.env_name, results.params.get("machine"))
    if of != (share.commit, environment, share.keeper):
        words = ", ".join(shortened(str(each), 80) for each in of)
        raise Malformed(f"it sent results of {words}, and was asked for {share.title}")
    return msgspec.to_builtins(results)  # type: ignore[no-any-return]


def _read_benchmarks(content: Mapping[str, Any], classes: Collection[str]) -> dict[str, Any]:
    """Return asv's descriptions of benchmarks of these classes; raises ``Malformed``."""
    described = {"version": ASV_FORMAT}
    if content.get("version") != ASV_FORMAT:
        raise Malformed(f"it sent a {BENCHMARKS} that is not of asv's format {ASV_FORMAT}")
    for name, entry in content.items():
        if class_of(name) in classes:
            if read(SentBenchmark, entry, f"an entry of its {BENCHMARKS}").name != name:
                raise Malformed(f"an entry of its {BENCHMARKS} has the name of another one")
            described[name] = entry
    return described


def _read_machine(content: Mapping[str, Any], keeper: str) -> dict[str, Any]:
    """Return asv's description of a machine under this name; raises ``Malformed``."""
    read(dict[Word, Fact], content, f"its {MACHINE}")
    if read(SentMachine, content, f"its {MACHINE}").machine != keeper:
        raise Malformed(f"its {MACHINE} has the name of another machine than {keeper}")
    return {**content}


def _refuse_unreadable(name: str, content: bytes, keeper: str) -> None:
    """Raise ``Malformed`` for a result file of which gpubench would leave something out."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "results.json")
        path.write_bytes(content)
        try:
            faults = read_result_file(path, keeper, BenchmarkPairs()).faults
        except GpubenchError as error:
            faults = (str(error),)
    if faults:
        raise Malformed(f"{name} cannot be kept: {shortened(faults[0], MAX_WORD)}")


def merged_results(
    before: Mapping[str, Any], arrived: Mapping[str, Any], classes: Collection[str]
) -> tuple[dict[str, Any], set[str]]:
    """Return asv's result file with the arrived rows of these classes, and the names of these rows.
    Other rows and their durations stay as they were."""
    rows = {n: row for n, row in arrived["results"].items() if class_of(n) in classes}
    names, columns = {*rows}, arrived["result_columns"]
    for name, row in rows_of(before).items():
        rows.setdefault(name, [row.get(column) for column in columns])
    took = {
        name: seconds
        for name, seconds in arrived["durations"].items()
        if name in names or name.startswith("<")  # what asv did before: <build>, <setup_cache ...>
    }
    durations = {**(before.get("durations") or {}), **took}
    return {**arrived, "results": rows, "durations": durations}, names


def merged_record(before: bytes, arrived: bytes, classes: Collection[str]) -> bytes:
    """Return the record with the lines of these classes that are not in it yet: those of the last
    run that has any of a case, each run's after the facts of its machine."""
    runs = list(_runs(arrived))
    last = {case: place for place, run in enumerate(runs) for case, _ in run}
    for place, run in enumerate(runs):
        facts = [line for case, line in run if not case]
        lines = [
            line
            for case, line in run
            if case and last[case] == place and class_of(case[0]) in classes
        ]
        text = b"".join([*facts, *lines])
        if lines and text not in before:
            before += text
    return before


def _runs(record: bytes) -> Iterator[list[tuple[tuple[str, str] | None, bytes]]]:
    """Lines of each run with the benchmark and case that they are of, ``None`` for the facts it
    begins with. What is no line of a record is left out: the machine may have lost its power."""
    run: list[tuple[tuple[str, str] | None, bytes]] = []
    for line in record.splitlines(keepends=True):
        with suppress(GpubenchError):
            parsed = parse_line(line)
            if isinstance(parsed, RunRecord):
                yield run
                run = [(None, line)]
            else:
                run.append(((parsed.benchmark, parsed.case), line))
    yield run


# --- of a share that is not finished


def add_lines(results_dir: Path, share: Share, record: str, begun: bytes, new: bytes) -> None:
    """Put lines that are ``new`` in the record of a share that is measured now with those that have
    come of it before, so that they stand together."""
    path = results_dir / share.keeper / record
    if len(begun) + len(new) > MAX_BYTES:
        raise Malformed(f"it sent more than {MAX_BYTES:,} bytes of {record}")
    if lines := merged_record(b"", begun + new, share.classes):
        _replace(path, _without(path, begun, share) + lines)


def _without(path: Path, begun: bytes, share: Share) -> bytes:
    """Return a record without what ``add_lines`` has put into it."""
    return _bytes(path).replace(merged_record(b"", begun, share.classes), b"")


def begun_before(results_dir: Path, share: Share, environments: Sequence[str]) -> dict[str, bytes]:
    """Return of each record the lines that are kept of a share, whoever has measured it."""
    folder = results_dir / share.keeper
    paths = [folder / name for name in record_names(share, environments)]
    return {path.name: merged_record(b"", _bytes(path), share.classes) for path in paths}


def going_on(
    results_dir: Path, share: Share, environments: Sequence[str], begun: Mapping[str, bytes]
) -> Share:
    """On a machine: the share, as asv is to measure it, once the lines with which others have
    ``begun`` it are on record here: asv goes on with them.

    All is measured again where the machine has results of the share that are not to be used.
    """
    folder = results_dir / share.keeper
    names = record_names(share, environments)
    names += [result_name(share.commit, environment) for environment in environments]
    here = b"".join(_bytes(folder / name) for name in names)
    is_here = any(f'"suites.{class_name}.'.encode() in here for class_name in share.classes)
    if not any(begun.values()) or (is_here and not share.skip_existing):
        return share
    for name, lines in begun.items():
        _replace(folder / name, merged_record(_bytes(folder / name), lines, share.classes))
    return replace(share, skip_existing=True)


def merged_benchmarks(before: Mapping[str, Any], arrived: Mapping[str, Any]) -> dict[str, Any]:
    """Return what asv says of all benchmarks; of one that has not changed, that of the machine on
    which it has more cases."""
    merged = {**before, **arrived}
    for name in before.keys() & arrived.keys() - {"version"}:
        old, new = before[name], arrived[name]
        if old.get("version") == new.get("version"):
            merged[name] = max(new, old, key=lambda entry: len(str(entry.get("params"))))
    return merged


def _bytes(path: Path) -> bytes:
    return read_regular(path, MAX_BYTES) if path.exists() else b""


def stored(path: Path) -> dict[str, Any]:
    """Return a file of asv's as it lies in the results directory; nothing where there is none."""
    try:
        content = json.loads(_bytes(path) or b"{}")
    except (ValueError, RecursionError) as error:
        raise GpubenchError(f"{path} is damaged; move it away: {error}") from error
    if content and content.get("version") != ASV_FORMAT:
        raise GpubenchError(f"{path} is not of asv's format {ASV_FORMAT}; run `asv update`")
    return content  # type: ignore[no-any-return]


def rows_of(content: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Columns of each benchmark in a result file."""
    columns, rows = content.get("result_columns", ()), content.get("results", {})
    return {name: dict(zip(columns, row, strict=False)) for name, row in rows.items()}


def _replace(path: Path, content: bytes) -> None:
    """Write a file in one step: who reads it meanwhile sees what was there before, or all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".fleet-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(0o644)  # mkstemp's is for one user alone
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def remove_leftovers(results_dir: Path) -> None:
    """Remove files that a coordinator was killed in the middle of."""
    for path in results_dir.glob("**/.fleet-*.part"):
        path.unlink()
