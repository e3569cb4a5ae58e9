"""The coordinator: it gives shares to machines as they become free, and keeps what comes back.

A machine has one share at a time. Dask could be given all at once, but then a slow machine would
sit on what others could do, and the longest would not come first.
"""

from __future__ import annotations

import getpass
import os
import platform
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from queue import Full, Queue
from typing import Any

import msgspec
from distributed import Client, Future, wait

from gpubench.edge.fleet.cluster import (
    LINES_TOPIC,
    PROGRESS,
    RECORDS,
    SchedulerStopped,
    describe,
    join,
    measure,
    time_cases,
)
from gpubench.edge.fleet.equality import groups_of, proof_commands
from gpubench.edge.fleet.messages import (
    MAX_SAID,
    MAX_WORD,
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
from gpubench.edge.fleet.parcels import (
    Damaged,
    add_lines,
    begun_before,
    digest,
    record_names,
    result_name,
    rows_of,
    stored,
)
from gpubench.edge.fleet.shares import Machine, Share, divide, next_share, offer_of, resources
from gpubench.errors import GpubenchError
from gpubench.plan.plan import Plan
from gpubench.report.text import duration
from gpubench.suite.tree import shortened

Say = Callable[[str], object]
"""Tells a person."""

Keep = Callable[[Any, Share, Machine, Mapping[str, bytes]], int]
"""Puts what came back of a share with the rest, after the lines of each record that had come of it
before, and tells how many benchmarks that were."""

POLL = 1.0
"""Seconds after which it is seen that a machine is gone. A share takes minutes."""

ASKED_AGAIN = 3
"""How often a damaged parcel is asked for: what damages four in a row does not stop."""

FETCH = 60.0
"""Seconds for a parcel that is ready, a few MB, to come over the network."""

IN_A_ROW = 2
"""Shares in a row that fail on a machine, after which it gets no more: its disk is full, or its
compiler is missing, and it would fail all others at once."""

METADATA = ["gpubench", "fleet"]
"""Where Dask keeps the progress of the last run."""

HOLDER = ["gpubench", "holder"]
"""Where Dask keeps who measures: one run at a time, as a machine has one checkout."""

TELL_SECONDS = 15.0
"""Between two lines that say how far machines are within their shares."""

MAX_PIECES = 256
"""Pieces of records that wait to be kept: a machine sends one every five seconds at most, and all
are kept once a second."""

_TRACEBACK = "Traceback (most recent call last)"

MAX_LOGS, MAX_LOG_BYTES = 1_000, 2**26
"""Machines whose processes are written down, and bytes of each one's log: 64 MiB are the lines of
some hundred runs."""


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


# --- one run at a time


def claim(client: Client, commits: str) -> dict[str, str] | None:
    """Make this the fleet's one run, and return ``None``; else return who measures now. The claim
    ends with the client, however that ends."""
    mine = {
        "client": client.id,
        "commits": commits,
        "by": f"{getpass.getuser()} on {platform.node()}, process {os.getpid()}",
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    group, key = HOLDER

    # It goes to the scheduler as code, since that may have no gpubench; nothing runs there between
    # its lines.
    def hold(dask_scheduler: Any) -> Any:
        ours = dask_scheduler.task_metadata.setdefault(group, {})
        holder = ours.get(key)
        if holder and holder["client"] in dask_scheduler.clients and holder != mine:
            return holder
        ours[key] = mine
        return None

    holder: dict[str, str] | None = client.run_on_scheduler(hold)
    return holder


def claim_or_wait(client: Client, commits: str, say: Say, *, wait: bool) -> None:
    """Make this the fleet's one run; where another one measures, ``wait`` for its end, or raise
    ``GpubenchError``."""
    told = None
    while holder := claim(client, commits):
        there = f"{holder['commits']}, since {holder['since']}, by {holder['by']}"
        if not wait:
            raise GpubenchError(
                f"another run measures on this fleet: {there}; wait for its end with --wait, or "
                "end it there with Ctrl-C"
            )
        if told != holder:
            say(f"waiting for the run that measures now: {there}")
        told = holder
        time.sleep(POLL)


# --- who takes part


def machines_of(
    client: Client, repository: str, head: str, only: Iterable[str], say: Say
) -> tuple[list[Machine], list[str]]:
    """Machines that are ready to measure, and why others are not.

    Raises ``GpubenchError`` where there is none at all.
    """
    workers, refused = described(client)
    named = defaultdict[str, list[str]](list)
    for one in workers:
        named[one["machine"].casefold()].append(one["machine"])
    several = {name for names in named.values() if len(names) > 1 for name in names}
    addresses = {one["machine"]: one["address"] for one in workers if one["machine"] not in several}
    wanted = set(only) or {*addresses, *several}
    refused += [f"{name} is not there" for name in sorted(wanted - {*addresses, *several})]
    refused += [
        f"several workers are called {name}; give each a --machine of its own"
        for name in sorted(wanted & several)
    ]
    ready = list[Machine]()
    asked = {name: addresses[name] for name in wanted & set(addresses)}
    for name, answer in _asked(client, asked, join, repository, head).items():
        try:
            if isinstance(answer, Exception):
                raise answer
            machine = read_machine(answer, name, addresses[name])
        except Exception as error:  # whatever went wrong over there
            refused.append(f"{shortened(name, 80)} takes no part: {_words(error)}")
        else:
            ready.append(machine)
            facts = (machine.facts.get("cpu"), *machine.gpus, *machine.environments)
            say(f"{name}: {', '.join(map(str, facts))}")
    if not ready:
        raise GpubenchError(
            "no machine measures: "
            + ("; ".join(refused) or "start `gpubench fleet worker ADDRESS` on each")
        )
    return ready, refused


def _asked(
    client: Client, addresses: Mapping[str, str], function: Callable[..., Any], *arguments: Any
) -> dict[str, Any]:
    """Return what each of these machines answers, by its name; an exception where it failed or is
    gone."""
    futures = {
        name: client.submit(function, *arguments, workers=[a], resources=resources(0), pure=False)
        for name, a in sorted(addresses.items())
    }
    answers: dict[str, Any] = {}
    for name, future in futures.items():
        while not future.done() and addresses[name] in client.nthreads():
            wait_some([future])
        if future.cancelled():  # by nobody here
            raise SchedulerStopped("the scheduler stopped")
        try:
            if not future.done():
                raise GpubenchError("it has vanished")
            answers[name] = _result(future)
        except Exception as error:  # whatever went wrong over there
            answers[name] = error
    return answers


def _result(future: Future) -> Any:
    """Return what a task gave. Whatever ended it, which Dask raises here as it was raised there,
    comes as a ``GpubenchError``: a task that asked its process to end asks nothing of this one."""
    error = future.exception(timeout=FETCH)
    if error is not None:
        raise GpubenchError(_words(error))
    return future.result(timeout=FETCH)


def _words(error: BaseException) -> str:
    """Return what an error of another machine says, as far as a person would read it: of a
    traceback, which Dask puts into some of its errors, the last line."""
    said = str(error).strip() or type(error).__name__
    return shortened(said.splitlines()[-1] if _TRACEBACK in said else said, MAX_WORD)


def keepers_of(
    client: Client,
    machines: Sequence[Machine],
    plan: Plan,
    keeper: str,
    say: Say,
    variables: Mapping[str, str] | None = None,
) -> tuple[dict[str, str], dict[str, str]]:
    """Under which name the results of each machine are kept where equal ones divide the work, and
    what the page *Machines* says of it.

    Machines of one kind are compared; raises ``GpubenchError`` where several kinds have more than
    one machine, and where ``keeper`` is one machine's name.
    """
    keepers, kinds = {machine.name: machine.name for machine in machines}, defaultdict(list)
    if keeper in keepers or not is_file_name(keeper):
        raise GpubenchError(f"--share {keeper!r}: give a name that no machine has")
    for machine in sorted(machines, key=lambda machine: machine.name):
        kinds[machine.kind].append(machine)
    several = [of_kind for of_kind in kinds.values() if len(of_kind) > 1]
    if len(several) > 1:
        named = "; ".join(", ".join(machine.name for machine in group) for group in several)
        raise GpubenchError(
            f"machines of {len(several)} kinds could divide the work: {named}; name those that "
            "are meant with --only"
        )
    if not several:
        say("no two machines are of one kind: each measures everything")
        return keepers, {}
    commands = proof_commands(plan)
    say(f"comparing {', '.join(m.name for m in several[0])} by {len(commands)} kernels")
    addresses = {machine.name: machine.address for machine in several[0]}
    answers = _asked(client, addresses, time_cases, commands, variables or {})
    times = {name: _read_times(answer) for name, answer in answers.items()}
    groups, notes = groups_of(several[0], times, keeper)
    for note in dict.fromkeys(notes.values()):
        say(note)
    return {**keepers, **groups}, notes


def _read_times(answer: object) -> SentTimes:
    """Return times of a machine that it was compared by; none where it failed or sent others."""
    with suppress(Malformed):
        return read(SentTimes, answer, "times")
    return {}


# --- what is to be measured


def shares_of(
    machines: Sequence[Machine],
    keepers: Mapping[str, str],
    plans: Callable[[int], Plan],
    commits: Sequence[str],
    results_dir: Path,
    *,
    skip_existing: bool,
) -> list[Share]:
    """Return all shares: for each name under which results are kept, what its machines can
    measure.

    ``plans`` gives the plan for a number of CUDA devices: what is asked for.
    """
    durations, shares = durations_of(results_dir), []
    for keeper, machine in {keepers[machine.name]: machine for machine in machines}.items():
        there = {
            commit: versions_of(results_dir / keeper, commit, machine.environments)
            for commit in (commits if skip_existing else ())
        }
        offers = map(offer_of, plans(len(machine.gpus)).expansions())
        can = [offer for offer in offers if machine.gpus or not offer.needs_cuda]
        shares += divide(keeper, can, commits, there, durations)
    return shares


def versions_of(folder: Path, commit: str, environments: Iterable[str]) -> list[dict[str, str]]:
    """Benchmarks with results of a commit and their versions, in each environment."""
    contents = (stored(folder / result_name(commit, one)) for one in environments)
    return [
        {name: str(row.get("version")) for name, row in rows_of(content).items()}
        for content in contents
    ]


def durations_of(results_dir: Path) -> dict[str, float]:
    """Seconds that each of asv's benchmarks took when it was measured last, on any machine."""
    last: dict[str, tuple[float, float]] = {}
    for path in results_dir.glob("*/*-*.json"):
        with suppress(GpubenchError, OSError, TypeError, AttributeError):  # the report tells of it
            for name, row in rows_of(stored(path)).items():
                if row.get("duration") is not None:
                    at = float(row.get("started_at") or 0), float(row["duration"])
                    last[name] = max(at, last.get(name, at))
    return {name: seconds for name, (_, seconds) in last.items()}


def expectation(shares: Sequence[Share], keepers: Mapping[str, str]) -> str:
    """Say how many shares there are for how many machines, and how long they may take."""
    new = sum(not share.was_measured for share in shares)
    seconds = Pace().seconds_left(shares, keepers)
    if seconds is not None:
        how_long = f"some {duration(seconds)}, by what they took before"
    else:
        how_long = f"{new} of them were never measured, so how long they take is seen by the first"
    plural = "" if len(shares) == 1 else "s"
    machines = f"{len(keepers)} machine{'' if len(keepers) == 1 else 's'}"
    return f"{len(shares)} share{plural} for {machines}: {how_long}"


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


# --- measuring


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
            parcel = _result(future)
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
            self.give_up(machine, share, _words(error))
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


def last_run(client: Client) -> dict[str, Any]:
    """Return how far the last run is; empty where there was none, or something else says so."""
    with suppress(Malformed):
        said = client.get_metadata(METADATA, {})
        return msgspec.structs.asdict(read(Progress, said, "the progress of the last run"))
    return {}


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


def described(client: Client) -> tuple[list[dict[str, str]], list[str]]:
    """Return what each measuring worker says of itself: ``machine``, ``address``, ``checkout``, and
    what it ``does``, with the ``progress``; and why others take no part."""
    answers = client.run(describe, on_error="ignore")  # others' workers have no gpubench
    workers, refused = list[dict[str, str]](), list[str]()
    for address, one in sorted(answers.items()):
        try:
            if one is not None:
                said = read(Description, one, "what it says of itself")
                workers.append({"address": address, **msgspec.structs.asdict(said)})
        except Malformed as error:
            refused.append(f"{address} takes no part: {error}")
    return workers, refused
