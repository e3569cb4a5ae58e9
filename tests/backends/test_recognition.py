"""Which backend an implementation is for, told from small real modules."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from gpubench.backends import registry
from gpubench.backends.definitions import source_text
from gpubench.backends.recognition import recognise
from gpubench.errors import KernelError
from gpubench.suite.model import Implementation

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a module of its own name beside others, importable in this test only."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def written(text: str, name: str = "little_kernels") -> str:
        path = tmp_path / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return name

    yield written
    for name in set(sys.modules) - before:
        if name.startswith("little"):
            del sys.modules[name]


DECORATED = {
    "a plain function": ("def f(a): return a + 1", "numpy"),
    "a lambda": ("f = lambda a: a + 1", "numpy"),
    "a NumPy ufunc": ("import numpy as np\nf = np.add", "numpy"),
    "njit": ("from numba import njit\n@njit\ndef f(a): return a", "numba"),
    "njit with options": (
        "from numba import njit\n@njit(parallel=True)\ndef f(a): return a",
        "numba",
    ),
    "numba.jit": ("import numba\n@numba.jit\ndef f(a): return a", "numba"),
    "a renamed import": ("import numba as nb\n@nb.njit()\ndef f(a): return a", "numba"),
    "vectorize": (
        "from numba import vectorize\n@vectorize(['f4(f4)'])\ndef f(a): return a",
        "numba",
    ),
    "vectorize for CUDA": (
        "from numba import vectorize\n@vectorize(['f4(f4)'], target='cuda')\ndef f(a): return a",
        "numba_cuda",
    ),
    "guvectorize in parallel": (
        "import numba\n@numba.guvectorize(['f4[:],f4[:]'], '(n)->(n)', target='parallel')\n"
        "def f(a, b): pass",
        "numba",
    ),
    "cuda.jit": ("from numba import cuda\n@cuda.jit\ndef f(a): pass", "numba_cuda"),
    "numba.cuda.jit": ("import numba.cuda\n@numba.cuda.jit\ndef f(a): pass", "numba_cuda"),
    "an import that may fail": (
        "try:\n    from numba import cuda\nexcept ImportError:\n    cuda = None\n"
        "if cuda:\n    @cuda.jit\n    def f(a): pass",
        "numba_cuda",
    ),
    "an own name for a decorator": (
        "import numba\nfast = numba.njit(fastmath=True)\n@fast\ndef f(a): return a",
        "numba",
    ),
    "a partial decorator": (
        "import functools, numba\nfast = functools.partial(numba.njit, nogil=True)\n"
        "@fast()\ndef f(a): return a",
        "numba",
    ),
    "a decorated value": ("from numba import njit\ndef g(a): return a\nf = njit(g)", "numba"),
    "a second name": ("from numba import njit\n@njit\ndef g(a): return a\nf = g", "numba"),
}


@pytest.mark.parametrize("case", DECORATED)
def test_a_function_is_recognised_from_its_source(case: str, write: Write) -> None:
    text, backend = DECORATED[case]
    module = write(text)

    assert recognise(Implementation(function=f"{module}:f")) == backend
    assert module not in sys.modules


def test_a_function_imported_from_elsewhere_is_looked_up_there(write: Write) -> None:
    write("from numba import njit\n@njit\ndef deep(a): return a", "little_package.inner")
    write("from .inner import deep as f", "little_package.__init__")

    assert recognise(Implementation(function="little_package:f")) == "numba"
    assert "little_package" not in sys.modules


FACTORIES = {
    "a kernel defined inside": (
        """
        from numba import cuda
        def make(tile):
            @cuda.jit
            def kernel(a): pass
            return kernel
        """,
        "numba_cuda",
    ),
    "a function compiled on return": (
        """
        import numba
        def make(tile):
            def kernel(a): return a
            return numba.njit(parallel=True)(kernel)
        """,
        "numba",
    ),
    "imports of its own": (
        """
        def make(tile):
            from numba import cuda
            @cuda.jit
            def kernel(a): pass
            if tile > 2:
                return kernel
            return kernel
        """,
        "numba_cuda",
    ),
    "what another factory makes": (
        """
        from numba import njit
        def other(tile):
            @njit
            def kernel(a): return a
            return kernel
        def make(tile):
            return other(2 * tile)
        """,
        "numba",
    ),
}


@pytest.mark.parametrize("case", FACTORIES)
def test_a_factory_is_what_it_returns(case: str, write: Write) -> None:
    text, backend = FACTORIES[case]
    module = write(text)

    assert recognise(Implementation(factory=f"{module}:make")) == backend


def test_a_launcher_is_what_it_launches(write: Write) -> None:
    write("from numba import cuda\n@cuda.jit\ndef second(a): pass", "little_other")
    module = write(
        """
        from numba import cuda
        from little_other import second

        @cuda.jit
        def first(a): pass

        def run(launch, a):
            first[launch.grid, launch.block, launch.stream](a)
            second[1, 32, launch.stream](a)
        """
    )

    assert recognise(Implementation(launcher=f"{module}:run")) == "numba_cuda"


def test_a_launcher_that_does_not_show_it_is_what_its_names_are(write: Write) -> None:
    module = write(
        """
        from numba import cuda

        @cuda.jit
        def kernel(a): pass

        def configured(kernel, launch):
            return kernel[launch.grid, launch.block, launch.stream]

        def run(launch, a):
            configured(kernel, launch)(a)
        """
    )

    assert recognise(Implementation(launcher=f"{module}:run")) == "numba_cuda"


def test_backends_are_asked_where_the_source_does_not_tell(write: Write) -> None:
    module = write(
        """
        import functools
        def traced(function):
            return functools.wraps(function)(lambda *a: function(*a))
        @traced
        def f(a): return a
        """
    )

    assert recognise(Implementation(function=f"{module}:f")) == "numpy"
    assert module in sys.modules


def test_a_factory_that_shows_nothing_needs_a_backend(write: Write) -> None:
    module = write("def make(tile): return globals()['kernel']")

    with pytest.raises(KernelError) as error:
        recognise(Implementation(factory=f"{module}:make"))

    assert str(error.value) == (
        "cannot tell which backend runs 'little_kernels:make': write `backend:`, one of "
        + ", ".join(registry.names())
    )


def test_a_source_file_needs_a_backend() -> None:
    with pytest.raises(KernelError, match=r"^cannot tell which backend runs source 'add\.cl'"):
        recognise(Implementation.model_construct(source="add.cl", entry="add"))


MISSING = {
    "little_kernels:norm_cpu": "module 'little_kernels' has no 'norm_cpu'; "
    "did you mean 'norm_cuda'?",
    "little_kernels:xyz": "module 'little_kernels' has no 'xyz'",
    "little_package.iner:f": "there is no module 'little_package.iner': package 'little_package' "
    "has no 'iner'; did you mean 'inner'?",
    "little_kernels.inner:f": "there is no module 'little_kernels.inner': module 'little_kernels' "
    "has no 'inner'",
    "nowhere_at_all:f": "there is no module 'nowhere_at_all': install the package that has it, "
    "or run from the folder it is in",
}


@pytest.mark.parametrize("reference", MISSING)
def test_what_is_missing_is_named_with_the_nearest(reference: str, write: Write) -> None:
    write("def norm_cuda(a): return a")
    write("def f(a): return a", "little_package.inner")
    write("", "little_package.__init__")

    with pytest.raises(KernelError) as error:
        recognise(Implementation(function=reference))

    assert str(error.value) == MISSING[reference]


def test_a_module_that_fails_to_import_says_why(write: Write) -> None:
    module = write("import not_there_at_all\n@not_there_at_all.jit\ndef f(a): return a")

    with pytest.raises(KernelError) as error:
        recognise(Implementation(function=f"{module}:f"))

    assert str(error.value) == (
        "cannot import 'little_kernels': ModuleNotFoundError: No module named 'not_there_at_all'"
    )


def test_a_module_that_is_no_python_says_where(write: Write, tmp_path: Path) -> None:
    module = write("def f(:")

    with pytest.raises(KernelError, match=r"^cannot read module 'little_kernels' \(.*\): Syntax"):
        recognise(Implementation(function=f"{module}:f"))


def test_a_changed_file_is_read_again(write: Write) -> None:
    module = write("def f(a): return a")
    assert recognise(Implementation(function=f"{module}:f")) == "numpy"

    write("from numba import njit  # longer than before\n@njit\ndef f(a): return a")

    assert recognise(Implementation(function=f"{module}:f")) == "numba"


def test_recognising_imports_no_numba(write: Write, tmp_path: Path) -> None:
    module = write("from numba import cuda\n@cuda.jit\ndef f(a): pass")
    script = (
        "import sys; from gpubench.backends.recognition import recognise; "
        "from gpubench.suite.model import Implementation; "
        f"print(recognise(Implementation(function='{module}:f')), 'numba' in sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["numba_cuda", "False"]


def test_the_source_of_a_function_is_read_with_its_decorators(write: Write) -> None:
    module = write("import numba\n\n@numba.njit\ndef f(a):\n    return a\n\nx = 1\n")

    text = source_text(Implementation(function=f"{module}:f"), "suite.yaml")

    assert text == "@numba.njit\ndef f(a):\n    return a\n"
    assert module not in sys.modules


def test_the_text_of_a_source_file_is_read_beside_the_suite(tmp_path: Path) -> None:
    (tmp_path / "add.cl").write_text("kernel void add() {}", encoding="utf-8")
    implementation = Implementation.model_construct(source="add.cl", entry="add")

    assert source_text(implementation, tmp_path / "suite.yaml") == "kernel void add() {}"


def test_what_cannot_be_shown_is_named() -> None:
    assert source_text(Implementation(function="nowhere:f"), "suite.yaml") == "nowhere:f"
