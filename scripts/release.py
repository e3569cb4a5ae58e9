"""Builds wheel and sdist into dist/, checks both, and writes the notes of the release.

The wheel is installed into a clean environment of each Python that is there, outside of the
checkout: it has to verify a kernel of its library and to start ``python -m softcuda``, and mypy has
to read its types. Nothing is published: ``.github/workflows/release.yml`` does that, from a tag.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from gpubench import __version__

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
NOTES = DIST / "release-notes.md"
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
UNRELEASED = "unreleased"
MAX_INSTALLED_BYTES = 460 * 2**20
"""Of a fresh environment on the disk, as `du` has it. llvmlite, DuckDB, NumPy and Numba take nine
tenths: see which of them grew before this is raised (docs/measurements.md, *Installed size*)."""

TYPED = """\
from pathlib import Path

from gpubench.suite.loading import LoadedSuite, load_suites

loaded: tuple[LoadedSuite, ...] = load_suites([Path("suites")])
title: str = loaded[0].suite.suite
wrong: int = loaded[0].suite.suite
"""
"""A program of a user, in whose last line mypy has to find the one error."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag", help="Refuse to go on unless this is the version's: v0.1.0.")
    parser.add_argument("--notes-only", action="store_true", help="Write the notes alone.")
    asked = parser.parse_args()
    heading, notes = section_of((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), __version__)
    waiting = [*reasons_to_wait(heading)]
    if asked.tag is not None:
        if asked.tag != f"v{__version__}":
            sys.exit(f"the tag is {asked.tag}, the version {__version__}: tag v{__version__}")
        if waiting:
            sys.exit("\n".join(waiting))
    DIST.mkdir(exist_ok=True)
    NOTES.write_text(notes, encoding="utf-8")
    if not asked.notes_only:
        wheel, sdist = build()
        check_metadata(wheel, sdist)
        for python in filter(makes_environments, PYTHONS):
            check_installed(python, wheel)
        print(f"{sdist.name} sha256 {hashlib.sha256(sdist.read_bytes()).hexdigest()}")
    print(NOTES.relative_to(ROOT))
    for reason in waiting:
        print(f"not ready to publish: {reason}", file=sys.stderr)


def section_of(changelog: str, version: str) -> tuple[str, str]:
    """Return the heading of a version in a changelog, and what stands below it."""
    for section in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        if heading.split()[0] == version:
            return heading, text.strip() + "\n"
    sys.exit(f"CHANGELOG.md has no heading '## {version}' with its date: write one")


def reasons_to_wait(heading: str) -> Iterator[str]:
    """Yield what a release lacks, each with what to write."""
    if heading.endswith(UNRELEASED):
        yield f"CHANGELOG.md says {heading!r}: write the date in place of {UNRELEASED!r}"
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    if not stated["project"].get("urls"):
        yield (
            "pyproject.toml has no [project.urls]: write the address of the repository, and make "
            "the links of README.md absolute, which a package index shows"
        )


def makes_environments(python: str) -> bool:
    """Return whether a Python is there, and complete: a shim of a version manager may have none
    behind it, and a distribution of Linux may leave out pip."""
    if not shutil.which(python):
        return False
    command = [python, "-c", "import ensurepip, venv"]
    return subprocess.run(command, capture_output=True).returncode == 0


def build() -> tuple[Path, Path]:
    """Build wheel and sdist in place of those of an earlier build; return their paths."""
    for old in (*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")):
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT, stdout=subprocess.DEVNULL)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def check_metadata(wheel: Path, sdist: Path) -> None:
    """End with what the checkers of distributions refuse."""
    tools = Path(sys.executable).parent
    run(tools / "twine", "check", "--strict", wheel, sdist)
    run(tools / "check-wheel-contents", wheel)
    run(tools / "validate-pyproject", ROOT / "pyproject.toml")


def check_installed(python: str, wheel: Path) -> None:
    """Install the wheel alone for this Python, use it in an empty folder, and print its size."""
    with TemporaryDirectory() as folder:
        elsewhere, inside = Path(folder), Path(folder) / "venv/bin/python"
        run(python, "-m", "venv", elsewhere / "venv")
        run(inside, "-m", "pip", "install", "--quiet", wheel, at=elsewhere)
        run(inside, "-m", "pip", "check", at=elsewhere)
        size = installed_bytes(elsewhere / "venv")
        words = f"{size / 2**20:.0f} MiB on the disk, with pip and bytecode"
        if size > MAX_INSTALLED_BYTES:
            sys.exit(f"{python}: {words}; at most {MAX_INSTALLED_BYTES >> 20} MiB: see what grew")
        print(f"{python}: {words}")
        numba = ("vector_add", "--where", "implementation == 'numba_parallel'")
        run(inside, "-m", "gpubench", "verify", "--library", *numba, at=elsewhere)
        run(inside, "-m", "softcuda", "--help", at=elsewhere, stdout=subprocess.DEVNULL)
        check_types(inside, elsewhere)


def installed_bytes(environment: Path) -> int:
    """Return the bytes that an environment takes on the disk, as `du` counts them: what a user
    sees after `pip install`, with pip and bytecode."""
    printed = subprocess.run(
        ["du", "--summarize", "--block-size=1", environment],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return int(printed.split()[0])


def check_types(python: Path, folder: Path) -> None:
    """End where mypy does not read the types of the installed package."""
    (folder / "program.py").write_text(TYPED, encoding="utf-8")
    options = ("--strict", "--python-executable", str(python), "program.py")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options], cwd=folder, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    if not (len(lines) == 2 and lines[0].startswith("program.py:7: error: Incompatible types")):
        sys.exit(f"mypy should find one error, in line 7 of a program; it says:\n{done.stdout}")


def run(*command: str | Path, at: Path = ROOT, stdout: int | None = None) -> None:
    """Run a program to its end; where it fails, end with its name."""
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*map(str, command)], cwd=at, env=outside, stdout=stdout)
    if done.returncode:
        words = " ".join(Path(part).name if os.sep in str(part) else str(part) for part in command)
        sys.exit(f"{words}: exit code {done.returncode}")


if __name__ == "__main__":
    main()
