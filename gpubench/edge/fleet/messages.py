"""What workers may send: each message has a schema, and whatever else comes is refused alike.

A worker may be broken, out of date or hostile. Dask delivers its messages as they are, so that
every name and number is checked here before it is used: names become files, sizes fill disks.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from gpubench.edge.fleet.shares import Machine
from gpubench.errors import GpubenchError
from gpubench.suite.tree import shortened

MAX_WORD = 2_000
"""Characters of a name, a fact or a reason: the longest that gpubench sends have some hundred."""
MAX_SAID = 10_000
"""Characters of a line that processes write; longer ones are cut."""
MAX_NAME_BYTES = 200
"""Of a file's name: file systems take 255, of which a commit and an ending take a part."""
MAX_FACTS, MAX_GPUS, MAX_ENVIRONMENTS = 500, 64, 64

_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d|benchmarks\.json)(\..*)?", re.IGNORECASE)
"""Names of devices under Windows, whatever follows a dot, and asv's file beside the machines."""
_SEPARATORS = frozenset('/\\:*?"<>|')

Word = Annotated[str, msgspec.Meta(max_length=MAX_WORD)]
Fact = Word | int | float | bool | None

T = TypeVar("T")


class Malformed(GpubenchError):
    """A message that is none of gpubench's: its sender is given nothing more to do."""


def read(kind: type[T], message: object, what: str) -> T:
    """Return a message as what it has to be; raises ``Malformed`` with ``what`` it was to be."""
    try:
        # Dask brings bytes as they are: a text is none, though msgspec would take it for base64.
        return msgspec.convert(
            message, kind, strict=True, from_attributes=True, builtin_types=(bytes,)
        )
    except Exception as error:  # objects of others may raise anything as they are looked at
        why = shortened(str(error) or type(error).__name__, 200)
        raise Malformed(f"{what} is malformed: {why}; update gpubench on that machine") from error


def is_file_name(text: str) -> bool:
    """Return whether a text names one file, and the same one, on every system."""
    if not 0 < len(text.encode(errors="surrogatepass")) <= MAX_NAME_BYTES:
        return False
    # Of category C: control characters, marks that show nothing, halves of characters.
    if any(c in _SEPARATORS or unicodedata.category(c)[0] == "C" for c in text):
        return False
    is_reserved = _RESERVED.fullmatch(text) or text[0] in ". -" or text[-1] in ". "
    return not is_reserved and unicodedata.normalize("NFKC", text) == text


class _Machine(msgspec.Struct):
    name: Word
    address: Word
    facts: Annotated[dict[Word, Fact], msgspec.Meta(max_length=MAX_FACTS)]
    gpus: Annotated[tuple[Word, ...], msgspec.Meta(max_length=MAX_GPUS)]
    environments: Annotated[
        tuple[Word, ...], msgspec.Meta(min_length=1, max_length=MAX_ENVIRONMENTS)
    ]


_Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


def read_machine(message: object, name: str, address: str) -> Machine:
    """Return what a machine says of itself, which joined under this name at this address; raises
    ``Malformed``."""
    said = read(_Machine, message, "what it says of itself")
    if (said.name, said.address) != (name, address):
        raise Malformed(f"it calls itself {shortened(said.name, 80)!r} now, and joined as {name!r}")
    if (memory := said.facts.get("memory_bytes")) is not None:
        read(_Bytes, memory, "the memory that it says it has")
    for each in (said.name, *said.environments):
        if not is_file_name(each):
            raise Malformed(f"{shortened(each, 80)!r} can be no name of a file on every system")
    return Machine(said.name, said.address, said.facts, said.gpus, said.environments)


class Description(msgspec.Struct):
    """What a worker is and does."""

    machine: Word
    does: Word
    progress: Word
    checkout: Word


class Said(msgspec.Struct):
    """A line that a process of a machine wrote."""

    worker: str
    """Address of the sender, which the scheduler adds: it alone is not the sender's to choose."""
    machine: Word
    line: str


class Piece(msgspec.Struct):
    """Lines of a record that are new."""

    worker: str
    """As of ``Said``."""
    machine: Word
    record: Word
    lines: bytes
    digest: Word


SentTimes = dict[Word, tuple[float, float, float]]
"""Median and both ends of its interval, in seconds, by case."""


class SentParcel(msgspec.Struct):
    """A ``Parcel``, before its names and digests are looked at."""

    files: Annotated[dict[Word, bytes], msgspec.Meta(max_length=3 * MAX_ENVIRONMENTS)]
    digests: Annotated[dict[Word, Word], msgspec.Meta(max_length=3 * MAX_ENVIRONMENTS)]


class SentResults(msgspec.Struct):
    """asv's result file, format 2, with the fields that asv writes; others are dropped."""

    version: Literal[2]
    commit_hash: Word
    env_name: Word
    date: int | float
    params: dict[Word, Fact]
    result_columns: list[Word]
    results: dict[Word, list[Any]]
    python: Word | None = None
    requirements: dict[Word, Word | None] = {}
    env_vars: dict[Word, Word] = {}
    durations: dict[Word, float | None] = {}


class SentBenchmark(msgspec.Struct):
    """What asv's ``benchmarks.json`` has of a benchmark, as far as somebody reads it."""

    name: Word
    version: Word
    params: list[list[Word]]
    param_names: list[Word] = []
    type: Word = ""
    unit: Word = ""
    code: str = ""
    pretty_source: str = ""


class SentMachine(msgspec.Struct):
    """asv's ``machine.json``: texts and numbers beside these two."""

    machine: Word
    version: Literal[1]


class Progress(msgspec.Struct):
    """How far the last run is, as ``gpubench fleet status`` shows it."""

    shares: int
    kept: int
    lost: int
    asked_again: int
    left: Word | None = None
