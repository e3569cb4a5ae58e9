"""Backends are found by entry point: those of other packages too, and every refusal says why."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from gpubench.backends import registry
from gpubench.errors import BackendError

RECIPE = (Path(__file__).parents[2] / "docs" / "adding-a-backend.md").read_text()
BACKEND = RECIPE.partition("```python\n")[2].partition("```")[0]
"""The minimal backend of the document, word for word."""

USE = """
import numpy as np
from gpubench.backends.protocol import Target
with registry.get("abacus").open("cpu") as session:
    a = session.to_native(np.ones(3))
    session.bind(Target(function=lambda a: a.__imul__(5)), None, [a])()
    print(session.to_host(a))
"""


ASK = """
import numpy as np
from gpubench.backends.protocol import Target
backend = registry.get("abacus")
facts = backend.device_facts("cpu")
print(facts.name, facts.scope)
print(backend.unavailable("cpu") or backend.unavailable("cuda:0"))
backend.preload()
print(backend.devices(), backend.machine_facts(), backend.too_many_threads(9), backend.keeps(print),
      backend.software, backend.concerns)
try:
    backend.open("cuda:0")
except registry.BackendError as error:
    print("refused:", error)
with backend.open("cpu") as session:
    sampler = session.sampler(session.bind(Target(function=sum), None, [(1, 2)]))
    session.flush()
    print(session.empty(), session.ceilings(), sampler.method, sampler.seconds(3) > 0)
    assert session.facts() == {"numpy": np.__version__} and not session.simulated
    native = session.to_native(np.ones(2))
    session.restore(native, session.pristine(np.zeros(2)))
    assert session.view(native).tolist() == [0, 0]
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
    assert str(refusal.value) == "unknown backend 'nunba'; did you mean 'numba'?"


def test_where_none_is_near_the_sentence_goes_on() -> None:
    with pytest.raises(BackendError, match=r"unknown backend 'nonesuch'; installed: "):
        registry.get("nonesuch")


def test_an_installed_package_adds_a_backend(tmp_path: Path) -> None:
    target = tmp_path / "target"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    built = wheel(tmp_path, "abacus_plugin", "abacus_plugin:AbacusBackend", BACKEND)
    subprocess.run([*pip, "--target", target, built], check=True, timeout=120)
    assert python("print('abacus' in registry.names())", target) == "True"
    assert python(USE, target) == "[5. 5. 5.]"


def test_backends_are_found_by_the_decorators_of_their_functions(tmp_path: Path) -> None:
    source = BACKEND + "    decorators = ('on_beads', 'beads.jit')\n"
    package(tmp_path, "beads", "beads:AbacusBackend", source)

    told = python("print(*registry.by_decorator().items(), sep='\\n')", tmp_path)

    assert {*told.splitlines()} == {
        "('on_beads', 'abacus')",
        "('beads.jit', 'abacus')",
        "('njit', 'numba')",
        "('jit', 'numba')",
        "('cuda.jit', 'numba_cuda')",
    }


def test_the_minimal_backend_has_an_answer_to_everything(tmp_path: Path) -> None:
    package(tmp_path, "abacus_plugin", "abacus_plugin:AbacusBackend", BACKEND)
    assert python(ASK, tmp_path).splitlines() == [
        "cpu {'device': 'cpu'}",
        "cuda:0: the backend abacus runs on cpu only; list cpu under 'devices'",
        "() {} None False () ()",
        "refused: cuda:0: the backend abacus runs on cpu only; list cpu under 'devices'",
        "None {} host loop True",
    ]


def test_a_backend_of_another_package_keeps_the_promises_of_all(tmp_path: Path) -> None:
    package(tmp_path, "abacus_plugin", "abacus_plugin:AbacusBackend", BACKEND)
    promises = [str(Path(__file__).parent / "test_conformance.py"), "-k", "abacus"]
    tried = python(
        f"import pytest; pytest.main(['-q', '-p', 'no:cacheprovider', *{promises}])", tmp_path
    ).splitlines()
    passed = re.match(r"(\d+) passed, 2 skipped, \d+ deselected in ", tried[-1])
    assert passed and int(passed[1]) > 30, tried


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
            BACKEND + "    requires = ('abacus-beads>=2',)\n    def __init__(self): import beads",
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


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            BACKEND + "    start = Backend.start",
            "cannot be loaded from plugin:AbacusBackend: TypeError: Can't instantiate abstract "
            "class AbacusBackend with abstract method start; mend or uninstall plugin",
        ),
        (
            BACKEND + "del AbacusBackend.times, AbacusBackend.title",
            "lacks title, times; gpubench.backends.protocol.Backend says what each has to be",
        ),
        (
            "class AbacusBackend:\n    name = 'abacus'",
            "is no gpubench.backends.protocol.Backend; derive it from that class, which says what "
            "it has to have",
        ),
    ],
    ids=["a method", "an attribute", "everything"],
)
def test_a_backend_that_lacks_something_is_refused(
    tmp_path: Path, source: str, message: str
) -> None:
    package(tmp_path, "plugin", "plugin:AbacusBackend", source)
    said = refusal(tmp_path).replace("abstract method 'start'", "abstract method start")
    said = said.replace("without an implementation for", "with")
    assert said == f"backend 'abacus' of plugin {message}"


def test_a_backend_under_another_name_is_refused(tmp_path: Path) -> None:
    package(tmp_path, "plugin", "plugin:AbacusBackend", BACKEND, backend="counting_frame")
    assert refusal(tmp_path, "counting_frame") == (
        "backend 'counting_frame' of plugin calls itself 'abacus'; "
        "entry point and 'name' have to agree"
    )


BROKEN = "raise OSError('libbeads.so.2 is missing')"


def test_a_backend_that_cannot_be_loaded_is_left_out_of_the_usable_ones(tmp_path: Path) -> None:
    package(tmp_path, "plugin", "plugin:AbacusBackend", BROKEN)
    program = "print('abacus' in registry.names(), [one.name for one in registry.usable()])"
    said, _, names = python(program, tmp_path).partition(" ")
    assert said == "True"
    assert "abacus" not in names and "'numpy'" in names


WITH_DEVICES = (
    "from gpubench.backends.protocol import Description\n"
    + BACKEND
    + """
    def devices(self):
        return Description("abacus:0", "Ten beads", {}), Description("cpu", "Some beads", {})
"""
)


def test_devices_of_all_backends_are_described_once_and_the_processor_first(
    tmp_path: Path,
) -> None:
    package(tmp_path, "plugin", "plugin:AbacusBackend", WITH_DEVICES)
    program = "print([(line.device, line.name) for line in registry.describe_devices()])"
    lines = python(program, tmp_path)
    assert lines.startswith("[('cpu', 'Some beads'), ('abacus:0', 'Ten beads')")
    assert lines.count("'cpu'") == 1


@pytest.mark.parametrize("name", ["numba_cuda", "cupy", "pycuda", "cudf", "cuml"])
def test_threads_of_the_host_are_refused_on_a_gpu(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = registry.get(name)
    monkeypatch.setattr(backend, "unavailable_with", lambda device, options: None)
    with pytest.raises(BackendError, match=r"^threads of 2: .*; leave out 'threads'$"):
        backend.open("cuda:0", threads=2)
