"""Campaigns against gpubench, and the table of `docs/robustness.md` that states what came of them:
`python scripts/robustness.py`, or some of them: `python scripts/robustness.py suites=20000 kills`;
`seed=2` makes other tries.

| campaign | what is tried |
| --- | --- |
| suites | the project's suites and those of its tests, broken |
| generated | suites made from the schema |
| results | result files, records, `machine.json` and `benchmarks.json`, damaged |
| kills | `asv run`, `report`, `serve` and `query`, killed at random moments; a report after each |
| fleet | `gpubench fleet run`, or the machine that measures, in the same way |
| strings | texts that try to be markup or code, in all that results say; every page in chromium |

Exit code 1 where one escaped. Kills need Linux, `fleet` needs Dask, and `strings` chromium.
"""

from __future__ import annotations

import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from hostile_files import HEAD, ROOT, TOGETHER, Counts, Outcome, all_tried, versions

from gpubench.parallel import processors

for room in ("browser", "end_to_end", "fleet", "results"):
    sys.path.insert(0, str(ROOT / "tests" / room))

TRIES = {"suites": 18_000, "generated": 4_000, "results": 2_000}
TRIES |= {"kills": 80, "fleet": 20, "strings": 40}
"""Unless the command line says otherwise."""

STRINGS = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script href='data:,alert(1)'/>",
    "<iframe src='javascript:alert(1)'>",
    "<object data='http://example.org/x'>",
    "<link rel=stylesheet href=http://example.org/x.css>",
    "<img src=http://example.org/x.png>",
    "<base href=http://example.org/>",
    "<meta http-equiv=refresh content='0;url=http://example.org/'>",
    "<style>@import 'http://example.org/x.css';</style>",
    "<form action=http://example.org><button autofocus onfocus=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<template><script>alert(1)</script></template>",
    "<!--<script>alert(1)//--></script>",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<plaintext>",
    "<textarea><title>",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)' autofocus='",
    "` onload=`alert(1)",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\\u003cscript\\u003ealert(1)\\u003c/script\\u003e",
    "\\x3cscript>alert(1)</script>",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "{{ 7 * 7 }}{% for x in range(10**9) %}{% endfor %}",
    "${alert(1)}#{alert(1)}",
    "');alert(1);//",
    '"};alert(1);//',
    "__proto__",
    "constructor",
    "]]>--></style></script></textarea></title><script>alert(1)</script>",
    "\u202e\u2066</script>\u2028alert(1)\u2029",
    "[link](javascript:alert(1)) ![x](http://example.org/x.png) | a | b",
    "\x1b]8;;http://example.org\x07link\x1b]8;;\x07\x1b[31m\r\n\t",
)
"""What tries to be markup, script, a template, a request or something of a terminal's."""


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


def kills_campaign(tries: int, seed: str) -> tuple[str, bool]:
    """Half of them `asv run`, the rest commands that read."""
    from asv_project import isolated_environment
    from stepping_project import make_stepping_project

    rng, counts = random.Random(seed), Counts()
    with TemporaryDirectory(prefix="gpubench-kills-") as folder:
        home = Path(folder, "home")
        home.mkdir()
        project = make_stepping_project(Path(folder, "steps"), isolated_environment(home))
        _kill_runs(project, rng, counts, tries // 2)
        _kill_readers(project, rng, counts, tries - tries // 2)
    return counts.line("kills"), bool(counts.of["escaped"])


def _kill_runs(project: Any, rng: random.Random, counts: Counts, tries: int) -> None:
    """Each run goes on with what the ones before it have left, until one comes to its end."""
    from stepping_project import RUN, started

    begun = time.monotonic()
    project.asv(*RUN, code=2)
    lasting = time.monotonic() - begun
    needed = Counter(started(project))
    ended, kills = 0, 0

    def afresh() -> None:
        shutil.rmtree(project.results)
        project.asv("machine", "--yes")

    afresh()
    for number in range(tries):
        resumed = ["--skip-existing"] if kills else []
        faults, was_killed = _killed(project, rng, lasting, "asv", *RUN, *resumed)
        kills += was_killed
        if not was_killed:  # whole: nothing was measured twice but what a kill had cut
            twice = Counter(started(project)) - needed
            if twice.total() > kills:
                faults.append(f"{twice.total()} measured again after {kills} kills")
            lost = needed.keys() - set(started(project))
            faults += [f"lost: {place}" for place in lost]
            ended, kills = ended + 1, 0
            afresh()
        counts.add(f"asv run {number}", _outcome(was_killed, faults))
    project.asv(*RUN, code=2)
    print(f"kills: {ended} runs of asv came to their end")


def _kill_readers(project: Any, rng: random.Random, counts: Counts, tries: int) -> None:
    """Reports from nothing, from a table, and over the report of before."""
    from gpubench.report.render import PARTS

    begun = time.monotonic()
    project.run("gpubench", "report")
    lasting = time.monotonic() - begun
    html = project.path / "reports/html"
    whole = {page.name: page.read_bytes() for page in html.glob("*.html")}
    for number in range(tries):
        for made in (project.path / "reports", project.path / ".asv/.gpubench-cache"):
            if rng.random() < 0.7:
                shutil.rmtree(made, ignore_errors=True)
        command = (("report",), ("serve", "--port", "0"), ("query", "from results"))[number % 3]
        faults, was_killed = _killed(project, rng, lasting, "gpubench", *command)
        pages = {page.name: page.read_bytes() for page in html.glob("*.html")}
        faults += [f"{name} is another" for name in whole if pages.get(name) != whole[name]]
        counts.add(f"{command[0]} {number}", _outcome(was_killed, faults))
    if left := [*project.path.rglob(f"{PARTS}*")]:
        counts.add("report", Outcome("escaped", words=f"{len(left)} folders are left behind"))


def fleet_campaign(tries: int, seed: str) -> tuple[str, bool]:
    """The coordinator of a fleet, or its one machine, which then joins again."""
    from fleet_project import PATIENCE, fleet_at, statuses

    rng, counts, ended = random.Random(seed), Counts(), 0
    with TemporaryDirectory(prefix="gpubench-fleet-") as folder, fleet_at(Path(folder)) as fleet:
        project = fleet.project
        fleet.start("alpha")
        begun = time.monotonic()
        fleet.run("run")
        lasting = time.monotonic() - begun
        whole = statuses(project, "alpha")

        def afresh() -> None:
            for each in (project.path, fleet.folder / "alpha/checkout"):
                shutil.rmtree(each / ".asv")

        afresh()
        for number in range(tries):
            run = fleet.begin("--skip-existing")
            _wait(partial(_has_ended, run), rng.uniform(0, lasting * 1.2))
            was_killed = not _has_ended(run)
            victim = rng.choice(("coordinator", "ctrl-c", "machine"))
            if victim == "machine":
                fleet.workers["alpha"].kill()
                fleet.workers["alpha"].wait()
            else:
                run.send_signal(signal.SIGKILL if victim == "coordinator" else signal.SIGINT)
            said, _ = run.communicate(timeout=PATIENCE)
            faults = [f"{victim}: {said[-300:]}"] if "Traceback" in said else []
            _wait(lambda: not fleet.processes(), PATIENCE)
            faults += [f"{victim}: {process} goes on" for process in fleet.processes()]
            if victim == "machine":
                fleet.start("alpha")
            faults += _left_by(project)
            if run.returncode == 0:
                if statuses(project, "alpha") != whole:
                    faults.append("lost: what was measured is not what one run measures")
                afresh()
                ended += 1
            counts.add(f"fleet {number}", _outcome(was_killed, faults))
    print(f"fleet: {ended} runs came to their end")
    return counts.line("fleet"), bool(counts.of["escaped"])


def _outcome(was_killed: bool, faults: list[str]) -> Outcome:
    """`accepted` is one that ended before it could be killed."""
    how = "escaped" if faults else "named" if was_killed else "accepted"
    return Outcome(how, words="; ".join(faults))


def _wait(happened: Callable[[], object], seconds: float) -> None:
    """Until something has happened, some seconds at most."""
    end = time.monotonic() + seconds
    while not happened() and time.monotonic() < end:
        time.sleep(0.005)


def _has_ended(process: Any) -> bool:
    return process.poll() is not None


def _killed(
    project: Any, rng: random.Random, lasting: float, *command: str
) -> tuple[list[str], bool]:
    """Kill a command that lasts some seconds at some moment; what is wrong then, and whether it was
    still running."""
    from stepping_project import kill, start

    process = start(project, *command)
    _wait(partial(_has_ended, process), rng.uniform(0, lasting * 1.2))
    was_killed = not _has_ended(process)
    kill(process, rng.choice(("first", "all", "ctrl-c")))
    return _left_by(project), was_killed


def _left_by(project: Any) -> list[str]:
    """What is wrong with what a killed command has left."""
    from stepping_project import lines

    faults = []
    try:
        lines(project)
    except Exception as error:  # a line that is not whole
        faults.append(f"record: {error}")
    pages = project.path.glob("reports/html/**/*.html")
    faults += [
        f"{page} is not whole"
        for page in pages
        if not page.read_text().rstrip().endswith("</html>")
    ]
    if project.results.exists():
        done = project.run("gpubench", "report", code=None)
        if done.returncode or "Traceback" in done.stdout:
            faults.append(f"report: {done.stdout[-200:]}")
    return faults


def strings_campaign(tries: int, _: str) -> tuple[str, bool]:
    """Each text in a report of its own, every page of which is opened and used."""
    from opened_pages import Watched
    from playwright.sync_api import sync_playwright

    from gpubench.report.render import write_report
    from gpubench.results import Pair, open_table

    counts, seen = Counts(), Counter[str]()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        context = browser.new_context(offline=True)
        context.set_default_timeout(1_800_000)  # a machine that is suspended ends nothing

        def faults_of(address: str, text: str = "") -> list[str]:
            watched = Watched(context.new_page())
            watched.page.goto(address)
            if text:
                _use(watched.page, address, text)
            watched.page.wait_for_timeout(50)  # what a text starts begins at once
            watched.page.close()
            return watched.faults

        noticed = faults_of("data:text/html,<script>alert(1)</script><img src=http://example.org>")
        if len(noticed) < 2:
            sys.exit(f"a script and a request of a page are not noticed, only {noticed}")
        for number, text in enumerate(STRINGS[:tries]):
            with TemporaryDirectory(prefix="gpubench-strings-") as folder:
                project = Path(folder, "project")
                benchmarks = _write_everywhere(project, text)
                before = set(Path(folder).rglob("*"))
                pair = Pair(text, text, *benchmarks)
                table = open_table(project / ".asv/results", project, [pair])
                pages = project / "reports/html"
                write_report(table, pages)
                faults = [
                    f"file: {path}"
                    for path in {*Path(folder).rglob("*")} - before
                    if not path.is_relative_to(project / "reports")
                    and not path.is_relative_to(project / ".asv/.gpubench-cache")
                ]
                for page in sorted(pages.rglob("*.html")):
                    faults += [f"{page.name}: {fault}" for fault in faults_of(page.as_uri(), text)]
                    seen[re.sub("-.*", "", page.stem)] += 1
                how = "escaped" if faults else "accepted"
                counts.add(f"string {number} {text!r}", Outcome(how, words="; ".join(faults)[:500]))
        browser.close()
    opened = ", ".join(f"{name} {count}" for name, count in sorted(seen.items()))
    print(f"strings: {seen.total()} pages opened ({opened})")
    return counts.line("strings"), bool(counts.of["escaped"])


_USED = """(text) => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  document.querySelectorAll("select, input[type=text], input[type=search]").forEach((field) => {
    if (field.options) field.selectedIndex = field.options.length - 1;
    else field.value = text;
    for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
  });
}"""


def _use(page: Any, address: str, text: str) -> None:
    """What a reader can do on a page: unfold, draw, choose, type the text, and come by an address
    that has it."""
    from opened_pages import draw_charts, until

    draw_charts(page)
    if "advise" in address:
        until(page, "() => !!document.querySelector('#advice table')")
    page.evaluate(_USED, text)
    parts = page.evaluate("location.hash.slice(1)").split("&")
    names = [part.partition("=")[0] for part in parts]
    for state in (quote(text), "&".join(f"{name}={quote(text)}" for name in names)):
        page.goto("about:blank")
        page.goto(f"{address}#{state}")


def _write_everywhere(project: Path, text: str) -> tuple[str, str]:
    """Two commits in which all that may be any text is this one; asv's names of two benchmarks that
    gpubench does not name."""
    import json

    from result_files import CommitFiles, write_machine

    from gpubench.analysis.advice_checks import Prediction, keep, verification_path
    from gpubench.results import Setup

    name = text.replace("/", "\u2215").replace("\0", "")  # of a file
    results = project / ".asv/results"
    others = f"suites.{name}.time_a", f"suites.{name}.time_b"
    for number, commit in enumerate(_commits(project, text)):
        made = CommitFiles(results, commit, 19_000 * 86_400 + number * 90_000, name, name)
        made.facts(run=text, cpu=text, numpy=f"{number} {text}", **{text: text})
        for speed, implementation in enumerate(("numpy", "numba"), 1):
            benchmark = f"suites.norm__{implementation}.time_kernel"
            for n in (64, 128, 256, 512):
                case = f"n={n} of={text}"
                made.versions[benchmark] = text
                made.time(benchmark, case, n * 1e-6 / (speed + number))
                made.record(
                    benchmark,
                    case,
                    values={"n": n, "of": text},
                    sizes=("n",),
                    bytes=8 * n,
                    **dict.fromkeys(("backend", "device", "title", "method", "reason"), text),
                    conditions={"threads": text, text: text},
                    **dict.fromkeys(("warnings", "tags", "capabilities"), (text,)),
                )
                made.rounds(benchmark, case, *(n * 1e-6 / (speed + number),) * 6)
        for status in ("failed", "wrong", "skipped", "timed_out"):
            benchmark = f"suites.norm__{status}.time_kernel"
            made.missing(benchmark, "n=64").record(benchmark, "n=64", status, reason=text)
        for other in others:
            made.versions[other] = text
            made.time(other, text, 1e-3)
        made.write()
    write_machine(results, name, **dict.fromkeys(("cpu", "os", "ram", "arch", "fleet"), text))
    verified = [
        Prediction(
            *("norm", "norm", text, text, text, {"n": float(n), text: 1.0}, "kernel", "predicted"),
            *(1.0, 0.5, 2.0, 1.0, 1.0, 1.0, text),
        )
        for n in range(1, 11)
    ]
    keep(verified, verification_path(results, Setup(name, name)), results)
    described = {
        benchmark: {
            "name": benchmark,
            "param_names": ["case"],
            "code": f"{text}\n# declared in {text}\n{text}",
        }
        for benchmark in (
            *(f"suites.norm__{each}.time_kernel" for each in ("numpy", "numba", "failed")),
            *others,
        )
    }
    (results / "benchmarks.json").write_text(json.dumps({"version": 2, **described}))
    (results / name / f"{name[:40]}.json").write_text("{")
    return others


def _commits(project: Path, text: str) -> list[str]:
    """Hashes of two commits whose subject is the text."""
    project.mkdir()
    person = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    commit = ("commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "--file=-")
    made = []
    for command in (("init",), (*person, *commit), (*person, *commit)):
        git = partial(subprocess.run, cwd=project, capture_output=True, check=True, text=True)
        git(["git", *command], input=text)
        if command != ("init",):
            made.append(git(["git", "rev-parse", "HEAD"]).stdout.strip())
    return made


def main() -> None:
    """Run the campaigns, and print the table."""
    asked = dict(each.partition("=")[::2] for each in sys.argv[1:])
    seed = asked.pop("seed", "1")
    asked = asked or dict.fromkeys(TRIES, "")
    if "fleet" in asked and find_spec("distributed") is None:
        print("fleet is left out, which needs Dask: pip install 'gpubench[fleet]'")
        del asked["fleet"]
    if unknown := asked.keys() - TRIES.keys():
        sys.exit(f"there is no campaign {unknown.pop()!r}; there are {', '.join(TRIES)}")
    special: dict[str, Callable[[int, str], tuple[str, bool]]] = {
        "kills": kills_campaign,
        "fleet": fleet_campaign,
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
