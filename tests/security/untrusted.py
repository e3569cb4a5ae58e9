"""A repository that nobody should trust: code in every place that it could be run from.

Each piece of it adds a line to one file outside of the repository, so that a test can say which
pieces ran.
"""

from __future__ import annotations

import os
import pickle
import py_compile
import shutil
import stat
import subprocess
import sys
import zlib
from dataclasses import dataclass
from hashlib import sha1
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from result_files import CommitFiles

NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"

SUITE = """\
version: 1
suite: add
kernels:
  add:
    sizes: {n: [4, 8]}
    arrays:
      a: {shape: [n], dtype: float32}
      out: {shape: [n], dtype: float32, intent: out}
    call: [a, out]
    implementations:
      numpy: {function: "planted_kernels:add"}
      numba: {function: "planted_kernels:add_unknown"}
      compiled: {function: "only_compiled:add", backend: numpy}
    baseline: numpy
    devices: [cpu]
"""

KERNELS = """\
from elsewhere_planted import unknown_decorator

@unknown_decorator
def add_unknown(a, out):
    out[:] = a

def add(a, out):
    out[:] = a

def __getattr__(name):
    return add
"""

LAZY = (
    *("gpubench", "yaml", "numpy", "numba", "llvmlite", "duckdb", "msgspec", "jinja2"),
    *("markupsafe", "watchfiles", "rich", "click", "pydantic", "pynvml", "threadpoolctl", "cuda"),
    *("asv", "asv_runner", "pyopencl", "scipy", "torch", "jax", "dask", "distributed", "ray"),
    *("joblib", "cupy", "array_api_compat", "sitecustomize", "usercustomize", "elsewhere_planted"),
)
"""What gpubench or a library of it imports, or may import where it is installed."""


@dataclass(frozen=True)
class Untrusted:
    """The repository, and the file in which its code would leave a line."""

    folder: Path
    ran: Path

    def what_ran(self) -> list[str]:
        return sorted(set(self.ran.read_text().splitlines())) if self.ran.exists() else []

    def python(self, what: str) -> str:
        """A module that tells when it is run."""
        return f"open({str(self.ran)!r}, 'a').write({what!r} + chr(10))\n"

    def program(self, name: str) -> Path:
        """A program that tells when it is run."""
        path = self.folder / f"{name}.sh"
        path.write_text(f"#!/bin/sh\necho program {name} >> {self.ran}\nexit 1\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run ``gpubench`` in the repository as its console script does."""
        return subprocess.run(
            self._command(*arguments),
            **self._place(environment),
            capture_output=True,
            timeout=300,
            check=False,
        )

    def started(self, *arguments: str) -> subprocess.Popen[str]:
        """Start it, with a pipe for its standard output."""
        return subprocess.Popen(
            self._command(*arguments),
            **self._place({}),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def _command(self, *arguments: str) -> list[str]:
        script = self.ran.parent / "bin" / "gpubench"
        script.parent.mkdir(exist_ok=True)
        script.write_text("from gpubench.cli import main\nif __name__ == '__main__':\n    main()\n")
        return [sys.executable, str(script), *arguments]

    def _place(self, environment: dict[str, str]) -> dict[str, Any]:
        unset = ("PYTHONPATH", "PYTHONSAFEPATH", "GPUBENCH_PRESET", "GPUBENCH_SOFTCUDA")
        kept = {name: value for name, value in os.environ.items() if name not in unset}
        return {"cwd": self.folder, "env": kept | environment, "text": True}


def plant(folder: Path) -> Untrusted:
    """The repository, made in ``folder``."""
    repository = Untrusted(folder / "repository", folder / "ran")
    root = repository.folder
    (root / "suites").mkdir(parents=True)
    (root / "suites" / "add.yaml").write_text(SUITE)
    (root / "planted_kernels.py").write_text(KERNELS + repository.python("the kernels' module"))
    _plant_modules(repository)
    _plant_compiled(repository)
    _plant_entry_points(repository)
    _plant_results(repository)
    plant_git(repository)
    return repository


def _plant_modules(repository: Untrusted) -> None:
    """Modules that would be imported in place of others, if the folder were looked through first:
    of the standard library too, which new processes import."""
    names = {*LAZY, *packages_distributions(), *sys.stdlib_module_names}
    for name in sorted(filter(str.isidentifier, names)):
        (repository.folder / f"{name}.py").write_text(repository.python(f"module {name}"))
    shutil.rmtree(repository.folder / "__pycache__", ignore_errors=True)
    # Numba reads this file of the working folder, and loads the library that it names.
    library = repository.folder / "libplanted.so"
    (repository.folder / ".numba_config.yaml").write_text(f"cuda_driver: {library}\n")


class _Bomb:
    """Runs code when it is unpickled."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (self.code,)


def _plant_compiled(repository: Untrusted) -> None:
    """What Python, Numba and asv keep: bytecode without its source, and pickles."""
    root = repository.folder
    source = root / "only_compiled.py"
    source.write_text(repository.python("bytecode"))
    py_compile.compile(str(source), cfile=str(root / "only_compiled.pyc"), doraise=True)
    source.unlink()
    for folder in (root / "__pycache__", root / "suites" / "__pycache__", root / ".asv"):
        folder.mkdir(exist_ok=True)
        for name in ("planted_kernels.add-1.py311.nbi", "add.pickle", "benchmarks.pickle"):
            (folder / name).write_bytes(pickle.dumps(_Bomb(repository.python(f"pickle {name}"))))
    (root / "asv.conf.json").write_text('{"version": 1, "plugins": ["planted_kernels"]}')


def _plant_entry_points(repository: Untrusted) -> None:
    (repository.folder / "planted_backend.py").write_text(repository.python("an entry point"))
    for name, backend in (("planted-1.0", "planted"), ("gpubench-0.1.0", "numpy")):
        folder = repository.folder / f"{name}.dist-info"
        folder.mkdir()
        title, version = name.split("-")
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {title}\nVersion: {version}\n"
        )
        (folder / "entry_points.txt").write_text(
            f"[gpubench.backends]\n{backend} = planted_backend:Backend\n"
        )


def _plant_results(repository: Untrusted) -> None:
    results = repository.folder / ".asv" / "results"
    for commit, date in (("a" * 40, 86_400), ("b" * 40, 172_800)):
        files = CommitFiles(results, commit, date)
        files.time(NUMPY, "n=4", 4.0).record(NUMPY, "n=4", backend="numpy", device="cpu")
        files.time(NUMBA, "n=4", 2.0)
        files.record(NUMBA, "n=4", baseline_benchmark=NUMPY, baseline_case="n=4")
        files.write()


def plant_git(repository: Untrusted, *, partial: bool = True) -> str:
    """A repository whose settings name programs, with a signed commit, which has results; returns
    its hash. Its parent is missing, and fetched where the repository says that it is ``partial``.
    """
    root = repository.folder
    root.mkdir(exist_ok=True)
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    tree = _git_object(root, "tree", b"")
    parent = f"parent {'c' * 40}\n" if partial else ""
    signed = _git_object(
        root,
        "commit",
        f"tree {tree}\n{parent}author A <a@a> 0 +0000\ncommitter A <a@a> 0 +0000\n"
        "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ\n -----END PGP SIGNATURE-----\n"
        "\nsigned\n".encode(),
    )
    (root / ".git" / "refs" / "heads" / "master").write_text(f"{signed}\n")
    files = CommitFiles(root / ".asv" / "results", signed, 259_200)
    files.time(NUMPY, "n=4", 4.0).record(NUMPY, "n=4", backend="numpy", device="cpu").write()
    hooks = root / "hooks"
    hooks.mkdir()
    for hook in ("post-index-change", "reference-transaction", "fsmonitor-watchman"):
        shutil.copy(repository.program("hook"), hooks / hook)
    program = repository.program
    (root / ".gitattributes").write_text("* diff=planted\n")
    (root / ".git" / "config").write_text(
        f"""\
[core]
	repositoryformatversion = 1
	fsmonitor = {program("fsmonitor")}
	hooksPath = {hooks}
	pager = {program("pager")}
	sshCommand = {program("ssh")}
	askPass = {program("askpass")}
	gitProxy = {program("proxy")}
[pager]
	log = {program("pager-of-log")}
[log]
	showSignature = true
[gpg]
	program = {program("gpg")}
[diff]
	external = {program("diff")}
[diff "planted"]
	textconv = {program("textconv")}
	command = {program("diff-command")}
[alias]
	log = !{program("alias")}
[protocol]
	allow = always
[protocol "ext"]
	allow = always
"""
        + partial
        * f"""\
[extensions]
	partialClone = origin
[remote "origin"]
	url = ext::{program("remote")}
	uploadpack = {program("uploadpack")}
	promisor = true
	partialclonefilter = blob:none
"""
    )
    return signed


def _git_object(root: Path, kind: str, content: bytes) -> str:
    """Write an object as git stores it; with git itself its settings would not count yet."""
    whole = f"{kind} {len(content)}\0".encode() + content
    name = sha1(whole, usedforsecurity=False).hexdigest()
    path = root / ".git" / "objects" / name[:2] / name[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(whole))
    return name
