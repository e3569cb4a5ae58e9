"""Messages of a worker at random: an honest one in which one to three places hold something else.

``python scripts/robustness.py messages=200`` sends them over Dask beside an honest worker's.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from test_fleet_parcels import BLUR, NAME, RECORD, SORT, case, machine, run, share

from gpubench.edge.fleet.equality import groups_of
from gpubench.edge.fleet.messages import (
    Description,
    Malformed,
    Piece,
    Progress,
    Said,
    SentTimes,
    is_file_name,
    read,
    read_machine,
)
from gpubench.edge.fleet.parcels import Parcel, digest, merge, pack
from gpubench.edge.fleet.shares import Machine
from gpubench.errors import GpubenchError
from gpubench.files import MAX_BYTES
from gpubench.record import parse_line
from gpubench.results.asv_files import read_result_file
from gpubench.results.pairs import BenchmarkPairs

SHARE = share("blur__plain")
ADDRESS = "tcp://127.0.0.1:1"
HONEST = Machine("lab", ADDRESS, {"cpu": "A", "memory_bytes": 2**34, "threads": 2}, (), ("env",))
TIMES = {"blur::blur plain n=8": (1e-3, 0.9e-3, 1.1e-3)}


def deep(levels: int) -> list[Any]:
    """Return lists within lists."""
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


VALUES: tuple[Callable[[], Any], ...] = tuple(
    (lambda value=value: copy.copy(value))  # type: ignore[misc]
    for value in (
        *(None, True, 0, -1, 2**63, 10**400, 1e308, -1e-300, float("nan"), float("inf")),
        *("", "..", "../../evil", "/etc/passwd", "a\0b", "con", "\ud800", "\u202e<script>\x1b[31m"),
        *("x" * 3_000, "[ 999999%]", "'n=8'", BLUR, SORT, NAME, "lab", "2", "NaN", "1" * 5_000),
        *(b"", b"\xff\xfe", [], {}, [[]], [None] * 1_000, {"a": {"b": 1}}, deep(50)),
    )
)
"""What may stand anywhere."""


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container within a value, with each of its keys."""
    for key in list(value if isinstance(value, dict) else range(len(value))):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def broken(rng: random.Random, value: Any) -> Any:
    """Return a copy of what JSON could hold, in which one place is wrong."""
    value = copy.deepcopy(value)
    places = list(_places(value))
    if not places or rng.random() < 0.03:
        return rng.choice(VALUES)()
    container, key = rng.choice(places)
    how = rng.randrange(5)
    if how == 0:
        del container[key]
    elif how == 1 and isinstance(container, list):
        container.insert(key, copy.deepcopy(container[key]))
    elif how == 2 and isinstance(container, dict):
        odd = rng.choice(VALUES)()
        container[odd if isinstance(odd, str) else str(odd)[:3_000]] = container[key]
    else:
        container[key] = rng.choice(VALUES)()
    return value


def often_broken(rng: random.Random, value: Any) -> Any:
    """Return a copy with one to three places that are wrong."""
    for _ in range(rng.randint(1, 3)):
        value = broken(rng, value) if isinstance(value, dict | list) else value
    return value


def broken_bytes(rng: random.Random, content: bytes) -> bytes:
    """Return what is no text, or no JSON: cut, repeated, damaged, too long or too deep."""
    at = rng.randrange(len(content) + 1)
    return rng.choice(
        (
            lambda: content[:at],
            lambda: content * 3,
            lambda: content[:at] + rng.randbytes(5) + content[at:],
            lambda: content.decode(errors="replace").encode("utf-16"),
            lambda: b"[" * 100_000,
            lambda: content + b" " * (MAX_BYTES + 1),
            lambda: content.replace(b"1", b"1" * 5_000, 1),
        )
    )()


def honest_parcel(folder: Path) -> Parcel:
    """Return what an honest machine sends of its share, made in this folder."""
    made = machine(folder, {BLUR: 1.0}, run("a", "1"), case(BLUR))
    return pack(made, SHARE, ["env"])


def renamed(parcel: Parcel, name: str) -> Parcel:
    """Return a parcel as a machine of another name sends it."""
    old, new = json.dumps("lab").encode(), json.dumps(name).encode()
    files = {each: content.replace(old, new) for each, content in parcel.files.items()}
    return Parcel(files, {each: digest(content) for each, content in files.items()})


def hostile_parcel(rng: random.Random, honest: Parcel) -> object:
    """Return a parcel that is broken in its files, their names, their digests, or as a whole."""
    files, how = dict(honest.files), rng.random()
    name = rng.choice([*files])
    if how < 0.6 and not name.endswith(".jsonl"):
        text = json.dumps(often_broken(rng, json.loads(files[name])), default=repr)
        files[name] = text.encode(errors="surrogatepass")
    elif how < 0.6:
        lines = [often_broken(rng, json.loads(line)) for line in files[name].splitlines()]
        texts = (json.dumps(line, default=repr) + "\n" for line in lines * rng.choice((1, 500)))
        files[name] = "".join(texts).encode(errors="surrogatepass")
    elif how < 0.8:
        files[name] = broken_bytes(rng, files[name])
    digests = {each: digest(content) for each, content in files.items()}
    if how >= 0.8:
        whole = often_broken(rng, {"files": files, "digests": digests})
        if isinstance(whole, dict) and {*whole} == {"files", "digests"} and rng.random() < 0.8:
            return Parcel(**whole)
        return whole
    if rng.random() < 0.1:
        digests[name] = rng.choice(("0" * 64, "", digest(b""), "x" * 3_000))
    return Parcel(files, digests)


def hostile_events(rng: random.Random) -> list[object]:
    """Return events for both topics: broken ones, and lines that are none."""
    lines = case(BLUR).encode()
    name = rng.choice(("lab", "evil"))  # its own, or that of another machine
    said = {"machine": name, "line": "[ 40.50%] as asv says it"}
    piece = {"machine": name, "record": RECORD, "lines": lines, "digest": digest(lines)}
    return [often_broken(rng, rng.choice((said, piece))) for _ in range(rng.randint(1, 20))]


def read_words(rng: random.Random) -> None:
    """Read a message of each kind that is no parcel; whatever is not refused can be used."""
    with_refusal(lambda: read(Description, often_broken(rng, _DESCRIPTION), "what it says"))
    with_refusal(lambda: read(Progress, often_broken(rng, _PROGRESS), "the progress"))
    for kind in (Said, Piece):
        for event in hostile_events(rng):
            with_refusal(lambda kind=kind, event=event: read(kind, event, "a line"))  # type: ignore[misc]
    assert read_machine(asdict(HONEST), HONEST.name, ADDRESS) == HONEST
    said = with_refusal(
        lambda: read_machine(often_broken(rng, asdict(HONEST)), HONEST.name, ADDRESS)
    )
    if said is not None:
        assert all(map(is_file_name, (said.name, *said.environments)))
        hash(said.kind)
    times = with_refusal(lambda: read(SentTimes, often_broken(rng, TIMES), "times"))
    for sides in ((TIMES, times or {}), (times or {}, TIMES)):
        groups_of([HONEST, HONEST], dict(zip(("lab", "other"), sides, strict=True)), "all")


_DESCRIPTION = {"machine": "lab", "does": "", "progress": "", "checkout": "/x"}
_PROGRESS = {"shares": 2, "kept": 1, "lost": 0, "asked_again": 0, "left": "some 2 minutes"}


def with_refusal(ask: Callable[[], Any]) -> Any:
    """Return what a message is read as; nothing where it is refused in the one way."""
    try:
        return ask()
    except Malformed as error:
        assert len(str(error)) < 3_000, "a refusal is a line"
        return None


def faults_of(results: Path, keepers: tuple[str, ...]) -> list[str]:
    """Return what is wrong with a results directory that hostile messages have come to."""
    faults = []
    allowed = {"benchmarks.json"}
    for keeper in keepers:
        allowed |= {f"{keeper}/{name}" for name in ("machine.json", f"{NAME}.json", RECORD)}
    for path in (path for path in results.rglob("*") if path.is_file()):
        name = path.relative_to(results).as_posix()
        faults += [] if name in allowed else [f"{name} is there"]
        faults += [f"{name} is too large"] if path.stat().st_size > MAX_BYTES else []
        if path.name == f"{NAME}.json":
            faults += read_result_file(path, path.parent.name, BenchmarkPairs()).faults
        if path.name == RECORD:
            for line in path.read_bytes().splitlines():
                parse_line(line)
    return faults


def keep_hostile_parcel(rng: random.Random, folder: Path) -> str | None:
    """Merge a hostile parcel with results that are there; return the refusal, ``None`` where it was
    kept. Raises whatever is wrong."""
    here = machine(folder / "here", {SORT: 2.0}, run("b", "1"), case(SORT))
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    hostile = hostile_parcel(rng, honest_parcel(folder / "made"))
    try:
        merge(hostile, SHARE, ["env"], here, {}, {})
    except GpubenchError as error:
        after = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
        assert after == before, "a refused parcel changes nothing"
        return str(error)
    if faults := faults_of(here, ("lab",)):
        raise AssertionError(faults)
    return None
