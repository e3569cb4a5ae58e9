"""Small repositories whose every commit has a time of its own, measured by ``asv run``.

The time of the kernel ``k`` is what its code says: a script of the backend ``scripted`` gives the
number that the commit wrote, in the module that the test is about. So a time that is not that of
its commit's code is another number, on a busy machine too.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from asv_project import BORROW, CHECKOUT, Project

from gpubench.record import CaseRecord, RunRecord, parse_line

KERNEL = """\
from gpubench.backends.scripted import script

{imports}


@script(seconds=1e-3)
def plain(x, y):
    y[:] = 2 * x


@script(seconds=lambda **values: {seconds})
def kernel(x, y):
    y[:] = 2 * x
"""
"""A module of two functions, of which the time of ``kernel`` is an expression."""

SUITE = """\
version: 1
suite: s
backend: scripted
kernels:
  k:
    sizes: {{n: [8]}}
    arrays:
      x: {{shape: [n], dtype: float64}}
      y: {{shape: [n], dtype: float64, intent: out}}
    call: [x, y]
    baseline: plain
    implementations:
      plain: {{function: "{module}:plain"}}
      kernel: {{function: "{module}:kernel"}}
    sampling: {{rounds: 1, repeat: 2, warmup_time: 0}}
"""

PYPROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"
[project]
name = "{name}"
version = "1.0"
[tool.setuptools]
{layout}
"""

PLAIN, K = "suites.s__k__plain.time_kernel", "suites.s__k__kernel.time_kernel"
CASE = "n=8"

BUILD = "python -m pip wheel --no-deps --no-build-isolation -w {build_cache_dir} {build_dir}"
INSTALL = "in-dir={env_dir} python -m pip install --no-deps --force-reinstall {wheel_file}"
EDITABLE = "in-dir={env_dir} python -m pip install --no-deps --no-build-isolation -e {build_dir}"
COMPILE = (
    "return-code=any in-dir={env_dir} python -m gpubench.measure.compiling_ahead {conf_dir}/suites"
)


@dataclass(frozen=True)
class History(Project):
    """A repository that grows commit by commit."""

    environments: Path
    """Of asv: one environment for all repositories of a session."""

    def put(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def package(
        self, folder: str = "mini", *, module: str | None = None, layout: str | None = None
    ) -> None:
        """A package ``mini`` whose kernel takes what ``helper.SECONDS`` says, and its suite."""
        name = (module or folder).replace("/", ".")
        kernel = KERNEL.format(imports=f"from {name} import helper", seconds="helper.SECONDS")
        self.put(f"{folder}/__init__.py", "")
        self.put(f"{folder}/kernels.py", kernel)
        self.put("suites/s.yaml", SUITE.format(module=f"{name}.kernels"))
        self.pyproject(layout or f'packages = ["{name}"]')

    def pyproject(self, layout: str, name: str = "mini", folder: str = ".") -> None:
        self.put(f"{folder}/pyproject.toml", PYPROJECT.format(name=name, layout=layout))

    def configure(
        self,
        *,
        install: Sequence[str] = (INSTALL,),
        build: Sequence[str] = (BUILD,),
        **settings: object,
    ) -> None:
        """asv.conf.json, which lends gpubench to the environment before it installs the project."""
        content = {
            "version": 1,
            "project": "mini",
            "repo": ".",
            "branches": ["HEAD"],
            "benchmark_dir": "benchmarks",
            "env_dir": str(self.environments),
            "results_dir": ".asv/results",
            "html_dir": ".asv/html",
            "plugins": [".gpubench.asv_plugin"],
            "environment_type": "virtualenv",
            "build_cache_size": 8,
            "build_command": [*build],
            "install_command": [BORROW, *install],
            "launch_method": "forkserver",
        }
        (self.path / "asv.conf.json").write_text(json.dumps(content | settings, indent=1))

    def commit_seconds(self, tag: str, seconds: float, helper: str = "mini/helper.py") -> None:
        """A commit in which the kernel takes so long."""
        self.put(helper, f"SECONDS = {seconds!r}\n")
        self.save(tag)

    def save(self, tag: str) -> None:
        """Commit everything, and tag it."""
        self.git("add", ".")
        self.git("commit", "--quiet", "--allow-empty", "-m", tag)
        self.git("tag", tag)

    def measure(self, *tags: str, code: int | None = 0) -> str:
        """What ``asv run`` of these commits prints: of all in this order by one, which starts and
        looks for benchmarks once."""
        commits = self.path.parent / "commits"
        commits.write_text("".join(f"{self.git('rev-parse', tag)}\n" for tag in tags))
        return self.asv("run", f"HASHFILE:{commits}", code=code)

    def seconds(self, tag: str) -> float | None:
        """The kernel's time at a commit; ``None`` for one without."""
        row = self.result(tag)["results"].get(K, {})
        (time,) = row.get("result") or [None]
        return None if time is None else round(time, 12)

    def reason(self, tag: str) -> str | None:
        """Why the kernel has no time at a commit."""
        return self.outcome(tag, K, CASE).reason

    def uncommitted(self, tag: str) -> str | None:
        """What the record of a commit says of code that is not committed; ``absent`` where nobody
        looked."""
        lines = map(parse_line, self._file(tag, ".gpubench.jsonl").read_text().splitlines())
        facts = [line.facts for line in lines if isinstance(line, RunRecord)][-1]
        value = facts.get("uncommitted", "absent")
        return None if value is None else str(value)

    def statuses(self, tag: str) -> dict[str, str]:
        """Outcome of each implementation."""
        return {
            record.benchmark.rpartition("__")[2].partition(".")[0]: record.status
            for record in self.records(tag)
            if isinstance(record, CaseRecord)
        }


def start(path: Path, environment: dict[str, str], environments: Path) -> History:
    """Make an empty repository with a configuration of asv."""
    shutil.copytree(
        CHECKOUT / "benchmarks",
        path / "benchmarks",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    history = History(path, environment, environments)
    history.put(".gitignore", "/.asv/\n/reports/\n__pycache__/\n*.egg-info/\n/build/\n*.so\n")
    history.git("init", "--quiet", "--initial-branch=main")
    history.configure()
    return history
