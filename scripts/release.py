"""Builds the wheels and sdists of gpubench and softcuda into dist/, checks them, and writes the
notes of the release.

gpubench's wheel is installed into a clean environment of each Python that is there, outside of the
checkout: it has to verify a kernel of its library, and mypy has to read its types. So is softcuda's
wheel: pytest with ``--softcuda`` has to find a fault, and gpubench beside it to verify a kernel for
CUDA. Nothing is published: ``.github/workflows/release.yml`` does that, from a tag.
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
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from gpubench import __version__

ROOT = Path(__file__).parent.parent
SOFTCUDA = ROOT / "softcuda"
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


FAULTY = """\
import numpy
from numba import cuda


@cuda.jit
def stray(a):
    a[cuda.grid(1)] = 1


def test_stray():
    stray[1, 9](cuda.to_device(numpy.zeros(8)))
"""
"""Tests of a user, where pytest with ``--softcuda`` has to name line 7."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag", help="Refuse to go on unless this is the version's: v0.1.0.")
    parser.add_argument("--notes-only", action="store_true", help="Write the notes alone.")
    asked = parser.parse_args()
    heading, notes = section_of(ROOT / "CHANGELOG.md", __version__)
    device_heading, device_notes = section_of(SOFTCUDA / "CHANGELOG.md", softcuda_version())
    waiting = [*reasons_to_wait(ROOT, heading), *reasons_to_wait(SOFTCUDA, device_heading)]
    if asked.tag is not None:
        if asked.tag != f"v{__version__}":
            sys.exit(f"the tag is {asked.tag}, the version {__version__}: tag v{__version__}")
        if waiting:
            sys.exit("\n".join(waiting))
    DIST.mkdir(exist_ok=True)
    parts = (notes, f"## softcuda {device_heading}\n", device_notes)
    NOTES.write_text("\n".join(parts), encoding="utf-8")
    if not asked.notes_only:
        wheels, sdists = build()
        check_metadata(wheels, sdists)
        for python in filter(makes_environments, PYTHONS):
            check_installed(python, wheels[0])
            check_softcuda(python, *wheels)
        for sdist in sdists:
            print(f"{sdist.name} sha256 {hashlib.sha256(sdist.read_bytes()).hexdigest()}")
    print(NOTES.relative_to(ROOT))
    for reason in waiting:
        print(f"not ready to publish: {reason}", file=sys.stderr)


def softcuda_version() -> str:
    """Return the version that softcuda's package states; it need not be installed."""
    text = (SOFTCUDA / "softcuda/__init__.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return str(version)


def section_of(changelog: Path, version: str) -> tuple[str, str]:
    """Return the heading of a version in a changelog, and what stands below it."""
    text = changelog.read_text(encoding="utf-8")
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        if heading.split()[0] == version:
            return heading, text.strip() + "\n"
    sys.exit(f"{changelog} has no heading '## {version}' with its date: write one")


def reasons_to_wait(folder: Path, heading: str) -> Iterator[str]:
    """Yield what the release of a folder lacks, each with what to write."""
    if heading.endswith(UNRELEASED):
        changelog = (folder / "CHANGELOG.md").relative_to(ROOT)
        yield f"{changelog} says {heading!r}: write the date in place of {UNRELEASED!r}"
    stated = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    if not stated["project"].get("urls"):
        yield (
            f"{(folder / 'pyproject.toml').relative_to(ROOT)} has no [project.urls]: write the "
            "address of the repository, and make the links of README.md absolute, which a package "
            "index shows"
        )


def makes_environments(python: str) -> bool:
    """Return whether a Python is there, and complete: a shim of a version manager may have none
    behind it, and a distribution of Linux may leave out pip."""
    if not shutil.which(python):
        return False
    command = [python, "-c", "import ensurepip, venv"]
    return subprocess.run(command, capture_output=True).returncode == 0


def build() -> tuple[list[Path], list[Path]]:
    """Build in place of what an earlier build left; return the wheels and the sdists, gpubench's
    before softcuda's."""
    for old in (*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")):
        old.unlink()
    for folder in (ROOT, SOFTCUDA):
        run(sys.executable, "-m", "build", "--outdir", DIST, folder, stdout=subprocess.DEVNULL)
    return sorted(DIST.glob("*.whl")), sorted(DIST.glob("*.tar.gz"))


def check_metadata(wheels: Iterable[Path], sdists: Iterable[Path]) -> None:
    """End with what the checkers of distributions refuse."""
    tools = Path(sys.executable).parent
    run(tools / "twine", "check", "--strict", *wheels, *sdists)
    for wheel in wheels:
        run(tools / "check-wheel-contents", wheel)
    for folder in (ROOT, SOFTCUDA):
        run(tools / "validate-pyproject", folder / "pyproject.toml")


def check_installed(python: str, wheel: Path) -> None:
    """Install gpubench's wheel alone for this Python, use it in an empty folder, and print its
    size."""
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
        check_types(inside, elsewhere)


def check_softcuda(python: str, gpubench: Path, softcuda: Path) -> None:
    """Install softcuda's wheel alone for this Python and find a fault with pytest, then gpubench
    beside it and verify a kernel for CUDA."""
    with TemporaryDirectory() as folder:
        elsewhere, inside = Path(folder), Path(folder) / "venv/bin/python"
        run(python, "-m", "venv", elsewhere / "venv")
        run(inside, "-m", "pip", "install", "--quiet", softcuda, "pytest", at=elsewhere)
        run(inside, "-m", "pip", "check", at=elsewhere)
        run(elsewhere / "venv/bin/softcuda", "--version", at=elsewhere)
        (elsewhere / "test_faulty.py").write_text(FAULTY, encoding="utf-8")
        tests = [inside, "-m", "pytest", "--softcuda"]
        done = subprocess.run(tests, cwd=elsewhere, capture_output=True, text=True)
        if done.returncode != 1 or "test_faulty.py:7]" not in done.stdout:
            sys.exit(f"{python}: pytest --softcuda should name line 7; it says:\n{done.stdout}")
        run(inside, "-m", "pip", "install", "--quiet", gpubench, at=elsewhere)
        cuda = ("vector_add", "--where", "implementation == 'numba_cuda'")
        run(inside, "-m", "gpubench", "verify", "--library", *cuda, at=elsewhere)


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
