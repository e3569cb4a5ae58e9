"""Backends are found by entry point: those of other packages too, and every refusal says why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from gpubench.backends import registry
from gpubench.errors import BackendError

BACKEND = """
import numpy as np
from gpubench.backends.host import HostSession, host_facts

class AbacusBackend:
    name = "abacus"
    title = "Abacus"
    requires = ("abacus-beads>=2",)
    times = ("kernel",)
    def serves(self, device): return device == "cpu"
    def recognises(self, function): return False
    def unavailable(self, device): return None
    def device_facts(self, device): return host_facts()
    def open(self, device, threads=None): return HostSession(self.name)
"""

USE = """
import numpy as np
from gpubench.backends.protocol import Target
with registry.get("abacus").open("cpu") as session:
    a = session.to_native(np.ones(3))
    session.bind(Target(function=lambda a: a.__imul__(5)), None, [a])()
    print(session.to_host(a))
"""


def package(folder: Path, name: str, entry: str, source: str, backend: str = "abacus") -> None:
    """Lay a distribution out as ``pip install --target`` does: a module and its metadata."""
    (folder / f"{name}.py").write_text(source)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[gpubench.backends]\n{backend} = {entry}\n")


def wheel(folder: Path, name: str, entry: str, source: str) -> Path:
    """Build the wheel of such a package: no build back end, no network."""
    content = folder / "content"
    content.mkdir()
    package(content, name, entry, source)
    info = content / f"{name}-1.0.dist-info"
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    files = [path.relative_to(content) for path in content.rglob("*") if path.is_file()]
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in files))
    built = folder / f"{name}-1.0-py3-none-any.whl"
    with ZipFile(built, "w") as archive:
        for path in [*files, (info / "RECORD").relative_to(content)]:
            archive.write(content / path, path)
    return built


def python(program: str, folder: Path) -> str:
    """What a program prints in a process that has the folder's packages."""
    done = subprocess.run(
        [sys.executable, "-c", "from gpubench.backends import registry\n" + program],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def refusal(folder: Path, backend: str = "abacus") -> str:
    return python(
        f"try: registry.get({backend!r})\nexcept registry.BackendError as e: print(e)", folder
    )


def test_the_four_of_this_package_are_declared() -> None:
    assert {"numpy", "numba", "numba_cuda", "scripted"} <= set(registry.names())
    assert list(registry.names()) == sorted(registry.names())


def test_a_backend_is_made_once() -> None:
    assert registry.get("numpy") is registry.get("numpy")


def test_an_unknown_name_says_what_there_is() -> None:
    with pytest.raises(BackendError) as refusal:
        registry.get("nunba")
    assert str(refusal.value) == (
        f"unknown backend 'nunba'; did you mean 'numba'? Installed: {', '.join(registry.names())}. "
        "Another package can add one through the entry point group 'gpubench.backends'"
    )


def test_an_installed_package_adds_a_backend(tmp_path: Path) -> None:
    target = tmp_path / "target"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    built = wheel(tmp_path, "abacus_plugin", "abacus_plugin:AbacusBackend", BACKEND)
    subprocess.run([*pip, "--target", target, built], check=True, timeout=120)
    assert python("print('abacus' in registry.names())", target) == "True"
    assert python(USE, target) == "[5. 5. 5.]"


def test_a_name_declared_twice_names_both_packages(tmp_path: Path) -> None:
    package(tmp_path, "abacus_one", "abacus_one:AbacusBackend", BACKEND)
    package(tmp_path, "abacus_two", "abacus_two:AbacusBackend", BACKEND)
    first, _, rest = refusal(tmp_path).partition(": ")
    assert first == "backend 'abacus' is declared 2 times"
    assert "abacus_one (abacus_one:AbacusBackend)" in rest
    assert "abacus_two (abacus_two:AbacusBackend)" in rest
    assert rest.endswith("; uninstall all but one")


def test_a_duplicate_spoils_no_other_backend(tmp_path: Path) -> None:
    package(tmp_path, "abacus_one", "abacus_one:AbacusBackend", BACKEND, backend="numba")
    assert python("print(registry.get('numpy').title)", tmp_path) == "NumPy"


@pytest.mark.parametrize(
    ("entry", "source", "message"),
    [
        (
            "plugin:AbacusBackend",
            "import beads.core",
            "ModuleNotFoundError: No module named 'beads'; pip install beads",
        ),
        (
            "plugin:AbacusBackend [wood]",
            "import beads",
            "ModuleNotFoundError: No module named 'beads'; pip install 'plugin[wood]'",
        ),
        (
            "plugin.gone:AbacusBackend",
            "",
            "ModuleNotFoundError: No module named 'plugin.gone'; 'plugin' is not a package; "
            "pip install --force-reinstall plugin",
        ),
        (
            "plugin:AbacusBackend",
            "raise OSError('libbeads.so.2 is missing')",
            "OSError: libbeads.so.2 is missing; mend or uninstall plugin",
        ),
        (
            "plugin:AbacusBackend",
            BACKEND + "    def __init__(self): import beads",
            "ModuleNotFoundError: No module named 'beads'; pip install 'abacus-beads>=2'",
        ),
    ],
)
def test_a_backend_that_cannot_be_loaded_says_why_and_what_to_install(
    tmp_path: Path, entry: str, source: str, message: str
) -> None:
    package(tmp_path, "plugin", entry, source)
    assert refusal(tmp_path) == (
        f"backend 'abacus' of plugin cannot be loaded from {entry}: {message}"
    )


def test_a_backend_that_lacks_a_method_is_refused(tmp_path: Path) -> None:
    package(tmp_path, "plugin", "plugin:B", "class B:\n name, title, requires = 'abacus', '', ()")
    assert refusal(tmp_path) == (
        "backend 'abacus' of plugin lacks times, serves, recognises, unavailable, device_facts, "
        "open; "
        "gpubench.backends.protocol.Backend says what each has to be"
    )


def test_a_backend_under_another_name_is_refused(tmp_path: Path) -> None:
    package(tmp_path, "plugin", "plugin:AbacusBackend", BACKEND, backend="counting_frame")
    assert refusal(tmp_path, "counting_frame") == (
        "backend 'counting_frame' of plugin calls itself 'abacus'; "
        "entry point and 'name' have to agree"
    )
