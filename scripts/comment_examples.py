"""Writes the examples of a pull request's comment into docs/continuous-integration.md.

Each is what `gpubench compare --markdown` and the steps of a written workflow make of small results
that this script writes: made-up times, which measure nothing.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from click.testing import CliRunner

from gpubench.cli import main as gpubench
from gpubench.record import Disturbance, HintRecord, LineRecord
from gpubench.scaffold.continuous_integration import comment_script

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "continuous-integration.md"
BEGIN, END = "<!-- comments -->\n", "<!-- end of comments -->"

sys.path.append(str(ROOT / "tests/results"))  # whose builder writes small results

from result_files import CommitFiles, launch  # noqa: E402

NUMPY, NUMBA, CUDA = (
    f"suites.transpose__{name}.time_kernel" for name in ("numpy", "numba", "numba_cuda")
)
SIZES = [f"n={64 * 2**step}" for step in range(6)]
OLD, NEW = "a" * 40, "b" * 40
WORK = {
    "warps": 32, "threads": 1024, "ptx_instructions": 320, "ptx_thread_instructions": 10_240,
    "global_load_requests": 32, "global_load_ideal_sectors": 128,
}  # fmt: skip
HINT = HintRecord(
    *("coalescing", "1,024 sectors in 32 loads, where 128 would do"),
    *("threadIdx.x chooses the row", "exchange x and y", 0.875, "sectors"),
)


def sides() -> tuple[CommitFiles, CommitFiles]:
    """Return both commits with the baseline's times and those of another kernel."""
    both = tuple(
        CommitFiles(Path(".asv/results"), commit, day * 86_400)
        for day, commit in ((1, OLD), (2, NEW))
    )
    for files in both:
        for step, size in enumerate(SIZES):
            files.processes(NUMPY, size, 4e-5 * 4**step * (1 + 1e-9 * files.date))
    return both[0], both[1]


def times(old: CommitFiles, new: CommitFiles, factor: float) -> None:
    """Time Numba's form on both sides."""
    for step, size in enumerate(SIZES):
        old.processes(NUMBA, size, 1e-5 * 4**step)
        new.processes(NUMBA, size, 1.0001e-5 * factor * 4**step)


def nothing(old: CommitFiles, new: CommitFiles) -> None:
    times(old, new, 1.0)


def slower(old: CommitFiles, new: CommitFiles) -> None:
    times(old, new, 1.5)


def faster(old: CommitFiles, new: CommitFiles) -> None:
    times(old, new, 0.5)


def wrong(old: CommitFiles, new: CommitFiles) -> None:
    times(old, new, 1.0)
    for step, size in enumerate(SIZES):
        reason = f"out: {2**step} values differ, the first at [0, {step + 1}]: 0.{step}7, not 1.5"
        new.values[NUMBA][size] = None
        new.record(NUMBA, size, "wrong", reason=reason)


def counts_grew(old: CommitFiles, new: CommitFiles) -> None:
    for files, sectors in ((old, 128), (new, 1024)):
        for size in SIZES[:2]:
            counts = {"global_load_sectors": sectors}
            line = LineRecord("kernels/transpose.py", 17, counts, hints=(HINT,) * (files is new))
            run = launch(resources={"registers": 18}, **WORK, **counts)
            run = replace(run, lines=(line,))
            files.not_applicable(CUDA, size).record(CUDA, size, "verified")
            files.counts(CUDA, size, run)


def busy(old: CommitFiles, new: CommitFiles) -> None:
    for files, factor in ((old, 1.0), (new, 1.3)):
        for step, size in enumerate(SIZES):
            middle = 1e-5 * 4**step * factor
            medians = [middle * (1 + place / 20) for place in range(6)]
            seen = Disturbance(0.9, waiting=(middle / 2,) * 6)
            files.time(NUMBA, size, middle).record(NUMBA, size)
            files.rounds(NUMBA, size, *medians, disturbance=seen)


EXAMPLES: dict[str, tuple[str, Callable[[CommitFiles, CommitFiles], None] | None]] = {
    "nothing": ("Nothing changed", nothing),
    "slower": ("A kernel became slower", slower),
    "wrong": ("A kernel is wrong", wrong),
    "counts": ("A kernel does more work", counts_grew),
    "busy": ("The machine was busy", busy),
    "first": ("The first run: the base has no benchmarks", None),
    "fork": ("A pull request of a fork", faster),
}
"""Title of each, and what it writes; ``None`` where the base has nothing to compare with."""


def comments() -> dict[str, str]:
    """Make every comment, each in a folder of its own."""
    made = {}
    for name, (_, write) in EXAMPLES.items():
        with TemporaryDirectory() as folder, contextlib.chdir(folder):
            made[name] = _comment(write, is_posted=name in ("first", "fork"))
    return made


def _comment(write: Callable[[CommitFiles, CommitFiles], None] | None, *, is_posted: bool) -> str:
    """Return what `gpubench compare --markdown` prints, or what the workflow's step makes of it."""
    text = ""
    if write:
        old, new = sides()
        write(old, new)
        old.write()
        new.write()
        done = CliRunner().invoke(gpubench, ["compare", OLD[:8], NEW[:8], "--markdown"])
        assert done.exit_code == 0, done.output
        text = done.stdout
    return _as_workflow(text) if is_posted else text


def _as_workflow(times: str) -> str:
    """Return what the workflow's step *Write the comment* leaves."""
    environment = os.environ | {
        "BASE": "HEAD~1", "HEAD": "HEAD", "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z", "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
    }  # fmt: skip
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]

    def run(*command: str) -> None:
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)

    run("git", "init", "--quiet", "--initial-branch=main")
    for message in ("Base", "Head"):
        run("git", *who, "commit", "--quiet", "--allow-empty", "--message", message)
    Path(".asv/ci").mkdir(parents=True)
    if times:
        Path(".asv/ci/times.md").write_text(times, encoding="utf-8")
    Path(".asv/ci/verify.txt").write_text("18 cases: 18 right\n", encoding="utf-8")
    Path(".asv/ci/verified").touch()
    run("bash", "-eo", "pipefail", "-c", comment_script())
    return Path(".asv/ci/comment.md").read_text(encoding="utf-8")


def section() -> str:
    """Return the examples as a part of the page."""
    return "\n".join(_described())


def _described() -> Iterator[str]:
    for name, comment in comments().items():
        yield f"**{EXAMPLES[name][0]}**\n\n~~~markdown\n{_open_part(comment)}~~~\n"


def _open_part(comment: str) -> str:
    """Return a comment without what is folded in it."""
    shown, inside = [], False
    for line in comment.splitlines():
        if line.startswith("<details>"):
            shown.append(f"{line}...</details>")
            inside = True
        if not inside:
            shown.append(line)
        inside = inside and not line.startswith("</details>")
    return "\n".join(shown).strip() + "\n"


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{section()}\n{END}{after}", encoding="utf-8")
