"""Campaigns against gpubench, and the table of `docs/robustness.md` that states what came of them:
`python scripts/robustness.py`, or some of them: `python scripts/robustness.py suites=20000 kills`;
`seed=2` makes other tries. `table LOG ...` adds up what several runs have printed.

| campaign | what is tried |
| --- | --- |
| suites | the project's suites and those of its tests, broken |
| generated | suites made from the schema |
| misplaced | the project's suites, with any value at any field of the format |
| results | result files, records, `machine.json` and `benchmarks.json`, damaged |
| kills | `asv run`, `report`, `serve` and `query`, killed at random moments; a report after each |
| fleet | `gpubench fleet run`, or the machine that measures, in the same way |
| messages | what a worker of a fleet sends, broken, beside an honest worker |
| strings | texts that try to be markup or code, in all that results say; every page in chromium |

Of kills and fleets so many are made as are asked for, and what ends before comes on top. Exit code
1 where one escaped. Kills need Linux, `fleet` and `messages` need Dask, and `strings` chromium.
"""

from __future__ import annotations

import io
import logging
import math
import os
import random
import re
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

from hostile_files import COLUMNS, HEAD, ROOT, TOGETHER, Counts, Outcome, all_tried, versions

from gpubench import cli
from gpubench.errors import Exit
from gpubench.parallel import processors
from gpubench.record import RoundsRecord
from gpubench.report.render import NEW_FOLDER_PREFIX
from gpubench.results import open_table

for folder in ("tests/browser", "tests/end_to_end", "gpubench/edge/fleet/tests"):
    sys.path.insert(0, str(ROOT / folder))

TRIES = {"suites": 18_000, "generated": 4_000, "misplaced": 4_000, "results": 2_000}
TRIES |= {"kills": 100, "fleet": 20, "messages": 200, "strings": 40}
"""Unless the command line says otherwise."""


def files_campaign(what: str, tries: int, seed: str) -> tuple[str, bool]:
    """Broken files; the line of the table, and whether something escaped."""
    counts = Counts()
    seeds = [f"{what}-{seed}-{number}" for number in range(tries)]
    parts = [seeds[start : start + TOGETHER] for start in range(0, tries, TOGETHER)]
    with ThreadPoolExecutor(processors()) as pool:
        for part in pool.map(lambda part: list(all_tried(part)), parts):
            for seed, outcome in part:
                counts.add(seed, outcome)
    return counts.line(what), bool(counts.of["escaped"])


def kills_campaign(kills: int, seed: str) -> tuple[str, bool]:
    """Half of them `asv run`, the rest commands that read. What ends before it is killed is tried
    too, and is no kill."""
    from asv_project import isolated_environment
    from stepping_project import make_stepping_project

    rng, counts = random.Random(seed), Counts()
    with TemporaryDirectory(prefix="gpubench-kills-") as folder:
        home, path = Path(folder, "home"), Path(folder, "steps")
        home.mkdir()
        project = make_stepping_project(path, isolated_environment(home))
        (path / "suites/steps.yaml").write_text(STEPS)
        (path / "steps_kernels.py").write_text(STEPS_KERNELS)
        # The tree of this script, whatever is installed.
        paths = {"PYTHONPATH": f"{ROOT}", "ASV_PYTHONPATH": f"{path}{os.pathsep}{ROOT}"}
        project.environment.update(paths)
        _kill_runs(project, rng, counts, kills // 2)
        _kill_readers(project, rng, counts, kills - kills // 2)
    return counts.line("kills"), bool(counts.of["escaped"])


STEPS = """\
version: 1
suite: steps
kernels:
  add:
    sizes: {n: [8, 16, 32]}
    arrays: {a: {shape: [n], dtype: float64, fill: normal, intent: inout}}
    call: [a]
    implementations:
      numpy: {function: "steps_kernels:add", backend: numpy}
      failing: {function: "steps_kernels:fail", backend: numpy}
    sampling: {rounds: 2, repeat: 5, warmup_time: 0, sample_time: 0.0001}
"""
STEPS_KERNELS = """\
def add(a):
    a += 1


def fail(a):
    raise ValueError("as it always does")
"""
"""Nothing that takes long to import or to compile, so that a run takes some seconds."""

TICK = 0.02
"""Seconds between two looks at what a command has used: two of Linux's clock."""

KILLS = ("first", "all", "ctrl-c", "SIGTERM", "SIGHUP")
"""Ways to end a command (``stepping_project.kill``)."""

RESTING = 100
"""Looks at which a command has used nothing more, after which it is killed: it serves."""


def _used(roots: Collection[int]) -> float:
    """Seconds of the processor that processes, and all that they have started, have used."""
    used, parents = dict[int, int](), dict[int, int]()
    for folder in Path("/proc").iterdir():
        with suppress(OSError, ValueError):  # it has ended; something else
            process, stat = int(folder.name), (folder / "stat").read_text()
            fields = stat.rpartition(")")[2].split()
            parents[process] = int(fields[1])
            used[process] = sum(map(int, fields[11:15]))  # proc_pid_stat(5): utime to cstime

    def is_of_it(process: int) -> bool:
        while process and process not in roots:
            process = parents.get(process, 0)
        return bool(process)

    return sum(used[one] for one in used if is_of_it(one)) / os.sysconf("SC_CLK_TCK")


def _run_until(process: Any, moment: float = math.inf, others: Collection[int] = ()) -> float:
    """Until a command and ``others`` that work for it have used so many seconds of the processor,
    which do not go on where the machine is suspended or busy, or it rests, or has ended; what they
    have used."""
    roots = {process.pid, *others}
    used, still, before = 0.0, 0, _used(others)
    while process.poll() is None and used < moment and (still < RESTING or moment == math.inf):
        time.sleep(TICK)
        now = max(_used(roots) - before, used)
        used, still = now, 0 if now > used else still + 1
    return used


def _kill_runs(project: Any, rng: random.Random, counts: Counts, kills: int) -> None:
    """Kill runs: each goes on with what the ones before it have left, until one ends."""
    from stepping_project import RUN, start, started

    # As `gpubench init` has it, and asv where it can: one process that is forked for each case.
    command = ["asv", *("forkserver" if word == "spawn" else word for word in RUN)]
    whole = start(project, *command)
    lasting = _run_until(whole)
    if whole.wait() != FAILING:
        sys.exit("asv run does not come to its end")
    needed, times = Counter(started(project)), project.times("only")
    ended, killed, in_a_row = 0, 0, 0
    shutil.rmtree(project.results)
    while killed < kills:
        resumed = ["--skip-existing"] if in_a_row else []
        code, faults = _killed(project, rng, lasting, *command, *resumed)
        if code is None:
            killed, in_a_row = killed + 1, in_a_row + 1
        else:  # whole: nothing was measured twice but what a kill had cut
            twice = Counter(started(project)) - needed
            if twice.total() > in_a_row:
                faults.append(f"{twice.total()} measured again after {in_a_row} kills")
            faults += [f"lost: {place}" for place in needed.keys() - set(started(project))]
            if code not in (0, FAILING):  # 0: asv had stored all when it was killed
                faults.append(f"asv ended with {code}")
            elif _timed(project.times("only")) != _timed(times):
                faults.append("lost: asv has other times than after one run")
            print(f"  to its end after {in_a_row} kills: {twice.total()} measured again")
            ended, in_a_row = ended + 1, 0
            shutil.rmtree(project.results)
        counts.add(f"asv run {killed}", _outcome(code is None, faults))
    project.run(*command, code=FAILING)
    print(f"kills: {ended} runs of asv came to their end")


FAILING = 2
"""Exit code of asv where a benchmark fails, as one does."""

GPUBENCH = (sys.executable, "-m", "gpubench")


def _has_traceback(said: str) -> bool:
    """Return whether a command ended in one, not a Python that was just beginning."""
    return "Traceback" in said and any(of in said for of in (f"{ROOT}", "site-packages"))


def _timed(times: Mapping[Any, float | None]) -> set[tuple[Any, bool]]:
    return {(place, seconds is None) for place, seconds in times.items()}


def _kill_readers(project: Any, rng: random.Random, counts: Counts, kills: int) -> None:
    """Reports from nothing, from a table, and over the report of before."""
    from stepping_project import start

    lasting = _run_until(start(project, *GPUBENCH, "report"))
    html = project.path / "reports/html"
    whole = {page.name: page.read_bytes() for page in html.glob("*.html")}
    killed = 0
    while killed < kills:
        for made in (project.path / "reports", project.path / ".asv/.gpubench-cache"):
            if rng.random() < 0.7:
                shutil.rmtree(made, ignore_errors=True)
        command = (("report",), ("serve", "--port", "0"), ("query", "from results"))[killed % 3]
        code, faults = _killed(project, rng, lasting, *GPUBENCH, *command)
        pages = {page.name: page.read_bytes() for page in html.glob("*.html")}
        faults += [f"{name} is another" for name in whole if pages.get(name) != whole[name]]
        if code:
            faults.append(f"it ended with {code}")
        killed += code is None
        counts.add(f"{command[0]} {killed}", _outcome(code is None, faults))
    if left := [*project.path.rglob(f"{NEW_FOLDER_PREFIX}*")]:
        counts.add("report", Outcome("escaped", words=f"{len(left)} folders are left behind"))


LOOKING_OFTEN = "from gpubench.edge.fleet import cluster; cluster.LOOK_SECONDS = 0.3\n"
"""Lines of records come several times in a share of some seconds."""


def fleet_campaign(kills: int, seed: str) -> tuple[str, bool]:
    """Kill the coordinator of a fleet, or its one machine, which then joins again: half of them at
    any moment of a run, half while it measures."""
    import fleet_project
    from fleet_project import SUITES, fleet_at, statuses
    from stepping_project import started

    fleet_project.PATIENCE = 86_400  # a machine that is suspended ends nothing
    os.environ["DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL"] = "1 day"
    rng, counts, killed, ended, in_a_row = random.Random(seed), Counts(), 0, 0, 0
    with TemporaryDirectory(prefix="gpubench-fleet-") as folder, fleet_at(Path(folder)) as fleet:
        project, checkout = fleet.project, Path(folder, "alpha/checkout")
        (project.path / f"suites/{SUITES[-1]}.yaml").unlink()  # two shares are enough
        project.commit("two", 2)
        there = replace(project, path=checkout)

        def measured(where: Any) -> int:  # of whole lines: there may be half a one
            files = where.results.glob("*/*.gpubench.jsonl")
            return sum(file.read_bytes().count(b'"kind": "rounds"') for file in files)

        def run_until(run: Any, moment: float = math.inf) -> float:
            return _run_until(run, moment, [fleet.workers["alpha"].pid])

        fleet.start("alpha", LOOKING_OFTEN)
        run = fleet.begin()
        lasting = run_until(run)
        run.communicate()
        whole, most = statuses(project, "alpha"), measured(project)
        needed = Counter(started(project))

        def afresh() -> None:
            for each in (project.path, checkout):
                shutil.rmtree(each / ".asv")

        afresh()
        while killed < kills:
            run = fleet.begin("--skip-existing")
            if rng.random() < 0.5:
                used = run_until(run, rng.uniform(0, lasting))
            else:
                wanted = rng.randrange(most)
                while not _has_ended(run) and measured(there) <= wanted:
                    time.sleep(TICK)
                used = run_until(run, rng.uniform(0, 0.3))
            was_killed = not _has_ended(run)
            victim = rng.choice(("coordinator", "ctrl-c", "machine"))
            if not was_killed:
                victim = "nobody"
            elif victim == "machine":
                fleet.workers["alpha"].kill()
                fleet.workers["alpha"].wait()
            else:
                run.send_signal(signal.SIGKILL if victim == "coordinator" else signal.SIGINT)
            said, _ = run.communicate()
            faults = [f"{victim}: {said[-300:]}"] if _has_traceback(said) else []
            _wait(lambda: not fleet.processes(), 12_000)
            faults += [f"{victim}: {process} goes on" for process in fleet.processes()]
            print(
                f"  {victim} after {used:.1f} of {lasting:.1f} s: of {most} processes "
                f"{measured(there)} are on record there, {measured(project)} here",
                flush=True,
            )
            if victim == "machine":
                fleet.start("alpha", LOOKING_OFTEN)
            faults += _left_by(project)
            killed, in_a_row = killed + was_killed, in_a_row + was_killed
            if run.returncode == 0:
                if statuses(project, "alpha") != whole:
                    faults.append("lost: what was measured is not what one run measures")
                twice = (Counter(started(there)) - needed).total()
                print(f"  to its end after {in_a_row} kills: {twice} measured again")
                afresh()
                ended, in_a_row = ended + 1, 0
            elif not was_killed:
                faults.append(f"it ended with {run.returncode}: {said[-300:]}")
            counts.add(f"fleet {killed}", _outcome(was_killed, faults))
    print(f"fleet: {ended} runs came to their end")
    return counts.line("fleet"), bool(counts.of["escaped"])


def messages_campaign(tries: int, seed: str) -> tuple[str, bool]:
    """Let one worker send broken messages and parcels over Dask, and another one honest ones, which
    have to arrive."""
    import distributed

    counts = Counts()
    for number in range(tries):
        name = f"messages-{seed}-{number}"
        with (  # a fleet of its own: what Dask cannot send ends a worker
            TemporaryDirectory(prefix="gpubench-messages-") as folder,
            distributed.LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                processes=False,
                protocol="tcp",
                dashboard_address="127.0.0.1:0",
                resources={"cpu": 1},
                silence_logs=logging.CRITICAL + 1,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            try:
                how, faults = _sent_beside(client, Path(folder), random.Random(name))
            except Exception as error:
                how, faults = "escaped", [f"{type(error).__name__}: {error}"[:500]]
        counts.add(name, Outcome("escaped" if faults else how, words="; ".join(faults)))
    return counts.line("messages"), bool(counts.of["escaped"])


def _sent_beside(client: Any, folder: Path, rng: random.Random) -> tuple[str, list[str]]:
    """Measure one share on each of two machines, of which one sends what is broken; return what
    became of that, and what is wrong."""
    import distributed
    from hostile_messages import (
        SHARE,
        faults_of,
        honest_parcel,
        hostile_events,
        hostile_parcel,
        read_words,
        renamed,
    )

    from gpubench.edge.fleet.cluster import LINES_TOPIC, RECORDS
    from gpubench.edge.fleet.dispatch import Dispatch, keep_logs
    from gpubench.edge.fleet.parcels import merge, pack
    from gpubench.edge.fleet.shares import Machine

    read_words(rng)
    honest, results, said = honest_parcel(folder / "made"), folder / "results", list[str]()
    hostile = hostile_parcel(rng, renamed(honest, "evil"))
    events = hostile_events(rng)

    def task(share: Any, variables: Any, begun: Any) -> Any:
        if share.keeper == "lab":
            time.sleep(0.1)  # while the other one sends
            return honest
        for event in events:
            distributed.get_worker().log_event(rng.choice((LINES_TOPIC, RECORDS)), event)
        return hostile

    def keep(parcel: Any, share: Any, machine: Any, begun: Any) -> int:
        return merge(parcel, share, machine.environments, results, {}, begun)

    keepers = {"lab": "lab", "evil": "evil"}
    addresses = zip(keepers, client.nthreads(), strict=True)
    machines = [Machine(name, address, {}, (), ("env",)) for name, address in addresses]
    shares = [replace(SHARE, keeper=keeper) for keeper in keepers]
    keep_logs(client, folder / "logs")
    outcome = Dispatch(
        client, machines, keepers, shares, results, keep, said.append, task=task
    ).run()
    faults = faults_of(results, tuple(keepers))
    faults += [line[:200] for line in said if len(line) > 3_000]
    faults += [f"{path.name} is there" for path in folder.iterdir() if path.name not in _THERE]
    if len(logs := [*folder.glob("logs/**/*")]) > len(keepers):
        faults.append(f"{len(logs)} logs of {len(keepers)} workers")
    arrived = pack(results, SHARE, ["env"]).files
    if arrived.keys() != honest.files.keys():
        faults.append(f"lost: of the honest machine only {', '.join(arrived)} arrived")
    return "accepted" if outcome.kept == len(shares) else "refused", faults


_THERE = ("made", "results", "logs")


def _outcome(was_killed: bool, faults: list[str]) -> Outcome:
    """`accepted` is one that ended before it could be killed."""
    how = "escaped" if faults else "named" if was_killed else "accepted"
    return Outcome(how, words="; ".join(faults))


def _wait(happened: Callable[[], object], looks: int) -> None:
    """Until something has happened, so many looks at most, which are not made while the machine is
    suspended."""
    while looks and not happened():
        time.sleep(0.05)
        looks -= 1


def _has_ended(process: Any) -> bool:
    return process.poll() is not None


def _killed(
    project: Any, rng: random.Random, lasting: float, *command: str
) -> tuple[int | None, list[str]]:
    """Kill a command that uses the processor for some seconds at some moment; the exit code of one
    that ended before, and what is wrong then."""
    from stepping_project import kill, processes_of, start

    with TemporaryFile() as errors:
        process = start(project, *command, errors=errors)
        used = _run_until(process, rng.uniform(0, lasting))
        time.sleep(rng.uniform(0, TICK))
        code, how = process.poll(), rng.choice(KILLS)
        if how == "first":
            process.kill()
            _wait(lambda: not processes_of(process.pid), 1_200)
            if processes_of(process.pid):  # it waits for an asv that is gone
                print("  asv's process that is forked for each case is left, and ended now")
                how = "first, then all"
        kill(process, how)
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    name = command[1] if command[0] == "asv" else command[len(GPUBENCH)]
    print(f"  {name}, {how if code is None else 'ended'} after {used:.2f} of {lasting:.2f} s")
    faults = _left_by(project)
    if command[0] != "asv" and _has_traceback(said):
        faults.append(f"{how}: {said[-2000:]}")
    return code, faults


NOTHING_THERE = "gpubench: nothing in .asv/results can be read"


def _stored(project: Any) -> list[Path]:
    """Return asv's result files."""
    return [*project.results.glob("*/*-*.json")]


def _left_by(project: Any) -> list[str]:
    """Return what is wrong with what a killed command has left."""
    from stepping_project import lines

    faults, finished = list[str](), set[tuple[str, str]]()
    try:
        of_rounds = (line for line in lines(project) if isinstance(line, RoundsRecord))
        finished = {(line.benchmark, line.case) for line in of_rounds}
    except Exception as error:  # a line that is not whole
        faults.append(f"record: {error}")
    faults += [
        f"{page} is not whole"
        for page in project.path.glob("reports/html/**/*.html")
        if NEW_FOLDER_PREFIX not in f"{page}" and not page.read_text().rstrip().endswith("</html>")
    ]
    if project.results.exists():
        # A fork has imported what it needs: a Python of its own would take five times as long.
        context = get_context("fork")
        telling, told = context.Pipe(duplex=False)
        process = context.Process(target=_report, args=(project, told))
        process.start()
        told.close()
        try:
            code, said, shown = telling.recv()
        except EOFError:
            code, said, shown = 1, "it tells nothing", set()
        process.join()
        if code == Exit.REFUSED and NOTHING_THERE in said and not (finished or _stored(project)):
            pass  # it was killed before its first case was finished
        elif code or "Traceback" in said:
            faults.append(f"report: {said[-200:]}")
        elif missing := finished - shown:
            faults.append(f"of {len(finished)} that were finished {len(missing)} are not shown")
    return faults


def _report(project: Any, told: Any) -> None:
    """Write the report in a process of its own; tell the exit code, what was said, and each
    benchmark and case with a time."""
    os.chdir(project.path)
    os.environ.clear()
    os.environ.update(project.environment)
    said, code = io.StringIO(), None
    with redirect_stdout(said), redirect_stderr(said):
        try:
            cli.main(["report"])
        except SystemExit as end:
            code = end.code
    with closing(open_table(Path(".asv/results"))) as table:
        rows = [table.rows(each) for setup in table.setups for each in table.snapshots(setup)]
    shown = {
        (name.benchmark.asv_name, name.case)
        for of_snapshot in rows
        for name, row in of_snapshot.items()
        if row.seconds is not None
    }
    told.send((code, said.getvalue(), shown))


def strings_campaign(tries: int, _: str) -> tuple[str, bool]:
    """Write each text into a report of its own, every page of which is opened and used."""
    from hostile_strings import STRINGS, faults_of, faults_of_text
    from playwright.sync_api import sync_playwright

    counts, seen = Counts(), Counter[str]()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        context = browser.new_context(offline=True)
        context.set_default_timeout(1_800_000)  # a machine that is suspended ends nothing
        both = "data:text/html,<script>alert(1)</script><img src=http://example.org>"
        if len(noticed := faults_of(context, both)) < 2:
            sys.exit(f"a script and a request of a page are not noticed, only {noticed}")
        for number, text in enumerate(STRINGS[:tries]):
            with TemporaryDirectory(prefix="gpubench-strings-") as folder:
                faults, opened = faults_of_text(context, Path(folder), text)
            seen.update(re.sub("-.*", "", name) for name in opened)
            how = "escaped" if faults else "accepted"
            counts.add(f"string {number} {text!r}", Outcome(how, words="; ".join(faults)[:500]))
        browser.close()
    opened = ", ".join(f"{name} {count}" for name, count in sorted(seen.items()))
    print(f"strings: {seen.total()} pages opened ({opened})")
    return counts.line("strings"), bool(counts.of["escaped"])


def added(logs: Iterable[str]) -> list[str]:
    """Lines of the table of campaigns that were run before: what this script has printed of each,
    added up."""
    counts: dict[str, Counts] = {what: Counts() for what in TRIES}
    for log in logs:
        for line in Path(log).read_text().splitlines():
            what, *numbers = line.strip("| ").replace(",", "").split(" | ")
            if line.endswith("|") and what in counts:
                counts[what].of.update(dict(zip(COLUMNS, map(int, numbers), strict=True)))
    return [of.line(what) for what, of in counts.items() if of.of["tried"]]


def main() -> None:
    """Run the campaigns, and print the table."""
    if sys.argv[1:2] == ["table"]:
        print(HEAD, *added(sys.argv[2:]), sep="\n")
        return
    asked = dict(each.partition("=")[::2] for each in sys.argv[1:])
    seed = asked.pop("seed", "1")
    asked = asked or dict.fromkeys(TRIES, "")
    if (over_dask := asked.keys() & {"fleet", "messages"}) and not find_spec("distributed"):
        print("fleet and messages are left out: they need `pip install 'gpubench-suite[fleet]'`")
        asked = {what: asked[what] for what in asked.keys() - over_dask}
    if unknown := asked.keys() - TRIES.keys():
        sys.exit(f"there is no campaign {unknown.pop()!r}; there are {', '.join(TRIES)}")
    special: dict[str, Callable[[int, str], tuple[str, bool]]] = {
        "kills": kills_campaign,
        "fleet": fleet_campaign,
        "messages": messages_campaign,
        "strings": strings_campaign,
    }
    lines, has_escaped = [], False
    for what, tries in asked.items():
        begun = time.monotonic()
        count = int(tries or TRIES[what])
        campaign = special.get(what) or partial(files_campaign, what)
        line, escaped = campaign(count, seed)
        lines.append(line)
        has_escaped |= escaped
        print(f"{line} {time.monotonic() - begun:.0f} s", flush=True)
    print(HEAD, *lines, "", versions(), sep="\n")
    sys.exit(has_escaped)


if __name__ == "__main__":
    main()
