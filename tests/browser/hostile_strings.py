"""Texts that try to be markup, a script or a request, in everything that a page shows, and what a
reader can do on a page.

`scripts/robustness.py strings` tries all of them.
"""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from opened_pages import Watched, draw_charts, until
from result_files import CommitFiles, write_machine

from gpubench.edge.advise.checks import Prediction, keep, verification_path
from gpubench.report.render import write_report
from gpubench.report.site import Site
from gpubench.results import Pair, PairPattern, Setup, open_table

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

MANY = 48
"""Kernels beside the others, so that lists are long: with tools, and with groups that fold."""

USED = """(text) => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  document.querySelectorAll("select, input[type=text], input[type=search]").forEach((field) => {
    if (field.options) field.selectedIndex = field.options.length - 1;
    else field.value = text;
    for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
  });
}"""


def faults_of_text(context: Any, folder: Path, text: str) -> tuple[list[str], list[str]]:
    """What a text does that no text should, when it stands in all that results say and the pages of
    the report are used; and the names of the pages that were opened."""
    project = folder / "project"
    pairs = write_everywhere(project, text)
    before = {*folder.rglob("*")}
    html = write_pages(project, pairs)
    made = (project / "reports", project / ".asv/.gpubench-cache")
    new = {path for path in folder.rglob("*") if not any(map(path.is_relative_to, made))}
    faults = [f"file: {path}" for path in new - before]
    for page in html:
        faults += [f"{page.name}: {fault}" for fault in faults_of(context, page.as_uri(), text)]
    return faults, [page.stem for page in html]


def write_pages(project: Path, pairs: list[Pair | PairPattern]) -> list[Path]:
    """Write the report; its pages, without those of kernels that are there to be many."""
    table = open_table(project / ".asv/results", project, pairs)
    site, html = Site(table), project / "reports/html"
    write_report(table, html)
    many = {site.address(setup, _key(pair)) for setup in table.setups for pair in pairs[-MANY:]}
    return [page for page in sorted(html.rglob("*.html")) if page.name not in many]


def _key(pair: Pair | PairPattern) -> tuple[str, str]:
    assert isinstance(pair, Pair)
    return pair.suite, pair.name


def faults_of(context: Any, address: str, text: str = "") -> list[str]:
    """What a page does that a report must not, when it is opened, and used with a text."""
    watched = Watched(context.new_page())
    watched.page.goto(address)
    if text:
        use(watched.page, address, text)
    watched.page.wait_for_timeout(50)  # what a text starts begins at once
    watched.page.close()
    return watched.faults


def use(page: Any, address: str, text: str) -> None:
    """What a reader can do on a page: unfold, draw, choose, type the text, and come by an address
    that has it."""
    draw_charts(page)
    if "advise" in address:
        until(page, "() => !!document.querySelector('#advice p')")
    page.evaluate(USED, text)
    parts = page.evaluate("location.hash.slice(1)").split("&")
    names = [part.partition("=")[0] for part in parts]
    for state in (quote(text), "&".join(f"{name}={quote(text)}" for name in names)):
        page.goto("about:blank")
        page.goto(f"{address}#{state}")


def write_everywhere(project: Path, text: str) -> list[Pair | PairPattern]:
    """Two commits in which all that may be any text is this one; pairs of benchmarks that gpubench
    does not name, and patterns of such: of the text, and that fit. The last ``MANY`` are alike."""
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
                    values={"n": n, text: n, "of": text},
                    sizes=("n", text),
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
    keep(_verified(text), verification_path(results, Setup(name, name)), results)
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
    patterns = [PairPattern(text, text, text), PairPattern("", "(.*)_a", rf"\1_{text}")]
    fitting = PairPattern("", "(.*)_a", r"\1_b")
    many = [Pair(text, f"{text} {number}", *others) for number in range(MANY)]
    return [Pair(text, text, *others), *patterns, fitting, *many]


def _verified(text: str) -> list[Prediction]:
    """Of a kernel whose intervals hold, and of another, whose do not."""
    return [
        Prediction(
            *(kernel, kernel, text, text, text, {"n": float(n), text: 1.0}, "kernel", "predicted"),
            *(1.0, 0.5, 2.0, 1.0, measured, measured, text),
        )
        for kernel, measured in (("norm", 1.0), (text, 3.0))
        for n in range(1, 11)
    ]


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
