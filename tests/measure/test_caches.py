"""Compiled code is looked for in folders that belong to the sources as they are."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from gpubench.backends import registry
from gpubench.measure import caches
from gpubench.measure.asv_settings import VARIABLE
from gpubench.measure.caches import (
    MAX_FOLDERS,
    cache_variables,
    digest_of_sources,
    remembered_facts,
)

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project on the search path, alone there but for what is installed."""
    folder = tmp_path / "project"
    (folder / "suites").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    (folder / "kernels.py").write_text("from helper import scale\n")
    (folder / "helper.py").write_text("scale = 2\n")
    monkeypatch.chdir(folder)
    installed = [entry for entry in sys.path if "site-packages" in entry or "/lib/" in entry]
    monkeypatch.setattr(sys, "path", [str(folder), *installed])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ASV_ENV_DIR", raising=False)
    for name in {name for backend in registry.usable() for name in backend.caches}:
        monkeypatch.delenv(name, raising=False)
    return folder


def git(folder, *arguments):
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def in_git(project):
    git(project, "init", "--quiet")
    (project / ".gitignore").write_text("/ignored.py\n/reports/\n")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "one")


@pytest.mark.parametrize("has_git", [True, False])
@pytest.mark.parametrize(
    "name", ["helper.py", "deep/er/another.py", "facts.json", "ignored.py", "lib.cuh", "a.yaml"]
)
def test_a_change_of_what_code_may_come_from_is_another_digest(project, name, has_git):
    if has_git:
        in_git(project)
    before = digest_of_sources()
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_text("scale = 3\n")
    after = digest_of_sources()
    (project / name).write_text("scale = 4\n")  # of the same size, within the same second
    assert len({before, after, digest_of_sources()}) == 3


@pytest.mark.parametrize("name", ["suites/s.yaml", "README.md", "__pycache__/helper.nbc"])
def test_what_has_no_code_changes_no_digest(project, name):
    before = digest_of_sources()
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_text("scale = 3\n")
    assert digest_of_sources() == before


def test_a_setting_of_numba_is_another_digest_and_its_threads_are_not(project, monkeypatch):
    before = digest_of_sources()
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "somewhere")
    assert digest_of_sources() == before
    monkeypatch.setenv("NUMBA_OPT", "1")
    assert digest_of_sources() != before


def dist_info(folder, version="1.0", origin="", record=""):
    path = folder / f"thing-{version}.dist-info"
    path.mkdir(parents=True)
    (path / "METADATA").write_text(f"Name: thing\nVersion: {version}\n")
    (path / "RECORD").write_text(record)
    if origin:
        (path / "direct_url.json").write_text(origin)


def test_versions_and_local_contents_of_distributions_are_part_of_it(project, tmp_path):
    digests = [digest_of_sources()]
    local = '{"url": "file:///wheels/thing-1.0.whl"}'
    for number, given in enumerate(
        [
            {"version": "1.0"},
            {"version": "1.1"},
            {"origin": local, "record": "thing.py,sha256=a,1\n"},
            {"origin": local, "record": "thing.py,sha256=b,1\n"},
        ]
    ):
        folder = tmp_path / f"site{number}"
        dist_info(folder, **given)
        sys.path.append(str(folder))
        digests.append(digest_of_sources())
        sys.path.remove(str(folder))
    assert len({*digests}) == len(digests)


def test_the_folder_of_an_editable_distribution_is_part_of_it(project, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "module.py").write_text("x = 1\n")
    origin = f'{{"url": "file://{other}", "dir_info": {{"editable": true}}}}'
    dist_info(tmp_path / "site", origin=origin)
    sys.path.append(str(tmp_path / "site"))
    before = digest_of_sources()
    (other / "module.py").write_text("x = 2\n")
    assert digest_of_sources() != before


def test_what_is_in_hidden_folders_and_environments_is_no_part_of_it(project):
    before = digest_of_sources()
    for name in (".asv/x.py", "venv/pyvenv.cfg", "venv/lib/y.py", "node_modules/z.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("1")
    assert digest_of_sources() == before


def test_each_backend_that_compiles_names_its_caches(project):
    compiling = [one for one in registry.usable() if "compile" in one.times and one.caches]
    assert {"numba", "numba_cuda", "pyopencl"} <= {one.name for one in compiling}
    without = [
        one.name
        for one in registry.usable()
        if "compile" in one.times and not (one.caches or one.caches_by_content)
    ]
    assert without == ["scripted"]  # which keeps nothing


def test_each_variable_has_a_folder_of_the_digest(project, tmp_path):
    with ExitStack() as stack:
        variables = cache_variables(stack)
    base = tmp_path / "cache/gpubench/compiled" / str(digest_of_sources())
    assert variables["NUMBA_CACHE_DIR"] == str(base / "numba_cache")
    assert all(
        Path(folder).parent == base and Path(folder).is_dir() for folder in variables.values()
    )
    assert not {"XDG_CACHE_HOME", "JAX_COMPILATION_CACHE_DIR"} & variables.keys()


def test_a_folder_that_the_user_names_has_ours_inside(project, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    with ExitStack() as stack:
        folder = Path(cache_variables(stack)["NUMBA_CACHE_DIR"])
    assert folder.is_relative_to(tmp_path / "kept/gpubench")


def test_in_an_environment_of_asv_the_folders_lie_there(project, tmp_path, monkeypatch):
    monkeypatch.setenv("ASV_ENV_DIR", str(tmp_path / "env"))
    with ExitStack() as stack:
        folder = Path(cache_variables(stack)["NUMBA_CACHE_DIR"])
    assert folder.is_relative_to(tmp_path / "env/gpubench-compiled")


def age(folder):
    """Make all files older than those that may be touched again in the same moment."""
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (1_000_000_000, 1_000_000_000))


@pytest.fixture
def reading(monkeypatch):
    """The files whose contents are read for a digest; nothing else is installed."""
    monkeypatch.setattr(caches, "distributions", lambda: iter(()))
    read, content = [], caches._content
    monkeypatch.setattr(caches, "_content", lambda path: read.append(path.name) or content(path))
    return read


@pytest.mark.parametrize(
    ("change", "has_git"),
    [
        ("edited", True),
        ("edited, as old as before", True),
        ("removed", True),
        ("new", False),
        ("new in a hidden folder", True),
        ("new in a hidden folder", False),
    ],
)
def test_the_second_process_reads_no_source_until_one_is_touched(
    project, tmp_path, reading, change, has_git
):
    (project / ".kept").mkdir()
    if has_git:
        in_git(project)
    age(project)
    first = remembered_facts(tmp_path / "compiled").digest
    assert first == digest_of_sources()
    reading.clear()
    assert remembered_facts(tmp_path / "compiled").digest == first
    assert not reading

    changed = project / {"new": "new.py", "new in a hidden folder": ".kept/new.py"}.get(
        change, "helper.py"
    )
    if change == "removed":
        changed.unlink()
    else:
        changed.write_text("scale = 3\n")  # helper.py stays as large
        moment = 1_000_000_000 if change == "edited, as old as before" else 1_000_000_100
        os.utime(changed, (moment, moment))
    after = remembered_facts(tmp_path / "compiled").digest
    assert after == digest_of_sources()
    assert (after != first) == (has_git or change != "new in a hidden folder")


def test_the_second_process_imports_no_backend_to_find_the_folders(project, tmp_path, monkeypatch):
    age(project)
    first = remembered_facts(tmp_path / "compiled")
    monkeypatch.setattr(registry, "usable", lambda: pytest.fail("backends are imported"))
    assert remembered_facts(tmp_path / "compiled") == first
    assert "NUMBA_CACHE_DIR" in first.variables
    assert "numba" in first.movers


def test_a_file_that_was_touched_just_now_is_read_each_time(project, tmp_path, reading):
    age(project)
    (project / "helper.py").touch()
    remembered_facts(tmp_path / "compiled")
    reading.clear()
    remembered_facts(tmp_path / "compiled")
    assert "helper.py" in reading


def test_results_that_asv_keeps_in_the_project_are_no_source(
    project, tmp_path, reading, monkeypatch
):
    in_git(project)
    monkeypatch.setenv(VARIABLE, json.dumps({"results_dir": str(project / "results")}))
    age(project)
    before = remembered_facts(tmp_path / "compiled").digest
    (project / "results/box").mkdir(parents=True)
    (project / "results/box/one.json").write_text("{}")
    assert digest_of_sources() == before == remembered_facts(tmp_path / "compiled").digest


@pytest.mark.parametrize("reason", ["too many files", "nothing can be written"])
def test_else_the_folders_are_new_ones_and_are_removed(project, tmp_path, monkeypatch, reason):
    if reason == "too many files":
        monkeypatch.setattr(caches, "MAX_PROJECT_FILES", 1)
    else:
        (tmp_path / "cache").write_text("no folder")
    with ExitStack() as stack:
        first = cache_variables(stack)["NUMBA_CACHE_DIR"]
        assert Path(first).is_dir()
        assert cache_variables(stack)["NUMBA_CACHE_DIR"] != first
    assert not Path(first).exists()


def test_folders_that_were_used_longest_ago_are_removed(project, tmp_path):
    base = tmp_path / "cache/gpubench/compiled"
    for number in range(MAX_FOLDERS + 3):
        (base / f"old{number:02}").mkdir(parents=True)
        os.utime(base / f"old{number:02}", (number, number))
    (base / "in use").mkdir()
    with ExitStack() as stack:
        cache_variables(stack)
    left = {folder.name for folder in base.iterdir()}
    assert len(left) == MAX_FOLDERS
    assert {"in use", digest_of_sources()} <= left
    assert "old00" not in left


HELPER = """\
from numba import cuda, njit

@njit(cache=True)
def scale(x):
    return {factor} * x

@cuda.jit(device=True, cache=True)
def scale_on_device(x):
    return {factor} * x
"""

KERNELS = """\
import numpy as np
from numba import cuda, njit
from helper import scale, scale_on_device

def with_numpy(x, y):
    np.multiply(x, 2, out=y)

@njit(cache=True)
def with_numba(x, y):
    for i in range(x.size):
        y[i] = scale(x[i])

@cuda.jit(cache=True)
def with_cuda(x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = scale_on_device(x[i])
"""

SUITE = """\
version: 1
suite: s
kernels:
  k:
    sizes: {n: [64]}
    arrays:
      x: {shape: [n], dtype: float64}
      y: {shape: [n], dtype: float64, intent: out}
    call: [x, y]
    implementations:
      numpy: {function: "kernels:with_numpy"}
      numba: {function: "kernels:with_numba"}
      numba_cuda: {function: "kernels:with_cuda", launch: {block: [64], grid: cover}}
    devices: [cpu, "cuda:0"]
"""


def verifying(implementation: str) -> tuple[list[str], dict[str, str]]:
    """Return the command that verifies an implementation of ``SUITE``, and its environment."""
    command = [sys.executable, "-m", "gpubench", "verify", "s", "--declared"]
    command += ["--where", f"implementation == {implementation!r}"]
    packages = filter(None, (str(CHECKOUT), os.environ.get("PYTHONPATH")))
    return command, {**os.environ, "PYTHONPATH": os.pathsep.join(packages)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "implementation", ["numba", pytest.param("numba_cuda", marks=pytest.mark.gpu)]
)
def test_verify_sees_a_changed_function_of_another_module(project, implementation):
    (project / "suites/s.yaml").write_text(SUITE)
    (project / "kernels.py").write_text(KERNELS)
    command, environment = verifying(implementation)
    for factor, verdict in ((2, "1 right"), (3, "1 wrong"), (2, "1 right")):
        (project / "helper.py").write_text(HELPER.format(factor=factor))
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert verdict in done.stdout, done.stdout + done.stderr


@pytest.mark.ci
def test_processes_that_compile_at_once_share_a_cache(project, tmp_path):
    """Numba replaces each file at once, and reads an index that names what is not there yet."""
    (project / "suites/s.yaml").write_text(SUITE)
    (project / "kernels.py").write_text(KERNELS)
    (project / "helper.py").write_text(HELPER.format(factor=2))
    command, environment = verifying("numba")
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "shared")
    for _ in range(2):
        processes = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
            for _ in range(3)
        ]
        said = [process.communicate(timeout=300)[0] for process in processes]
        assert all("1 right" in each for each in said), said
        files = {path for path in (tmp_path / "shared").rglob("*") if path.is_file()}
        assert {path.suffix for path in files} == {".nbi", ".nbc"}
