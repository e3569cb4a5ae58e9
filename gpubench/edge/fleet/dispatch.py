"""Give the shares of a run out to machines, and take back what they send."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Full, Queue
from typing import Any

import msgspec
from distributed import Client, Future, wait

from gpubench.edge.fleet.cluster import LINES_TOPIC, PROGRESS, RECORDS, SchedulerStopped, measure
from gpubench.edge.fleet.messages import (
    MAX_SAID,
    MAX_WORD,
    Malformed,
    Piece,
    Progress,
    Said,
    is_file_name,
    read,
)
from gpubench.edge.fleet.parcels import Damaged, add_lines, begun_before, digest, record_names
from gpubench.edge.fleet.shares import Machine, Share, next_share, resources
from gpubench.errors import GpubenchError
from gpubench.report.text import duration
from gpubench.suite.tree import shortened

METADATA = ["gpubench", "fleet"]
"""Where Dask keeps the progress of the last run."""

FETCH = 60.0
"""Seconds for a parcel that is ready, a few MB, to come over the network."""

POLL = 1.0
"""Seconds after which it is seen that a machine is gone. A share takes minutes."""

TELL_SECONDS = 15.0
"""Between two lines that say how far machines are within their shares."""

ASKED_AGAIN = 3
"""How often a damaged parcel is asked for: what damages four in a row does not stop."""

IN_A_ROW = 2
"""Shares in a row that fail on a machine, after which it gets no more: its disk is full, or its
compiler is missing, and it would fail all others at once."""

MAX_PIECES = 256
"""Pieces of records that wait to be kept: a machine sends one every five seconds at most, and all
are kept once a second."""

MAX_LOGS, MAX_LOG_BYTES = 1_000, 2**26
"""Machines whose processes are written down, and bytes of each one's log: 64 MiB are the lines of
some hundred runs."""

_TRACEBACK = "Traceback (most recent call last)"

Say = Callable[[str], object]
"""Tells a person."""

Keep = Callable[[Any, Share, Machine, Mapping[str, bytes]], int]
"""Puts what came back of a share with the rest, after the lines of each record that had come of it
before, and tells how many benchmarks that were."""


@dataclass
class Outcome:
    """What became of the shares."""

    shares: int
    kept: int = 0
    """Shares whose results are kept."""
    asked_again: int = 0
    """Parcels that came damaged."""
    lost: list[tuple[Share, str]] = field(default_factory=list)
    """Shares that nobody measured, and why."""


class Dispatch:
    """Shares on their way to machines and back; meanwhile lines of records are kept as they come.

    A share of a machine that vanished, or on which it failed, goes to another one with the same
    keeper, which goes on with what had come.
    """

    def __init__(
        self,
        client: Client,
        machines: Iterable[Machine],
        keepers: Mapping[str, str],
        shares: Iterable[Share],
        results_dir: Path,
        keep: Keep,
        say: Say,
        task: Callable[..., Any] = measure,
        variables: Mapping[str, str] | None = None,
        progress: MutableMapping[str, str] | None = None,
    ) -> None:
        """``task`` measures a share on a worker, with these environment variables. ``progress``
        says how far each machine is within its share, by its name."""
        self.client, self.keepers, self.results_dir = client, keepers, results_dir
        self.keep, self.say, self.task, self.variables = keep, say, task, variables or {}
        self.idle, self.waiting = list(machines), list(shares)
        self.outcome = Outcome(len(self.waiting))
        self.running: dict[Future, tuple[Machine, Share]] = {}
        self.given: dict[str, Share] = {}
        """What each machine was given last, by its name."""
        self.failures = Counter[str]()
        """In a row, by the machine's name."""
        self.damaged = Counter[Share]()
        """How often each came so."""
        self.tried: dict[Share, set[str]] = defaultdict(set)
        """Names of machines on which a share failed."""
        self.begun: dict[Share, dict[str, bytes]] = {}
        """Of each share that is begun and not kept yet, by any machine: lines of each record."""
        self.progress: MutableMapping[str, str] = {} if progress is None else progress
        self.pace = Pace()
        self._told = time.monotonic(), ""
        """When and how far machines were said to be."""
        self._begun_at: dict[Future, float] = {}
        self.pieces: Queue[object] = Queue(MAX_PIECES)
        client.subscribe_topic(RECORDS, self._queue)

    def run(self) -> Outcome:
        """Have all shares measured. When it is interrupted, what the machines are doing is
        cancelled."""
        try:
            while True:
                self.drop_vanished()
                self.give_out()
                progress = {**vars(self.outcome), "lost": len(self.outcome.lost)}
                self.client.set_metadata(METADATA, {**progress, "left": self.left()})
                if not self.running:
                    return self.outcome
                done = wait_some(self.running)
                self.take_lines()  # what was written of a share comes before its parcel
                if any(future.cancelled() for future in done):  # by nobody here
                    raise SchedulerStopped("the scheduler stopped")
                for future in done:
                    self.receive(future)
                self.tell_progress()
        finally:
            self.take_lines()
            self.client.cancel(list(self.running))

    def _queue(self, event: tuple[float, object]) -> None:
        """Put a piece with those that wait; drop it where many do. What is dropped comes with the
        share again."""
        with suppress(Full):
            self.pieces.put_nowait(event[1])

    def left(self) -> str | None:
        """Return how long it goes on, for people; ``None`` where nothing says it yet."""
        under_way = [share for _, share in self.running.values()]
        seconds = self.pace.seconds_left([*self.waiting, *under_way], self.keepers)
        return None if seconds is None else f"some {duration(seconds)}"

    def tell_progress(self) -> None:
        """Say now and then how far the machines are within their shares, where that is new."""
        at, before = self._told
        if time.monotonic() - at < TELL_SECONDS:
            return
        now = "; ".join(
            f"{machine.name} {self.progress.get(machine.name, '0 %')} of {share.title}"
            for machine, share in self.running.values()
        )
        if now and now != before:
            self.say(f"measuring: {now}")
        self._told = time.monotonic(), now

    def take_lines(self) -> None:
        """Keep lines that have come. What cannot be kept now comes with the share again."""
        addresses = {machine.name: machine.address for machine, _ in self.running.values()}
        while not self.pieces.empty():
            with suppress(OSError, ValueError, GpubenchError):
                piece = read(Piece, self.pieces.get(), "lines of a record")
                if addresses.get(piece.machine) != piece.worker:  # another's, or late
                    continue
                name, new, share = piece.record, piece.lines, self.given[piece.machine]
                begun = self.begun.get(share, {})
                if name in begun and digest(new) == piece.digest:
                    add_lines(self.results_dir, share, name, begun[name], new)
                    begun[name] += new

    def drop_vanished(self) -> None:
        """Leave machines out that are gone, and give up what they had."""
        alive = self.client.nthreads()
        self.take_lines()
        self.idle = [machine for machine in self.idle if machine.address in alive]
        for future, (machine, share) in list(self.running.items()):
            if machine.address not in alive:
                del self.running[future]
                future.cancel()
                self.give_up(machine, share, "it has vanished")

    def give_out(self) -> None:
        """Give each idle machine a share, where there is one for it. What nobody is left for is
        lost."""
        for machine in list(self.idle):
            untried = (share for share in self.waiting if machine.name not in self.tried[share])
            last = self.given.get(machine.name)
            installed = last.commit if last else None
            if share := next_share(untried, self.keepers[machine.name], installed):
                self.idle.remove(machine)
                self.waiting.remove(share)
                self.given[machine.name] = share
                names = record_names(share, machine.environments)
                begun = {**self.begun.setdefault(share, dict.fromkeys(names, b""))}
                if share.skip_existing:
                    with suppress(OSError, ValueError):  # keeping the share will say so
                        begun = begun_before(self.results_dir, share, machine.environments)
                self.submit(machine, share, self.variables, begun)
        if not self.running:
            nobody = "no machine is left that could measure it"
            self.outcome.lost += [(share, nobody) for share in self.waiting]

    def submit(
        self,
        machine: Machine,
        share: Share,
        variables: Mapping[str, str] | None,
        begun: Mapping[str, bytes],
    ) -> None:
        """Ask a machine; without ``variables`` for what it has measured already."""
        where = {"workers": [machine.address], "resources": resources(len(machine.gpus))}
        future = self.client.submit(self.task, share, variables, begun, pure=False, **where)
        self.running[future] = machine, share
        self._begun_at[future] = time.monotonic()
        self.progress.pop(machine.name, None)  # it was of another share

    def receive(self, future: Future) -> None:
        """Keep what a machine has measured; then it is idle, unless it fails again and again."""
        machine, share = self.running.pop(future)
        took = time.monotonic() - self._begun_at.pop(future)
        why = f"{IN_A_ROW} shares in a row failed"
        try:
            parcel = result_of(future)
            count = self.keep(parcel, share, machine, self.begun[share])
        except Damaged as error:
            self.damaged[share] += 1
            self.outcome.asked_again += 1
            if self.damaged[share] <= ASKED_AGAIN:
                self.say(f"{machine.name}: {share.title}: {error}; it is asked for again")
                self.submit(machine, share, None, {})
                return
            self.give_up(machine, share, str(error))
        except Exception as error:  # whatever went wrong over there
            self.failures[machine.name] += 1
            if isinstance(error, Malformed):
                self.failures[machine.name] = IN_A_ROW
                why = "what it sends is malformed"
            self.give_up(machine, share, words_of(error))
        else:
            self.failures[machine.name] = 0
            self.outcome.kept += 1
            del self.begun[share]
            self.pace.add(share, took)
            place = f"{self.outcome.kept + len(self.outcome.lost)}/{self.outcome.shares}"
            left = f"; {self.left()} left" if self.waiting or self.running else ""
            done = f"{count} benchmarks in {duration(took)}{left}"
            self.say(f"[{place}] {machine.name}: {share.title}: {done}")
        if self.failures[machine.name] < IN_A_ROW:
            self.idle.append(machine)
        else:
            self.say(f"{machine.name} gets no more: {why}")

    def give_up(self, machine: Machine, share: Share, why: str) -> None:
        """Give the share of a machine that failed to another one; without any it is lost."""
        self.say(f"{machine.name}: {share.title}: {why}")
        tried = self.tried[share]
        tried.add(machine.name)
        others = [*self.idle, *(other for other, _ in self.running.values())]
        if any(self.keepers[m.name] == share.keeper and m.name not in tried for m in others):
            self.waiting.insert(0, share)
        else:
            self.outcome.lost.append((share, f"{machine.name}: {why}"))


def wait_some(futures: Iterable[Future]) -> list[Future]:
    """Return those that are done, after a moment at most."""
    with suppress(TimeoutError):
        wait(list(futures), timeout=POLL, return_when="FIRST_COMPLETED")
    return [future for future in futures if future.done()]


def keep_logs(client: Client, folder: Path) -> MutableMapping[str, str]:
    """Append what the processes of each machine write to ``<machine>.log``, as they write it.

    Return how far each machine is within its share, by its name; that changes as they go on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    progress: dict[str, str] = {}
    names: dict[str, str] = {}
    """What each worker wrote under first, by its address: its one name, and no other worker's."""

    def append(event: tuple[float, object]) -> None:
        with suppress(OSError, Malformed):
            said = read(Said, event[1], "a line")
            name, line = said.machine, shortened(said.line, MAX_SAID)
            if said.worker not in names:
                if not is_file_name(name) or name in names.values() or len(names) >= MAX_LOGS:
                    return
                names[said.worker] = name
            if names[said.worker] != name:
                return
            if match := PROGRESS.search(line):
                progress[name] = f"{float(match[1]):.0f} %"
            with (folder / f"{name}.log").open("a", encoding="utf-8", errors="replace") as file:
                room = MAX_LOG_BYTES - file.tell()
                if room > 0:
                    file.write(f"{line}\n" if room > MAX_SAID else "... the log is full\n")

    client.subscribe_topic(LINES_TOPIC, append)
    return progress


def words_of(error: BaseException) -> str:
    """Return what an error of another machine says, as far as a person would read it: of a
    traceback, which Dask puts into some of its errors, the last line."""
    said = str(error).strip() or type(error).__name__
    return shortened(said.splitlines()[-1] if _TRACEBACK in said else said, MAX_WORD)


class Pace:
    """How long shares take, by those that came back and by what benchmarks took before."""

    def __init__(self) -> None:
        self._took = self._expected = 0.0

    def add(self, share: Share, seconds: float) -> None:
        """Take note of how long a share took."""
        self._took += seconds
        self._expected += share.seconds

    def seconds_left(self, shares: Collection[Share], keepers: Mapping[str, str]) -> float | None:
        """Seconds until these are measured, those of one keeper divided by its machines; ``None``
        where none came back yet and nothing is known of one of them."""
        if not self._expected and not all(share.was_measured for share in shares):
            return None
        factor = self._took / self._expected if self._expected else 1.0
        totals, machines = Counter[str](), Counter(keepers.values())
        for share in shares:
            totals[share.keeper] += share.seconds  # type: ignore[assignment]
        each = (seconds / machines[keeper] for keeper, seconds in totals.items())
        return factor * max(each, default=0.0)


def result_of(future: Future) -> Any:
    """Return what a task gave. Whatever ended it, which Dask raises here as it was raised there,
    comes as a ``GpubenchError``: a task that asked its process to end asks nothing of this one."""
    error = future.exception(timeout=FETCH)
    if error is not None:
        raise GpubenchError(words_of(error))
    return future.result(timeout=FETCH)


def last_run(client: Client) -> dict[str, Any]:
    """Return how far the last run is; empty where there was none, or something else says so."""
    with suppress(Malformed):
        said = client.get_metadata(METADATA, {})
        return msgspec.structs.asdict(read(Progress, said, "the progress of the last run"))
    return {}
