"""Make the pictures of README and documents from a history that is really measured.

A small project of image filters gets twelve commits, and ``asv run`` measures each of them with
this Python. One commit swaps two loops of a kernel, another computes one in parallel: these are
the steps that the report has to find. The pictures are shots of its pages in the machine's
chromium, in WebP. Every time on them was measured in this run. That needs a machine that does
nothing else: on a busy one the report does not find the steps, and then no picture is written.
``--project`` keeps the project, and shows what is measured there already.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from conditions import print_conditions
from playwright.sync_api import Browser, sync_playwright

CHECKOUT = Path(__file__).resolve().parents[1]
DOCS = CHECKOUT / "docs"

HEAD = """\
import numpy as np
from numba import njit, prange
"""

BLUR_NUMPY = """

def blur_numpy(image, out):
    out[1:-1, 1:-1] = (
        image[1:-1, 1:-1] + image[:-2, 1:-1] + image[2:, 1:-1] + image[1:-1, :-2] + image[1:-1, 2:]
    ) / np.float32(5)
"""

BLUR_NUMBA = """

@njit(cache=True)
def blur_numba(image, out):
    rows, columns = image.shape
    for {first} in range(1, {first}s - 1):
        for {second} in range(1, {second}s - 1):
            out[row, column] = (
                image[row, column]
                + image[row - 1, column]
                + image[row + 1, column]
                + image[row, column - 1]
                + image[row, column + 1]
            ) / np.float32(5)
"""

GAMMA = """

def gamma_numpy(image, out):
    np.sqrt(np.abs(image), out=out)


@njit(cache=True, parallel={parallel})
def gamma_numba(image, out):
    rows, columns = image.shape
    for row in {loop}(rows):
        for column in range(columns):
            out[row, column] = np.sqrt(abs(image[row, column]))
"""

BRIGHTNESS = """

def brightness_numpy(image, out):
    out[0] = image.mean()


@njit(cache=True, fastmath=True)
def brightness_numba(image, out):
    total = np.float32(0)
    for pixel in image.flat:
        total += pixel
    out[0] = total / np.float32(image.size)
"""

SUITE = """\
version: 1
suite: filters
title: Filters of images
kernels:
"""

KERNEL = """\
  {name}:
    sizes: {{n: [1024]}}
    arrays:
      image: {{shape: [n, n], dtype: float32, fill: uniform}}
      out: {{shape: {out}, dtype: float32, {intent}}}
    call: [image, out]
    implementations:
      numpy: {{function: "filters:{name}_numpy"}}
      numba: {{function: "filters:{name}_numba"}}
    work: {{bytes: {bytes}, flops: {flops}}}
    check: {{rtol: 1.0e-3, atol: 1.0e-4}}
    sampling: {{rounds: 3, repeat: 9, warmup_time: 0.05, sample_time: 0.005}}
"""

CONFIGURATION = """\
{
    "version": 1,
    "project": "filters",
    "repo": ".",
    "branches": ["main"],
    "benchmark_dir": "benchmarks",
    "results_dir": ".asv/results",
    "html_dir": ".asv/html",
    "environment_type": "virtualenv",
    "plugins": [".gpubench.asv_plugin"]
}
"""

MESSAGES = (
    "Add three filters",
    "Say what each filter is for",
    "Name the authors",
    "Accept images from a camera",
    "Compute gamma in parallel",
    "Test images of one pixel",
    "Release 1.0",
    "Test images without borders",
    "Blur column by column, as the camera sends them",
    "Explain how to add a filter",
    "Test images of odd sizes",
    "Release 1.1",
)
PARALLEL_FROM = 4
COLUMNS_FROM = 8
"""Indices of the two commits that change a time."""


@dataclass(frozen=True)
class Picture:
    """A part of a page."""

    name: str
    page: str
    """The beginning of its file name."""
    height: int
    """Pixels from ``top`` on."""
    top: str = "body"
    """A selector of what the picture begins with."""


PICTURES = (
    Picture("overview.webp", "index.html", 860),
    Picture("history.webp", "kernel-filters.blur.html", 760),
    Picture("changes.webp", "changes.html", 620),
    Picture("choose.webp", "choose.html", 860),
)

WIDTH = 1280


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--project", type=Path, help="a folder to keep, instead of a temporary one")
    given = parser.parse_args()
    print_conditions()
    with TemporaryDirectory(prefix="gpubench-pictures-") as temporary:
        project = given.project or Path(temporary) / "filters"
        if not project.exists():
            make_history(project)
        run(project, sys.executable, "-m", "gpubench", "report")
        check_steps(project)
        take_pictures(project / "reports/html")


def make_history(project: Path) -> None:
    """Write the project commit by commit, and measure each with this Python."""
    project.mkdir(parents=True)
    shutil.copytree(
        CHECKOUT / "benchmarks",
        project / "benchmarks",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (project / ".gitignore").write_text("/.asv/\n/reports/\n__pycache__/\n")
    (project / "asv.conf.json").write_text(CONFIGURATION)
    (project / "suites").mkdir()
    (project / "suites/filters.yaml").write_text(SUITE + "".join(kernels()))
    run(project, "git", "init", "--quiet", "--initial-branch=main")
    for place, message in enumerate(MESSAGES):
        write_filters(project, place)
        (project / "NOTES.md").write_text(f"# Filters\n\n{message}.\n")
        run(project, "git", "add", ".")
        run(project, "git", "commit", "--quiet", "-m", message)
        if message.startswith("Release"):
            run(project, "git", "tag", f"v{message.split()[1]}")
        commit = run(project, "git", "rev-parse", "HEAD").strip()
        here = f"existing:{sys.executable}"
        asv = (sys.executable, "-m", "asv")
        fast = ("--launch-method", "forkserver", "--bench", "time_kernel")
        run(project, *asv, "run", "--environment", here, *fast, "--set-commit-hash", commit)
        print(f"measured {place + 1} of {len(MESSAGES)}: {message}", flush=True)


STEPS = """
select kernel, direction from changes
where (kernel, direction) in (('blur', 'slower'), ('gamma', 'faster'))
"""


def check_steps(project: Path) -> None:
    """End the script before it writes a picture, where the report did not find both steps: then
    other work on the machine disturbed the times, and the pictures would show noise."""
    query = (sys.executable, "-m", "gpubench", "query", "--json", STEPS)
    found = {(row["kernel"], row["direction"]) for row in json.loads(run(project, *query))}
    missing = {("blur", "slower"), ("gamma", "faster")} - found
    if missing:
        words = " and ".join(
            f"{kernel} became {direction}" for kernel, direction in sorted(missing)
        )
        raise SystemExit(
            f"the report in {project} does not find that {words}: the machine was busy; end other "
            "work and run this again. No picture was written."
        )


def kernels() -> Iterator[str]:
    """Yield the kernels of the suite in YAML."""
    for name, flops in (("blur", "5 * n**2"), ("gamma", "2 * n**2")):
        yield KERNEL.format(
            name=name,
            out="[n, n]",
            intent="fill: zeros, intent: inout",
            bytes="2 * n**2 * itemsize(image)",
            flops=flops,
        )
    yield KERNEL.format(
        name="brightness",
        out="[1]",
        intent="intent: out",
        bytes="n**2 * itemsize(image)",
        flops="n**2",
    )


def write_filters(project: Path, place: int) -> None:
    """Write the module as it is from a commit on."""
    is_parallel = place >= PARALLEL_FROM
    order = ("row", "column") if place < COLUMNS_FROM else ("column", "row")
    blur = BLUR_NUMBA.format(first=order[0], second=order[1])
    gamma = GAMMA.format(parallel=is_parallel, loop="prange" if is_parallel else "range")
    content = HEAD + BLUR_NUMPY + blur + gamma + BRIGHTNESS
    (project / "filters.py").write_text(content)


def run(project: Path, *command: str) -> str:
    """Return what a command prints in the project; end the script where it fails."""
    person = {"NAME": "Ada Example", "EMAIL": "ada@example.org"}
    roles = ("AUTHOR", "COMMITTER")
    git = {f"GIT_{role}_{key}": value for role in roles for key, value in person.items()}
    environment = {**os.environ, **git, "ASV_PYTHONPATH": str(project)}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def take_pictures(pages: Path) -> None:
    """Take each picture of pages in chromium."""
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for picture in PICTURES:
            (DOCS / picture.name).write_bytes(take(browser, pages, picture))
            print(f"docs/{picture.name}: {(DOCS / picture.name).stat().st_size:,} bytes")
        browser.close()


def take(browser: Browser, pages: Path, picture: Picture) -> bytes:
    """Return one picture in WebP, which Playwright does not write itself."""
    page = browser.new_page(viewport={"width": WIDTH, "height": 1400}, color_scheme="light")
    page.goto((pages / picture.page).as_uri())
    page.wait_for_timeout(3000)  # charts are drawn after the load
    box = page.locator(picture.top).first.bounding_box()
    clip = {"x": 0, "y": box["y"] if box else 0, "width": WIDTH, "height": picture.height}
    shot = page.context.new_cdp_session(page).send(
        "Page.captureScreenshot",
        {"format": "webp", "quality": 75, "clip": {**clip, "scale": 1}},
    )
    page.close()
    return base64.b64decode(shot["data"])


if __name__ == "__main__":
    main()
