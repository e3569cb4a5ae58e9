"""Ours is the distribution gpubench-suite: no file recommends another, and another is told of."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from asv.console import log
from click.testing import CliRunner

from gpubench import asv_plugin, entry_points
from gpubench.backends import registry
from gpubench.cli import main
from gpubench.distribution import DISTRIBUTION, describe_conflict, find_installed, require_extra
from gpubench.errors import GpubenchError
from gpubench.measure.recorder import run_facts

CHECKOUT = Path(__file__).resolve().parents[2]
NAME = "gpubench"
FORMER = re.compile(
    rf"""pip\ install\ [^\n`~]*?(?<![\w/.-]){NAME}(?![\w.-]|\S*/)      # a command that installs it
    | (?<![\w.-]){NAME}\\?\[[a-z{{]                              # with an extra
    | (?<![\w.-]){NAME}\ ?[=<>~]=                                # of a version
    | (?:distribution|version|requires)\(["']{NAME}["']\)        # in importlib.metadata
    """,
    re.VERBOSE,
)


def lay_distribution(folder: Path, name: str, version: str = "1.0.0", **files: str) -> Path:
    """Make a folder for ``sys.path`` that holds the metadata of an installed distribution."""
    metadata = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True)
    content = {"METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", **files}
    for file, text in {"RECORD": "", **content}.items():
        (metadata / file.replace("_txt", ".txt")).write_text(text)
    return folder


@pytest.fixture
def beside_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on ``sys.path`` with a ``gpubench`` of other people."""
    folder = lay_distribution(tmp_path / "site-packages", NAME)
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.mark.parametrize(
    "text",
    [
        f"pip install {NAME}",
        f"pip install --upgrade '{NAME}[cuda]'",
        f'pip install "{NAME}"',
        f"needs `{NAME}[fleet]`",
        f"{NAME}==0.1.0",
        f"python -m pip install --no-deps {NAME} numpy",
        f'distribution("{NAME}")',
    ],
)
def test_what_installs_the_distribution_of_others_is_found(text: str) -> None:
    assert FORMER.search(text)


@pytest.mark.parametrize(
    "text",
    [
        f"pip install {NAME}-suite",
        f"pip install '{NAME}-suite[cuda]'",
        f"pip uninstall {NAME}",
        f"pip install --no-deps /home/me/{NAME}",
        f"python -m pip install numba; python -m {NAME}.measure.compiling_ahead",
    ],
)
def test_what_installs_ours_is_left_alone(text: str) -> None:
    assert not FORMER.search(text)


def test_no_file_recommends_the_distribution_of_others() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=CHECKOUT, text=True, capture_output=True, check=True
    ).stdout.splitlines()
    found = []
    for name in listed:
        path = CHECKOUT / name
        if not path.is_file() or path.suffix in (".png", ".webp", ".bundle"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
            if FORMER.search(line):
                found.append(f"{name}:{number}: {line.strip()}")
    assert found == []


def test_extras_are_written_with_hyphens_which_every_pip_understands() -> None:
    assert require_extra("scikit_learn", "dask") == "gpubench-suite[scikit-learn,dask]"
    asked = (need for backend in registry.usable() for need in backend.requires)
    assert [need for need in asked if "_" in need] == []
    extras = find_installed().metadata.get_all("Provides-Extra") or []
    assert [extra for extra in extras if "_" in extra] == []


def test_every_extra_that_a_backend_asks_for_is_one_of_ours() -> None:
    extras = find_installed().metadata.get_all("Provides-Extra") or []
    asked = {need for backend in registry.usable() for need in backend.requires}
    ours = {need for need in asked if need.startswith(f"{DISTRIBUTION}[")}
    assert ours and ours <= {require_extra(extra) for extra in extras}


def test_alone_there_is_nothing_to_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(lay_distribution(tmp_path, DISTRIBUTION))])
    assert describe_conflict() is None
    assert find_installed().version == "1.0.0"


def test_metadata_that_a_build_left_in_a_checkout_is_no_installed_distribution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{NAME}.egg-info").mkdir()
    (tmp_path / f"{NAME}.egg-info" / "PKG-INFO").write_text(f"Name: {NAME}\nVersion: 0.1.0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert describe_conflict() is None


def test_another_distribution_is_told_of_with_what_to_do(beside_another: Path) -> None:
    conflict = describe_conflict()
    assert conflict is not None
    assert conflict.startswith(f"the distribution '{NAME}' 1.0.0 in {str(beside_another)!r} ")
    assert f"pip uninstall {NAME}, then pip install --force-reinstall " in conflict
    assert f" {DISTRIBUTION} " in conflict


def test_every_command_tells_of_another_distribution_and_works(
    beside_another: Path, tmp_path: Path
) -> None:
    done = CliRunner().invoke(main, ["init", str(tmp_path / "mine")])
    assert done.exit_code == 0
    assert f"pip uninstall {NAME}" in done.stderr
    assert f"pip uninstall {NAME}" not in done.stdout


def test_asv_run_tells_of_another_distribution(
    beside_another: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(log, "warning", warnings.append)
    monkeypatch.setattr(sys, "argv", ["asv", "machine", "--yes"])
    monkeypatch.setattr(asv_plugin, "_settings", lambda arguments: asv_plugin.AsvSettings())
    asv_plugin.export_settings()
    assert any(f"pip uninstall {NAME}" in warning for warning in warnings)


def test_ours_under_its_former_name_alone_is_told_of_where_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(lay_distribution(tmp_path, NAME, "0.1.0"))])
    with pytest.raises(GpubenchError, match=f"'{NAME}' 0.1.0 .*pip uninstall {NAME}, then "):
        find_installed()


def test_without_any_installed_distribution_the_message_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(GpubenchError, match=f"^{DISTRIBUTION} is not installed in .*pip install "):
        find_installed()


def test_a_backend_that_the_former_name_declares_too_is_one_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = "[gpubench.backends]\nnumpy = gpubench.backends.numpy:NumpyBackend\n"
    folder = lay_distribution(tmp_path, NAME, "0.1.0", entry_points_txt=declared)
    monkeypatch.syspath_prepend(folder)
    kept = (entry_points._installed, entry_points.declared, registry.get)
    for function in kept:
        function.cache_clear()
    try:
        assert registry.get("numpy").name == "numpy"
    finally:
        monkeypatch.undo()
        for function in kept:
            function.cache_clear()


def test_the_record_keeps_our_version_and_not_that_of_the_other(beside_another: Path) -> None:
    facts = run_facts()
    assert facts["gpubench"] == find_installed().version
    assert "gpubench_suite" not in facts


def run_with_an_empty_init(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command on our package, in which the other has put its empty ``__init__.py``."""
    package = folder / NAME
    package.mkdir()
    (package / "__init__.py").touch()
    for path in (CHECKOUT / NAME).iterdir():
        if path.name not in ("__init__.py", "__pycache__"):
            (package / path.name).symlink_to(path)
    return subprocess.run(
        [sys.executable, "-m", NAME, "check"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        text=True,
        capture_output=True,
    )


def test_where_the_other_has_overwritten_our_package_the_command_says_so(tmp_path: Path) -> None:
    done = run_with_an_empty_init(lay_distribution(tmp_path / "site-packages", NAME))
    assert done.returncode == 2
    assert done.stderr.startswith(f"gpubench: the distribution '{NAME}' 1.0.0 in ")
    assert "Traceback" not in done.stderr


def test_where_the_other_took_our_files_along_the_command_says_so(tmp_path: Path) -> None:
    done = run_with_an_empty_init(tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"gpubench: files of {DISTRIBUTION} are missing or overwritten: ")
    assert "Traceback" not in done.stderr


def test_a_system_may_be_written_as_its_extra(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["init", str(tmp_path), "--with", "scikit-learn,array_api"])
    assert done.exit_code == 0, done.output
    configuration = (tmp_path / "asv.conf.json").read_text()
    assert '"scikit-learn": []' in configuration
    assert '"array-api-compat": []' in configuration
