"""A small repository under asv, and what its commands leave behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Any

from gpubench.record import SUFFIX, CaseRecord, RoundsRecord, parse_line, to_line

CHECKOUT = Path(__file__).resolve().parents[2]
SAMPLE = Path(__file__).parent / "sample"
CUDA_SAMPLE = Path(__file__).parent / "cuda_sample"

BORROW = (
    f"in-dir={{env_dir}} python {Path(__file__).with_name('borrow.py')} "
    f"{sysconfig.get_path('purelib')}"
)
"""An ``install_command`` of asv, in place of installing gpubench and what it needs."""

ADDITION = """\
    for i in range(n):
        b[i] += a[i]
"""
TWENTY_ADDITIONS = """\
    for repetition in range(20):
        for i in range(n):
            b[i] += a[i]
        if repetition < 19:
            for i in range(n):
                b[i] -= a[i]
"""
"""Rounding keeps a compiler from leaving out what is taken back again."""
SHORT_ADDITION = ADDITION.replace("range(n)", "range(n - 1)")

HERE = (
    *("--environment", f"existing:{sys.executable}", "--launch-method", "forkserver"),
    *("--set-commit-hash", "only"),
)
"""Arguments of ``asv run`` that measure a commit ``only`` with the Python that runs the tests. A
fork for each case costs a tenth of a second, and a new process more than one."""

SPAWNING = tuple("spawn" if word == "forkserver" else word for word in HERE)
"""The same with a new process for each case."""

HISTORY = {
    "good": ADDITION,
    "slower": TWENTY_ADDITIONS,
    "wrong": SHORT_ADDITION,
    "mended": ADDITION,
}
"""Tag of each commit, oldest first, and how ``vector_add_numba`` adds there."""

Completed = subprocess.CompletedProcess[str]


def isolated_environment(home: Path) -> dict[str, str]:
    """The developer's environment less what would change a run; ``home`` gets asv's machine file.

    pip keeps its cache and its configuration. GPUs are hidden, so that every machine skips alike.
    """
    foreign = ("ASV", "GPUBENCH_", "NUMBA_", "CUDA_", "GIT_", "PYTHON", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    settings = Path.home() / ".config/pip/pip.conf"
    if settings.exists():
        kept.setdefault("PIP_CONFIG_FILE", str(settings))
    kept.setdefault("PIP_CACHE_DIR", str(Path.home() / ".cache/pip"))
    person = {"NAME": "A Tester", "EMAIL": "tester@example.org"}
    git = {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in person.items()
    }
    return {
        **kept,
        **git,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "HOME": str(home),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), kept["PATH"]]),
        "CUDA_VISIBLE_DEVICES": "",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_COMPILE": "0",  # most modules of the environments are never imported
        "COLUMNS": "200",
    }


@dataclass(frozen=True)
class Project:
    """A git repository with ``asv.conf.json``, and the environment in which commands run there."""

    path: Path
    environment: dict[str, str]

    def run(self, *command: str | Path, code: int | None = 0, **variables: str) -> Completed:
        """Run a command there; ``code`` is the exit code it must have, ``None`` for any."""
        done = subprocess.run(
            list(map(str, command)),
            cwd=self.path,
            env={**self.environment, **variables},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=1800,  # a machine that is suspended ends nothing
        )
        assert code in (None, done.returncode), f"{command}: {done.returncode}\n{done.stdout}"
        return done

    def asv(self, *arguments: str, code: int | None = 0, **variables: str) -> str:
        """Output of an asv command."""
        return self.run("asv", *arguments, code=code, **variables).stdout

    def git(self, *arguments: str, **variables: str) -> str:
        return self.run("git", *arguments, **variables).stdout.strip()

    def commit(self, tag: str, day: int) -> None:
        """Commit everything, a day after the commit before, and tag it."""
        date = f"2026-01-{day:02}T12:00:00+00:00"
        self.git("add", ".")
        self.git("commit", "-m", tag, GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)
        self.git("tag", tag)

    def copy(self, path: Path, *, results: bool = False) -> Project:
        """A clone with the same commits and the same asv environment, with or without results."""
        self.git("clone", "--quiet", ".", str(path))
        if results:
            shutil.copytree(self.results, path / ".asv/results")
        return Project(path, self.environment)

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace text that must be there in a file."""
        text = (self.path / name).read_text()
        assert old in text, f"{old!r} is not in {name}"
        (self.path / name).write_text(text.replace(old, new))

    @property
    def results(self) -> Path:
        return self.path / ".asv/results"

    def benchmarks(self) -> dict[str, Any]:
        """What asv discovered last, by name."""
        found = json.loads((self.results / "benchmarks.json").read_text())
        return {name: entry for name, entry in found.items() if isinstance(entry, dict)}

    def result(self, tag: str) -> dict[str, Any]:
        """asv's result file of a commit, with its columns put to each benchmark."""
        content: dict[str, Any] = json.loads(self._file(tag, ".json").read_text())
        columns = content["result_columns"]
        content["results"] = {
            name: dict(zip(columns, row, strict=False)) for name, row in content["results"].items()
        }
        return content

    def times(self, tag: str) -> dict[tuple[str, str], float | None]:
        """Time of each benchmark and case of a commit; ``None`` for one that has none."""
        return {
            (name, case.strip("'")): seconds
            for name, row in self.result(tag)["results"].items()
            for case, seconds in zip(
                row["params"][0], row["result"] or [None] * len(row["params"][0]), strict=True
            )
        }

    def records(self, tag: str) -> list[CaseRecord]:
        """Lines of gpubench's record of a commit that are about cases, in their order."""
        lines = self._file(tag, ".gpubench.jsonl").read_text().splitlines()
        return [record for record in map(parse_line, lines) if isinstance(record, CaseRecord)]

    def rounds(self, tag: str) -> dict[tuple[str, str], list[tuple[float, ...]]]:
        """Medians of rounds, for each benchmark and case: one line for each of its processes."""
        lines = map(parse_line, self._file(tag, ".gpubench.jsonl").read_text().splitlines())
        kept: dict[tuple[str, str], list[tuple[float, ...]]] = {}
        for line in lines:
            if isinstance(line, RoundsRecord):
                kept.setdefault((line.benchmark, line.case), []).append(line.rounds)
        return kept

    def measured(self, tag: str) -> list[tuple[str, str]]:
        """Benchmark and case of each time that one was begun."""
        return [(r.benchmark, r.case) for r in self.records(tag) if r.status == "started"]

    def outcome(self, tag: str, benchmark: str, case: str) -> CaseRecord:
        """What became of a case at last."""
        found = [r for r in self.records(tag) if (r.benchmark, r.case) == (benchmark, case)]
        assert found, f"{benchmark} {case} is not on record at {tag}"
        return found[-1]

    def has_result(self, tag: str) -> bool:
        return any(self._files(tag, ".json"))

    def has_record(self, tag: str) -> bool:
        return any(self._files(tag, ".gpubench.jsonl"))

    def _file(self, tag: str, suffix: str) -> Path:
        (found,) = self._files(tag, suffix)
        return found

    def _files(self, tag: str, suffix: str) -> Iterator[Path]:
        return self.results.glob(f"*/{self.git('rev-parse', tag)[:8]}-*{suffix}")


def build_distributions(folder: Path) -> dict[str, Path]:
    """Build this checkout's distributions in a folder, from a copy: ``wheel`` and ``sdist`` of
    gpubench, ``softcuda wheel`` and ``softcuda sdist``."""
    source = folder / "source"
    not_source = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "html")
    shutil.copytree(CHECKOUT, source, ignore=not_source)
    (source / "reports/html").mkdir(parents=True)
    (source / "reports/html/index.html").write_text("a report that somebody made")
    for of_one in (source, source / "softcuda"):
        building = [sys.executable, "-m", "build", "--outdir", source.parent, of_one]
        subprocess.run(building, check=True, stdout=subprocess.DEVNULL)
    wheel, softcuda_wheel = sorted(source.parent.glob("*.whl"))
    sdist, softcuda_sdist = sorted(source.parent.glob("*.tar.gz"))
    softcuda = {"softcuda wheel": softcuda_wheel, "softcuda sdist": softcuda_sdist}
    return {"wheel": wheel, "sdist": sdist} | softcuda


def make_project(path: Path, environment: dict[str, str]) -> Project:
    """The sample as a repository of five commits: a start without kernels, then ``HISTORY``."""
    shutil.copytree(SAMPLE, path, ignore=shutil.ignore_patterns("__pycache__", "kernels.py"))
    shutil.copytree(CHECKOUT / "benchmarks", path / "benchmarks", ignore=_CACHES)
    configuration = Template((SAMPLE / "asv.conf.json").read_text()).substitute(
        environments=path.parent / "environments", borrow=BORROW
    )
    (path / "asv.conf.json").write_text(configuration)
    (path / ".gitignore").write_text("/.asv/\n/reports/\n__pycache__/\n")
    project = Project(path, environment)
    project.git("init", "--quiet", "--initial-branch=main")
    project.commit("start", 1)
    kernels = (SAMPLE / "toolkit/kernels.py").read_text()
    for day, (tag, body) in enumerate(HISTORY.items(), start=2):
        assert ADDITION in kernels
        changed = kernels.replace(ADDITION, body) + f"\n# {tag}\n"
        (path / "toolkit/kernels.py").write_text(changed)
        project.commit(tag, day)
    return project


def make_cuda_project(path: Path, environment: dict[str, str]) -> Project:
    """The sample with CUDA kernels as a repository of one commit, ``only``."""
    shutil.copytree(CUDA_SAMPLE, path, ignore=_CACHES)
    shutil.copytree(CHECKOUT / "benchmarks", path / "benchmarks", ignore=_CACHES)
    (path / ".gitignore").write_text("/.asv/\n/reports/\n__pycache__/\n")
    seen = {name: value for name, value in environment.items() if name != "CUDA_VISIBLE_DEVICES"}
    project = Project(path, {**seen, "ASV_PYTHONPATH": str(path)})
    project.git("init", "--quiet", "--initial-branch=main")
    project.commit("only", 1)
    project.asv("machine", "--yes")
    return project


def forget_other_work(results: Path) -> None:
    """Tests run beside each other, and a disturbed case has no verdict: what the neighbours did is
    taken out of the record, so that the pages do not depend on them."""
    for path in results.glob(f"*/*{SUFFIX}"):
        lines = map(parse_line, path.read_text(encoding="utf-8").splitlines())
        calm = (
            replace(line, disturbance=None) if isinstance(line, RoundsRecord) else line
            for line in lines
        )
        path.write_text("".join(map(to_line, calm)), encoding="utf-8")


_CACHES = shutil.ignore_patterns("__pycache__")
