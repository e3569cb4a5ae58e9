"""Play the new user: type the tutorial's pages word for word in an empty home, from a built wheel.

    python scripts/new_user.py [--page FILE ...] [--wheel FILE] [--here]

Lines after ``$`` are typed into one shell, and files are written where the page shows them. What a
command prints has to be what stands below it, where numbers and hashes may differ and ``...``
stands for any lines, or for any end of one. Exit code 1 at the first difference.

With ``--here`` nothing is installed: the Python that runs this stands for the one of the page and
for asv's environment, and lines that install a commit are left out. That takes half a minute.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import IO

CHECKOUT = Path(__file__).resolve().parents[1]
PAGES = CHECKOUT / "docs/tutorial.md", CHECKOUT / "docs/tutorial-2.md"
"""Each goes on where the one before ends."""
PROJECTS = CHECKOUT / "docs/projects.md"
"""Four kinds of projects, in a home of their own."""

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE_NAME = re.compile(r"`([\w./-]+)`:\s*\Z")
_VARYING = re.compile(r"\b[0-9a-f]{7,40}\b|\d[\d,.]*(e-?\d+)?")
"""Hashes and numbers."""
_UNITS = re.compile(r"\b0 (ns|µs|ms|s)\b")
_END = "end of a command:"
"""Printed after each command, with its exit code."""


INSTALLING = (
    "python3 -m venv",
    ". venv/",
    "pip install",
    "gpubench compare --measure",
    "gpubench since",
)
"""Beginnings of lines that install something. What such a line writes is not there afterwards."""

MADE_BY_THEM = ("cat comment.md",)
"""Lines that read what those write."""

RUN = "asv run 'HEAD^!'"
HERE = f"--environment existing:{sys.executable} --set-commit-hash $(git rev-parse HEAD)"
"""Options by which asv measures with the Python that runs this."""


@dataclass(frozen=True)
class NewFile:
    """A file that the page shows."""

    path: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command that the page shows, and what it prints."""

    line: str
    expected: tuple[str, ...]


def read_page(text: str) -> Iterator[NewFile | Command]:
    """Yield the steps of a page. A block of a file follows a line that ends in its path."""
    for block in _BLOCK.finditer(text):
        language, content = block.groups()
        if language == "console":
            first, *parts = re.split(r"^\$ ", content, flags=re.MULTILINE)
            assert not first.strip(), f"a console block begins with what nothing printed: {first!r}"
            for part in parts:
                line, *printed = part.rstrip("\n").split("\n")
                yield Command(line, tuple(printed))
        elif named := _FILE_NAME.search(text, 0, block.start()):
            yield NewFile(named[1], content)


def plain(line: str) -> str:
    """Return the form of a line: without what differs from run to run."""
    words = " ".join(_VARYING.sub("0", line).split())
    return _UNITS.sub("0 s", words)


def find_difference(expected: Sequence[str], printed: Sequence[str]) -> str | None:
    """Return the first expected line that was not printed in its place; ``None`` where all were."""
    rest = iter([form for line in printed if (form := plain(line))])
    may_skip = False
    for line in expected:
        if not (wanted := plain(line)):
            continue
        if wanted == "...":
            may_skip = True
            continue
        for form in rest:
            is_same = form == wanted
            if wanted.endswith("..."):
                is_same = form.startswith(wanted.removesuffix("...").rstrip())
            if is_same:
                break
            if not may_skip:
                return line
        else:
            return line
        may_skip = False
    return None if may_skip else next(rest, None)


def without_installing(steps: Iterable[NewFile | Command]) -> Iterator[NewFile | Command]:
    """Yield the steps that install nothing; asv measures with the Python that runs this."""
    for step in steps:
        if isinstance(step, NewFile):
            yield step
        elif not step.line.startswith((*INSTALLING, *MADE_BY_THEM)):
            yield replace(step, line=step.line.replace(RUN, f"ASV_PYTHONPATH=$PWD asv run {HERE}"))


class Shell:
    """One bash, so that ``cd`` and an activated environment last."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=dict(environment),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin: IO[str] = self._process.stdin
        self._stdout: IO[str] = self._process.stdout

    def run(self, line: str) -> tuple[list[str], int]:
        """Run a line; return what it printed and its exit code."""
        self._stdin.write(f"{{ {line}\n}} </dev/null\nprintf '\\n{_END} %d\\n' $?\n")
        self._stdin.flush()
        printed: list[str] = []
        for words in self._stdout:
            if words.startswith(_END):
                return printed, int(words.removeprefix(_END))
            printed.append(words.rstrip("\n"))
        raise SystemExit(f"the shell ended at: {line}")

    def folder(self) -> Path:
        """Return the working folder."""
        return Path(self.run("pwd")[0][0])

    def close(self) -> None:
        """End it."""
        self._stdin.close()
        self._stdout.close()
        self._process.wait()


def play(
    steps: Iterable[NewFile | Command], home: Path, environment: Mapping[str, str]
) -> str | None:
    """Do what a page says; return what differs first, ``None`` where nothing does."""
    shell = Shell(home, environment)
    try:
        for step in steps:
            if isinstance(step, NewFile):
                (shell.folder() / step.path).write_text(step.text)
                continue
            print(f"$ {step.line}", flush=True)
            printed, code = shell.run(step.line)
            print("\n".join(printed).rstrip(), flush=True)
            if code:
                return f"{step.line}\nends with exit code {code}"
            if difference := find_difference(step.expected, printed):
                return f"{step.line}\nprints other than the page from this line on:\n{difference}"
    finally:
        shell.close()
    return None


def empty_home(home: Path, wheel: Path | None) -> dict[str, str]:
    """Return the environment of a new user, who has nothing yet: pip finds this wheel, or without
    one the shell finds the programs beside the Python that runs this."""
    links = [os.environ.get("PIP_FIND_LINKS", "")]
    path = [os.environ["PATH"]]
    if wheel is None:
        path.insert(0, str(Path(sys.executable).parent))
    else:
        links.insert(0, str(wheel.resolve().parent))
    kept = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE")
    person = {"NAME": "A New User", "EMAIL": "new.user@example.org"}
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        **{name: value for name, value in os.environ.items() if name.startswith("PIP_")},
        **{f"GIT_{role}_{key}": person[key] for role in ("AUTHOR", "COMMITTER") for key in person},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "HOME": str(home),
        "PATH": os.pathsep.join(path),
        "PIP_FIND_LINKS": " ".join(links).strip(),
        "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache/pip")),
        "COLUMNS": "160",
    }


def build_wheel(folder: Path) -> Path:
    """Build the wheels of this checkout; return gpubench's, beside which softcuda's lies."""
    for source in (CHECKOUT, CHECKOUT / "softcuda"):
        command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(source)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("gpubench*.whl"))


def main() -> int:
    """Play the page that the command line names; return the exit code."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, nargs="+", default=PAGES)
    parser.add_argument(
        "--wheel", type=Path, help="of gpubench, beside softcuda's; built where it is left out"
    )
    parser.add_argument("--here", action="store_true", help="Install nothing; half a minute.")
    given = parser.parse_args()
    steps = chain.from_iterable(read_page(page.read_text(encoding="utf-8")) for page in given.page)
    if given.here:
        steps = without_installing(steps)
    with tempfile.TemporaryDirectory(prefix="gpubench-new-user-") as folder:
        home = Path(folder, "home")
        home.mkdir()
        wheel = None if given.here else given.wheel or build_wheel(Path(folder, "dist"))
        difference = play(steps, home, empty_home(home, wheel))
    names = " and ".join(page.name for page in given.page)
    if difference:
        print(f"\n{names}: {difference}", file=sys.stderr)
        return 1
    left_out = ", as far as it installs nothing" if given.here else ""
    print(f"\nTrue{left_out}: {names}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
