"""The coordinator: it gives shares to machines as they become free, and keeps what comes back.

A machine has one share at a time. Dask could be given all at once, but then a slow machine would
sit on what others could do, and the longest would not come first.
"""

from __future__ import annotations

import getpass
import os
import platform
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from distributed import Client

from gpubench.edge.fleet.cluster import SchedulerStopped, describe, join, time_cases
from gpubench.edge.fleet.dispatch import POLL, Pace, Say, result_of, wait_some, words_of
from gpubench.edge.fleet.equality import groups_of, proof_commands
from gpubench.edge.fleet.messages import (
    Description,
    Malformed,
    SentTimes,
    is_file_name,
    read,
    read_machine,
)
from gpubench.edge.fleet.parcels import result_name, rows_of, stored
from gpubench.edge.fleet.shares import Machine, Share, divide, offer_of, resources
from gpubench.errors import GpubenchError
from gpubench.plan.plan import Plan
from gpubench.report.text import duration
from gpubench.suite.tree import shortened

HOLDER = ["gpubench", "holder"]
"""Where Dask keeps who measures: one run at a time, as a machine has one checkout."""


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
            refused.append(f"{shortened(name, 80)} takes no part: {words_of(error)}")
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
            answers[name] = result_of(future)
        except Exception as error:  # whatever went wrong over there
            answers[name] = error
    return answers


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


# --- measuring


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
