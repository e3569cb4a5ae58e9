"""Campaigns against gpubench, and the table of `docs/robustness.md` that states what came of them:
`python scripts/robustness.py`, or some of them: `python scripts/robustness.py suites=20000 kills`;
`seed=2` makes other tries.

| campaign | what is tried |
| --- | --- |
| suites | the project's suites and those of its tests, broken |
| generated | suites made from the schema |
| results | result files, records, `machine.json` and `benchmarks.json`, damaged |
| kills | `asv run`, `report` and `serve`, killed at random moments; a report after each |
| strings | texts that try to be markup or code, in all that results say; every page in chromium |

Exit code 1 where one escaped. Kills and chromium need Linux.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hostile_files import HEAD, ROOT, TOGETHER, Counts, Outcome, all_tried, versions

for room in ("browser", "end_to_end", "results"):
    sys.path.insert(0, str(ROOT / "tests" / room))

TRIES = {"suites": 18_000, "generated": 4_000, "results": 2_000, "kills": 100, "strings": 40}
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
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for part in pool.map(lambda part: list(all_tried(part)), parts):
            for seed, outcome in part:
                counts.add(seed, outcome)
    return counts.line(what), bool(counts.of["escaped"])


def kills_campaign(tries: int, seed: str) -> tuple[str, bool]:
    """Half of them `asv run`, the rest `report` and `serve`."""
    from asv_project import isolated_environment
    from stepping_project import RUN, make_stepping_project

    from gpubench.report.render import PARTS

    rng, counts = random.Random(seed), Counts()
    with TemporaryDirectory(prefix="gpubench-kills-") as folder:
        home = Path(folder, "home")
        home.mkdir()
        project = make_stepping_project(Path(folder, "steps"), isolated_environment(home))
        begun = time.monotonic()
        project.asv(*RUN, code=2)
        lasting = time.monotonic() - begun
        needed = Counter(_started(project))
        again, kills = 0, 0
        shutil.rmtree(project.results)
        project.asv("machine", "--yes")
        for number in range(tries // 2):
            faults, was_killed = _killed(
                project, rng, lasting, "asv", *RUN, *(["--skip-existing"] if kills else [])
            )
            kills += was_killed
            if not was_killed:  # whole: nothing was measured twice but what a kill had cut
                twice = Counter(_started(project)) - needed
                if sum(twice.values()) > kills:
                    faults.append(f"{sum(twice.values())} measured again after {kills} kills")
                lost = [place for place in needed if place not in _started(project)]
                faults += [f"lost: {place}" for place in lost]
                again += 1
                shutil.rmtree(project.results)
                kills = 0
            counts.add(f"asv run {number}", _outcome(was_killed, faults))
        if not project.has_record("only"):
            project.asv(*RUN, code=2)
        begun = time.monotonic()
        project.run("gpubench", "report")
        lasting = time.monotonic() - begun
        for number in range(tries - tries // 2):
            command = ("report",) if number % 2 else ("serve", "--port", "0")
            faults, was_killed = _killed(project, rng, lasting, "gpubench", *command)
            counts.add(f"{command[0]} {number}", _outcome(was_killed, faults))
        project.run("gpubench", "report")
        left = len([*project.path.rglob(f"{PARTS}*")])
        if left:
            counts.add("report", Outcome("escaped", words=f"{left} folders are left behind"))
        print(f"kills: {again} runs of asv came to their end, {left} folders are left behind")
    return counts.line("kills"), bool(counts.of["escaped"])


def _started(project: Any) -> list[tuple[str, str]]:
    from stepping_project import started

    return started(project)


def _outcome(was_killed: bool, faults: list[str]) -> Outcome:
    """`refused` is one that ended before it could be killed."""
    how = "escaped" if faults else "named" if was_killed else "accepted"
    return Outcome(how, words="; ".join(faults))


def _killed(
    project: Any, rng: random.Random, lasting: float, *command: str
) -> tuple[list[str], bool]:
    """Kill a command that lasts some seconds at some moment; what is wrong then, and whether it was
    still running."""
    from stepping_project import kill, lines, start

    process = start(project, *command)
    end = time.monotonic() + rng.uniform(0, lasting * 1.2)
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    was_killed = process.poll() is None
    kill(process, rng.choice(("first", "all", "ctrl-c")))
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
    return faults, was_killed


def strings_campaign(tries: int, _: str) -> tuple[str, bool]:
    """Each text in a report of its own, every page of which is opened."""
    from opened_pages import Watched
    from playwright.sync_api import sync_playwright

    from gpubench.report.render import write_report
    from gpubench.results import open_table

    counts, seen = Counts(), 0
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        context = browser.new_context(offline=True)

        def faults_of(address: str) -> list[str]:
            watched = Watched(context.new_page())
            watched.page.goto(address)
            watched.page.wait_for_timeout(50)  # what a text starts begins at once
            watched.page.close()
            return watched.faults

        noticed = faults_of("data:text/html,<script>alert(1)</script><img src=http://example.org>")
        if len(noticed) < 2:
            sys.exit(f"a script and a request of a page are not noticed, only {noticed}")
        for number, text in enumerate(STRINGS[:tries]):
            with TemporaryDirectory(prefix="gpubench-strings-") as folder:
                project = Path(folder, "project")
                _write_everywhere(project / ".asv/results", text)
                before = set(Path(folder).rglob("*"))
                table = open_table(project / ".asv/results")
                pages = project / "reports/html"
                write_report(table, pages)
                faults = [
                    f"file: {path}"
                    for path in {*Path(folder).rglob("*")} - before
                    if not path.is_relative_to(project / "reports")
                    and not path.is_relative_to(project / ".asv/.gpubench-cache")
                ]
                for page in sorted(pages.rglob("*.html")):
                    faults += [f"{page.name}: {fault}" for fault in faults_of(page.as_uri())]
                    seen += 1
                how = "escaped" if faults else "accepted"
                counts.add(f"string {number} {text!r}", Outcome(how, words="; ".join(faults)[:500]))
        browser.close()
    print(f"strings: {seen} pages opened")
    return counts.line("strings"), bool(counts.of["escaped"])


def _write_everywhere(results: Path, text: str) -> None:
    """Two commits in which all that may be any text is this one."""
    import json

    from result_files import CommitFiles, write_machine

    name = text.replace("/", "\u2215").replace("\0", "")  # of a file
    for number, commit in enumerate("ab"):
        made = CommitFiles(results, commit * 40, 19_000 * 86_400 + number * 90_000, name, name)
        made.facts(run=text, cpu=text, numpy=f"{number} {text}", **{text: text})
        for speed, implementation in enumerate(("numpy", "numba"), 1):
            benchmark = f"suites.norm__{implementation}.time_kernel"
            for n in (64, 128):
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
                    warnings=(text,),
                )
                made.rounds(benchmark, case, *(n * 1e-6 / (speed + number),) * 6)
        for status in ("failed", "wrong", "skipped", "timed_out"):
            benchmark = f"suites.norm__{status}.time_kernel"
            made.missing(benchmark, "n=64").record(benchmark, "n=64", status, reason=text)
        made.write()
    write_machine(results, name, cpu=text, os=text, ram=text, arch=text)
    described = {
        f"suites.norm__{each}.time_kernel": {
            "name": f"suites.norm__{each}.time_kernel",
            "param_names": ["case"],
            "code": f"{text}\n# declared in {text}\n{text}",
        }
        for each in ("numpy", "numba", "failed")
    }
    (results / "benchmarks.json").write_text(json.dumps({"version": 2, **described}))
    (results / name / f"{name[:40]}.json").write_text("{")


def main() -> None:
    """Run the campaigns, and print the table."""
    asked = dict(each.partition("=")[::2] for each in sys.argv[1:])
    seed = asked.pop("seed", "1")
    asked = asked or dict.fromkeys(TRIES, "")
    if unknown := asked.keys() - TRIES.keys():
        sys.exit(f"there is no campaign {unknown.pop()!r}; there are {', '.join(TRIES)}")
    special: dict[str, Callable[[int, str], tuple[str, bool]]] = {
        "kills": kills_campaign,
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
