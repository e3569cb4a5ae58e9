"""The time of each commit is that of its code, whatever the layout of the project."""

from __future__ import annotations

import json
import sys

import pytest
from history_project import BUILD, COMPILE, EDITABLE, INSTALL, KERNEL, History, K

pytestmark = pytest.mark.ci

BEFORE, AFTER = 1e-3, 7e-3

KEEPING = {"project": "another", "install": (INSTALL.replace(" --force-reinstall", ""),)}
"""A configuration with which pip leaves the package of the commit before in place."""


def two_commits(history: History, helper: str = "mini/helper.py") -> None:
    """A slow-down in a module beside the kernel's, both commits measured in one environment."""
    history.commit_seconds("before", BEFORE, helper)
    history.commit_seconds("after", AFTER, helper)
    history.measure("before", "after")


def times(history: History) -> tuple[float | None, float | None]:
    return history.seconds("before"), history.seconds("after")


def test_a_package_beside_its_configuration(history):
    history.package()
    two_commits(history)
    assert times(history) == (BEFORE, AFTER)
    assert history.uncommitted("after") is None


@pytest.mark.thorough
def test_a_package_in_src(history):
    history.package(
        "src/mini", module="mini", layout='packages = ["mini"]\npackage-dir = {"" = "src"}'
    )
    two_commits(history, "src/mini/helper.py")
    assert times(history) == (BEFORE, AFTER)


@pytest.mark.thorough  # tests/measure/test_provenance.py has its rule
def test_a_package_that_is_renamed_when_it_is_built(history):
    history.package(
        "source", module="mini", layout='packages = ["mini"]\npackage-dir = {"mini" = "source"}'
    )
    two_commits(history, "source/helper.py")
    assert times(history) == (BEFORE, AFTER)


@pytest.mark.thorough
def test_a_namespace_package(history):
    history.package("acme/mini", layout='packages = ["acme.mini"]')
    two_commits(history, "acme/mini/helper.py")
    assert times(history) == (BEFORE, AFTER)


@pytest.mark.thorough
def test_single_modules(history):
    history.package(layout='packages = []\npy-modules = ["kernels", "helper"]')
    history.put("kernels.py", KERNEL.format(imports="import helper", seconds="helper.SECONDS"))
    suite = (history.path / "suites/s.yaml").read_text().replace("mini.kernels", "kernels")
    history.put("suites/s.yaml", suite)
    two_commits(history, "helper.py")
    assert times(history) == (BEFORE, AFTER)


def test_a_folder_of_a_larger_repository(history):
    layout = 'packages = ["mini"]'
    history.package("libs/mini/mini", module="mini", layout=layout)
    (history.path / "pyproject.toml").unlink()
    history.pyproject(layout, folder="libs/mini")
    history.configure(repo_subdir="libs/mini")
    history.put("libs/other/mini/helper.py", "SECONDS = 1.0\n")  # of the same name
    two_commits(history, "libs/mini/mini/helper.py")
    assert times(history) == (BEFORE, AFTER)


@pytest.mark.thorough
def test_two_packages_of_one_repository(history):
    history.package(layout='packages = ["mini", "common"]')
    history.put("common/__init__.py", "")
    seconds = KERNEL.format(imports="from common import helper", seconds="helper.SECONDS")
    history.put("mini/kernels.py", seconds)
    two_commits(history, "common/helper.py")
    assert times(history) == (BEFORE, AFTER)


@pytest.mark.thorough
def test_a_setup_script_alone(history):
    history.package()
    (history.path / "pyproject.toml").unlink()
    history.put(
        "setup.py",
        "from setuptools import setup\nNAME = 'mini'\n"
        "setup(name=NAME, version='1.0', packages=['mini'])\n",
    )
    two_commits(history)
    assert times(history) == (BEFORE, AFTER)


def test_an_editable_install_of_the_checkout(history):
    history.package()
    history.configure(build=(), install=(EDITABLE,))
    two_commits(history)
    assert times(history) == (BEFORE, AFTER)


@pytest.mark.thorough
def test_data_that_the_kernel_reads(history):
    history.package(layout='packages = ["mini"]\npackage-data = {"mini" = ["*.json"]}')
    imports = "import json\nfrom pathlib import Path\n"
    imports += 'SECONDS = json.loads(Path(__file__).with_name("facts.json").read_text())'
    history.put("mini/kernels.py", KERNEL.format(imports=imports, seconds="SECONDS"))
    for tag, seconds in (("before", BEFORE), ("after", AFTER)):
        history.put("mini/facts.json", json.dumps(seconds))
        history.save(tag)
    history.measure("before", "after")
    assert times(history) == (BEFORE, AFTER)


VERSIONED = """\
from pathlib import Path
from setuptools import setup
Path("mini/_version.py").write_text("__version__ = '1.0+g1234567'\\n")
init = Path("mini/__init__.py")
init.write_text(init.read_text().replace("0.0.0", "1.0"))
setup(name="mini", version="1.0", packages=["mini"])
"""


@pytest.mark.thorough
def test_a_build_that_writes_the_version_into_files(history):
    history.package()
    (history.path / "pyproject.toml").unlink()
    history.put("setup.py", VERSIONED)
    history.put("mini/_version.py", "import subprocess\n__version__ = 'of git'\n")
    history.put("mini/__init__.py", "__version__ = '0.0.0'\n")
    two_commits(history)
    assert times(history) == (BEFORE, AFTER)


@pytest.mark.thorough
def test_a_checkout_with_other_ends_of_lines(history):
    history.package()
    history.put(".gitattributes", "*.py text eol=crlf\n")
    two_commits(history)
    assert times(history) == (BEFORE, AFTER)


EXTENSION = """\
#include <Python.h>
static PyObject *seconds(PyObject *self, PyObject *none) {{ return PyFloat_FromDouble({}); }}
static PyMethodDef methods[] = {{{{"seconds", seconds, METH_NOARGS, ""}}, {{NULL, NULL, 0, NULL}}}};
static struct PyModuleDef module = {{PyModuleDef_HEAD_INIT, "fast", NULL, -1, methods}};
PyMODINIT_FUNC PyInit_fast(void) {{ return PyModule_Create(&module); }}
"""

SETUP_OF_EXTENSION = """\
from setuptools import Extension, setup
setup(name="mini", version="1.0", packages=["mini"],
      ext_modules=[Extension("mini.fast", ["mini/fast.c"])])
"""


def with_extension(history: History) -> None:
    """The kernel's time comes from an extension module, and nothing else changes."""
    history.package()
    (history.path / "pyproject.toml").unlink()
    history.put("setup.py", SETUP_OF_EXTENSION)
    seconds = KERNEL.format(imports="from mini import fast", seconds="fast.seconds()")
    history.put("mini/kernels.py", seconds)
    for tag, value in (("before", BEFORE), ("after", AFTER)):
        history.put("mini/fast.c", EXTENSION.format(value))
        history.save(tag)


@pytest.mark.skipif(sys.platform == "win32", reason="compiles C")
def test_an_extension_module(history):
    with_extension(history)
    history.measure("before", "after")
    assert times(history) == (BEFORE, AFTER)


@pytest.mark.skipif(sys.platform == "win32", reason="compiles C")
def test_an_extension_module_that_stays_from_the_commit_before_is_not_measured(history):
    with_extension(history)
    history.measure("before")
    history.configure(**KEEPING)
    out = history.measure("after", code=2)
    assert times(history) == (BEFORE, None)
    assert "mini/fast" in str(history.reason("after")) or "fast." in str(history.reason("after"))
    assert "--force-reinstall" in out


# --- what does not run the commit


def test_a_package_that_pip_leaves_in_place_is_not_measured(history):
    history.package()
    history.commit_seconds("before", BEFORE)
    history.commit_seconds("after", AFTER)
    history.measure("before")
    history.configure(**KEEPING)
    out = history.measure("after", code=2)
    assert times(history) == (BEFORE, None)
    first = history.git("rev-parse", "before")[:8]
    assert history.statuses("after") == {"plain": "failed", "kernel": "failed"}
    assert f"pip kept the package of {first}" in str(history.reason("after"))
    assert "--force-reinstall" in str(history.reason("after"))
    assert "Traceback" not in out
    assert out.count("is not that of the commit") == 1, out  # one cause is told once


@pytest.mark.parametrize("options", ["", pytest.param("-e ", marks=pytest.mark.thorough)])
def test_the_working_tree_is_not_measured_as_an_older_commit(history, options):
    history.package()
    install = (
        "in-dir={env_dir} python -m pip install --no-deps --no-build-isolation --force-reinstall "
    )
    history.configure(build=(), install=(f"{install}{options}{{conf_dir}}",))
    history.commit_seconds("before", BEFORE)
    history.commit_seconds("after", AFTER)
    history.measure("after")
    history.measure("before", code=2)
    assert times(history) == (None, AFTER)
    assert "asv.conf.json" in str(history.reason("before"))


def test_uncommitted_code_is_not_measured_as_the_newest_commit(history):
    history.package()
    install = "in-dir={env_dir} python -m pip install --no-deps --no-build-isolation -e {conf_dir}"
    history.configure(build=(), install=(install,))
    history.commit_seconds("after", BEFORE)
    history.put("mini/helper.py", "SECONDS = 0.5\n")
    history.measure("after", code=2)
    assert history.seconds("after") is None
    assert "mini/helper.py" in str(history.reason("after"))


@pytest.mark.thorough
def test_kernels_among_the_benchmarks_are_those_of_the_working_tree(history):
    history.package()
    kernels = KERNEL.format(imports="SECONDS = 0.001", seconds="SECONDS")
    suite = (history.path / "suites/s.yaml").read_text()
    history.put("suites/s.yaml", suite.replace("mini.kernels", "benchmarks.kernels"))
    history.put("benchmarks/kernels.py", kernels)
    history.commit_seconds("before", BEFORE)
    history.put("benchmarks/kernels.py", kernels.replace("0.001", "0.007"))
    history.save("after")
    history.measure("after")
    history.measure("before", code=2)
    assert times(history) == (None, AFTER)
    assert "benchmarks/kernels.py" in str(history.reason("before"))


# --- code that was compiled before

NUMBA_HELPER = """\
from numba import njit

@njit(cache=True)
def seconds():
    return {}
"""

NUMBA_KERNEL = KERNEL.format(
    imports="""\
from numba import njit
from mini import helper


@njit(cache=True)
def seconds():
    return helper.seconds()
""",
    seconds="seconds()",
)


def with_compiled_helper(history: History, helper: str = NUMBA_HELPER) -> None:
    """What is compiled and kept calls a function of another module, which alone changes."""
    history.package()
    history.put("mini/kernels.py", NUMBA_KERNEL)
    for tag, value in (("before", BEFORE), ("after", AFTER)):
        history.put("mini/helper.py", helper.format(value))
        history.save(tag)


@pytest.mark.parametrize(
    "install",
    [
        (INSTALL, COMPILE),
        pytest.param(
            (EDITABLE,),
            marks=pytest.mark.thorough,  # tests/measure/test_caches.py has its rule
        ),
    ],
    ids=["a wheel, compiled ahead", "editable"],
)
def test_a_compiled_function_of_another_module(history, install):
    with_compiled_helper(history)
    history.configure(install=install)
    history.measure("before", "after", "before")
    assert times(history) == (BEFORE, AFTER)


@pytest.mark.thorough
def test_a_folder_for_compiled_code_that_the_user_names(history):
    with_compiled_helper(history)
    history.environment["NUMBA_CACHE_DIR"] = str(history.path.parent / "kept")
    history.measure("before", "after")
    assert times(history) == (BEFORE, AFTER)


@pytest.mark.thorough
def test_kernels_that_another_module_of_the_benchmarks_has_imported(history):
    with_compiled_helper(history)
    history.configure(install=(EDITABLE,))
    history.put("benchmarks/another.py", "import mini.kernels\n\ndef time_it():\n    pass\n")
    history.measure("before", "after")
    assert times(history) == (BEFORE, AFTER)


@pytest.mark.thorough
def test_a_number_that_was_compiled_into_a_function(history):
    helper = "import json\nfrom pathlib import Path\nfrom numba import njit\n"
    helper += 'SECONDS = json.loads(Path(__file__).with_name("facts.json").read_text())\n'
    helper += "@njit(cache=True)\ndef seconds():\n    return SECONDS\n"
    history.package(layout='packages = ["mini"]\npackage-data = {"mini" = ["*.json"]}')
    history.put("mini/kernels.py", NUMBA_KERNEL)
    history.put("mini/helper.py", helper)
    for tag, value in (("before", BEFORE), ("after", AFTER)):
        history.put("mini/facts.json", json.dumps(value))
        history.save(tag)
    history.measure("before", "after")
    assert times(history) == (BEFORE, AFTER)


@pytest.mark.thorough
def test_a_process_for_each_case(history):
    with_compiled_helper(history)
    history.configure(launch_method="spawn", build=(BUILD,))
    history.measure("before", "after")
    assert times(history) == (BEFORE, AFTER)
    assert K in history.benchmarks()
